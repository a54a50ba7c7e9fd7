"""Compressed replies: gzip, which is asked for, and nothing that can do harm."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.llm.openai.client import PIECE_BYTES, decompress, is_gzip
from ragworth.llm.openai.replies import EndpointError


def compressed(data: bytes) -> bytes:
    maker = zlib.compressobj(9, zlib.DEFLATED, 31)
    return maker.compress(data) + maker.flush()


@given(st.binary(max_size=300), st.integers(1, 20), st.binary(max_size=3))
def test_chunks_of_any_size(data: bytes, size: int, after: bytes) -> None:
    packed, stream = compressed(data) + after, zlib.decompressobj(31)
    chunks = [packed[start : start + size] for start in range(0, len(packed), size)]
    assert b"".join(piece for chunk in chunks for piece in decompress(stream, chunk)) == data
    assert stream.eof


def test_pieces_have_a_size() -> None:
    data = bytes(5 * PIECE_BYTES + 1)
    sizes = [len(piece) for piece in decompress(zlib.decompressobj(31), compressed(data))]
    assert sum(sizes) == len(data)
    assert max(sizes) == PIECE_BYTES


@pytest.mark.parametrize("encoding", ["", "identity", " Identity , identity"])
def test_nothing_to_decode(encoding: str) -> None:
    assert not is_gzip(encoding)


@pytest.mark.parametrize(
    "encoding",
    ["gzip, gzip", "GZIP,gzip", "gzip, deflate", "deflate, identity, gzip", "deflate", "br", "zstd", "x"],
)
def test_one_layer_and_no_other_form(encoding: str) -> None:
    with pytest.raises(EndpointError, match="malformed"):
        is_gzip(encoding)


def test_damage() -> None:
    packed = bytearray(compressed(bytes(range(256)) * 9))
    packed[2:6] = b"\xff\xff\xff\xff"
    with pytest.raises(EndpointError, match="malformed"):
        list(decompress(zlib.decompressobj(31), bytes(packed)))
