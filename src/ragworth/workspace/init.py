"""``ragworth init``: write down as a ``ragworth.toml`` what was found in a folder, or a template.

The file has every key with an explanation; what is set is switched on where it is explained.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ragworth.core.errors import InputError
from ragworth.formats.files import create_file
from ragworth.formats.logs.names import quote_argument
from ragworth.workspace.config import WORKSPACE_FILE
from ragworth.workspace.plan import WorkspacePlan
from ragworth.workspace.read import read_folder
from ragworth.workspace.toml import TomlValue, format_toml, toml_key

TomlTables: TypeAlias = Mapping[str, Mapping[str, TomlValue]]
"""The keys that are set, by table; the one called "" is the head of the file."""

Kinds: TypeAlias = Mapping[str, Mapping[str, str]]
"""Titles of kinds of judgment and of graders, by table and name. Those that the template doesn't explain get a line."""

LISTED_TABLES = ("systems", "columns")
"""Tables whose keys are names that the user gives, and whose order counts."""

HEAD = re.compile(r"(# )?\[(\w+)\]$")
KEY = re.compile(r"""# (?:"([^"]+)"|([\w-]+)) = .*?(  # .*)?$""")

DEFAULT_SYSTEMS: dict[str, TomlValue] = {
    "bm25": 'bm25(stopwords="english") % 5',
    "reversed": 'bm25(stopwords="english") % 5 >> reversed',
    "oracle": "oracle % 5",
    "adversary": 'bm25(stopwords="english") >> adversary % 5',
    "random": "random % 5",
}
"""Systems that need no file but the collection's."""

TEMPLATES: dict[str, TomlTables] = {
    "demo": {
        "": {"title": "The Marrowen Isles", "k": 5, "model": "embedded"},
        "collection": {
            "queries": "queries.jsonl",
            "passages": "passages.jsonl",
            "answers": "queries.jsonl",
            "subquestions": "subquestions.jsonl",
            "qrels": "qrels.txt",
            "ratings": "ratings.txt",
        },
        "systems": DEFAULT_SYSTEMS,
        "judgments": {"abstention": True},
        "answers": {},
        "grades": {"deterministic": True},
        "metrics": {"baseline": "bm25"},
    },
    "runs": {
        "": {"k": 5},
        "collection": {"qrels": "qrels.txt"},
        "systems": {"bm25": {"run": "runs/bm25.run"}, "dense": {"run": "runs/dense.run"}},
        "metrics": {"use": ["nDCG@5", "R@5", "RR@5"], "baseline": "bm25"},
    },
    "rag-log": {
        "": {"k": 5, "model": "embedded"},
        "systems": {"*": {"run": "log.jsonl"}},
        "judgments": {"abstention": True, "relevance": True},
        "answers": {},
        "grades": {"deterministic": True},
    },
}
"""Workspaces of the usual kinds, for files that are yet to come."""


class InitResult(NamedTuple):
    """A file that was written, and what is in it."""

    file: Path
    plan: WorkspacePlan


def init_workspace(
    folder: str | Path = ".",
    template: str | None = None,
    *,
    model: str = "",
    columns: Mapping[str, str] | None = None,
    kinds: Kinds | None = None,
    force: bool = False,
) -> InitResult:
    """Write the file of a workspace; with ``template``, without inspecting the folder.

    ``model`` is the model to ask. ``columns`` maps our names of fields to those of the logs. An existing file is
    overwritten only with ``force``, and only when the new one is complete.
    """
    folder = Path(folder)
    file = folder / WORKSPACE_FILE
    if folder.is_file():
        remedy = (
            f"ragworth init {quote_argument(str(folder.parent))}, or ragworth evaluate {quote_argument(str(folder))}"
        )
        raise InputError("this is a file, not a folder", file=str(folder), remedy=remedy)
    if not folder.is_dir():
        raise InputError("there is no such folder", file=str(folder), remedy="create it and put your files there")
    if os.path.lexists(file) and not force:
        raise InputError(
            "the file already exists", file=str(file), remedy="give --force to overwrite it, or change it by hand"
        )
    plan = read_folder(folder, columns).plan if template is None else _template_plan(template)
    assert plan is not None
    if model:
        plan.set("", "model", model)
    with create_file(file) as stream:
        stream.write(fill_template(plan.tables, kinds).encode())
    return InitResult(file, plan)


def _template_plan(name: str) -> WorkspacePlan:
    if name not in TEMPLATES:
        raise InputError(f"unknown template {name!r}", expected=f"one of {', '.join(TEMPLATES)}")
    return WorkspacePlan({table: dict(keys) for table, keys in TEMPLATES[name].items()})


def template_text(kinds: Kinds | None = None) -> str:
    """The file with every key and nothing set."""
    text = files("ragworth.workspace").joinpath("template.toml").read_text(encoding="utf-8")
    for table in ("judgments", "grades"):
        others = {name: title for name, title in (kinds or {}).get(table, {}).items() if f"# {name} = " not in text}
        lines = "".join(f"# {name} = true  # {title}\n" for name, title in others.items())
        text = text.replace(f"#: {table}\n", lines)
    return text


def fill_template(tables: TomlTables, kinds: Kinds | None = None) -> str:
    """The template with these keys set, each where it is explained; a table without keys is there if it is named."""
    left = {name: dict(keys) for name, keys in tables.items()}
    return "\n".join(_filled_lines(template_text(kinds).splitlines(), left)) + "\n"


def _filled_lines(lines: list[str], tables: dict[str, dict[str, TomlValue]]) -> Iterator[str]:
    table = ""
    named: set[str] = set()
    for line in lines:
        if head := HEAD.match(line):
            table = head[2]
            yield f"[{table}]" if table in tables else line
            continue
        found = KEY.match(line)
        if found is None:
            yield line
            continue
        name, left = found[1] or found[2], tables.get(table, {})
        if table in LISTED_TABLES:
            named |= set(left)
            yield from (f"{toml_key(each)} = {format_toml(value)}" for each, value in left.items())
            left.clear()
        if name in left:
            yield f"{name} = {format_toml(left.pop(name))}{found[3] or ''}"
        elif not (table in LISTED_TABLES and name in named):
            yield line
    unknown = [f"{table}.{name}" for table, left in tables.items() for name in left]
    assert not unknown, f"the template has no {', '.join(unknown)}"
