"""Build a decoder of the Llama family as an ONNX graph with 8-bit weights.

Inputs, for B rows of L tokens each, whose texts have room for T tokens:

==================  =====================  ====================================================================
``ids``             (B, L)                 tokens
``positions``       (B, L)                 where each stands in its text
``slots``           (B, heads, L, 3)       row, head and position of each new key and value
``mask``            (1 or B, 1, 1, L, T)   0 where a token sees another, a number far below where it does not
``at``              (A,)                   numbers (of all B × L) of tokens after which the next one is asked for
``past.N.key``      (B, heads, T, width)   keys of layer N, each at its token's position; also ``past.N.value``
==================  =====================  ====================================================================

Outputs: ``logits`` (A, vocabulary), and ``present.N.key`` and ``present.N.value`` of the L tokens.

Rotating the space of the vectors doesn't change what the layers compute: the rotation is folded into the matrices on
both sides of it. In a rotated space no single coordinate stands out, so eight bits serve all of them well. There are
three rotations: of the vectors that pass between layers, of the values of each attention head, and (the only one with
a cost at run time) of the input of the last matrix of a layer. See QuaRot, https://arxiv.org/abs/2404.00456.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import GraphProto, TensorProto, ValueInfoProto, helper

from ragworth.core.errors import ModelError
from ragworth.llm.local.gguf_file import DecoderShape, Floats
from ragworth.llm.local.onnx_runtime import DATA, MODEL, PROBE

MAX_INLINE_BYTES = 2048
"""Constants with fewer bytes stay in the graph's file."""

MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""

MAX_SCORE_GAP = 45.0
"""Lower limit of attention scores relative to a token's score of itself, also used for hidden tokens. A share of e⁻⁴⁵
is lost in any sum of 32-bit floats, but isn't a denormal number, which would take many times as long to compute with.
"""

BLOCK = 32
"""Number of neighbouring weights of an embedding that share a scale."""

MIXED_INPUTS = 64
"""Number of neighbouring inputs of a layer's last matrix that are mixed."""


class GraphBuilder:
    """The nodes of a graph in the making; large constants go straight to a file."""

    def __init__(self, data: IO[bytes]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._data = data
        self._small: dict[tuple[Any, ...], str] = {}

    def op(self, kind: str, *inputs: str, out: str = "", domain: str = "", **attributes: Any) -> str:
        """Add a node with one output, and return the output's name."""
        name = out or f"{kind}.{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, domain=domain, **attributes))
        return name

    def constant(self, value: Any, kind: type[np.generic] = np.float32) -> str:
        """Add a constant; equal small ones are shared."""
        array = np.ascontiguousarray(value, dtype=kind).reshape(np.shape(value))
        key = (array.dtype.str, array.shape, array.tobytes()) if array.nbytes < MAX_INLINE_BYTES else ()
        if key in self._small:
            return self._small[key]
        name = f"constant.{len(self.constants)}"
        self.constants.append(self._tensor(name, array))
        if key:
            self._small[key] = name
        return name

    def ints(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def _tensor(self, name: str, array: NDArray[Any]) -> onnx.TensorProto:
        tensor = TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
        if array.nbytes < MAX_INLINE_BYTES:
            tensor.raw_data = array.tobytes()
            return tensor
        self._data.write(bytes(-self._data.tell() % 4096))  # whole pages, so that the file can be mapped
        tensor.data_location = TensorProto.EXTERNAL
        place = {"location": DATA, "offset": self._data.tell(), "length": array.nbytes}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
        self._data.write(array.data)
        return tensor


def write_probe(folder: Path) -> None:
    """Write a graph that multiplies bytes with the largest possible weights; see `onnx_runtime.has_exact_int8`."""
    t = GraphBuilder(BytesIO())
    products = multiply_bytes(t, "bytes", np.ones((64, 16), np.float32), signed=True)
    ends = [_value_info("bytes", TensorProto.UINT8, "M", 64)], [_value_info(products, TensorProto.FLOAT, "M", 16)]
    _save(folder / PROBE, helper.make_graph(t.nodes, "probe", *ends, t.constants))


def write_decoder(folder: Path, shape: DecoderShape, weights: Mapping[str, Floats], *, signed: bool) -> None:
    """Write the graph of a decoder and its constants to a folder; ``signed``: see `multiply_bytes`."""
    if shape.hidden % BLOCK or shape.inner % MIXED_INPUTS:
        raise ModelError(
            f"its layers are {shape.hidden} and {shape.inner} wide",
            expected=f"multiples of {BLOCK} and {MIXED_INPUTS}",
            remedy="serve it with llama.cpp and use openai:MODEL@URL",
        )
    with (folder / DATA).open("wb") as data:
        t = GraphBuilder(data)
        _DecoderBuilder(t, shape, weights, signed=signed).build()
    state = [f"{n}.{part}" for n in range(shape.layers) for part in ("key", "value")]
    ints, floats = TensorProto.INT64, TensorProto.FLOAT
    inputs = [
        _value_info("ids", ints, "B", "L"),
        _value_info("positions", ints, "B", "L"),
        _value_info("slots", ints, "B", shape.kv_heads, "L", 3),
        _value_info("mask", floats, "M", 1, 1, "L", "T"),
        _value_info("at", ints, "A"),
        *(_value_info(f"past.{x}", floats, "B", shape.kv_heads, "T", shape.head) for x in state),
    ]
    outputs = [
        _value_info("logits", floats, "A", shape.vocabulary),
        *(_value_info(f"present.{x}", floats, "B", shape.kv_heads, "L", shape.head) for x in state),
    ]
    _save(folder / MODEL, helper.make_graph(t.nodes, "decoder", inputs, outputs, t.constants))


def _save(path: Path, graph: GraphProto) -> None:
    domains = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
    path.write_bytes(helper.make_model(graph, opset_imports=domains, ir_version=10).SerializeToString())


def _value_info(name: str, kind: int, *shape: str | int) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


class QuantizedVectors(NamedTuple):
    """Vectors (tokens, width) in 8 bits about 128, and the scale of each (tokens, 1)."""

    values: str
    scale: str


class _DecoderBuilder:
    """Adds the nodes of all layers. Vectors between them are (tokens, width).

    Vectors and matrices are multiplied in 8 bits, with a scale for each vector and each column. Sums of products are
    whole numbers, and exact.
    """

    def __init__(self, t: GraphBuilder, shape: DecoderShape, weights: Mapping[str, Floats], *, signed: bool) -> None:
        self.t = t
        self._signed = signed
        self.shape = shape
        self._weights = weights
        self._turn, self._turn_head = _random_rotation(shape.hidden, seed=1), _random_rotation(shape.head, seed=2)
        self._mixing = _hadamard(MIXED_INPUTS)
        self._token_shape = t.op("Shape", "ids")
        flat = t.op("Reshape", "positions", t.ints(-1))
        tables = rotary_tables(shape, weights.get("model.rope_factors.weight"))
        self._angles = [t.op("Gather", t.constant(table), flat) for table in tables]
        numbers = t.op("Range", t.constant(0, np.int64), t.op("Size", "ids"), t.constant(1, np.int64))
        self._numbers = t.op("Reshape", numbers, self._token_shape)
        self._ones = t.constant([1.0] * shape.hidden)

    def build(self) -> None:
        """Add all nodes, from tokens to logits."""
        t = self.t
        table = self._weights["model.embed_tokens.weight"]
        x = self._embed(self._turned(table), t.op("Reshape", "ids", t.ints(-1)))
        for number in range(self.shape.layers):
            layer = self._layer(number)
            x = t.op("Add", x, self._attention(number, layer, self._norm(x)))
            x = t.op("Add", x, self._feed_forward(layer, self._norm(x)))
        head = self._weights.get("lm_head.weight", table) * self._weights["model.norm.weight"]
        self._logits(self._norm(t.op("Gather", x, "at")), self._turned(head))

    def _layer(self, number: int) -> dict[str, Floats]:
        """The matrices of a layer as (inputs, outputs), with norms' gains, rotations and the scale of queries."""
        shape = self.shape

        def get(name: str) -> Floats:
            return self._weights[f"model.layers.{number}.{name}.weight"]

        def after_norm(name: str, norm: str) -> Floats:
            return np.ascontiguousarray(self._turned(get(name) * get(norm)).T)

        v = after_norm("self_attn.v_proj", "input_layernorm")
        return {
            "q": after_norm("self_attn.q_proj", "input_layernorm") * np.float32(shape.head**-0.5),
            "k": after_norm("self_attn.k_proj", "input_layernorm"),
            "v": (v.reshape(-1, shape.kv_heads, shape.head) @ self._turn_head).reshape(v.shape),
            "o": self._turned(_turn_parts(self._turn_head, get("self_attn.o_proj").T)),
            "gate": after_norm("mlp.gate_proj", "post_attention_layernorm"),
            "up": after_norm("mlp.up_proj", "post_attention_layernorm"),
            "down": self._turned(_turn_parts(self._mixing, get("mlp.down_proj").T)),
        }

    def _turned(self, rows: Floats) -> Floats:
        """Rotate vectors of the space between layers."""
        return np.ascontiguousarray(rows @ self._turn)

    def _embed(self, table: Floats, ids: str) -> str:
        """The rows of a table for some tokens."""
        t, (values, scales) = self.t, quantize_blocks(table)
        rows = t.op("Cast", t.op("Gather", t.constant(values, np.uint8), ids), to=TensorProto.FLOAT)
        scale = t.op("Unsqueeze", t.op("Gather", t.constant(scales), ids), t.ints(2))
        return t.op("Reshape", t.op("Mul", t.op("Sub", rows, t.constant(128.0)), scale), t.ints(0, -1))

    def _logits(self, vectors: str, table: Floats) -> None:
        """Products with every row of a table."""
        t, (values, scales) = self.t, quantize_blocks(table)
        size = {"N": table.shape[0], "K": table.shape[1], "bits": 8, "block_size": BLOCK, "accuracy_level": 4}
        weights = (t.constant(values, np.uint8), t.constant(scales.ravel()))
        t.op("MatMulNBits", vectors, *weights, out="logits", domain=MICROSOFT, **size)

    def _quantize(self, vectors: str) -> QuantizedVectors:
        """Prepare vectors to be multiplied with one or more matrices."""
        t = self.t
        greatest = t.op("ReduceMax", t.op("Abs", vectors), t.ints(-1), keepdims=0)
        scale = t.op("Max", t.op("Mul", greatest, t.constant(1 / 127)), t.constant(1e-30))
        middle = t.op("Expand", t.constant([128], np.uint8), t.op("Shape", scale))
        values = t.op("QuantizeLinear", vectors, scale, middle, axis=0)
        return QuantizedVectors(values, t.op("Unsqueeze", scale, t.ints(1)))

    def _times(self, vectors: QuantizedVectors, matrix: Floats) -> str:
        """Products with a matrix, without the vectors' scales."""
        return multiply_bytes(self.t, vectors.values, matrix, signed=self._signed)

    def _norm(self, vectors: str) -> str:
        """Scale to length √width. The gain is in the matrices that follow."""
        kind = "SimplifiedLayerNormalization"
        return self.t.op(kind, vectors, self._ones, axis=-1, epsilon=self.shape.epsilon)

    def _rotate(self, products: str, scale: str) -> str:
        """Rotate by position, and scale."""
        t = self.t
        angles = [t.op("Mul", table, scale) for table in self._angles]
        rows = t.op("Reshape", products, t.op("Concat", self._token_shape, t.ints(-1), axis=0))
        return t.op("RotaryEmbedding", rows, self._numbers, *angles, domain=MICROSOFT)

    def _split_heads(self, vectors: str, out: str = "") -> str:
        """Reshape (tokens, heads × width) to (rows, heads, tokens of a row, width)."""
        t = self.t
        shape = t.op("Concat", self._token_shape, t.ints(-1, self.shape.head), axis=0)
        return t.op("Transpose", t.op("Reshape", vectors, shape), perm=[0, 2, 1, 3], out=out)

    def _attention(self, number: int, layer: Mapping[str, Floats], vectors: str) -> str:
        """Output of the attention of each token over the tokens that it sees."""
        t, shape = self.t, self.shape
        read = self._quantize(vectors)
        q = self._split_heads(self._rotate(self._times(read, layer["q"]), read.scale))
        k = self._rotate(self._times(read, layer["k"]), read.scale)
        k = self._split_heads(k, out=f"present.{number}.key")
        v = t.op("Mul", self._times(read, layer["v"]), read.scale)
        v = self._split_heads(v, out=f"present.{number}.value")
        # Heads that share keys are computed together: (rows, shared keys, heads of them × tokens, width).
        heads = shape.heads // shape.kv_heads
        together = t.op("Reshape", q, t.ints(0, shape.kv_heads, -1, shape.head))
        scores = t.op("FusedMatMul", together, self._merge_past(f"past.{number}.key", k), transB=1, domain=MICROSOFT)
        room = t.op("Shape", "mask", start=4, end=5)
        scores = t.op("Reshape", scores, t.op("Concat", t.ints(0, shape.kv_heads, heads, -1), room, axis=0))
        apart = t.op("Reshape", q, t.ints(0, shape.kv_heads, heads, -1, shape.head))
        itself = t.op("ReduceSum", t.op("Mul", apart, t.op("Unsqueeze", k, t.ints(2))), t.ints(-1), keepdims=1)
        lowest = t.op("Sub", itself, t.constant(MAX_SCORE_GAP))
        shares = t.op("Softmax", t.op("Max", t.op("Add", scores, "mask"), lowest), axis=-1)
        shares = t.op("Reshape", shares, t.op("Concat", t.ints(0, shape.kv_heads, -1), room, axis=0))
        values = t.op("MatMul", shares, self._merge_past(f"past.{number}.value", v))
        values = t.op("Reshape", values, t.ints(0, shape.heads, -1, shape.head))
        values = t.op("Transpose", values, perm=[0, 2, 1, 3])
        joined = self._quantize(t.op("Reshape", values, t.ints(-1, shape.heads * shape.head)))
        return t.op("Mul", self._times(joined, layer["o"]), joined.scale)

    def _merge_past(self, past: str, new: str) -> str:
        """Keys or values of all tokens, each at its position."""
        return self.t.op("ScatterND", past, "slots", new)

    def _feed_forward(self, layer: Mapping[str, Floats], vectors: str) -> str:
        t = self.t
        read = self._quantize(vectors)
        gate = t.op("Mul", self._times(read, layer["gate"]), read.scale)
        inner = t.op("Mul", t.op("QuickGelu", gate, domain=MICROSOFT, alpha=1.0), self._times(read, layer["up"]))
        mixed = t.op("MatMul", t.op("Reshape", inner, t.ints(-1, MIXED_INPUTS)), t.constant(self._mixing))
        entered = self._quantize(t.op("Reshape", mixed, t.ints(-1, self.shape.inner)))
        return t.op("Mul", self._times(entered, layer["down"]), t.op("Mul", entered.scale, read.scale))


def multiply_bytes(t: GraphBuilder, values: str, matrix: Floats, *, signed: bool) -> str:
    """Products of vectors in 8 bits about 128 with a matrix, which has 8 bits and a scale for each column.

    ``signed``: whether weights have a sign, which is faster. Without it they have an offset of 128, with the same
    results, for processors that saturate large sums of signed ones.
    """
    scales = _nonzero(np.abs(matrix).max(axis=0) / np.float32(127))
    weights, middle = np.rint(matrix / scales), t.constant(128, np.uint8)
    constant = t.constant(weights, np.int8) if signed else t.constant(weights + 128, np.uint8)
    others = [t.constant(1.0), t.constant(scales), middle, *([] if signed else [middle])]
    return t.op("MatMulIntegerToFloat", values, constant, *others, domain=MICROSOFT)


def quantize_blocks(rows: Floats) -> tuple[NDArray[np.float32], Floats]:
    """Quantize to 8 bits per weight about 128, with a scale for every `BLOCK` of them. Q8_0 weights stay the same."""
    parts = rows.reshape(len(rows), -1, BLOCK)
    scales = _nonzero(np.abs(parts).max(axis=-1) / np.float32(127))
    return np.rint(parts / scales[..., None]) + 128, scales


def rotary_tables(shape: DecoderShape, factors: Floats | None) -> tuple[Floats, Floats]:
    """Cosines and sines of rotary embeddings for all positions; ``factors`` slow some frequencies down."""
    frequencies = shape.theta ** -(np.arange(0, shape.head, 2, dtype=np.float64) / shape.head)
    if factors is not None:
        frequencies = frequencies / factors
    angles = np.outer(np.arange(shape.context), frequencies)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _nonzero(scales: Floats) -> Floats:
    """Replace scales of 0 with 1."""
    return np.where(scales > 0, scales, np.float32(1)).astype(np.float32)


def _turn_parts(turn: Floats, matrix: Floats) -> Floats:
    """Rotate each part of a matrix's inputs that is as long as the rotation."""
    parts = matrix.reshape(-1, len(turn), matrix.shape[1])
    turned: Floats = np.einsum("ij,hik->hjk", turn, parts).reshape(matrix.shape)
    return turned


def _random_rotation(size: int, seed: int) -> Floats:
    """A random rotation (or reflection), the same everywhere."""
    drawn = np.random.default_rng(seed).standard_normal((size, size))
    rotation: Floats = np.linalg.qr(drawn)[0].astype(np.float32)
    return rotation


def _hadamard(size: int) -> Floats:
    """The symmetric rotation whose entries all have the same magnitude."""
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    rotation: Floats = (matrix / np.sqrt(size)).astype(np.float32)
    return rotation
