"""From what the user names to a workspace: a ``ragworth.toml``, a folder with or without one, or some files."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from os.path import commonpath
from pathlib import Path
from typing import Any, NamedTuple

from ragworth.core.errors import InputError, format_list
from ragworth.core.files import refuse_links
from ragworth.formats.contract import LoadedCollection
from ragworth.formats.files import SPREADSHEETS, EncodingError, missing_file_remedy, run_name, source_name
from ragworth.formats.grades import GradeError
from ragworth.workspace import config
from ragworth.workspace.beir_folders import BeirFolder, group_beir_files, read_beir_folder
from ragworth.workspace.config import WORKSPACE_FILE, AnswerConfig, OutputPaths, Workspace
from ragworth.workspace.file_heads import CandidateFile, list_folder, read_head
from ragworth.workspace.places import is_results
from ragworth.workspace.problems import Problems
from ragworth.workspace.recognition import DamagedFileError, RecognisedFile, recognise_file, recognise_records
from ragworth.workspace.workspace_plan import BY_TEXT, OTHER_QUERIES, WorkspacePlan, plan_workspace

NO_PATHS = OutputPaths()


class Source(NamedTuple):
    """A workspace, and how its files were understood if it has no ``ragworth.toml``."""

    workspace: Workspace
    plan: WorkspacePlan | None = None


def open_source(
    paths: Sequence[str | Path], columns: Mapping[str, str] | None = None, output: OutputPaths = NO_PATHS
) -> Source:
    """Find what to evaluate: a workspace, or files and folders that are understood as they are.

    ``columns`` maps our names of fields to those of the logs.
    """
    named = [Path(path) for path in paths]
    for path in named:
        _check_name(path)
        _check_no_results(path)
    if len(named) == 1 and (named[0].suffix == ".toml" or (named[0] / WORKSPACE_FILE).exists()):
        space = config.read(named[0], output)
        return Source(replace(space, columns={**space.columns, **(columns or {})}))
    if len(named) == 1 and named[0].is_dir():
        plan = inspect_folder(named[0], columns)
        _check_found(plan, named[0])
        return Source(_workspace(plan, named[0], output, named[0].resolve().name), plan)
    return _open_files(named, columns, output)


def _check_name(path: Path) -> None:
    """Refuse a path that can't be written into a workspace."""
    if source_name(path.absolute()) != str(path.absolute()):
        raise InputError("this path isn't UTF-8", file=source_name(path), remedy="rename the file or folder")


def _check_no_results(path: Path) -> None:
    """Refuse the results of an evaluation."""
    if is_results(path):
        raise InputError(
            "these are the results of an evaluation, not data to evaluate",
            file=str(path),
            remedy=f"`ragworth report {path}` writes their report, `ragworth compare {path} …` compares them",
        )


def answer_anew(space: Workspace) -> Workspace:
    """The same with answers of the model instead of those in the data."""
    return replace(space, answers=replace(space.answers or AnswerConfig(), replace=True))


def plan_records(records: LoadedCollection, settings: Mapping[str, Any], output: OutputPaths) -> Source:
    """A workspace for data in memory. ``settings`` replace what the data leads to, as in a ``ragworth.toml``."""
    plan = plan_workspace([recognise_records(records)], [])
    _check_found(plan, Path("records"))
    plan.tables.pop("systems", None)  # they are the records themselves
    head = {name: value for name, value in settings.items() if not isinstance(value, Mapping) or name == "model"}
    tables = {name: value for name, value in settings.items() if name not in head}
    plan.tables = {**plan.tables, **tables, "": {**plan.tables.get("", {}), **head}}
    return Source(_workspace(plan, Path.cwd(), output, "records"), plan)


def _open_files(files: Sequence[Path], columns: Mapping[str, str] | None, output: OutputPaths) -> Source:
    """Files of any kind, each of which must be understood. Results go to NAME-results beside the first."""
    folder = Path(commonpath([path.absolute().parent for path in files]))
    places = [path.resolve() for path in files]
    if twice := next((path for path, place in zip(files, places, strict=True) if places.count(place) > 1), None):
        raise InputError("this file is named twice", file=str(twice), remedy="name each file once")
    problems, found = Problems(), []
    with tempfile.TemporaryDirectory(prefix="ragworth-") as place:
        for path in files:
            file = CandidateFile(path, path.absolute().relative_to(folder).as_posix())
            found += problems.of(partial(_recognise, file, Path(place), columns)) or []
    problems.done()
    plan = plan_workspace(found, [])
    _check_columns(found, columns or {}, [])
    if plan.unused:
        mapped = any(BY_TEXT in each for each in plan.unused)
        remedy = "map the ids, or leave out those files" if mapped else "leave out those files"
        if any(OTHER_QUERIES in each for each in plan.unused) and not mapped:
            remedy += ", or evaluate them alone; if they are parts of one log, join them in one file"
        raise InputError("not every file can be used", more=tuple(plan.unused), remedy=remedy)
    _check_found(plan, files[0])
    paths = [path.absolute().relative_to(folder).as_posix() for path in files]
    names = list(dict.fromkeys(plan.file_names.get(path, run_name(path)).replace("/", "-") for path in paths))
    home = files[0].absolute().parent / f"{'-'.join(names[:3])}{'-etc' if len(names) > 3 else ''}-results"
    if not (output.results and output.store and output.cache):
        refuse_links(home, home.parent, "name another place: --results DIR --store FILE --cache DIR")
    where = OutputPaths(
        output.results or home, output.store or home / "calls.sqlite", output.cache or home / ".ragworth"
    )
    return Source(_workspace(plan, folder, where, format_list(names, 3)), plan)


def _recognise(file: CandidateFile, scratch: Path, columns: Mapping[str, str] | None) -> list[RecognisedFile]:
    """What a file is; an error names it."""
    if not file.path.is_file():
        found, remedy = "there is no such file or folder", missing_file_remedy(file.path)
        if file.path.is_dir():
            found, remedy = "this is a folder", "name one folder, or files"
        elif file.path.exists():
            found, remedy = "this is a pipe or a device, not a file", "save it as a file, and name that"
        prefix, colon, rest = str(file.path).partition(":")
        if colon and Path(rest).exists():
            remedy = f"write {rest}: its kind is recognised; only a ragworth.toml takes {prefix}:PATH"
        raise InputError(found, file=str(file.path), remedy=remedy)
    try:
        head = read_head(file, scratch)
        if head is None:
            raise InputError("it is no text in UTF-8")
        return recognise_file(head, columns)
    except InputError as error:
        raise error.copy(file=str(file.path)) from error  # it may be about a copy of the file's beginning


def _check_columns(found: Sequence[RecognisedFile], columns: Mapping[str, str], unused: Sequence[str]) -> None:
    """Refuse names of columns if no log has any of them; ``unused``: why files aren't logs."""
    if columns and not any(each.columns for each in found):
        names = format_list([f"{name}={column}" for name, column in columns.items()])
        raise InputError(
            f"no log has any of the columns that are mapped: {names}",
            remedy="check their names; --map is for logs",
            more=tuple(unused),
        )


def _check_found(plan: WorkspacePlan, place: Path) -> None:
    """Refuse files that hold nothing to evaluate."""
    if not plan.systems_known:
        raise InputError(
            "there is nothing to evaluate here",
            file=str(place),
            more=(*plan.unused, *(f"missing: {line}" for line in plan.lacking)),
            remedy="name a log or runs; `ragworth init --template NAME` writes a ragworth.toml to fill in",
        )


def _workspace(plan: WorkspacePlan, folder: Path, output: OutputPaths, title: str) -> Workspace:
    space = config.from_tables(plan.tables, folder / WORKSPACE_FILE, output)
    return replace(space, title=space.title or title)


def inspect_folder(folder: Path, columns: Mapping[str, str] | None = None) -> WorkspacePlan:
    """What there is to evaluate in a folder. What can't be used is left out, with the reason."""
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
                    found += recognise_file(begun, columns)
                else:
                    raise EncodingError("it is no text in UTF-8")
            except EncodingError as error:
                if file.telling or file.plain.endswith(".txt"):
                    unused.append(f"{file.name}: {error.found}")
            except GradeError as error:
                raise error.copy(file=str(file.path)) from error  # it may be about a copy of the file's beginning
            except InputError as error:
                if file.telling or isinstance(error, DamagedFileError):
                    advised = error.hint.option == "columns" or file.plain.endswith(SPREADSHEETS)
                    advice = f"; {error.remedy}" if advised else ""
                    line = f"line {error.line}: " if error.line else ""
                    unused.append(f"{file.name}: {line}{error.found}{advice}")
    plan = plan_workspace(found, beir)
    plan.unused += [*unused, *there.odd]
    _check_columns(found, columns or {}, plan.unused)
    return plan


def _read_beir_folders(files: list[CandidateFile], scratch: Path, unused: list[str]) -> list[BeirFolder]:
    made: list[BeirFolder] = []
    for name, parts in group_beir_files(files).items():
        try:
            made.append(read_beir_folder(name, parts, scratch))
        except InputError as error:
            unused.append(f"{name}: {error.found}")
    return made
