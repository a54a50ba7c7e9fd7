"""Where a workspace writes: inside its folder, unless the user says otherwise."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragworth.config.toml_reader import Reader
from ragworth.config.workspace import Paths, Workspace
from ragworth.errors import MOST_PATH, quoted
from ragworth.storage.containment import places_outside

OPTIONS = {"results": "--results DIR", "store": "--store FILE", "cache": "--cache DIR"}


def with_places(reader: Reader, space: Workspace, paths: Paths) -> Workspace:
    """The workspace with the places to write to; those that the file puts outside of its folder are wrong.

    Links are followed before places are compared.
    """
    chosen = {name: getattr(paths, name) for name in OPTIONS}
    given: dict[str, Any] = {name: str(Path(path).expanduser().absolute()) for name, path in chosen.items() if path}
    for name, option in OPTIONS.items():
        if name in given:
            continue
        path = space.path(getattr(space, name))
        for outside in places_outside(path, space.folder):
            reader.say(_words(name, option, path, outside), "paths", name)
            break
    return replace(space, **given)


def _words(name: str, option: str, path: Path, outside: Path) -> str:
    kind, _, value = option.partition(" ")
    target = outside.resolve()
    where = f"{quoted(str(path), MOST_PATH)} is outside of the folder of the workspace"
    if outside.is_symlink() or outside != path:
        leads = quoted(str(target), MOST_PATH)
        where = f"{quoted(str(outside), MOST_PATH)} leads outside of the folder of the workspace, to {leads}"
    place = shlex.quote(str(target)) if outside == path else value
    return f"paths.{name}: {where}; to write there, add {kind} {place}"
