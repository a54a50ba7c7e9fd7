"""A low-rank adapter: two thin matrices for each matrix of a model that it changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ragworth.core.errors import ModelError
from ragworth.llm.local.onnx_weights import Floats
from ragworth.llm.local.safetensors_file import SafetensorsContents, read_safetensors


@dataclass(frozen=True)
class Adapter:
    """Pairs ``NAME.down`` (rank × inputs) and ``NAME.up`` (outputs × rank) of a file, with metadata.

    ``NAME.scale``, one number per rank, is present if the matrices are stored in 8 bits. A file may hold several
    adapters; the names and metadata of each begin with its ``part`` and a slash.
    """

    path: Path
    part: str = ""

    @property
    def digest(self) -> str:
        """Hash of the adapter, not of others in its file: part of the identity of a model that it changes."""
        return self._identity[0]

    @property
    def about(self) -> Mapping[str, str]:
        return self._identity[1]

    @cached_property
    def _identity(self) -> tuple[str, Mapping[str, str]]:
        """Digest and metadata, without keeping the matrices in memory."""
        contents = self._read()
        found = hashlib.sha256(json.dumps(sorted(contents.about.items())).encode())
        for name, array in sorted(contents.arrays.items()):
            found.update(f"{name} {array.shape}".encode())
            found.update(array.tobytes())
        return found.hexdigest()[:16], contents.about

    def _read(self) -> SafetensorsContents:
        found = read_safetensors(self.path)
        prefix = f"{self.part}/" if self.part else ""
        return SafetensorsContents(
            {name.removeprefix(prefix): array for name, array in found.arrays.items() if name.startswith(prefix)},
            {name.removeprefix(prefix): value for name, value in found.about.items() if name.startswith(prefix)},
        )

    def deltas(self) -> dict[str, Floats]:
        """The difference added to each matrix, by its name in the transformers library."""
        arrays = self._read().arrays
        names = sorted(name.removesuffix(".down") for name in arrays if name.endswith(".down"))
        scales = {name for name in arrays if name.endswith(".scale")}
        pairs = {f"{name}.{part}" for name in names for part in ("down", "up")}
        if not names or set(arrays) - scales != pairs or not scales <= {f"{name}.scale" for name in names}:
            what = f"it has no adapter {self.part!r}" if self.part else "it is not an adapter"
            raise ModelError(what, file=str(self.path), expected="pairs of NAME.down and NAME.up")
        return {f"{name}.weight": self._product(arrays, name) for name in names}

    def _product(self, arrays: Mapping[str, Floats], name: str) -> Floats:
        up, down, scale = arrays[f"{name}.up"], arrays[f"{name}.down"], arrays.get(f"{name}.scale")
        fits = up.ndim == down.ndim == 2 and up.shape[1] == down.shape[0]
        if not fits or (scale is not None and scale.shape != down.shape[:1]):
            shapes = " and ".join(str(each.shape) for each in (up, down, scale) if each is not None)
            raise ModelError(f"its matrices of {name} do not fit: {shapes}", file=str(self.path))
        scaled: Floats = up if scale is None else np.multiply(up, scale, dtype=np.float32)
        return scaled @ down
