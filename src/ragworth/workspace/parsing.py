"""From the text of a ``ragworth.toml`` to checked settings."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ragworth.core.containment import paths_outside
from ragworth.core.errors import MAX_PATH_LENGTH, FormatError, InputError, format_list, quote_short
from ragworth.core.nested_text import parse_toml
from ragworth.workspace.fields import flatten
from ragworth.workspace.settings import SCHEMA, WORKSPACE_FILE, OutputPaths, Workspace, names_every_system
from ragworth.workspace.toml_problems import Problem, TomlLines, describe

FLAGS = ("file", "without", "oracle", "everything", "replace")
"""Keys of ``[answers]`` that may stand beside a file, if they are false."""

OUTPUT_OPTIONS = {"results": "--results DIR", "store": "--store FILE", "cache": "--cache DIR"}


def read(path: str | Path, paths: OutputPaths = OutputPaths()) -> Workspace:  # noqa: B008 (it cannot change)
    """Read the file of a workspace; a folder has one called ``ragworth.toml``.

    The file may come from somebody else, so it may only write to its own folder. ``paths`` come from the user and may
    be anywhere.
    """
    file = Path(path)
    file = file / WORKSPACE_FILE if file.is_dir() else file
    try:
        data = file.read_bytes()
        text = data.decode("utf-8-sig")
    except FileNotFoundError as error:
        remedy = f"ragworth init {file.parent if file.suffix else file} writes one"
        raise InputError("there is no such file", file=str(file), expected=WORKSPACE_FILE, remedy=remedy) from error
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"it cannot be read: {error}", file=str(file), expected="a text file in UTF-8") from error
    whole = parse_toml(text, str(file))
    facts = {"(file)": file, "(given)": whole, "(digest)": hashlib.sha256(data).hexdigest()[:16]}
    problems = [*_find_contradictions(whole), *_find_outside(file.parent, _table(whole, "paths"), paths)]
    try:
        space = SCHEMA.validate_python({**flatten(whole), **facts})
    except ValidationError as error:
        problems += describe(error, whole)
    if problems:
        raise _all_together(problems, file, TomlLines(text))
    return replace(space, title=space.title or file.resolve().parent.name, **_given_paths(paths))


def from_tables(tables: Mapping[str, Mapping[str, Any]], file: Path, paths: OutputPaths) -> Workspace:
    """A workspace from settings by table, without a file: ``file`` is where one would be; "" is the head of it.

    It writes to the same folder only, as with a file.
    """
    whole = {**tables.get("", {}), **{name: dict(keys) for name, keys in tables.items() if name}}
    if outside := next(_find_outside(file.parent, _table(whole, "paths"), paths), None):
        raise InputError(outside.text)
    space = SCHEMA.validate_python({**flatten(whole), "(file)": file, "(given)": whole})
    return replace(space, **_given_paths(paths))


def _all_together(problems: list[Problem], file: Path, lines: TomlLines) -> InputError:
    """All problems as one error, in the order of the file."""
    placed = sorted({(lines.line(*problem.path) or 0, problem.text) for problem in problems})
    (line, found), *rest = placed
    more = tuple(f"line {number}: {text}" if number else text for number, text in rest)
    return InputError(found, file=str(file), line=line or None, more=more)


def _table(whole: dict[str, Any], name: str) -> dict[str, Any]:
    """A table of the file; empty if it is missing or no table, which the schema reports."""
    table = whole.get(name)
    return table if isinstance(table, dict) else {}


def _find_contradictions(whole: dict[str, Any]) -> Iterator[Problem]:
    """Settings that are right by themselves but don't go together, and systems without steps."""
    systems = _table(whole, "systems")
    for name, value in systems.items():
        if not name:
            yield Problem(("systems",), "the name of a system is empty")
        elif value in ([], {}):
            lack = "has no steps" if value == [] else "says nothing"
            yield Problem(("systems", name), f"the system {name!r} {lack}")
    plain: dict[str, str] = {}
    for name in systems:
        other = plain.setdefault(" ".join(name.split()).casefold(), name)
        if other != name:
            yield Problem(("systems", name), f"the systems {other!r} and {name!r} differ only in case or spaces")
    baseline, source = _table(whole, "metrics").get("baseline"), _table(whole, "collection").get("from")
    named = source or not systems or any(map(names_every_system, systems))  # in files that are not read yet
    if baseline and isinstance(baseline, str) and not named and baseline not in systems:
        known = format_list(list(systems), 20)
        yield Problem(("metrics", "baseline"), f"the baseline {baseline!r} is no system; there are {known}")
    answers = _table(whole, "answers")
    if answers.get("file") and any(key not in FLAGS or value is True for key, value in answers.items()):
        yield Problem(("answers", "file"), "answers that come from a file have no other settings")
    for kind, value in _table(whole, "judgments").items():
        if isinstance(value, dict) and isinstance(value.get("expensive"), dict):
            path = ("judgments", kind, "expensive")
            yield from (Problem(path, f"{'.'.join(path)} {text}") for text in _check_expensive(value["expensive"]))


def _check_expensive(table: dict[str, Any]) -> Iterator[str]:
    """One of the two: a model and the size of the sample, or a file."""
    if "file" in table and len(table) > 1:
        yield "comes from a file and has no other settings: the file's queries are the sample"
    elif not table.keys() & {"file", "model"}:
        yield "names neither a model nor a file"
    elif not table.keys() & {"file", "sample"}:
        yield "does not say about how many queries the model is asked: sample = 50"


def _given_paths(paths: OutputPaths) -> dict[str, Any]:
    """The user's own places, from where the command is called."""
    chosen = {name: getattr(paths, name) for name in OUTPUT_OPTIONS}
    return {name: str(Path(path).expanduser().absolute()) for name, path in chosen.items() if path}


def _find_outside(folder: Path, table: Mapping[str, Any], paths: OutputPaths) -> Iterator[Problem]:
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
