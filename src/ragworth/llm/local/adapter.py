"""Low-rank adapters: two thin matrices for each matrix of a model that they change.

`Adapter` is one in the form that ships with ragworth, `PeftAdapter` a folder of the PEFT library, which isn't needed to
read it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragworth.core.errors import MissingExtraError, ModelError
from ragworth.core.nested_text import parse_json

if TYPE_CHECKING:
    from ragworth.llm.local.gguf_file import Floats

CONFIG, WEIGHTS, ABOUT = "adapter_config.json", "adapter_model.safetensors", "training.json"
"""Files of an adapter's folder; `ragworth rewrite train` writes the last."""

EMBEDDED_BASE = "embedded:base"
"""The written form of the embedded model without its own adapter."""

PREFIX, DOWN, UP = "base_model.model.", ".lora_A.weight", ".lora_B.weight"
"""Parts of the names of matrices in a folder of the PEFT library."""

UNSUPPORTED = ("use_dora", "modules_to_save", "rank_pattern", "alpha_pattern", "layer_replication")
"""Variants of LoRA that change more than two thin matrices can."""

FLOAT_DTYPES = ("F16", "F32", "I8")
INTEGER_DTYPES = ("I64", "I32", "I16", "I8", "U8", "BOOL")
"""Whole numbers, which files of encoders hold beside their weights, such as token positions."""


class SafetensorsContents(NamedTuple):
    """Arrays by name, and what the file says about them."""

    arrays: dict[str, Floats]
    about: dict[str, str]


def read_safetensors(path: Path, skip: Container[str] = ()) -> SafetensorsContents:
    """Read all arrays in single precision, except those of the types in ``skip``."""
    if find_spec("safetensors") is None:
        raise MissingExtraError("safetensors", "embedded", "reading a safetensors file")
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            dtypes = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118 (it is no dict)
            wanted = {name: dtype for name, dtype in dtypes.items() if dtype not in skip}
            if odd := set(wanted.values()).difference(FLOAT_DTYPES):
                raise ValueError(f"numbers of kind {', '.join(sorted(odd))}, not {', '.join(FLOAT_DTYPES)}")
            arrays = {name: file.get_tensor(name).astype("float32", copy=False) for name in wanted}
            return SafetensorsContents(arrays, file.metadata() or {})
    except OSError as error:
        raise ModelError(f"it cannot be read: {error.strerror or error}", file=str(path)) from error
    except (SafetensorError, ValueError) as error:
        raise ModelError(f"it cannot be read as safetensors: {error}", file=str(path)) from error


@dataclass(frozen=True)
class Adapter:
    """Pairs ``NAME.down`` (rank × inputs) and ``NAME.up`` (outputs × rank) of a file, with metadata.

    ``NAME.scale``, one number per rank, is present if the matrices are stored in 8 bits. A file may hold several
    adapters; the names and metadata of each begin with its ``part`` and a slash.
    """

    path: Path
    part: str = ""

    @cached_property
    def digest(self) -> str:
        """A hash of its own part of the file: part of the identity of a model that it changes."""
        arrays, about = self._read()
        digest = hashlib.sha256(json.dumps(sorted(about.items())).encode())
        for name, array in sorted(arrays.items()):
            digest.update(f"{name} {array.shape}".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()[:16]

    @cached_property
    def about(self) -> Mapping[str, str]:
        return self._read().about

    def _read(self) -> SafetensorsContents:
        arrays, about = read_safetensors(self.path)
        prefix = f"{self.part}/" if self.part else ""
        return SafetensorsContents(
            {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)},
            {name.removeprefix(prefix): value for name, value in about.items() if name.startswith(prefix)},
        )

    def deltas(self) -> dict[str, Floats]:
        """The difference added to each matrix, by its name in the transformers library."""
        return _multiply(self.pairs(), self.path)

    def pairs(self) -> dict[str, tuple[Floats, Floats]]:
        """The two thin matrices, (outputs, rank) and (rank, inputs), for each matrix that it changes."""
        arrays = self._read().arrays
        scales = {name: arrays.pop(name) for name in list(arrays) if name.endswith(".scale")}
        names = sorted(name.removesuffix(".down") for name in arrays if name.endswith(".down"))
        if not names or set(arrays) != {f"{name}.{part}" for name in names for part in ("down", "up")}:
            problem = f"it has no adapter {self.part!r}" if self.part else "it is not an adapter"
            raise ModelError(problem, file=str(self.path), expected="pairs of NAME.down and NAME.up")
        for name, scale in scales.items():
            arrays[name.replace(".scale", ".up")] *= scale
        return {name: (arrays[f"{name}.up"], arrays[f"{name}.down"]) for name in names}


@dataclass(frozen=True)
class PeftAdapter:
    """A LoRA adapter in a folder of the PEFT library."""

    path: Path

    @cached_property
    def config(self) -> Mapping[str, Any]:
        config = _read_json(self.path / CONFIG)
        used = [name for name in UNSUPPORTED if config.get(name)]
        if config.get("peft_type") != "LORA" or config.get("bias", "none") != "none" or used:
            words = [f"{name} {config.get(name)!r}" for name in ("peft_type", "bias", *used)]
            raise ModelError(
                f"it has {', '.join(words)}",
                file=str(self.path / CONFIG),
                expected="plain LoRA, with bias none",
                remedy="merge it first",
            )
        return config

    @cached_property
    def about(self) -> Mapping[str, Any]:
        """What `ragworth rewrite train` wrote about it; empty for adapters from elsewhere."""
        return _read_json(self.path / ABOUT) if (self.path / ABOUT).is_file() else {}

    @property
    def base(self) -> str:
        """The model that it changes: ``embedded:base``, or a folder or name of the transformers library."""
        return str(self.config.get("base_model_name_or_path") or "")

    @cached_property
    def digest(self) -> str:
        """A hash of its files: part of the identity of a model that it changes."""
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
        return _multiply(self.pairs(), self.path)

    def pairs(self) -> dict[str, tuple[Floats, Floats]]:
        """The two thin matrices, (outputs, rank) and (rank, inputs), for each matrix that it changes."""
        rank = int(self.config["r"])
        scale = self.config["lora_alpha"] / (math.sqrt(rank) if self.config.get("use_rslora") else rank)
        arrays = read_safetensors(self.path / WEIGHTS).arrays
        names = [name.removesuffix(DOWN) for name in arrays if name.endswith(DOWN)]
        if not names or set(arrays) != {f"{name}{part}" for name in names for part in (DOWN, UP)}:
            raise ModelError(
                "it is not a LoRA adapter", file=str(self.path / WEIGHTS), expected="pairs of lora_A and lora_B"
            )
        return {name.removeprefix(PREFIX): (arrays[name + UP] * scale, arrays[name + DOWN]) for name in names}


def is_adapter_folder(path: Path) -> bool:
    """Whether a folder is an adapter rather than a whole model."""
    return (path / CONFIG).is_file() and not (path / "config.json").is_file()


def adapter_model_spec(folder: str | Path) -> str:
    """The written form of the model that an adapter's folder makes of its base."""
    base = _read_json(Path(folder) / CONFIG).get("base_model_name_or_path")
    written = f"./{folder}" if len(Path(folder).parts) == 1 else folder  # "rewriter" alone is a model that ships
    return f"embedded:{written}" if base == EMBEDDED_BASE else f"hf:{folder}"


def merge_deltas(weights: Mapping[str, Floats], deltas: Mapping[str, Floats]) -> dict[str, Floats]:
    """Add an adapter's differences to some weights."""
    for name, delta in deltas.items():
        shape = weights[name].shape if name in weights else None
        if delta.shape != shape:
            raise ModelError(
                f"the adapter changes {name} by a matrix of {delta.shape}",
                expected=f"one of {shape}" if shape else "weights that the model has",
            )
    return {name: value + deltas[name] if name in deltas else value for name, value in weights.items()}


def _multiply(pairs: Mapping[str, tuple[Floats, Floats]], path: Path) -> dict[str, Floats]:
    for name, (up, down) in pairs.items():
        if not up.ndim == down.ndim == 2 or up.shape[1] != down.shape[0]:
            raise ModelError(f"its matrices of {name} do not fit: {up.shape}, {down.shape}", file=str(path))
    return {f"{name}.weight": up @ down for name, (up, down) in pairs.items()}


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        value = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"it cannot be read: {error}", file=str(path)) from error
    if not isinstance(value, dict):
        raise ModelError("it is not a JSON object", file=str(path))
    return value
