"""The adapter of the best epoch so far, replaced so that a kill leaves the old one or the new one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ragworth.core.files import write_output

EPOCH = "epoch.json"
ADAPTER = "default"
"""PEFT's name of the adapter that is trained."""


def read_best(folder: Path) -> dict[str, Any] | None:
    """The epoch and the loss of the adapter kept so far. If a kill came while it was replaced, the new one counts."""
    new = folder.with_name(f"{folder.name}.new")
    if not folder.exists() and (new / EPOCH).is_file():
        new.rename(folder)
    try:
        found: dict[str, Any] = json.loads((folder / EPOCH).read_text(encoding="utf-8"))
    except OSError:
        return None
    return found


def write_json(path: Path, value: Any) -> None:
    write_output(path, (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode())
