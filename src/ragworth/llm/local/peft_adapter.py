"""Adapters in the format of the PEFT library: a folder with ``adapter_config.json`` and ``adapter_model.safetensors``.

They are read without that library: a LoRA adapter is two thin matrices for each matrix that it changes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ragworth.core.errors import ModelError
from ragworth.llm.adapter_folder import ABOUT, CONFIG, WEIGHTS, read_adapter_json
from ragworth.llm.local.onnx_weights import Floats
from ragworth.llm.local.safetensors_file import read_safetensors

PREFIX = "base_model.model."
UNSUPPORTED = (
    "use_dora",
    "modules_to_save",
    "rank_pattern",
    "alpha_pattern",
    "layer_replication",
    "trainable_token_indices",
)
"""Variants of LoRA that change more than two thin matrices can."""


@dataclass(frozen=True)
class PeftAdapter:
    """A LoRA adapter in a folder."""

    path: Path

    @cached_property
    def config(self) -> Mapping[str, Any]:
        found = read_adapter_json(self.path / CONFIG)
        if found.get("peft_type") != "LORA" or found.get("bias", "none") != "none":
            raise ModelError(
                f"its type is {found.get('peft_type')!r}, with bias {found.get('bias')!r}",
                file=str(self.path / CONFIG),
                expected="LORA, with bias none",
            )
        if used := [name for name in UNSUPPORTED if found.get(name)]:
            raise ModelError(
                f"it uses {', '.join(used)}",
                file=str(self.path / CONFIG),
                expected="plain LoRA",
                remedy="merge it first",
            )
        return found

    @cached_property
    def about(self) -> Mapping[str, Any]:
        """What `ragworth rewrite train` wrote about it; empty for adapters from elsewhere."""
        return read_adapter_json(self.path / ABOUT) if (self.path / ABOUT).is_file() else {}

    @property
    def base(self) -> str:
        """The model that it changes: ``embedded:base``, or a folder or name of the transformers library."""
        return str(self.config.get("base_model_name_or_path") or "")

    @cached_property
    def digest(self) -> str:
        """Hash of its files: part of the identity of a model that it changes."""
        try:
            parts = [hashlib.sha256((self.path / name).read_bytes()).hexdigest() for name in (CONFIG, WEIGHTS)]
        except OSError as error:
            raise ModelError(f"it cannot be read: {error.strerror or error}", file=str(error.filename)) from error
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]

    def check_base(self, revision: str) -> None:
        """Refuse another base than the one it was trained on, if that is known."""
        trained = self.about.get("base", {}).get("revision", revision)
        if trained != revision:
            raise ModelError(
                f"it was trained on another model: {trained}, not {revision}",
                file=str(self.path),
                expected=f"the model that was {self.base!r} then",
            )

    def deltas(self) -> dict[str, Floats]:
        """The difference added to each matrix, by its name in the transformers library."""
        return {f"{name}.weight": up @ down for name, (up, down) in self.pairs().items()}

    def pairs(self) -> dict[str, tuple[Floats, Floats]]:
        """The two thin matrices of each layer that it changes; their product is the difference."""
        rank = int(self.config["r"])
        scale = self.config["lora_alpha"] / (math.sqrt(rank) if self.config.get("use_rslora") else rank)
        arrays = read_safetensors(self.path / WEIGHTS).arrays
        found: dict[str, tuple[Floats, Floats]] = {}
        for name, down in arrays.items():
            if not name.endswith(".lora_A.weight"):
                continue
            up = arrays.get(name.replace(".lora_A.", ".lora_B."))
            if up is None or up.ndim != 2 or down.ndim != 2 or up.shape[1] != down.shape[0]:
                raise ModelError(f"its matrices of {name} do not fit", file=str(self.path / WEIGHTS))
            found[name.removeprefix(PREFIX).removesuffix(".lora_A.weight")] = (up * scale, down)
        if not found or len(arrays) != 2 * len(found):
            raise ModelError(
                "it is not a LoRA adapter", file=str(self.path / WEIGHTS), expected="pairs of lora_A and lora_B"
            )
        return found
