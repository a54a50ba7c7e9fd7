"""Compressed replies: gzip, which is asked for, and nothing that can do harm."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.llm.openai.client import PIECE_BYTES, decoder_for
from ragworth.llm.openai.replies import EndpointError


def compressed(data: bytes) -> bytes:
    maker = zlib.compressobj(9, zlib.DEFLATED, 31)
    return maker.compress(data) + maker.flush()


def decoded(chunks: Iterable[bytes]) -> bytes:
    decoder = decoder_for("gzip")
    assert decoder is not None
    found = b"".join(piece for chunk in chunks for piece in decoder.decode(chunk))
    decoder.finish()
    return found


@given(st.binary(max_size=300), st.integers(1, 20), st.binary(max_size=3))
def test_chunks_of_any_size(data: bytes, size: int, after: bytes) -> None:
    packed = compressed(data) + after
    chunks = [packed[start : start + size] for start in range(0, len(packed), size)]
    assert decoded(chunks) == data


def test_pieces_have_a_size() -> None:
    data = bytes(5 * PIECE_BYTES + 1)
    decoder = decoder_for("gzip")
    assert decoder is not None
    sizes = [len(piece) for piece in decoder.decode(compressed(data))]
    assert sum(sizes) == len(data)
    assert max(sizes) == PIECE_BYTES


@pytest.mark.parametrize("encoding", ["", "identity", " Identity , identity"])
def test_nothing_to_decode(encoding: str) -> None:
    assert decoder_for(encoding) is None


@pytest.mark.parametrize(
    "encoding",
    ["gzip, gzip", "GZIP,gzip", "gzip, deflate", "deflate, identity, gzip", "deflate", "br", "zstd", "x"],
)
def test_one_layer_and_no_other_form(encoding: str) -> None:
    with pytest.raises(EndpointError, match="malformed"):
        decoder_for(encoding)


@pytest.mark.parametrize("damage", ["cut short", "damaged"])
def test_damage(damage: str) -> None:
    packed = bytearray(compressed(bytes(range(256)) * 9))
    if damage == "cut short":
        del packed[-20:]
    else:
        packed[2:6] = b"\xff\xff\xff\xff"
    with pytest.raises(EndpointError) as caught:
        decoded([bytes(packed)])
    assert caught.value.failure.reason == "malformed"
