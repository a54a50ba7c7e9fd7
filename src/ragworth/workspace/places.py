"""Whether a place is a workspace or the results of an evaluation."""

from __future__ import annotations

from pathlib import Path

from ragworth.core.errors import InputError
from ragworth.workspace.config import WORKSPACE_FILE

MANIFEST = "manifest.json"
"""The file that every folder of results has."""


def is_workspace(place: Path) -> bool:
    return (place if place.suffix == ".toml" else place / WORKSPACE_FILE).is_file()


def is_results(place: Path) -> bool:
    """Whether a place is a folder of results, and not a workspace."""
    return (place / MANIFEST).is_file() and not is_workspace(place)


def missing_place_error(place: Path) -> InputError:
    """Why a place is neither a workspace nor results, with what may have been meant."""
    expected, remedy = f"a workspace ({WORKSPACE_FILE}), or a folder of results", ""
    found = "it is neither a workspace nor a table that can be read here"
    if place.is_dir():
        below = sorted(each.parent for depth in ("*", "*/*", "*/*/*") for each in place.glob(f"{depth}/{MANIFEST}"))
        remedy = f"did you mean {below[0]}?" if below else f"ragworth init {place} writes {WORKSPACE_FILE}"
        found = f"it has neither {WORKSPACE_FILE} nor {MANIFEST}"
    elif not place.is_file():
        found = "there is no such file or folder"
    return InputError(found, file=str(place), expected=expected, remedy=remedy)
