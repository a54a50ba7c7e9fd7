"""Convert a BERT encoder's safetensors file to an ONNX graph, so that it runs without PyTorch.

Inputs are ``input_ids`` and ``attention_mask``, both (texts, tokens); the output ``last_hidden_state`` is (texts,
tokens, width). Everything is in 32-bit floats, like the weights.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from ragworth.core.errors import ModelError
from ragworth.llm.local.adapter import INTEGER_DTYPES, read_safetensors
from ragworth.llm.local.onnx_build import GraphBuilder
from ragworth.llm.local.onnx_runtime import DATA, MODEL

MASKED = -1e9
"""Added to the score of a padding token."""

SUPPORTED = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
"""What a configuration may say."""


def write_bert(folder: Path, config: dict[str, Any], weights: Path) -> None:
    """Write the graph and its constants to a folder."""
    for name, supported in SUPPORTED.items():
        if (value := config.get(name, supported if name != "model_type" else "")) != supported:
            raise ModelError(
                f"{name} is {value!r}, not {supported!r}, so it can't be converted to a graph",
                file=str(weights.parent),
                remedy='use "st:FOLDER"',
            )
    tensors = read_safetensors(weights, INTEGER_DTYPES).arrays
    arrays = {name.removeprefix("bert."): array for name, array in tensors.items()}
    try:
        with (folder / DATA).open("wb") as data:
            bert = _BertBuilder(GraphBuilder(data), config, arrays)
            bert.build()
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        problem = f"it lacks {error}" if isinstance(error, KeyError) else f"it contradicts its config.json: {error}"
        raise ModelError(problem, file=str(weights), expected="the weights of a BERT encoder") from error
    ints, floats = TensorProto.INT64, TensorProto.FLOAT
    graph = helper.make_graph(
        bert.t.nodes,
        "encoder",
        [helper.make_tensor_value_info(name, ints, ["B", "L"]) for name in ("input_ids", "attention_mask")],
        [helper.make_tensor_value_info("last_hidden_state", floats, ["B", "L", int(config["hidden_size"])])],
        bert.t.constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (folder / MODEL).write_bytes(model.SerializeToString())


class _BertBuilder:
    """Builds the layers. Vectors between them are (texts, tokens, width)."""

    def __init__(self, tensors: GraphBuilder, config: dict[str, Any], arrays: dict[str, Any]) -> None:
        self.t = tensors
        self.arrays = arrays
        self.layers = int(config["num_hidden_layers"])
        self.heads = int(config["num_attention_heads"])
        self.width = int(config["hidden_size"]) // self.heads
        self.epsilon = float(config["layer_norm_eps"])

    def build(self) -> None:
        t = self.t
        tokens = t.op("Shape", "input_ids", start=1)
        places = t.op("Slice", t.constant(self.arrays["embeddings.position_embeddings.weight"]), t.ints(0), tokens)
        words = t.op("Gather", t.constant(self.arrays["embeddings.word_embeddings.weight"]), "input_ids")
        kind = t.constant(self.arrays["embeddings.token_type_embeddings.weight"][0])
        x = self._norm(t.op("Add", t.op("Add", words, kind), places), "embeddings.LayerNorm")
        seen = t.op("Unsqueeze", t.op("Cast", "attention_mask", to=TensorProto.FLOAT), t.ints(1, 2))
        mask = t.op("Mul", t.op("Sub", t.constant(1.0), seen), t.constant(MASKED))
        for number in range(self.layers):
            name, last = f"encoder.layer.{number}", number == self.layers - 1
            x = self._norm(t.op("Add", x, self._attention(x, mask, name)), f"{name}.attention.output.LayerNorm")
            inner = t.op("Gelu", self._times(x, f"{name}.intermediate.dense"))
            rest = t.op("Add", x, self._times(inner, f"{name}.output.dense"))
            x = self._norm(rest, f"{name}.output.LayerNorm", out="last_hidden_state" if last else "")

    def _norm(self, x: str, name: str, out: str = "") -> str:
        gains = [self.t.constant(self.arrays[f"{name}.{part}"]) for part in ("weight", "bias")]
        return self.t.op("LayerNormalization", x, *gains, axis=-1, epsilon=self.epsilon, out=out)

    def _times(self, x: str, name: str, scale: float = 1.0) -> str:
        matrix, bias = (self.arrays[f"{name}.{part}"] * np.float32(scale) for part in ("weight", "bias"))
        return self.t.op("Add", self.t.op("MatMul", x, self.t.constant(matrix.T)), self.t.constant(bias))

    def _attention(self, x: str, mask: str, name: str) -> str:
        """Attention of each token over those of its text."""
        t = self.t
        own = f"{name}.attention.self"
        q = self._split_heads(self._times(x, f"{own}.query", 1 / math.sqrt(self.width)), [0, 2, 1, 3])
        k = self._split_heads(self._times(x, f"{own}.key"), [0, 2, 3, 1])
        v = self._split_heads(self._times(x, f"{own}.value"), [0, 2, 1, 3])
        shares = t.op("Softmax", t.op("Add", t.op("MatMul", q, k), mask), axis=-1)
        taken = t.op("Transpose", t.op("MatMul", shares, v), perm=[0, 2, 1, 3])
        together = t.op("Reshape", taken, t.ints(0, 0, self.heads * self.width))
        return self._times(together, f"{name}.attention.output.dense")

    def _split_heads(self, x: str, order: list[int]) -> str:
        """Split (texts, tokens, heads × width) by heads."""
        split = self.t.op("Reshape", x, self.t.ints(0, 0, self.heads, self.width))
        return self.t.op("Transpose", split, perm=order)
