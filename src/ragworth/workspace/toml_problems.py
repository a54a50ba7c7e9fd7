"""What is wrong in a TOML file, in words, and on which line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import reduce
from operator import getitem
from typing import Any, NamedTuple

from pydantic import ValidationError

from ragworth.core.errors import format_list
from ragworth.workspace.fields import FLAT
from ragworth.workspace.settings import EVERY_SYSTEM, SCHEMA, names_every_system

WORDS = {
    "string_type": "a text",
    "tuple_type": "a text or a list of texts",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "greater_than": "a number above 0",
    "string_pattern_mismatch": "empty or auto; ragworth --executor ray:ADDRESS names another cluster",
    "price": "a list of two numbers: for a million tokens read, and written",
    "ModelSpec": "the name of a model or a table",
    "ExpensiveJudge": "a table with model and sample, or with file",
    "TaskConfig": "true, false or a table of settings",
    "AnswerConfig": "true, false or a table of settings",
}
"""What a value should have been, by pydantic's kind of error or the name of the class."""


class Problem(NamedTuple):
    """One thing that is wrong, and the key it is wrong about."""

    path: tuple[str, ...]
    text: str


class TomlLines:
    """The lines of a file."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()

    def line(self, *path: str) -> int | None:
        """The line of a key, or of its table where the key can't be found."""
        table, found = "", None
        for number, line in enumerate(self.lines, 1):
            if head := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
                table = head[1].replace('"', "").replace(" ", "")
                if table == ".".join(path):
                    return number
                if path and table == path[0]:
                    found = found or number
            elif key := re.match(r"""\s*["']?([\w.-]+)["']?\s*=""", line):
                whole = f"{table}.{key[1]}" if table else key[1]
                if whole == ".".join(path):
                    return number
                if ".".join(path).startswith(f"{whole}."):
                    found = number
        return found


def describe(error: ValidationError, tables: dict[str, Any]) -> Iterator[Problem]:
    """What pydantic found, in our words. A problem with an item is one with its list."""
    for each in error.errors(include_url=False):
        first, *rest = each["loc"]
        parts = [first] if first in tables else str(first).split(".", 1)
        path = tuple(part for part in (*parts, *rest) if isinstance(part, str) and not part.startswith("("))
        path = tuple(EVERY_SYSTEM if names_every_system(part) else part for part in path)
        item = isinstance(each["loc"][-1], int) and each["type"] != "string_too_short"
        kind = "tuple_type" if item else each["type"]
        yield Problem(path, _words(kind, each.get("ctx", {}), path, reduce(getitem, path, tables)))


def _words(kind: str, facts: dict[str, Any], path: tuple[str, ...], value: Any) -> str:
    place = ".".join(path)
    if kind == "unexpected_keyword_argument" and place not in FLAT:
        return _unknown_key(*path[:-1], key=path[-1])
    if kind == "string_too_short":
        return f"{place} {'contains an empty text' if isinstance(value, list) else 'is empty'}"
    if kind in ("greater_than_equal", "finite_number"):
        return f"{place} is {value}; it may be {facts.get('ge', 0):g} or more"
    words = WORDS.get("price" if path == ("budget", "price") else facts.get("class_name", kind), "a table")
    shown = repr(value)
    return f"{place} is {shown if len(shown) <= 40 else f'{shown[:39]}…'}, not {words}"


def _unknown_key(*table: str, key: str) -> str:
    known = _known_keys(*table[:1])
    near = difflib.get_close_matches(key, known, 1, 0.6)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {format_list(known, 20)}"
    place = f"[{'.'.join(table)}] has" if table else "there is"
    return f"{place} no {key!r}; {hint}"


def _known_keys(table: str = "") -> list[str]:
    schema = SCHEMA.json_schema()
    fields = {name: facts for name, facts in schema["properties"].items() if not name.startswith("(")}
    if not table:
        return list(dict.fromkeys(name.partition(".")[0] for name in fields))
    if table in FLAT:
        return [name.partition(".")[2] for name in fields if name.startswith(f"{table}.")]
    name = "SystemTable" if table == "systems" else fields[table]["$ref"].rpartition("/")[2]
    return list(schema["$defs"][name]["properties"])
