"""The arrays and metadata of a safetensors file."""

from __future__ import annotations

from collections.abc import Container
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.core.errors import MissingExtraError, ModelError

FLOAT_DTYPES = ("F16", "F32", "I8")
INTEGER_DTYPES = ("I64", "I32", "I16", "I8", "U8", "BOOL")
"""Whole numbers, which files of encoders hold beside their weights, such as token positions."""


class SafetensorsContents(NamedTuple):
    """Arrays by name, and what the file says about them."""

    arrays: dict[str, npt.NDArray[np.float32]]
    about: dict[str, str]


def read_safetensors(path: Path, skip: Container[str] = ()) -> SafetensorsContents:
    """All arrays in single precision, except those of the types in ``skip``."""
    if find_spec("safetensors") is None:
        raise MissingExtraError("safetensors", "embedded", "reading a safetensors file")
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            dtypes = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118 (it is no dict)
            arrays = {name: _read_array(file, name, dtype) for name, dtype in dtypes.items() if dtype not in skip}
            return SafetensorsContents(arrays, file.metadata() or {})
    except OSError as error:
        raise ModelError(f"it cannot be read: {error.strerror or error}", file=str(path)) from error
    except (SafetensorError, ValueError) as error:
        raise ModelError(f"it cannot be read as safetensors: {error}", file=str(path)) from error


def _read_array(file: Any, name: str, dtype: str) -> npt.NDArray[np.float32]:
    if dtype not in FLOAT_DTYPES:
        raise ValueError(f"numbers of kind {dtype!r}, not {', '.join(FLOAT_DTYPES)}")
    array: npt.NDArray[np.float32] = file.get_tensor(name).astype(np.float32, copy=False)
    return array
