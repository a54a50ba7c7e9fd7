"""What PyTorch and the transformers library need before a model is loaded: packages, a device, room for batches."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from ragworth.core.errors import MissingExtraError, ModelError
from ragworth.llm.local.batches import BatchBudget


def require_transformers() -> None:
    """Packages that are missing are an error which names the extra."""
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "hf", "running a model of the transformers library")


def resolve_device(device: str) -> str:
    """Resolve ``auto``; a device that doesn't exist is an error."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(
            f"the device {device!r} can't be used: {error}", expected="cpu, cuda, cuda:N or mps", remedy="device=auto"
        ) from error
    return device


def silence_libraries() -> None:
    """Turn off progress bars and hints of the underlying libraries, in favour of ours."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


def build_batch_budget(model: Any, tokens: int) -> BatchBudget:
    """Set the size of batches: a share of the free memory, divided by the memory of one token's activations."""
    import torch

    device = next(model.parameters()).device
    if tokens:
        return BatchBudget(tokens, tokens)
    if device.type != "cuda":
        return BatchBudget(4096, 64)
    free, _ = torch.cuda.mem_get_info(device)
    config = model.config.get_text_config()
    # Keys and values of all layers, and a few copies of the widest activation.
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    kept = 4 * config.num_hidden_layers * heads * width
    passing = 16 * (getattr(config, "intermediate_size", None) or 4 * config.hidden_size)
    return BatchBudget(max(1024, min(65536, int(0.6 * free / (kept + passing)))), 1024)
