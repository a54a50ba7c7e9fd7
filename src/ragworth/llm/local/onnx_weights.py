"""Weights of a Llama-like decoder, made ready for integer arithmetic.

What the layers compute is left unchanged by turning the space their vectors live in: the turn is folded
into the matrices on both sides of it. In a turned space no single coordinate stands out, so that eight bits
serve all of them well. Three turns are made: of the vectors that pass from layer to layer, of the values of
each attention head, and (the only one that costs anything later) of what enters the last matrix of a layer.
See QuaRot, https://arxiv.org/abs/2404.00456.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragworth.errors import ModelError

Floats = NDArray[np.float32]
WeightMap = Mapping[str, Floats]
"""By the names they have in the transformers library; linear layers as (outputs, inputs)."""

ROPE_FACTORS = "model.rope_factors.weight"
"""Among the weights, where a model has it: what the frequencies of rotary embeddings are divided by."""

MIXED_INPUTS = 64
"""How many neighbouring inputs of a layer's last matrix are mixed with each other."""

BLOCK = 32
"""How many neighbouring weights of an embedding share one scale."""


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


class LayerWeights(NamedTuple):
    """The matrices of one layer, as (inputs, outputs), with the gains of its norms and the scale of queries in them."""

    q: Floats
    k: Floats
    v: Floats
    o: Floats
    gate: Floats
    up: Floats
    down: Floats


class QuantizedBlocks(NamedTuple):
    """Weights in 8 bits about 128, a scale for every `BLOCK` of them."""

    values: NDArray[np.uint8]
    scales: Floats


class QuantizedColumns(NamedTuple):
    """A matrix of (inputs, outputs) in 8 bits about 0, a scale for every output."""

    values: NDArray[np.int8]
    scales: Floats


class FoldedWeights:
    """All weights of a decoder, with every norm's gain folded into the matrix behind it.

    ``turned``: whether the spaces between the matrices are turned as well. ``turn`` is then the turn of vectors between
    layers, and ``mixing`` what each `MIXED` inputs of ``down`` have to be multiplied by (None where their number does
    not allow it).
    """

    def __init__(self, sizes: DecoderShape, weights: WeightMap, *, turned: bool) -> None:
        self.sizes = sizes
        self._weights = weights
        self.turn = _random_rotation(sizes.hidden, seed=1) if turned else None
        self._turn_head = _random_rotation(sizes.head, seed=2) if turned else None
        self.mixing = _hadamard(MIXED_INPUTS) if turned and sizes.inner % MIXED_INPUTS == 0 else None

    def embedding(self) -> Floats:
        """A row for every token."""
        return self._out(self._weights["model.embed_tokens.weight"])

    def output(self) -> Floats:
        """The output head, a row for every token."""
        head = self._weights.get("lm_head.weight", self._weights["model.embed_tokens.weight"])
        return self._out(head * self._weights["model.norm.weight"])

    def layer(self, number: int) -> LayerWeights:
        """The matrices of one layer."""
        sizes = self.sizes

        def get(name: str) -> Floats:
            return self._weights[f"model.layers.{number}.{name}.weight"]

        def reads(name: str, norm: str) -> Floats:
            return np.ascontiguousarray(self._out(get(name) * get(norm)).T)

        v, o = reads("self_attn.v_proj", "input_layernorm"), get("self_attn.o_proj").T
        if self._turn_head is not None:
            v = (v.reshape(-1, sizes.kv_heads, sizes.head) @ self._turn_head).reshape(v.shape)
            heads = o.reshape(sizes.heads, sizes.head, -1)
            o = np.einsum("ij,hik->hjk", self._turn_head, heads).reshape(o.shape)
        down = get("mlp.down_proj").T
        if self.mixing is not None:
            down = np.einsum("ij,hik->hjk", self.mixing, down.reshape(-1, MIXED_INPUTS, down.shape[1])).reshape(
                down.shape
            )
        return LayerWeights(
            q=reads("self_attn.q_proj", "input_layernorm") * np.float32(sizes.head**-0.5),
            k=reads("self_attn.k_proj", "input_layernorm"),
            v=v,
            o=self._out(o),
            gate=reads("mlp.gate_proj", "post_attention_layernorm"),
            up=reads("mlp.up_proj", "post_attention_layernorm"),
            down=self._out(down),
        )

    def _out(self, rows: Floats) -> Floats:
        """Vectors of the space between layers, turned."""
        return np.ascontiguousarray(rows if self.turn is None else rows @ self.turn)


def merge_deltas(weights: WeightMap, deltas: Mapping[str, Floats]) -> dict[str, Floats]:
    """The weights with differences added to some of them, such as an adapter holds."""
    for name, delta in deltas.items():
        shape = weights[name].shape if name in weights else None
        if delta.shape != shape:
            found = f"the adapter changes {name} by a matrix of {delta.shape}"
            raise ModelError(found, expected=f"one of {shape}" if shape else "weights that the model has")
    return {name: value + deltas[name] if name in deltas else value for name, value in weights.items()}


def quantize_blocks(rows: Floats) -> QuantizedBlocks:
    """8 bits a weight, symmetric, in blocks along the last axis. What was Q8_0 before stays what it was."""
    parts = rows.reshape(len(rows), -1, BLOCK)
    scales = _nonzero(np.abs(parts).max(axis=-1) / np.float32(127))
    values = np.rint(parts / scales[..., None]) + 128
    return QuantizedBlocks(values.astype(np.uint8), scales)


def quantize_columns(matrix: Floats) -> QuantizedColumns:
    """8 bits a weight, symmetric, a scale for every output."""
    scales = _nonzero(np.abs(matrix).max(axis=0) / np.float32(127))
    return QuantizedColumns(np.rint(matrix / scales).astype(np.int8), scales)


def rotary_tables(sizes: DecoderShape, factors: Floats | None = None) -> tuple[Floats, Floats]:
    """Cosines and sines of rotary embeddings, for all positions; ``factors`` slow some frequencies down."""
    frequencies = sizes.theta ** -(np.arange(0, sizes.head, 2, dtype=np.float64) / sizes.head)
    if factors is not None:
        frequencies = frequencies / factors
    angles = np.outer(np.arange(sizes.context), frequencies)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _nonzero(scales: Floats) -> Floats:
    """A scale of 1 where all weights are 0."""
    found: Floats = np.where(scales > 0, scales, np.float32(1)).astype(np.float32)
    return found


def _random_rotation(size: int, seed: int) -> Floats:
    """A random rotation (or reflection), the same one everywhere."""
    drawn = np.random.default_rng(seed).standard_normal((size, size))
    found: Floats = np.linalg.qr(drawn)[0].astype(np.float32)
    return found


def _hadamard(size: int) -> Floats:
    """The symmetric rotation with all entries of one magnitude."""
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    found: Floats = (matrix / np.sqrt(size)).astype(np.float32)
    return found
