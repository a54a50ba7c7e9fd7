"""A low-rank adapter: two thin matrices for each matrix of a model that it changes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ragworth.errors import ModelError
from ragworth.llm.local.onnx_weights import Floats
from ragworth.llm.local.safetensors_file import SafetensorsContents, read_safetensors


@dataclass(frozen=True)
class Adapter:
    """A file of pairs ``NAME.down`` (rank × inputs) and ``NAME.up`` (outputs × rank), with metadata.

    ``NAME.scale``, one number per rank, is present if the matrices are stored in 8 bits.
    """

    path: Path

    @cached_property
    def digest(self) -> str:
        """Hash of the file: part of the identity of a model that it changes."""
        try:
            return hashlib.sha256(self.path.read_bytes()).hexdigest()[:16]
        except OSError as error:
            raise ModelError(f"it cannot be read: {error.strerror or error}", file=str(self.path)) from error

    @cached_property
    def _tensors(self) -> SafetensorsContents:
        return read_safetensors(self.path)

    @property
    def about(self) -> Mapping[str, str]:
        return self._tensors.about

    def deltas(self) -> dict[str, Floats]:
        """The difference added to each matrix, by its name in the transformers library."""
        arrays = self._tensors.arrays
        names = sorted(name.removesuffix(".down") for name in arrays if name.endswith(".down"))
        scales = {name for name in arrays if name.endswith(".scale")}
        pairs = {f"{name}.{part}" for name in names for part in ("down", "up")}
        if not names or set(arrays) - scales != pairs or not scales <= {f"{name}.scale" for name in names}:
            raise ModelError("it is not an adapter", file=str(self.path), expected="pairs of NAME.down and NAME.up")
        return {f"{name}.weight": self._product(name) for name in names}

    def _product(self, name: str) -> Floats:
        arrays = self._tensors.arrays
        up, down, scale = arrays[f"{name}.up"], arrays[f"{name}.down"], arrays.get(f"{name}.scale")
        fits = up.ndim == down.ndim == 2 and up.shape[1] == down.shape[0]
        if not fits or (scale is not None and scale.shape != down.shape[:1]):
            shapes = " and ".join(str(each.shape) for each in (up, down, scale) if each is not None)
            raise ModelError(f"its matrices of {name} do not fit: {shapes}", file=str(self.path))
        scaled: Floats = up if scale is None else np.multiply(up, scale, dtype=np.float32)
        return scaled @ down
