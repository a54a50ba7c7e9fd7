"""Where a workspace writes: inside its folder, unless the user says otherwise."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragworth.config.toml_reader import TomlReader
from ragworth.config.workspace import OutputPaths, Workspace
from ragworth.errors import MAX_PATH_LENGTH, quote_short
from ragworth.storage.containment import paths_outside

OUTPUT_OPTIONS = {"results": "--results DIR", "store": "--store FILE", "cache": "--cache DIR"}


def with_output_paths(reader: TomlReader, space: Workspace, paths: OutputPaths) -> Workspace:
    """The workspace with the places to write to; those that the file puts outside of its folder are wrong.

    Links are followed before places are compared.
    """
    chosen = {name: getattr(paths, name) for name in OUTPUT_OPTIONS}
    given: dict[str, Any] = {name: str(Path(path).expanduser().absolute()) for name, path in chosen.items() if path}
    for name, option in OUTPUT_OPTIONS.items():
        if name in given:
            continue
        path = space.path(getattr(space, name))
        for outside in paths_outside(path, space.folder):
            reader.say(_outside_message(name, option, path, outside), "paths", name)
            break
    return replace(space, **given)


def _outside_message(name: str, option: str, path: Path, outside: Path) -> str:
    kind, _, value = option.partition(" ")
    target = outside.resolve()
    where = f"{quote_short(str(path), MAX_PATH_LENGTH)} is outside of the folder of the workspace"
    if outside.is_symlink() or outside != path:
        leads = quote_short(str(target), MAX_PATH_LENGTH)
        where = f"{quote_short(str(outside), MAX_PATH_LENGTH)} leads outside of the folder of the workspace, to {leads}"
    place = shlex.quote(str(target)) if outside == path else value
    return f"paths.{name}: {where}; to write there, add {kind} {place}"
