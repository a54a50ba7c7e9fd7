"""The weights of an encoder out of its safetensors file: floats by name, mapped into memory and not copied.

Files of encoders hold whole numbers too (places of tokens, counted from 0), which are no weights and are passed over.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from ragworth.errors import ModelError
from ragworth.retrieval.encoders.contract import Floats

KINDS: dict[str, np.dtype[Any]] = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4")}
WHOLE = ("I64", "I32", "I16", "I8", "U8", "BOOL")
"""Kinds of numbers that are passed over."""

LONGEST = 1 << 24
"""Bytes of a header; more is no header."""


def read(path: Path) -> dict[str, Floats]:
    """All weights of a file, in single precision."""
    try:
        data = np.memmap(path, dtype=np.uint8, mode="r")
        size = int.from_bytes(data[:8].tobytes(), "little")
        if not 0 < size < min(LONGEST, len(data) - 8):
            raise ValueError("the header has no length")
        header = json.loads(data[8 : 8 + size].tobytes())
        header.pop("__metadata__", None)
        body = data[8 + size :]
        return {name: _array(body, **facts) for name, facts in header.items() if facts["dtype"] not in WHOLE}
    except OSError as error:
        raise ModelError(f"it cannot be read: {error.strerror or error}", file=str(path)) from error
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ModelError(f"it cannot be read as safetensors: {error}", file=str(path)) from error


def _array(body: Any, dtype: str, shape: list[int], data_offsets: list[int]) -> Floats:
    if dtype not in KINDS:
        raise ValueError(f"numbers of kind {dtype!r}, not {', '.join(KINDS)}")
    (start, end), kind = data_offsets, KINDS[dtype]
    fits = 0 <= start <= end <= len(body) and end - start == math.prod(shape) * kind.itemsize
    if not fits or min(shape, default=0) < 0:
        raise ValueError(f"an array of {shape} is said to be at bytes {start} to {end} of {len(body)}")
    found: Floats = np.frombuffer(body[start:end], dtype=kind).reshape(shape).astype(np.float32, copy=False)
    return found
