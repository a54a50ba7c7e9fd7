"""Data inside a page, as the script of the page reads it."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any


def unpack_json(data: bytes) -> Any:
    """What `ragworth.report.renderers.html.pack_json` packed."""
    return json.loads(gzip.decompress(base64.b64decode(data)))
