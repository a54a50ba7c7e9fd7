"""Nodes of an ONNX graph, and how its vectors are multiplied with matrices."""

from __future__ import annotations

from typing import IO, Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from ragworth.llm.local.onnx_session import DATA
from ragworth.llm.local.onnx_weights import Floats, quantize_blocks, quantize_columns

MAX_INLINE_BYTES = 2048
"""Constants with fewer bytes stay in the graph's file."""

MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""


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


class MatmulInput(NamedTuple):
    """Vectors (tokens, width) ready to be multiplied, and the scale of the products ("" for none)."""

    vectors: str
    scale: str


class IntegerArithmetic:
    """Vectors (tokens, width) in 8 bits with a scale each, matrices in 8 bits with a scale per column.

    Sums of products are whole numbers, and exact. ``signed``: whether weights have a sign. Some processors without
    instructions for dot products of bytes saturate large sums then; they get the same weights offset by 128.
    """

    name = "int8"

    def __init__(self, *, signed: bool) -> None:
        self.signed = signed

    def embed(self, t: GraphBuilder, table: Floats, ids: str) -> str:
        """The rows of a table for some tokens."""
        values, scales = quantize_blocks(table)
        found = t.op("Cast", t.op("Gather", t.constant(values, np.uint8), ids), to=TensorProto.FLOAT)
        scale = t.op("Unsqueeze", t.op("Gather", t.constant(scales), ids), t.ints(2))
        return t.op("Reshape", t.op("Mul", t.op("Sub", found, t.constant(128.0)), scale), t.ints(0, -1))

    def enter(self, t: GraphBuilder, vectors: str) -> MatmulInput:
        """Prepare vectors to be multiplied with one or more matrices."""
        greatest = t.op("ReduceMax", t.op("Abs", vectors), t.ints(-1), keepdims=0)
        scale = t.op("Max", t.op("Mul", greatest, t.constant(1 / 127)), t.constant(1e-30))
        middle = t.op("Expand", t.constant([128], np.uint8), t.op("Shape", scale))
        return MatmulInput(t.op("QuantizeLinear", vectors, scale, middle, axis=0), t.op("Unsqueeze", scale, t.ints(1)))

    def times(self, t: GraphBuilder, entered: MatmulInput, matrix: Floats) -> str:
        """Unscaled products."""
        values, scales = quantize_columns(matrix)
        middle = t.constant(128, np.uint8)
        others = [t.constant(1.0), t.constant(scales), middle]
        if self.signed:
            weights = t.constant(values, np.int8)
        else:
            weights = t.constant(values.astype(np.int16) + 128, np.uint8)
            others.append(middle)
        return t.op("MatMulIntegerToFloat", entered.vectors, weights, *others, domain=MICROSOFT)

    def logits(self, t: GraphBuilder, vectors: str, table: Floats) -> str:
        """Products with every row of a table."""
        values, scales = quantize_blocks(table)
        size = {"N": table.shape[0], "K": table.shape[1], "bits": 8, "block_size": values.shape[2]}
        weights = (t.constant(values, np.uint8), t.constant(scales.ravel()))
        return t.op("MatMulNBits", vectors, *weights, domain=MICROSOFT, accuracy_level=4, **size)
