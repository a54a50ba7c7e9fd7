"""Read a GGUF file of the Llama family: sizes, weights as 32-bit floats, vocabulary, chat template."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gguf import GGUFReader, ReaderTensor
from gguf.quants import dequantize

from ragworth.core.errors import ModelError, format_list, quote_short
from ragworth.llm.local import gguf_header
from ragworth.llm.local.bpe import CONTROL, Vocabulary
from ragworth.llm.local.onnx_weights import BLOCK, DecoderShape, Floats

WEIGHT_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "rope_freqs": "model.rope_factors",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""Names of weights in GGUF files, and in the transformers library."""

_TENSOR_NAME = re.compile(r"(?:blk\.(?P<layer>\d+)\.)?(?P<kind>\w+)\.weight")

END_TOKENS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>", "</s>")
"""Spellings of control tokens that end a turn. Not all files list all of theirs."""


class GgufContents(NamedTuple):
    name: str
    license: str
    sizes: DecoderShape
    weights: dict[str, Floats]
    vocabulary: Vocabulary
    bos: str
    eos: str
    ends: tuple[int, ...]
    """Tokens that end a turn."""
    chat_template: str


class _PlainReader(GGUFReader):  # type: ignore[misc]  # gguf has no types
    """Reads slices of a plain array. Those of the memory map itself take three times as long."""

    @property
    def data(self) -> Any:
        return self._data

    @data.setter
    def data(self, mapped: Any) -> None:
        self._data = np.asarray(mapped)


def read_gguf(path: Path) -> GgufContents:
    """Read a whole file. Takes seconds and four bytes per weight."""
    with _reading(path) as (reader, fields):
        return _read_contents(path, reader, fields)


def read_vocabulary(path: Path) -> Vocabulary:
    """Read only what a tokenizer needs."""
    with _reading(path) as (_, fields):
        facts = _GgufMetadata(path, fields)
        facts.check()
        return facts.vocabulary()


@contextmanager
def _reading(path: Path) -> Iterator[tuple[GGUFReader, dict[str, Any]]]:
    """Open a file and read its fields. Errors in the block are those of a file whose fields don't fit together."""
    gguf_header.check_header(path)
    try:
        reader = _PlainReader(path)
        fields = {name: field.contents() for name, field in reader.fields.items()}
    except OSError as error:
        raise ModelError(f"it cannot be read: {error.strerror or error}", file=str(path)) from error
    except Exception as error:  # a damaged file can make the reader fail in any way
        raise ModelError(f"it cannot be read as a GGUF file: {error}", file=str(path)) from error
    try:
        yield reader, fields
    except (ArithmeticError, IndexError, TypeError, ValueError) as error:  # a field has an impossible value
        raise ModelError(
            f"its fields contradict each other: {error}", file=str(path), expected="a complete GGUF file"
        ) from error


def _read_contents(path: Path, reader: GGUFReader, fields: dict[str, Any]) -> GgufContents:
    facts = _GgufMetadata(path, fields)
    facts.check()
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    sizes = facts.sizes(tensors)
    vocabulary = facts.vocabulary()
    tokens, types = vocabulary.tokens, vocabulary.types
    named = [fields.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")]
    spelt = [
        n for n, (token, kind) in enumerate(zip(tokens, types, strict=True)) if kind == CONTROL and token in END_TOKENS
    ]
    bos = fields.get("tokenizer.ggml.bos_token_id")
    return GgufContents(
        name=str(fields.get("general.name", path.stem)),
        license=str(fields.get("general.license", "")),
        sizes=sizes,
        weights=_read_weights(path, tensors, sizes),
        vocabulary=vocabulary,
        bos=tokens[bos] if bos is not None else "",
        eos=tokens[named[0]] if named[0] is not None else "",
        ends=tuple(sorted({int(n) for n in named if n is not None} | set(spelt))),
        chat_template=str(fields.get("tokenizer.chat_template", "")),
    )


@dataclass(frozen=True)
class _GgufMetadata:
    """The key-value pairs of a file."""

    path: Path
    fields: dict[str, Any]

    def get(self, name: str) -> Any:
        """Return a required value."""
        if name not in self.fields:
            raise ModelError(f"it lacks {name}", file=str(self.path), expected="a complete GGUF file")
        return self.fields[name]

    def check(self) -> None:
        """Reject models that would be computed wrongly."""
        wanted = {
            "general.architecture": "llama",
            "tokenizer.ggml.model": "gpt2",
            "llama.expert_count": 0,
            "llama.rope.scaling.type": "none",
        }
        for name, value in wanted.items():
            found = self.fields.get(name, value)
            if found != value:
                raise ModelError(
                    f"its {name} is {found!r}",
                    file=str(self.path),
                    expected=repr(value),
                    remedy="reader=llama.cpp may support it",
                )

    def vocabulary(self) -> Vocabulary:
        adds_bos = self.fields.get("tokenizer.ggml.add_bos_token", False)
        return Vocabulary(
            tokens=self.get("tokenizer.ggml.tokens"),
            types=self.get("tokenizer.ggml.token_type"),
            merges=self.get("tokenizer.ggml.merges"),
            splitting=str(self.fields.get("tokenizer.ggml.pre", "gpt-2")),
            bos=self.fields.get("tokenizer.ggml.bos_token_id") if adds_bos else None,
        )

    def sizes(self, tensors: dict[str, ReaderTensor]) -> DecoderShape:
        """Read the shape of the decoder."""
        heads = self._size("llama.attention.head_count", 1 << 10)
        hidden = self._size("llama.embedding_length", 1 << 17)
        if "token_embd.weight" not in tensors:
            raise ModelError("it has no token_embd.weight", file=str(self.path), expected="a complete GGUF file")
        if hidden % BLOCK:
            raise ModelError(
                f"its vectors have {hidden} coordinates", file=str(self.path), expected=f"a multiple of {BLOCK}"
            )
        return DecoderShape(
            vocabulary=int(tensors["token_embd.weight"].shape[1]),
            hidden=hidden,
            inner=self._size("llama.feed_forward_length", 1 << 20),
            layers=self._size("llama.block_count", 1 << 10),
            heads=heads,
            kv_heads=self._size("llama.attention.head_count_kv", heads, heads),
            head=self._size("llama.attention.key_length", 1 << 10, hidden // heads),
            context=self._size("llama.context_length", 1 << 20),
            theta=float(self.fields.get("llama.rope.freq_base", 10000.0)),
            epsilon=float(self.get("llama.attention.layer_norm_rms_epsilon")),
        )

    def _size(self, name: str, most: int, default: int | None = None) -> int:
        """Read a size, limited because memory is allocated for it."""
        found = self.get(name) if default is None else self.fields.get(name, default)
        if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= most:
            raise ModelError(f"its {name} is {quote_short(found)}", file=str(self.path), expected=f"1 to {most:,}")
        return found


def _read_weights(path: Path, tensors: dict[str, ReaderTensor], sizes: DecoderShape) -> dict[str, Floats]:
    """All weights, by the names and in the layout of the transformers library."""
    weights: dict[str, Floats] = {}
    unknown = []
    for name, tensor in tensors.items():
        found = _TENSOR_NAME.fullmatch(name)
        if found is None or found["kind"] not in WEIGHT_NAMES:
            unknown.append(name)
            continue
        try:
            value: Floats = np.asarray(dequantize(tensor.data, tensor.tensor_type), np.float32)
        except NotImplementedError as error:
            raise ModelError(f"its {name} is packed as {tensor.tensor_type.name}", file=str(path)) from error
        if found["kind"] in ("attn_q", "attn_k"):
            value = _unpermute_rotary(value, sizes.heads if found["kind"] == "attn_q" else sizes.kv_heads)
        layer = f"model.layers.{found['layer']}." if found["layer"] else ""
        weights[f"{layer}{WEIGHT_NAMES[found['kind']]}.weight"] = value
    if unknown:
        raise ModelError(f"it has unknown weights: {format_list(unknown)}", file=str(path), expected="a plain Llama")
    lacking = [name for name in _required_weights(sizes) if name not in tensors]
    if lacking:
        raise ModelError(f"it lacks weights: {format_list(lacking)}", file=str(path), expected="a complete GGUF file")
    return weights


def _required_weights(sizes: DecoderShape) -> list[str]:
    """Names of the weights that every file has."""
    of_layer = [kind for kind in WEIGHT_NAMES if kind.startswith(("attn_", "ffn_"))]
    layers = [f"blk.{n}.{kind}.weight" for n in range(sizes.layers) for kind in of_layer]
    return ["token_embd.weight", "output_norm.weight", *layers]


def _unpermute_rotary(rows: Floats, heads: int) -> Floats:
    """GGUF files have the two coordinates that are rotated together side by side; here one is in each half."""
    return rows.reshape(heads, -1, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)
