"""A low-rank adapter: two thin matrices for each matrix of a model that it changes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ragworth.errors import ModelError
from ragworth.llm.local.onnx_weights import Floats
from ragworth.llm.local.safetensors_file import Tensors, read


@dataclass(frozen=True)
class Adapter:
    """A file of pairs ``NAME.down`` (rank × inputs) and ``NAME.up`` (outputs × rank), and what it says about itself."""

    path: Path

    @cached_property
    def digest(self) -> str:
        """Hash of the file: part of the identity of a model that it changes."""
        try:
            return hashlib.sha256(self.path.read_bytes()).hexdigest()[:16]
        except OSError as error:
            raise ModelError(f"it cannot be read: {error.strerror or error}", file=str(self.path)) from error

    @cached_property
    def _tensors(self) -> Tensors:
        return read(self.path)

    @property
    def about(self) -> Mapping[str, str]:
        return self._tensors.about

    def deltas(self) -> dict[str, Floats]:
        """What is added to each matrix, by the name that its weights have in the transformers library."""
        arrays = self._tensors.arrays
        names = sorted(name.removesuffix(".down") for name in arrays if name.endswith(".down"))
        if not names or set(arrays) != {f"{name}.{part}" for name in names for part in ("down", "up")}:
            raise ModelError("it is no adapter", file=str(self.path), expected="pairs of NAME.down and NAME.up")
        return {f"{name}.weight": self._product(name, arrays[f"{name}.up"], arrays[f"{name}.down"]) for name in names}

    def _product(self, name: str, up: Floats, down: Floats) -> Floats:
        if up.ndim != 2 or down.ndim != 2 or up.shape[1] != down.shape[0]:
            raise ModelError(f"its matrices of {name} do not fit: {up.shape} and {down.shape}", file=str(self.path))
        return up @ down
