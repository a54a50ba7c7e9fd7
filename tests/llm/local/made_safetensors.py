"""Small safetensors files, written by hand so that they can be wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = {np.dtype(np.float16): "F16", np.dtype(np.float32): "F32"}


def packed(header: Any, body: bytes = b"") -> bytes:
    """A file of a header, as JSON or as it is, and what follows it."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def write(path: Path, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, str] | None = None) -> Path:
    """A file of arrays and what it says about them."""
    header: dict[str, Any] = {"__metadata__": dict(about)} if about else {}
    body = b""
    for name, array in arrays.items():
        place = [len(body), len(body) + array.nbytes]
        header[name] = {"dtype": KINDS[array.dtype], "shape": list(array.shape), "data_offsets": place}
        body += array.tobytes()
    path.write_bytes(packed(header, body))
    return path
