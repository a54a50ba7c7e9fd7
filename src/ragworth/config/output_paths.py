"""Where a workspace writes: inside its folder, unless the user says otherwise."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragworth.config.toml_problems import Problem
from ragworth.config.workspace import OutputPaths, Workspace
from ragworth.errors import MAX_PATH_LENGTH, quote_short
from ragworth.storage.containment import paths_outside

OUTPUT_OPTIONS = {"results": "--results DIR", "store": "--store FILE", "cache": "--cache DIR"}


def given_paths(paths: OutputPaths) -> dict[str, Any]:
    """The user's own places, from where the command is called."""
    chosen = {name: getattr(paths, name) for name in OUTPUT_OPTIONS}
    return {name: str(Path(path).expanduser().absolute()) for name, path in chosen.items() if path}


def find_outside(folder: Path, table: Mapping[str, Any], paths: OutputPaths) -> Iterator[Problem]:
    """Places that the file, not the user, puts outside of its folder. Links are followed first."""
    for name, option in OUTPUT_OPTIONS.items():
        written = table.get(name)
        path = folder / (written if written and isinstance(written, str) else getattr(Workspace, name))
        outside = None if getattr(paths, name) else next(paths_outside(path, folder), None)
        if outside is not None:
            yield Problem(("paths", name), _outside_message(name, option, path, outside))


def _outside_message(name: str, option: str, path: Path, outside: Path) -> str:
    kind, _, value = option.partition(" ")
    target = outside.resolve()
    where = f"{quote_short(str(path), MAX_PATH_LENGTH)} is outside of the folder of the workspace"
    if outside.is_symlink() or outside != path:
        leads = quote_short(str(target), MAX_PATH_LENGTH)
        where = f"{quote_short(str(outside), MAX_PATH_LENGTH)} leads outside of the folder of the workspace, to {leads}"
    place = shlex.quote(str(target)) if outside == path else value
    return f"paths.{name}: {where}; to write there, add {kind} {place}"
