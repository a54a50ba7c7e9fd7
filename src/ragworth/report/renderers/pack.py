"""Data inside a page: JSON, compressed, in letters that no HTML can end."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from typing import Any


def pack_json(value: Any) -> bytes:
    """JSON, gzipped (without a time, so that equal data give equal pages) and in base64."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0))


def source_hash(content: str) -> str:
    """The name of an inline script or style in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
