"""Locate models of the transformers library: in a folder, or in the local cache of the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ragworth.core.errors import ModelError

MODEL_FILES = ("*.json", "*.safetensors", "*.model", "*.txt")
"""Files to read of a model."""


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
