"""Folders of LoRA adapters in the format of the PEFT library: what is in them, and how the model is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragworth.core.errors import ModelError
from ragworth.core.nested_text import parse_json

CONFIG, WEIGHTS, ABOUT = "adapter_config.json", "adapter_model.safetensors", "training.json"
EMBEDDED_BASE = "embedded:base"
"""The written form of the embedded model without its own adapter."""


def is_adapter_folder(path: Path) -> bool:
    """Whether a folder is an adapter rather than a whole model."""
    return (path / CONFIG).is_file() and not (path / "config.json").is_file()


def adapter_model_spec(folder: str | Path) -> str:
    """The written form of the model that an adapter's folder makes of its base."""
    base = read_adapter_json(Path(folder) / CONFIG).get("base_model_name_or_path")
    written = f"./{folder}" if len(Path(folder).parts) == 1 else folder  # "rewriter" alone is a model that ships
    return f"embedded:{written}" if base == EMBEDDED_BASE else f"hf:{folder}"


def read_adapter_json(path: Path) -> Mapping[str, Any]:
    """Read a JSON object."""
    try:
        value = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"it cannot be read: {error}", file=str(path)) from error
    if not isinstance(value, dict):
        raise ModelError("it is not a JSON object", file=str(path))
    return value
