"""Read a GGUF file of the Llama family: its shape, weights as 32-bit floats, tokenizer and chat template.

Counts and lengths in a file aren't trusted: whatever its header declares has to fit into the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragworth.core.errors import ModelError, format_list, quote_short
from ragworth.llm.local.prompt_encoding import PromptEncoder, load_chat_template

T = TypeVar("T")
Floats = NDArray[np.float32]

NUMBERS = {0: "u1", 1: "i1", 2: "u2", 3: "i2", 4: "u4", 5: "i4", 6: "f4", 7: "?", 10: "u8", 11: "i8", 12: "f8"}
U32, STRING, ARRAY, U64 = 4, 8, 9, 10
"""Codes of types in a header; numbers with their names in NumPy."""

MAX_SIZE = 1 << 20
"""Largest size that a model may declare, such as its context length: memory is allocated for it."""

SUPPORTED = {
    "general.architecture": ("llama",),
    "llama.expert_count": (0,),
    "llama.rope.scaling.type": ("none",),
    "tokenizer.ggml.model": ("gpt2",),
    "tokenizer.ggml.pre": ("gpt-2", "default", "smollm", "llama-bpe"),
}
"""Values of fields; models with others would be computed wrongly."""

CONTROL, ADDED = 3, 4
"""Types of tokens: control tokens, and those that are matched before a text is split."""

END_TOKENS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>")
"""Control tokens that end a turn. Not every file lists all of its own."""

WEIGHTS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "rope_freqs": "model.rope_factors",
    "blk.{}.attn_norm": "model.layers.{}.input_layernorm",
    "blk.{}.attn_q": "model.layers.{}.self_attn.q_proj",
    "blk.{}.attn_k": "model.layers.{}.self_attn.k_proj",
    "blk.{}.attn_v": "model.layers.{}.self_attn.v_proj",
    "blk.{}.attn_output": "model.layers.{}.self_attn.o_proj",
    "blk.{}.ffn_norm": "model.layers.{}.post_attention_layernorm",
    "blk.{}.ffn_gate": "model.layers.{}.mlp.gate_proj",
    "blk.{}.ffn_up": "model.layers.{}.mlp.up_proj",
    "blk.{}.ffn_down": "model.layers.{}.mlp.down_proj",
}
"""Names of weights in GGUF files, and in the transformers library."""

OPTIONAL_WEIGHTS = ("output.weight", "rope_freqs.weight")


class StoredTensor(NamedTuple):
    """A tensor in a file: its shape, the code of its type, and where its bytes begin after the header."""

    shape: tuple[int, ...]
    code: int
    offset: int


class GgufHeader(NamedTuple):
    """Everything in a file except the bytes of its tensors, which begin at ``start``."""

    fields: dict[str, Any]
    tensors: dict[str, StoredTensor]
    start: int


@dataclass(frozen=True)
class DecoderShape:
    """The shape of a decoder of the Llama family."""

    vocabulary: int
    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    context: int
    theta: float
    epsilon: float


class PromptFacts(NamedTuple):
    """Texts of prompts besides the tokenizer."""

    chat_template: str
    special: Mapping[str, str]
    """The BOS and the EOS, as chat templates call them."""
    control: Sequence[str]
    """Spellings of control tokens."""
    ends: Sequence[int]
    """Tokens that end a turn."""


class GgufModel(NamedTuple):
    """A model in a file; weights go by their names in the transformers library, linear layers as (outputs, inputs)."""

    shape: DecoderShape
    weights: dict[str, Floats]
    tokenizer: Any
    """A tokenizer of the tokenizers library."""
    text: PromptFacts


class BpeTokenizer:
    """A tokenizer of the tokenizers library as `prompt_encoding.Tokenizer`."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def encode(self, texts: Sequence[str], *, whole: bool) -> list[list[int]]:
        return [encoding.ids for encoding in self.inner.encode_batch_fast(list(texts), add_special_tokens=whole)]

    def decode(self, ids: list[int]) -> str:
        return str(self.inner.decode(ids, skip_special_tokens=True))


def read_gguf(path: Path) -> GgufModel:
    """Read a whole file. Takes seconds and four bytes per weight."""
    return _read(path, _read_model)


def read_tokenizer(path: Path) -> Any:
    """Read only the tokenizer, as one of the tokenizers library."""
    return _read(path, lambda _, header: _build_tokenizer(header.fields))


def build_encoder(tokenizer: Any, text: PromptFacts) -> PromptEncoder:
    """Build the encoder of a model's prompts."""
    render = load_chat_template(text.chat_template, text.special) if text.chat_template else None
    return PromptEncoder(BpeTokenizer(tokenizer), render, tuple(text.control), frozenset(text.ends))


def _read(path: Path, use: Callable[[NDArray[np.uint8], GgufHeader], T]) -> T:
    """Read a file's header and use it; whatever doesn't fit together is an error that names the file."""
    try:
        data = np.asarray(np.memmap(path, np.uint8, "r"))
        return use(data, _HeaderReader(data).read())
    except ModelError as error:
        raise error.copy(file=str(path)) from error
    except OSError as error:
        raise ModelError(f"it cannot be read: {error.strerror or error}", file=str(path)) from error
    except Exception as error:  # libraries raise nothing more specific for a damaged file
        problem = f"it lacks {error}" if isinstance(error, KeyError) else f"it cannot be read as a GGUF file: {error}"
        raise ModelError(
            problem,
            file=str(path),
            expected="a complete GGUF file of a plain Llama",
            remedy="download it again, from a source that you trust",
        ) from error


class _HeaderReader:
    """Reads a header from front to back."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._data = data.data
        self._place = 0

    def read(self) -> GgufHeader:
        if bytes(self._take(4)) != b"GGUF":
            raise ValueError("it doesn't begin with GGUF")
        version, tensors, fields = self._number(U32), self._number(U64), self._number(U64)
        if version not in (2, 3):
            raise ValueError(f"its version is {version}, not 2 or 3")
        values = {self._text(): self._value(self._number(U32)) for _ in range(fields)}
        stored = {self._text(): self._tensor() for _ in range(tensors)}
        alignment = values.get("general.alignment", 32)
        return GgufHeader(values, stored, -(-self._place // alignment) * alignment)

    def _value(self, code: int) -> Any:
        if code == STRING:
            return self._text()
        if code != ARRAY:
            return self._number(code)
        code, count = self._number(U32), self._number(U64)
        return [self._text() for _ in range(count)] if code == STRING else self._numbers(code, count)

    def _tensor(self) -> StoredTensor:
        shape = self._numbers(U64, self._number(U32))
        return StoredTensor(tuple(reversed(shape)), self._number(U32), self._number(U64))

    def _text(self) -> str:
        return str(self._take(self._number(U64)), "utf-8")

    def _number(self, code: int) -> Any:
        return self._numbers(code, 1)[0]

    def _numbers(self, code: int, count: int) -> list[Any]:
        if code not in NUMBERS:
            raise ValueError(f"a value has the type {code}")
        kind = np.dtype(NUMBERS[code]).newbyteorder("<")
        return list(np.frombuffer(self._take(count * kind.itemsize), kind).tolist())

    def _take(self, length: int) -> memoryview:
        part = self._data[self._place : self._place + length]
        if len(part) < length:
            raise ValueError("it is shorter than its header declares")
        self._place += length
        return part


def _check_supported(fields: Mapping[str, Any], names: Iterable[str]) -> None:
    for name in names:
        if fields.get(name, SUPPORTED[name][0]) not in SUPPORTED[name]:
            raise ModelError(
                f"its {name} is {fields[name]!r}",
                expected=" or ".join(map(repr, SUPPORTED[name])),
                remedy="serve it with llama.cpp and use openai:MODEL@URL",
            )


def _read_model(data: NDArray[np.uint8], header: GgufHeader) -> GgufModel:
    _check_supported(header.fields, SUPPORTED)
    shape = _read_shape(header)
    weights = _read_weights(data, header, shape)
    return GgufModel(shape, weights, _build_tokenizer(header.fields), _read_prompt_facts(header.fields))


def _read_prompt_facts(fields: Mapping[str, Any]) -> PromptFacts:
    tokens, types = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    special = {name: fields.get(f"tokenizer.ggml.{name}_id") for name in ("bos_token", "eos_token", "eot_token")}
    control = [n for n, kind in enumerate(types) if kind == CONTROL]
    named = {n for n in (special["eos_token"], special["eot_token"]) if n is not None}
    return PromptFacts(
        chat_template=str(fields.get("tokenizer.chat_template", "")),
        special={name: "" if number is None else tokens[number] for name, number in special.items()},
        control=[tokens[n] for n in control],
        ends=sorted(named | {n for n in control if tokens[n] in END_TOKENS}),
    )


def _read_shape(header: GgufHeader) -> DecoderShape:
    fields = {name.removeprefix("llama."): value for name, value in header.fields.items()}

    def size(name: str, default: int | None = None) -> int:
        value = fields.get(name, default)
        if not isinstance(value, int) or not 1 <= value <= MAX_SIZE:
            raise ModelError(f"its llama.{name} is {quote_short(value)}", expected=f"1 to {MAX_SIZE:,}")
        return value

    hidden, heads = size("embedding_length"), size("attention.head_count")
    return DecoderShape(
        vocabulary=header.tensors["token_embd.weight"].shape[0],
        hidden=hidden,
        inner=size("feed_forward_length"),
        layers=size("block_count"),
        heads=heads,
        kv_heads=size("attention.head_count_kv", heads),
        head=size("attention.key_length", hidden // heads),
        context=size("context_length"),
        theta=float(fields.get("rope.freq_base", 10000.0)),
        epsilon=float(fields["attention.layer_norm_rms_epsilon"]),
    )


def _read_weights(data: NDArray[np.uint8], header: GgufHeader, shape: DecoderShape) -> dict[str, Floats]:
    """All weights, by the names and in the layout of the transformers library."""
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize, quant_shape_to_byte_shape

    names = {
        f"{kind}.weight".format(n): f"{name}.weight".format(n)
        for kind, name in WEIGHTS.items()
        for n in range(shape.layers if "{}" in kind else 1)
    }
    if lacking := [name for name in names if name not in header.tensors and name not in OPTIONAL_WEIGHTS]:
        raise ModelError(f"it lacks weights: {format_list(lacking)}", expected="a complete GGUF file")
    if unknown := [name for name in header.tensors if name not in names]:
        raise ModelError(f"it has unknown weights: {format_list(unknown)}", expected="a plain Llama")
    weights: dict[str, Floats] = {}
    for name, tensor in header.tensors.items():
        kind = GGMLQuantizationType(tensor.code)
        packed = quant_shape_to_byte_shape(tensor.shape, kind)
        stored = np.frombuffer(data, np.uint8, math.prod(packed), header.start + tensor.offset).reshape(packed)
        value: Floats = np.asarray(dequantize(stored, kind), np.float32)
        if name.endswith(("attn_q.weight", "attn_k.weight")):
            value = _unpermute_rotary(value, shape.heads if "attn_q" in name else shape.kv_heads)
        weights[names[name]] = value
    return weights


def _unpermute_rotary(rows: Floats, heads: int) -> Floats:
    """GGUF files have the two coordinates that are rotated together side by side; here one is in each half."""
    return rows.reshape(heads, -1, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def _build_tokenizer(fields: Mapping[str, Any]) -> Any:
    """Build the byte-level BPE tokenizer that a file describes."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, processors

    _check_supported(fields, ("tokenizer.ggml.model", "tokenizer.ggml.pre"))
    tokens, types = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    merges = [(left, right) for left, _, right in (text.partition(" ") for text in fields["tokenizer.ggml.merges"])]
    splitting = str(fields.get("tokenizer.ggml.pre", "gpt-2"))
    # Llama 3's tokenizer applies no merges if the whole word is a token.
    words = models.BPE(
        vocab={token: n for n, token in enumerate(tokens)}, merges=merges, ignore_merges=splitting == "llama-bpe"
    )
    tokenizer = Tokenizer(words)
    tokenizer.pre_tokenizer = _build_splitter(splitting)
    tokenizer.decoder = decoders.ByteLevel()
    for kind, add in ((CONTROL, tokenizer.add_special_tokens), (ADDED, tokenizer.add_tokens)):
        texts = [token for token, code in zip(tokens, types, strict=True) if code == kind]
        add([AddedToken(text, normalized=False, special=kind == CONTROL) for text in texts])
    if fields.get("tokenizer.ggml.add_bos_token"):
        number = fields["tokenizer.ggml.bos_token_id"]
        bos = tokens[number]
        tokenizer.post_processor = processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, number)])
    return tokenizer


def _build_splitter(name: str) -> Any:
    """How a text is split before merging, by the name in GGUF files."""
    from tokenizers import Regex, pre_tokenizers

    if name == "llama-bpe":
        pattern = (
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
            r"|\s*[\r\n]+|\s+(?!\S)|\s+"
        )
        bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior="isolated"), bytewise])
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    digits = pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Sequence([digits, plain]) if name == "smollm" else plain
