"""What is in a GGUF file of the Llama family: sizes, weights as 32-bit floats, vocabulary, chat template."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gguf import GGUFReader, ReaderTensor
from gguf.quants import dequantize

from ragworth.errors import ModelError, listed
from ragworth.llm.local.bpe import CONTROL, Vocabulary
from ragworth.llm.local.onnx_weights import BLOCK, Floats, Sizes

NAMES = {
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
"""Names of weights in GGUF files, and those of the transformers library."""

_NAME = re.compile(r"(?:blk\.(?P<layer>\d+)\.)?(?P<kind>\w+)\.weight")

ENDS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>", "</s>")
"""How control tokens that end a turn are spelt. Not all files name all of theirs."""


class Gguf(NamedTuple):
    """The contents of a file."""

    name: str
    license: str
    sizes: Sizes
    weights: dict[str, Floats]
    vocabulary: Vocabulary
    bos: str
    eos: str
    ends: tuple[int, ...]
    """Tokens that end a turn."""
    chat_template: str


def read(path: Path) -> Gguf:
    """Read a file whole. Takes seconds and four bytes a weight."""
    try:
        reader = GGUFReader(path)
        fields = {name: field.contents() for name, field in reader.fields.items()}
    except OSError as error:
        raise ModelError(f"it cannot be read: {error.strerror or error}", file=str(path)) from error
    except Exception as error:  # a damaged file can make the reader fail in any way
        raise ModelError(f"it cannot be read as a GGUF file: {error}", file=str(path)) from error
    facts = _Facts(path, fields)
    facts.check()
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    sizes = facts.sizes(tensors)
    tokens, types = facts.get("tokenizer.ggml.tokens"), facts.get("tokenizer.ggml.token_type")
    named = [fields.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")]
    spelt = [n for n, (token, kind) in enumerate(zip(tokens, types, strict=True)) if kind == CONTROL and token in ENDS]
    bos = fields.get("tokenizer.ggml.bos_token_id")
    return Gguf(
        name=str(fields.get("general.name", path.stem)),
        license=str(fields.get("general.license", "")),
        sizes=sizes,
        weights=_weights(path, tensors, sizes),
        vocabulary=Vocabulary(
            tokens=tokens,
            types=types,
            merges=facts.get("tokenizer.ggml.merges"),
            splitting=str(fields.get("tokenizer.ggml.pre", "gpt-2")),
            bos=bos if fields.get("tokenizer.ggml.add_bos_token", False) else None,
        ),
        bos=tokens[bos] if bos is not None else "",
        eos=tokens[named[0]] if named[0] is not None else "",
        ends=tuple(sorted({int(n) for n in named if n is not None} | set(spelt))),
        chat_template=str(fields.get("tokenizer.chat_template", "")),
    )


@dataclass(frozen=True)
class _Facts:
    """The key-value pairs of a file."""

    path: Path
    fields: dict[str, Any]

    def get(self, name: str) -> Any:
        """A value that must be there."""
        if name not in self.fields:
            raise ModelError(f"it does not say its {name}", file=str(self.path), expected="a complete GGUF file")
        return self.fields[name]

    def check(self) -> None:
        """Refuse what would be computed wrongly."""
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
                    remedy="reader=llama.cpp or reader=transformers may know it",
                )

    def sizes(self, tensors: dict[str, ReaderTensor]) -> Sizes:
        """The shape of the decoder."""
        heads = int(self.get("llama.attention.head_count"))
        hidden = int(self.get("llama.embedding_length"))
        if "token_embd.weight" not in tensors:
            raise ModelError("it has no token_embd.weight", file=str(self.path), expected="a complete GGUF file")
        if hidden % BLOCK:
            raise ModelError(
                f"its vectors have {hidden} coordinates", file=str(self.path), expected=f"a multiple of {BLOCK}"
            )
        return Sizes(
            vocabulary=int(tensors["token_embd.weight"].shape[1]),
            hidden=hidden,
            inner=int(self.get("llama.feed_forward_length")),
            layers=int(self.get("llama.block_count")),
            heads=heads,
            kv_heads=int(self.fields.get("llama.attention.head_count_kv", heads)),
            head=int(self.fields.get("llama.attention.key_length", hidden // heads)),
            context=int(self.get("llama.context_length")),
            theta=float(self.fields.get("llama.rope.freq_base", 10000.0)),
            epsilon=float(self.get("llama.attention.layer_norm_rms_epsilon")),
        )


def _weights(path: Path, tensors: dict[str, ReaderTensor], sizes: Sizes) -> dict[str, Floats]:
    """All weights by the names and in the layout of the transformers library."""
    weights: dict[str, Floats] = {}
    unknown = []
    for name, tensor in tensors.items():
        found = _NAME.fullmatch(name)
        if found is None or found["kind"] not in NAMES:
            unknown.append(name)
            continue
        try:
            value: Floats = np.asarray(dequantize(tensor.data, tensor.tensor_type), np.float32)
        except NotImplementedError as error:
            raise ModelError(f"its {name} is packed as {tensor.tensor_type.name}", file=str(path)) from error
        if found["kind"] in ("attn_q", "attn_k"):
            value = _paired_by_halves(value, sizes.heads if found["kind"] == "attn_q" else sizes.kv_heads)
        layer = f"model.layers.{found['layer']}." if found["layer"] else ""
        weights[f"{layer}{NAMES[found['kind']]}.weight"] = value
    if unknown:
        raise ModelError(f"it has weights of unknown use: {listed(unknown)}", file=str(path), expected="a plain Llama")
    return weights


def _paired_by_halves(rows: Floats, heads: int) -> Floats:
    """GGUF files have the two coordinates that are rotated together side by side; here one is in each half."""
    return rows.reshape(heads, -1, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)
