"""Prepare the weights of a Llama-like decoder for integer arithmetic.

Rotating the space of the vectors doesn't change what the layers compute: the rotation is folded into the matrices on
both sides of it. In a rotated space no single coordinate stands out, so eight bits serve all of them well. There are
three rotations: of the vectors that pass between layers, of the values of each attention head, and (the only one with
a cost at run time) of the input of the last matrix of a layer. See QuaRot, https://arxiv.org/abs/2404.00456.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragworth.core.errors import ModelError

Floats = NDArray[np.float32]
WeightMap = Mapping[str, Floats]
"""Weights by their names in the transformers library; linear layers as (outputs, inputs)."""

ROPE_FACTORS = "model.rope_factors.weight"
"""Key of the divisors of rotary embeddings' frequencies, if the model has them."""

MIXED_INPUTS = 64
"""Number of neighbouring inputs of a layer's last matrix that are mixed."""

BLOCK = 32
"""Number of neighbouring weights of an embedding that share a scale."""


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
    """The matrices of one layer as (inputs, outputs), including the gains of its norms and the scale of queries."""

    q: Floats
    k: Floats
    v: Floats
    o: Floats
    gate: Floats
    up: Floats
    down: Floats


class QuantizedBlocks(NamedTuple):
    """Weights in 8 bits about 128, with a scale for every `BLOCK` of them."""

    values: NDArray[np.uint8]
    scales: Floats


class QuantizedColumns(NamedTuple):
    """A matrix of (inputs, outputs) in 8 bits about 0, with a scale for every output."""

    values: NDArray[np.int8]
    scales: Floats


class FoldedWeights:
    """All weights of a decoder, with every norm's gain folded into the next matrix.

    ``turn`` is the rotation of vectors between layers, and ``mixing`` the factor of each `MIXED_INPUTS` inputs of
    ``down`` (None if their number doesn't allow it).
    """

    def __init__(self, sizes: DecoderShape, weights: WeightMap) -> None:
        self.sizes = sizes
        self._weights = weights
        self.turn = _random_rotation(sizes.hidden, seed=1)
        self._turn_head = _random_rotation(sizes.head, seed=2)
        self.mixing = _hadamard(MIXED_INPUTS) if sizes.inner % MIXED_INPUTS == 0 else None

    def embedding(self) -> Floats:
        """One row per token."""
        return self._out(self._weights["model.embed_tokens.weight"])

    def output(self) -> Floats:
        """The output head, one row per token."""
        head = self._weights.get("lm_head.weight", self._weights["model.embed_tokens.weight"])
        return self._out(head * self._weights["model.norm.weight"])

    def layer(self, number: int) -> LayerWeights:
        sizes = self.sizes

        def get(name: str) -> Floats:
            return self._weights[f"model.layers.{number}.{name}.weight"]

        def reads(name: str, norm: str) -> Floats:
            return np.ascontiguousarray(self._out(get(name) * get(norm)).T)

        v, o = reads("self_attn.v_proj", "input_layernorm"), get("self_attn.o_proj").T
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
        """Rotate vectors of the space between layers."""
        return np.ascontiguousarray(rows @ self.turn)


def merge_deltas(weights: WeightMap, deltas: Mapping[str, Floats]) -> dict[str, Floats]:
    """Add differences, such as an adapter's, to some weights."""
    for name, delta in deltas.items():
        shape = weights[name].shape if name in weights else None
        if delta.shape != shape:
            found = f"the adapter changes {name} by a matrix of {delta.shape}"
            raise ModelError(found, expected=f"one of {shape}" if shape else "weights that the model has")
    return {name: value + deltas[name] if name in deltas else value for name, value in weights.items()}


def quantize_blocks(rows: Floats) -> QuantizedBlocks:
    """Quantize to 8 bits per weight, symmetric, in blocks along the last axis. Former Q8_0 weights stay the same."""
    parts = rows.reshape(len(rows), -1, BLOCK)
    scales = _nonzero(np.abs(parts).max(axis=-1) / np.float32(127))
    values = np.rint(parts / scales[..., None]) + 128
    return QuantizedBlocks(values.astype(np.uint8), scales)


def quantize_columns(matrix: Floats) -> QuantizedColumns:
    """Quantize to 8 bits per weight, symmetric, with a scale for every output."""
    scales = _nonzero(np.abs(matrix).max(axis=0) / np.float32(127))
    return QuantizedColumns(np.rint(matrix / scales).astype(np.int8), scales)


def rotary_tables(sizes: DecoderShape, factors: Floats | None = None) -> tuple[Floats, Floats]:
    """Cosines and sines of rotary embeddings for all positions; ``factors`` slow some frequencies down."""
    frequencies = sizes.theta ** -(np.arange(0, sizes.head, 2, dtype=np.float64) / sizes.head)
    if factors is not None:
        frequencies = frequencies / factors
    angles = np.outer(np.arange(sizes.context), frequencies)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _nonzero(scales: Floats) -> Floats:
    """Replace scales of 0 with 1."""
    found: Floats = np.where(scales > 0, scales, np.float32(1)).astype(np.float32)
    return found


def _random_rotation(size: int, seed: int) -> Floats:
    """A random rotation (or reflection), the same everywhere."""
    drawn = np.random.default_rng(seed).standard_normal((size, size))
    found: Floats = np.linalg.qr(drawn)[0].astype(np.float32)
    return found


def _hadamard(size: int) -> Floats:
    """The symmetric rotation whose entries all have the same magnitude."""
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    found: Floats = (matrix / np.sqrt(size)).astype(np.float32)
    return found
