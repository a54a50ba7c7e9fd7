"""What is in a safetensors file: arrays and names, no code. Read here, so that a small model needs no package."""

from __future__ import annotations

import json
import math
from collections.abc import Container
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.errors import ModelError

FLOAT_DTYPES: dict[str, np.dtype[Any]] = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4"), "I8": np.dtype("i1")}
INTEGER_DTYPES = ("I64", "I32", "I16", "I8", "U8", "BOOL")
"""Kinds of whole numbers: what files of encoders hold beside weights, such as places of tokens counted from 0."""

MAX_HEADER = 1 << 24
"""Bytes of a header; more is no header."""


class SafetensorsContents(NamedTuple):
    """Arrays by name, and what the file says about them."""

    arrays: dict[str, npt.NDArray[np.float32]]
    about: dict[str, str]


def read_safetensors(path: Path, passing: Container[str] = ()) -> SafetensorsContents:
    """All arrays in single precision; what the file has so already is mapped into memory and not copied.

    ``passing``: kinds of numbers that are passed over.
    """
    try:
        data = np.memmap(path, dtype=np.uint8, mode="r")
        size = int.from_bytes(data[:8].tobytes(), "little")
        if not 0 < size < min(MAX_HEADER, len(data) - 8):
            raise ValueError("the header has no length")
        header = json.loads(data[8 : 8 + size].tobytes())
        about = {str(name): str(value) for name, value in header.pop("__metadata__", {}).items()}
        body = data[8 + size :]
        arrays = {name: _array(body, **facts) for name, facts in header.items() if facts["dtype"] not in passing}
    except OSError as error:
        raise ModelError(f"it cannot be read: {error.strerror or error}", file=str(path)) from error
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ModelError(f"it cannot be read as safetensors: {error}", file=str(path)) from error
    return SafetensorsContents(arrays, about)


def _array(body: Any, dtype: str, shape: list[int], data_offsets: list[int]) -> npt.NDArray[np.float32]:
    if dtype not in FLOAT_DTYPES:
        raise ValueError(f"numbers of kind {dtype!r}, not {', '.join(FLOAT_DTYPES)}")
    (start, end), kind = data_offsets, FLOAT_DTYPES[dtype]
    fits = 0 <= start <= end <= len(body) and end - start == math.prod(shape) * kind.itemsize
    if not fits or min(shape, default=0) < 0:
        raise ValueError(f"an array of {shape} is said to be at bytes {start} to {end} of {len(body)}")
    return np.frombuffer(body[start:end], dtype=kind).reshape(shape).astype(np.float32, copy=False)
