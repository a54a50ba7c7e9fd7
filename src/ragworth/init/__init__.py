"""The first ``ragworth.toml`` of a folder: from a template, or from the files that are there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from ragworth.config import WORKSPACE_FILE
from ragworth.errors import InputError
from ragworth.formats.files import create_file
from ragworth.inputs.beir_folders import BeirFolder, group_beir_files
from ragworth.inputs.beir_folders import read_beir_folder as read_beir
from ragworth.inputs.file_heads import CandidateFile, list_folder, read_head
from ragworth.inputs.recognition import RecognisedFile, recognise_file
from ragworth.init.templates import TEMPLATES
from ragworth.init.toml_writer import fill_template
from ragworth.inputs.workspace_plan import InitPlan as InitPlan
from ragworth.inputs.workspace_plan import plan_workspace


class InitResult(NamedTuple):
    """A file that was written, and what is in it."""

    file: Path
    plan: InitPlan


def init_workspace(folder: str | Path = ".", template: str | None = None, *, force: bool = False) -> InitResult:
    """Write the file of a workspace; with ``template`` without looking at what is there.

    A file that is there already is overwritten with ``force`` alone, and only when the new one is whole.
    """
    folder = Path(folder)
    file = folder / WORKSPACE_FILE
    if not folder.is_dir():
        raise InputError("there is no such folder", file=str(folder), remedy="make it first, and put your files there")
    if os.path.lexists(file) and not force:
        raise InputError(
            "it is there already", file=str(file), remedy="give --force to overwrite it, or change it by hand"
        )
    plan = inspect_folder(folder) if template is None else _template_plan(template)
    text = fill_template(plan.tables)
    with create_file(file) as stream:
        stream.write(text.encode())
    return InitResult(file, plan)


def _template_plan(name: str) -> InitPlan:
    if name not in TEMPLATES:
        raise InputError(f"there is no template {name!r}", expected=f"one of {', '.join(TEMPLATES)}")
    return InitPlan({table: dict(keys) for table, keys in TEMPLATES[name].items()})


def inspect_folder(folder: Path) -> InitPlan:
    """What there is to evaluate in a folder."""
    found: list[RecognisedFile] = []
    unused: list[str] = []
    there = list_folder(folder)
    with tempfile.TemporaryDirectory(prefix="ragworth-") as place:
        scratch = Path(place)
        beir = _read_beir_folders(there.files, scratch, unused)
        taken = {name for each in beir for name in each.files}
        for file in there.files:
            if file.name in taken:
                continue
            try:
                if (begun := read_head(file, scratch)) is not None:
                    found += recognise_file(begun)
                elif file.telling or file.plain.endswith(".txt"):
                    unused.append(f"{file.name}: it is no text in UTF-8")
            except InputError as error:
                if file.telling:
                    unused.append(f"{file.name}: {error.found}")
    plan = plan_workspace(found, beir)
    plan.unused += [*unused, *there.odd]
    return plan


def _read_beir_folders(files: list[CandidateFile], scratch: Path, unused: list[str]) -> list[BeirFolder]:
    made: list[BeirFolder] = []
    for name, parts in group_beir_files(files).items():
        try:
            made.append(read_beir(name, parts, scratch))
        except InputError as error:
            unused.append(f"{name}: {error.found}")
    return made
