"""The first ``ragworth.toml`` of a folder: from a template, or from the files that are there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from ragworth.config import NAME
from ragworth.errors import InputError
from ragworth.formats.files import created
from ragworth.init.beir_folders import Beir, folders
from ragworth.init.beir_folders import read as read_beir
from ragworth.init.file_heads import File, head, seen
from ragworth.init.recognition import Found, recognised
from ragworth.init.templates import TEMPLATES
from ragworth.init.toml_writer import filled
from ragworth.init.workspace_plan import Plan as Plan
from ragworth.init.workspace_plan import planned


class Started(NamedTuple):
    """A file that was written, and what is in it."""

    file: Path
    plan: Plan


def start(folder: str | Path = ".", template: str | None = None, *, force: bool = False) -> Started:
    """Write the file of a workspace; with ``template`` without looking at what is there.

    A file that is there already is overwritten with ``force`` alone, and only when the new one is whole.
    """
    folder = Path(folder)
    file = folder / NAME
    if not folder.is_dir():
        raise InputError("there is no such folder", file=str(folder), remedy="make it first, and put your files there")
    if os.path.lexists(file) and not force:
        raise InputError(
            "it is there already", file=str(file), remedy="give --force to overwrite it, or change it by hand"
        )
    plan = look(folder) if template is None else _template(template)
    text = filled(plan.tables)
    with created(file) as stream:
        stream.write(text.encode())
    return Started(file, plan)


def _template(name: str) -> Plan:
    if name not in TEMPLATES:
        raise InputError(f"there is no template {name!r}", expected=f"one of {', '.join(TEMPLATES)}")
    return Plan({table: dict(keys) for table, keys in TEMPLATES[name].items()})


def look(folder: Path) -> Plan:
    """What there is to evaluate in a folder."""
    found: list[Found] = []
    unused: list[str] = []
    there = seen(folder)
    with tempfile.TemporaryDirectory(prefix="ragworth-") as place:
        scratch = Path(place)
        beir = _beir(there.files, scratch, unused)
        taken = {name for each in beir for name in each.files}
        for file in there.files:
            if file.name in taken:
                continue
            try:
                if (begun := head(file, scratch)) is not None:
                    found += recognised(begun)
                elif file.telling or file.plain.endswith(".txt"):
                    unused.append(f"{file.name}: it is no text in UTF-8")
            except InputError as error:
                if file.telling:
                    unused.append(f"{file.name}: {error.found}")
    plan = planned(found, beir)
    plan.unused += [*unused, *there.odd]
    return plan


def _beir(files: list[File], scratch: Path, unused: list[str]) -> list[Beir]:
    made: list[Beir] = []
    for name, parts in folders(files).items():
        try:
            made.append(read_beir(name, parts, scratch))
        except InputError as error:
            unused.append(f"{name}: {error.found}")
    return made
