"""The graph in 32-bit floats: what integers are compared with."""

from __future__ import annotations

from ragworth.llm.local.onnx_tensors import GraphBuilder, IntegerArithmetic, MatmulInput
from ragworth.llm.local.onnx_weights import Floats


class FloatArithmetic(IntegerArithmetic):
    name = "float32"

    def __init__(self) -> None:
        super().__init__(signed=True)

    def embed(self, t: GraphBuilder, table: Floats, ids: str) -> str:
        return t.op("Gather", t.constant(table), ids)

    def enter(self, t: GraphBuilder, vectors: str) -> MatmulInput:
        return MatmulInput(vectors, "")

    def times(self, t: GraphBuilder, entered: MatmulInput, matrix: Floats) -> str:
        return t.op("MatMul", entered.vectors, t.constant(matrix))

    def logits(self, t: GraphBuilder, vectors: str, table: Floats) -> str:
        return t.op("MatMul", vectors, t.constant(table.T))
