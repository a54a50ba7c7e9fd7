"""What a model's files are, in a few characters: the hash of everything that decides its output."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from ragworth.errors import ModelError
from ragworth.storage.private import private_folder

DECIDING = (".safetensors", ".json", ".jinja", ".model", ".txt", ".gguf")
"""Kinds of files in a model's folder that can change what it says."""


def fingerprint(path: Path) -> str:
    """SHA-256 over a file, or over the deciding files of a folder and their names, cut to 16 characters.

    Hashes of large files are remembered by name, size and time of change, so that gigabytes are read once.
    """
    try:
        if path.is_file():
            return _hash(path)[:16]
        files = sorted(f for f in path.iterdir() if f.suffix in DECIDING and f.is_file())
        parts = "".join(f"{f.name} {_hash(f)}\n" for f in files)
    except OSError as error:
        raise ModelError(f"it cannot be read: {error.strerror or error}", file=str(path)) from error
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def cache_folder() -> Path:
    """Where things that can be made again are kept: ``RAGWORTH_CACHE``, or the user's cache folder."""
    named = os.environ.get("RAGWORTH_CACHE")
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ragworth"


def _hash(path: Path) -> str:
    """SHA-256 of a file, remembered if it is large."""
    facts = path.stat()
    if facts.st_size < 1 << 20:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    key = f"{path.resolve()} {facts.st_size} {facts.st_mtime_ns}"
    memory = cache_folder() / "hashes" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
    with suppress(OSError, ValueError, KeyError):
        kept = json.loads(memory.read_text())
        if kept["of"] == key:
            return str(kept["sha256"])
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    with suppress(OSError):  # a cache that cannot be written to costs time, nothing else
        private_folder(memory.parent)
        with tempfile.NamedTemporaryFile("w", dir=memory.parent, delete=False) as new:
            json.dump({"of": key, "sha256": found}, new)
        Path(new.name).replace(memory)
    return found
