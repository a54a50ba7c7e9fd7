"""The unchanged base model with a low-rank adapter on top of it, in PyTorch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from ragworth.llm.local.gguf_torch import load_gguf_llama
from ragworth.llm.local.prompt_encoding import PromptEncoder

ADAPTED = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""Matrices of every layer that are changed; embeddings and norms stay as they are."""


class Adapted(nn.Module):
    """A matrix that stays as it is, plus the product of two thin ones."""

    def __init__(self, base: nn.Linear, rank: int, scale: float, dropout: float) -> None:
        super().__init__()
        self.base, self.scale, self.dropout = base, scale, nn.Dropout(dropout)
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One product with the sum of all: faster than two thin ones besides the first.

        While it learns, some numbers of the thin matrix that comes first are left out at random.
        """
        change = (self.up @ self.dropout(self.down)) * self.scale
        return nn.functional.linear(x, self.base.weight + change.to(self.base.weight.dtype))


def read(path: Path, device: str) -> tuple[Any, PromptEncoder]:
    """A GGUF file of the Llama family as a model of the transformers library, and how prompts are written for it."""
    found = load_gguf_llama(path)
    return found.model.to(device), found.encoder


def adapt(model: Any, rank: int, alpha: float, dropout: float) -> dict[str, Adapted]:
    """Put an adapter on every matrix that is to change; nothing else learns."""
    model.requires_grad_(False)
    made: dict[str, Adapted] = {}
    for name, module in list(model.named_modules()):
        last = name.rsplit(".", 1)[-1]
        if last in ADAPTED and isinstance(module, nn.Linear):
            new = Adapted(module, rank, alpha / rank, dropout).to(module.weight.device)
            setattr(model.get_submodule(name.rsplit(".", 1)[0]), last, new)
            made[name] = new
    return made


def rounded(adapters: dict[str, Adapted]) -> dict[str, torch.Tensor]:
    """The thin matrices in 8 bits, with a scale for each of the ranks; the adapters go on with what that comes to."""
    tensors: dict[str, torch.Tensor] = {}
    for name, one in adapters.items():
        down, row = _eight_bits(one.down.detach().float(), 1)
        up, column = _eight_bits(one.up.detach().float(), 0)
        tensors[f"{name}.down"], tensors[f"{name}.up"] = down.cpu().contiguous(), up.cpu().contiguous()
        tensors[f"{name}.scale"] = (row[:, 0] * column[0] * one.scale).cpu().contiguous()
        with torch.no_grad():
            one.down.copy_(down * row)
            one.up.copy_(up * column)
    return tensors


def _eight_bits(matrix: torch.Tensor, over: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Whole numbers of at most 127, and what they are to be multiplied by."""
    scale = matrix.abs().amax(over, keepdim=True).clamp(min=1e-12) / 127
    return (matrix / scale).round().to(torch.int8), scale


def save(tensors: dict[str, torch.Tensor], path: Path, about: dict[str, str]) -> None:
    """Write the matrices; what was done stands in the file's metadata."""
    save_file(tensors, str(path), metadata=about)
