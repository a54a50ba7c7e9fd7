"""GGUF files that announce more than they hold are refused at once, whichever library would read them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gguf")
pytest.importorskip("tokenizers")

from ragworth.core.errors import ModelError
from ragworth.llm.local import gguf_file
from tests.llm.local import made_gguf

HEAD = b"GGUF" + struct.pack("<I", 3)
HUGE = 1 << 60


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def field(name: bytes, kind: int, value: bytes) -> bytes:
    return HEAD + struct.pack("<QQ", 0, 1) + text(name) + struct.pack("<I", kind) + value


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (HEAD + struct.pack("<QQ", HUGE, 0), "tensors, more than fit"),
        (field(b"a", 9, struct.pack("<IQ", 4, HUGE)), "values of 'a', more than fit"),
        (field(b"a", 8, struct.pack("<Q", HUGE)), "'a' has 1,152,921,504,606,846,976 bytes"),
        (field(b"a", 9, struct.pack("<IQ", 9, 1) * 9), "a value of type 9 in 'a'"),
        (HEAD + struct.pack("<QQ", 0, 1) + struct.pack("<Q", HUGE) + bytes(20), "the name of a field"),
        (HEAD + struct.pack("<QQ", 1, 0) + text(b"t") + struct.pack("<I", 1 << 30) + bytes(64), "dimensions"),
        (HEAD + struct.pack("<QQ", 1, 0) + text(b"t") + struct.pack("<IQQIQ", 2, HUGE, HUGE, 0, 0), "larger than"),
        (b"GGUF" + struct.pack("<I", 77) + bytes(64), "version 77"),
        (HEAD, "too early"),
    ],
)
def test_a_header_that_announces_too_much_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "hostile.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=words) as error:
        gguf_file.read_gguf(path)
    assert error.value.file == str(path)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"llama.context_length": 1 << 31}, "llama.context_length is '2147483648'"),
        ({"llama.attention.head_count_kv": 4096}, "head_count_kv is '4096'"),
        ({"llama.block_count": 700}, "it lacks weights: blk.2.attn_norm.weight"),
        ({"tokenizer.ggml.bos_token_id": 1 << 20}, "contradict"),
    ],
)
def test_sizes_that_cannot_be_are_refused(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        gguf_file.read_gguf(made_gguf.write(tmp_path / "odd.gguf", **fields))
