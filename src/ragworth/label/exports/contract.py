"""What an export format is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragworth.formats.files import create_file
from ragworth.label.dataset import LabelledData
from ragworth.label.tasks.fields import text_hash


@dataclass(frozen=True)
class LabelExport:
    """``write`` gets labelled data and a folder, and returns the files that it wrote there.

    ``has_items``: whether the files have items without labels too; other formats need a label.
    """

    name: str
    title: str
    write: Callable[[LabelledData, Path], list[Path]]
    has_items: bool = False


def write_json_lines(rows: Iterable[Any], path: Path) -> Path:
    """Write one JSON object a line."""
    with create_file(path) as file:
        for row in rows:
            file.write((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))
    return path


def write_json(value: Any, path: Path) -> Path:
    """Write one JSON document."""
    with create_file(path) as file:
        file.write((json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "surrogatepass"))
    return path


def safe_file_name(name: str) -> str:
    """A name that is safe in every file system; different names stay different, also where case is ignored."""
    plain = re.sub(r"[^\w-]+", "_", name, flags=re.ASCII).strip("_")[:60]
    return plain if plain and plain == name.lower() else f"{plain or 'judge'}-{text_hash(name)[:8]}"
