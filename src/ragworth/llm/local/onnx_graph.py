"""A decoder of the Llama family as an ONNX graph.

Inputs, for B rows of L tokens each that follow up to P others, with T = P + L:

==================  =====================  ====================================================================
``ids``             (B, L)                 tokens
``positions``       (B, L)                 where each stands in its text
``mask``            (1 or B, 1, 1, L, T)   0 where a token sees another, a number far below where it does not
``at``              (B, A)                 numbers (of all B × L) of tokens after which the next one is asked for
``mask_at``         (B, 1, 1, A, T)        the mask of these tokens
``past.N.key``      (B, heads, P, width)   keys of layer N for the P tokens; likewise ``past.N.value``
==================  =====================  ====================================================================

Keys and values stand at their tokens' positions; where a row has fewer than P, the rest is room that the mask hides.
Outputs: ``logits`` (B, A, vocabulary), and ``present.N.key`` and ``present.N.value`` of the L tokens. The last
layer is computed only where it is asked for.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from onnx import GraphProto, TensorProto, ValueInfoProto, helper

from ragworth.llm.local.onnx_session import DATA, MODEL, PROBE
from ragworth.llm.local.onnx_tensors import MICROSOFT, GraphBuilder, IntegerArithmetic, MatmulInput
from ragworth.llm.local.onnx_weights import (
    MIXED_INPUTS,
    ROPE_FACTORS,
    DecoderShape,
    FoldedWeights,
    LayerWeights,
    WeightMap,
    rotary_tables,
)

MAX_SCORE_GAP = 45.0
"""Lower limit of attention scores relative to a token's score of itself, also used for hidden tokens. A share of e⁻⁴⁵
is lost in any sum of 32-bit floats, but isn't a denormal number, which would take many times as long to compute with.
"""


def write_decoder(folder: Path, sizes: DecoderShape, weights: WeightMap, arithmetic: IntegerArithmetic) -> None:
    """Write the graph of a decoder and its constants to a folder."""
    with (folder / DATA).open("wb") as data:
        decoder = _DecoderBuilder(sizes, weights, arithmetic, data)
        decoder.build()
    state = [f"{n}.{part}" for n in range(sizes.layers) for part in ("key", "value")]
    graph = helper.make_graph(
        decoder.t.nodes,
        "decoder",
        [
            _value_info("ids", TensorProto.INT64, "B", "L"),
            _value_info("positions", TensorProto.INT64, "B", "L"),
            _value_info("mask", TensorProto.FLOAT, "M", 1, 1, "L", "T"),
            _value_info("at", TensorProto.INT64, "B", "A"),
            _value_info("mask_at", TensorProto.FLOAT, "B", 1, 1, "A", "T"),
            *(_value_info(f"past.{x}", TensorProto.FLOAT, "B", sizes.kv_heads, "P", sizes.head) for x in state),
        ],
        [
            _value_info("logits", TensorProto.FLOAT, "B", "A", sizes.vocabulary),
            *(_value_info(f"present.{x}", TensorProto.FLOAT, "B", sizes.kv_heads, "L", sizes.head) for x in state),
        ],
        decoder.t.constants,
    )
    _save(folder / MODEL, graph)


def write_probe(folder: Path) -> None:
    """Write a graph that multiplies bytes with the largest possible weights; see `onnx_session.has_exact_int8`."""
    t = GraphBuilder(BytesIO())
    products = IntegerArithmetic(signed=True).times(t, MatmulInput("bytes", ""), np.ones((64, 16), np.float32))
    ends = [_value_info("bytes", TensorProto.UINT8, "M", 64)], [_value_info(products, TensorProto.FLOAT, "M", 16)]
    _save(folder / PROBE, helper.make_graph(t.nodes, "probe", *ends, t.constants))


def _save(path: Path, graph: GraphProto) -> None:
    domains = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
    path.write_bytes(helper.make_model(graph, opset_imports=domains, ir_version=10).SerializeToString())


def _value_info(name: str, kind: int, *shape: str | int) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


class _TokenInputs(NamedTuple):
    """Tokens of a batch, all of them or some of every row: their shape (2,), angles, numbers and mask."""

    shape: str
    cosines: str
    sines: str
    numbers: str
    mask: str


class _DecoderBuilder:
    """Builds the layers. Vectors between them are (tokens, width)."""

    def __init__(self, sizes: DecoderShape, weights: WeightMap, arithmetic: IntegerArithmetic, data: IO[bytes]) -> None:
        self.t = GraphBuilder(data)
        self.sizes = sizes
        self._way = arithmetic
        self._folded = FoldedWeights(sizes, weights)
        self._angles = [self.t.constant(table) for table in rotary_tables(sizes, weights.get(ROPE_FACTORS))]
        self._at = self.t.op("Reshape", "at", self.t.ints(-1))
        self._slots = self._key_positions()
        self._ones = self.t.constant([1.0] * sizes.hidden)

    def build(self) -> None:
        """Add all nodes, from tokens to logits."""
        t, sizes = self.t, self.sizes
        everywhere = self._places("positions", "mask")
        asked = self._places(t.op("Gather", t.op("Reshape", "positions", t.ints(-1)), "at"), "mask_at")
        x = self._way.embed(t, self._folded.embedding(), t.op("Reshape", "ids", t.ints(-1)))
        for number in range(sizes.layers):
            layer = self._folded.layer(number)
            read = self._norm(x)
            keys = self._way.enter(t, read)
            if number < sizes.layers - 1:
                x = self._feed_forward(x, self._attention(number, layer, keys, keys, everywhere, everywhere), layer)
            else:
                x, read = (t.op("Gather", vectors, self._at) for vectors in (x, read))
                queries = self._way.enter(t, read)
                x = self._feed_forward(x, self._attention(number, layer, queries, keys, asked, everywhere), layer)
        logits = self._way.logits(t, self._norm(x), self._folded.output())
        t.op("Reshape", logits, t.op("Concat", asked.shape, t.ints(-1), axis=0), out="logits")

    def _key_positions(self) -> str:
        """(rows, heads, tokens of a row, 3): row, head and position of all new keys and values."""
        t, heads = self.t, self.sizes.kv_heads
        rows, length = t.op("Shape", "ids", end=1), t.op("Shape", "ids", start=1)
        shape = t.op("Concat", rows, t.ints(heads), length, t.ints(1), axis=0)
        parts = [
            t.op("Unsqueeze", self._count_up(t.op("Squeeze", rows)), t.ints(1, 2, 3)),
            t.op("Unsqueeze", t.constant(range(heads), np.int64), t.ints(0, 2, 3)),
            t.op("Unsqueeze", "positions", t.ints(1, 3)),
        ]
        return t.op("Concat", *(t.op("Expand", part, shape) for part in parts), axis=3)

    def _count_up(self, number: str) -> str:
        """0, 1, 2, … below a number."""
        t = self.t
        return t.op("Range", t.constant(0, np.int64), number, t.constant(1, np.int64))

    def _places(self, positions: str, mask: str) -> _TokenInputs:
        t = self.t
        shape, flat = t.op("Shape", positions), t.op("Reshape", positions, t.ints(-1))
        cosines, sines = (t.op("Gather", table, flat) for table in self._angles)
        numbers = t.op("Reshape", self._count_up(t.op("Size", positions)), shape)
        return _TokenInputs(shape, cosines, sines, numbers, mask)

    def _norm(self, vectors: str) -> str:
        """Scale to length √width. The gain is in the matrices that follow."""
        kind = "SimplifiedLayerNormalization"
        return self.t.op(kind, vectors, self._ones, axis=-1, epsilon=self.sizes.epsilon)

    def _scaled(self, products: str, scale: str) -> str:
        return self.t.op("Mul", products, scale) if scale else products

    def _split_heads(self, vectors: str, places: _TokenInputs, out: str = "") -> str:
        """Reshape (tokens, heads × width) to (rows, heads, tokens of a row, width)."""
        t = self.t
        shape = t.op("Concat", places.shape, t.ints(-1, self.sizes.head), axis=0)
        return t.op("Transpose", t.op("Reshape", vectors, shape), perm=[0, 2, 1, 3], out=out)

    def _rotate(self, products: str, scale: str, places: _TokenInputs) -> str:
        """Rotate by position, and scale."""
        t = self.t
        angles = [self._scaled(table, scale) for table in (places.cosines, places.sines)]
        rows = t.op("Reshape", products, t.op("Concat", places.shape, t.ints(-1), axis=0))
        return t.op("RotaryEmbedding", rows, places.numbers, *angles, domain=MICROSOFT)

    def _attention(
        self,
        number: int,
        layer: LayerWeights,
        queries: MatmulInput,
        keys: MatmulInput,
        asking: _TokenInputs,
        places: _TokenInputs,
    ) -> str:
        """Attention output of each of the ``asking`` places over the places that it sees."""
        t, sizes, times = self.t, self.sizes, self._way.times
        q = self._split_heads(self._rotate(times(t, queries, layer.q), queries.scale, asking), asking)
        rotated = self._rotate(times(t, keys, layer.k), keys.scale, places)
        k = self._split_heads(rotated, places, out=f"present.{number}.key")
        v = self._scaled(times(t, keys, layer.v), keys.scale)
        v = self._split_heads(v, places, out=f"present.{number}.value")
        # Heads that share keys are computed together: (rows, shared keys, heads of them × tokens, width).
        apart = t.op("Reshape", q, t.ints(0, sizes.kv_heads, sizes.heads // sizes.kv_heads, -1, sizes.head))
        together = t.op("Reshape", q, t.ints(0, sizes.kv_heads, -1, sizes.head))
        seen = self._merge_past(f"past.{number}.key", k)
        scores = t.op("FusedMatMul", together, seen, transB=1, domain=MICROSOFT)
        width = t.op("Shape", "mask", start=4, end=5)
        shape = t.op("Concat", t.ints(0, sizes.kv_heads, sizes.heads // sizes.kv_heads, -1), width, axis=0)
        own = k
        if asking is not places:
            flat = t.op("Reshape", rotated, t.ints(-1, sizes.kv_heads * sizes.head))
            own = self._split_heads(t.op("Gather", flat, self._at), asking)
        itself = t.op("ReduceSum", t.op("Mul", apart, t.op("Unsqueeze", own, t.ints(2))), t.ints(-1), keepdims=1)
        masked = t.op("Add", t.op("Reshape", scores, shape), asking.mask)
        shares = t.op("Softmax", t.op("Max", masked, t.op("Sub", itself, t.constant(MAX_SCORE_GAP))), axis=-1)
        shares = t.op("Reshape", shares, t.op("Concat", t.ints(0, sizes.kv_heads, -1), width, axis=0))
        taken = t.op("MatMul", shares, self._merge_past(f"past.{number}.value", v))
        taken = t.op("Transpose", t.op("Reshape", taken, t.ints(0, sizes.heads, -1, sizes.head)), perm=[0, 2, 1, 3])
        entered = self._way.enter(t, t.op("Reshape", taken, t.ints(-1, sizes.heads * sizes.head)))
        return self._scaled(times(t, entered, layer.o), entered.scale)

    def _merge_past(self, past: str, new: str) -> str:
        """Keys or values of all tokens, each at its position."""
        t = self.t
        return t.op("ScatterND", t.op("Concat", past, new, axis=2), self._slots, new)

    def _feed_forward(self, x: str, taken: str, layer: LayerWeights) -> str:
        """Add the attention output, then the output of the feed-forward part."""
        t, times = self.t, self._way.times
        x = t.op("Add", x, taken)
        read = self._way.enter(t, self._norm(x))
        gate = self._scaled(times(t, read, layer.gate), read.scale)
        inner = t.op("Mul", t.op("QuickGelu", gate, domain=MICROSOFT, alpha=1.0), times(t, read, layer.up))
        if self._folded.mixing is not None:
            mixed = t.op("MatMul", t.op("Reshape", inner, t.ints(-1, MIXED_INPUTS)), t.constant(self._folded.mixing))
            inner = t.op("Reshape", mixed, t.ints(-1, self.sizes.inner))
        entered = self._way.enter(t, inner)
        scale = t.op("Mul", entered.scale, read.scale) if read.scale else ""
        return t.op("Add", x, self._scaled(times(t, entered, layer.down), scale))
