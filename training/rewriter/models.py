"""The embedded models, also on a GPU, where they are many times faster than their 8-bit graph on a CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ragworth
from ragworth.llm.contract import Model
from ragworth.llm.embedded import CONTEXT_LENGTH, READER_ADAPTER, weights_file
from ragworth.llm.fingerprint import fingerprint
from ragworth.llm.local.adapter import Adapter
from ragworth.llm.local.engine import LOCAL_ABILITIES, Engine
from ragworth.llm.local.loaded import LoadedModel

CPU = "cpu"
GPU_TOKENS = 131_072
"""Tokens of a batch on a GPU: a model this small leaves room for many, and writing is faster the more there are."""


def reader(device: str) -> Model:
    """The reader that judges contexts."""
    return ragworth.llm("embedded") if device == CPU else _on_gpu("ragworth-reader-135M", READER_ADAPTER, device)


def base(device: str) -> Model:
    """The model that rewriters start from."""
    return ragworth.llm("embedded:base") if device == CPU else _on_gpu("SmolLM2-135M-Instruct", None, device)


def rewriter(adapter: Path, device: str) -> Model:
    """The model that an adapter makes of the base."""
    return (
        ragworth.llm(f"embedded:{adapter}")
        if device == CPU
        else ragworth.llm(f"hf:{adapter}", device=device, dtype=_dtype(device), batch_tokens=_batch_tokens(device))
    )


def _dtype(device: str) -> str:
    """16 bits, but not on a CPU (``cpu:0`` is PyTorch there), where they are slow."""
    return "float32" if device.startswith(CPU) else "bfloat16"


def _batch_tokens(device: str) -> int:
    """0 leaves it to the backend."""
    return 0 if device.startswith(CPU) else GPU_TOKENS


def _on_gpu(name: str, adapter: Adapter | None, device: str) -> Engine:
    """The weights of the embedded model in PyTorch, with the card of the embedded one otherwise."""
    from ragworth.llm.contract import Card
    from ragworth.llm.local.torch_device import build_batch_budget

    path, dtype = weights_file(), _dtype(device)
    card = Card(
        backend="hf",
        name=name,
        revision=fingerprint(path) + (f"+{adapter.digest}" if adapter is not None else ""),
        quantisation=dtype,
        abilities=LOCAL_ABILITIES,
        context_length=CONTEXT_LENGTH,
        declining=None if adapter is None else float(adapter.about["temperature"]),
    )

    def load() -> LoadedModel:
        import torch

        from ragworth.llm.local.gguf_torch import load_gguf_llama
        from ragworth.llm.local.torch_runtime import TorchRuntime

        found = load_gguf_llama(path, adapter.deltas() if adapter is not None else None)
        model: Any = found.model.to(device=device, dtype=getattr(torch, dtype)).eval()
        return LoadedModel(TorchRuntime(model, dtype), found.encoder, build_batch_budget(model, _batch_tokens(device)))

    return Engine(card, load, batch=1024)
