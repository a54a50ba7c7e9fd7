"""Names of people as names of files."""

from __future__ import annotations

import re

from ragworth.label.tasks.fields import text_hash


def safe_file_name(name: str) -> str:
    """A name that is safe in every file system; different names stay different, also where case is ignored."""
    plain = re.sub(r"[^\w-]+", "_", name, flags=re.ASCII).strip("_")[:60]
    return plain if plain and plain == name.lower() else f"{plain or 'judge'}-{text_hash(name)[:8]}"
