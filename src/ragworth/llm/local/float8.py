"""Matrix products in 8-bit floating point: the layers of a model, with weights and inputs scaled row by row.

GPUs that have such products (Ada and later; measured on Hopper) multiply up to twice as fast as in bfloat16. Inputs
are scaled when they arrive, so nothing needs to be calibrated. Embeddings, norms, attention and the output head stay as
they are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ragworth.core.errors import ModelError

LARGEST = 448.0
"""The largest number that float8 (e4m3) represents."""
FAST = True
"""True if products are added up in fewer bits."""
MULTIPLE = 16
"""The sizes of a matrix must be multiples of this."""
SHARED_INPUT = ("q_proj", "k_proj", "v_proj")
"""Layers with one input, which become one product."""


def quantise(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows in float8, and the scale of each: (rows × 1)."""
    scale = rows.abs().amax(-1, keepdim=True).float().clamp(min=1e-12) / LARGEST
    return (rows / scale).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn), scale


class Float8Linear(nn.Module):
    """Linear layers with the same input as one product in float8."""

    def __init__(self, *layers: nn.Linear) -> None:
        super().__init__()
        weight, scale = quantise(torch.cat([layer.weight.detach() for layer in layers]))
        bias = None if layers[0].bias is None else torch.cat([layer.bias.detach() for layer in layers])
        self.sizes = [layer.out_features for layer in layers]
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale.t().contiguous())
        self.register_buffer("bias", bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, scale = quantise(x.reshape(-1, x.shape[-1]))
        # Its public namesake, torch.nn.functional.scaled_mm, can't be compiled yet (PyTorch 2.11).
        out = torch._scaled_mm(
            rows, self.weight.t(), scale_a=scale, scale_b=self.scale, out_dtype=x.dtype, use_fast_accum=FAST
        )
        return (out if self.bias is None else out + self.bias).view(*x.shape[:-1], -1)


class Float8Part(nn.Module):
    """One of several layers with the same input: the first to be called multiplies for all."""

    def __init__(self, product: Float8Linear, number: int, pending: dict[int, torch.Tensor]) -> None:
        super().__init__()
        self.product, self.number, self.pending = product, number, pending

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.number not in self.pending:
            self.pending.update(enumerate(self.product(x).split(self.product.sizes, dim=-1)))
        return self.pending.pop(self.number)


def to_float8(body: Any) -> None:
    """Replace the linear layers of a decoder by products in float8."""
    replaced = 0
    for module in list(body.modules()):
        layers = {name: layer for name, layer in module.named_children() if _fits(layer)}
        shared = [layers[name] for name in SHARED_INPUT if name in layers]
        if len(shared) == len(SHARED_INPUT) and len({layer.bias is None for layer in shared}) == 1:
            product, pending = Float8Linear(*shared), dict[int, torch.Tensor]()
            for number, name in enumerate(SHARED_INPUT):
                setattr(module, name, Float8Part(product, number, pending))
                del layers[name]
            replaced += len(shared)
        for name, layer in layers.items():
            setattr(module, name, Float8Linear(layer))
            replaced += 1
    if not replaced:
        raise ModelError(
            f"this kind of model ({type(body).__name__}) has no layers for float8",
            expected=f"linear layers whose sizes are multiples of {MULTIPLE}",
            remedy="dtype=bfloat16",
        )


def _fits(layer: nn.Module) -> bool:
    return type(layer) is nn.Linear and layer.in_features % MULTIPLE == 0 and layer.out_features % MULTIPLE == 0
