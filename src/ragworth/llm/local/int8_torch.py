"""The integer arithmetic of the embedded models in PyTorch, for GPUs.

It multiplies the same whole numbers as the ONNX graph (`onnx_tensors.IntegerArithmetic`), so judgments agree as well as
between two processors: other steps are computed in 32-bit floats, whose sums depend on their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from ragworth.llm.local.onnx_weights import (
    BLOCK,
    MIXED_INPUTS,
    DecoderShape,
    Floats,
    FoldedWeights,
    QuantizedBlocks,
    quantize_blocks,
    quantize_columns,
)


class Int8Linear(nn.Module):
    """A matrix in 8 bits with a scale per output, for vectors that are rounded to 8 bits with a scale each.

    ``mixing`` is multiplied to each `MIXED_INPUTS` neighbouring inputs first.
    """

    def __init__(self, matrix: Floats, mixing: Floats | None = None) -> None:
        super().__init__()
        values, scales = quantize_columns(matrix)
        self.register_buffer("values", torch.from_numpy(values))
        self.register_buffer("scales", torch.from_numpy(scales))
        self.register_buffer("mixing", None if mixing is None else torch.from_numpy(mixing))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        if self.mixing is not None:
            rows = (rows.reshape(-1, MIXED_INPUTS) @ self.mixing).view(rows.shape)
        scale = (rows.abs().amax(-1, keepdim=True) * (1 / 127)).clamp(min=1e-30)
        products = _multiply((rows / scale).round(), self.values)
        return (products * self.scales * scale).view(*x.shape[:-1], -1)


def _multiply(rows: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """Products of whole numbers up to 127. In 16 bits they are exact too, since a GPU adds them up in 32."""
    if rows.is_cuda:
        return torch.mm(rows.half(), matrix.half(), out_dtype=torch.float32)
    return rows @ matrix.float()


class Int8Head(nn.Linear):
    """The output head: weights and vectors in 8 bits, with a scale for every `BLOCK` of them."""

    def __init__(self, rows: Floats) -> None:
        super().__init__(rows.shape[1], rows.shape[0], bias=False)
        self.weight = nn.Parameter(torch.from_numpy(_restored(quantize_blocks(rows))), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        blocks = x.reshape(-1, BLOCK)
        scale = (blocks.abs().amax(-1, keepdim=True) / 127).clamp(min=1e-30)
        return nn.functional.linear(((blocks / scale).round() * scale).view(x.shape), self.weight)


def _restored(found: QuantizedBlocks) -> Floats:
    values = (found.values.astype(np.float32) - 128) * found.scales[..., None]
    return np.ascontiguousarray(values.reshape(len(values), -1))


def to_int8(model: Any) -> None:
    """Give a Llama of the transformers library in single precision the weights and the arithmetic of the graph."""
    sizes = _shape(model)
    weights = {name: tensor.detach().cpu().numpy() for name, tensor in model.state_dict().items()}
    folded = FoldedWeights(sizes, weights, turned=True)
    table = torch.from_numpy(_restored(quantize_blocks(folded.embedding())))
    model.model.embed_tokens = nn.Embedding.from_pretrained(table)
    model.lm_head = Int8Head(folded.output())
    for number, layer in enumerate(model.model.layers):
        found = folded.layer(number)
        attention, inner = layer.self_attn, layer.mlp
        attention.q_proj = Int8Linear(found.q * np.float32(sizes.head**0.5))  # the library scales scores itself
        attention.k_proj, attention.v_proj = Int8Linear(found.k), Int8Linear(found.v)
        attention.o_proj = Int8Linear(found.o)
        inner.gate_proj, inner.up_proj = Int8Linear(found.gate), Int8Linear(found.up)
        inner.down_proj = Int8Linear(found.down, folded.mixing)
    with torch.no_grad():
        for norm in (module for name, module in model.named_modules() if name.endswith("norm")):
            norm.weight.fill_(1.0)  # its gain is in the matrices that follow


def _shape(model: Any) -> DecoderShape:
    config = model.config
    return DecoderShape(
        vocabulary=config.vocab_size,
        hidden=config.hidden_size,
        inner=config.intermediate_size,
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head=config.head_dim,
        context=config.max_position_embeddings,
        theta=config.rope_parameters["rope_theta"],
        epsilon=config.rms_norm_eps,
    )
