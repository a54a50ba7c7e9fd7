"""Compressed replies: every form that servers send, and none that can do harm."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.llm.openai.compression import DECODED_BYTES, decoder_for
from ragworth.llm.openai.errors import EndpointError

FORMS = {"gzip": 31, "x-gzip": 31, "deflate": 15, "deflate without a header": -15}


def compressed(data: bytes, form: str) -> bytes:
    maker = zlib.compressobj(9, zlib.DEFLATED, FORMS[form])
    return maker.compress(data) + maker.flush()


def decoded(chunks: Iterable[bytes], encoding: str) -> bytes:
    decoder = decoder_for(encoding)
    assert decoder is not None
    found = b"".join(piece for chunk in chunks for piece in decoder.decode(chunk))
    decoder.finish()
    return found


@given(st.binary(max_size=300), st.sampled_from(sorted(FORMS)), st.integers(1, 20), st.binary(max_size=3))
def test_every_form_in_chunks_of_any_size(data: bytes, form: str, size: int, after: bytes) -> None:
    packed = compressed(data, form) + after
    chunks = [packed[start : start + size] for start in range(0, len(packed), size)]
    assert decoded(chunks, form.partition(" ")[0]) == data


def test_pieces_have_a_size() -> None:
    data = bytes(5 * DECODED_BYTES + 1)
    decoder = decoder_for("gzip")
    assert decoder is not None
    sizes = [len(piece) for piece in decoder.decode(compressed(data, "gzip"))]
    assert sum(sizes) == len(data)
    assert max(sizes) == DECODED_BYTES


@pytest.mark.parametrize("encoding", ["", "identity", " Identity , identity"])
def test_nothing_to_decode(encoding: str) -> None:
    assert decoder_for(encoding) is None


@pytest.mark.parametrize(
    "encoding", ["gzip, gzip", "GZIP,gzip", "gzip, deflate", "deflate, identity, gzip", "br", "zstd", "compress", "x"]
)
def test_one_layer_and_no_other_form(encoding: str) -> None:
    with pytest.raises(EndpointError, match="malformed"):
        decoder_for(encoding)


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("damage", ["cut short", "damaged"])
def test_damage(form: str, damage: str) -> None:
    packed = bytearray(compressed(bytes(range(256)) * 9, form))
    if damage == "cut short":
        del packed[-20:]
    else:
        packed[2:6] = b"\xff\xff\xff\xff"
    with pytest.raises(EndpointError) as caught:
        decoded([bytes(packed)], form.partition(" ")[0])
    assert caught.value.failure.reason == "malformed"
