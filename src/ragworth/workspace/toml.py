"""TOML, checked by pydantic and written: types of values, all problems of a file at once with their lines.

`check_toml` serves every file that people write: workspaces, label tasks, build plans.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from ragworth.core.errors import FormatError, InputError, format_list
from ragworth.core.nested_text import parse_toml
from ragworth.formats.files import open_file

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

T = TypeVar("T")

TomlValue: TypeAlias = str | bool | int | list[str] | Mapping[str, str | bool | list[str]]

TextValue = Annotated[str, Field(min_length=1)]
TextListValue = Annotated[
    tuple[TextValue, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]
"""One text, or a list of them."""
Amount = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
PositiveAmount = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0)]
Positive = Annotated[int, Field(strict=True, ge=1)]
Several = Annotated[int, Field(strict=True, ge=2)]
SWITCH = BeforeValidator(lambda value: {True: {}, False: None}[value] if isinstance(value, bool) else value)
"""Instead of a table: true for an empty one, false for none."""
WITHOUT_FALSE = BeforeValidator(
    lambda value: {key: value[key] for key in value if value[key] is not False} if isinstance(value, dict) else value
)


class TomlTable:
    """A table of the file; it refuses keys that it doesn't know."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


def split(rest: str, *fields: str) -> BeforeValidator:
    """A table that has keys of its own, and others, in the mapping ``rest``, which are checked where they are used."""

    def parts(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        known = {key: value[key] for key in fields if key in value}
        return {**known, rest: {key: each for key, each in value.items() if key not in known}}

    return BeforeValidator(parts)


EXPECTED = {
    "tuple_type": "a text or a list of texts",
    "price": "a list of two numbers: for a million tokens read, and written",
    "address": "empty or auto; ragworth --executor ray:ADDRESS names another cluster",
    "ModelSpec": "the name of a model or a table",
    "ExpensiveJudge": "a table with model and sample, or with file",
    "TaskConfig": "true, false or a table of settings",
    "AnswerConfig": "true, false or a table of settings",
    **dict.fromkeys(("dataclass_type", "dict_type", "mapping_type", "model_type"), "a table"),
}
"""The right value, by its key, its class or pydantic's kind of error, where pydantic's own words are about Python."""


class Problem(NamedTuple):
    """A mistake, and the key with it."""

    path: tuple[str, ...]
    text: str


class TomlLines:
    """The lines of a file. A table of a list (``[[fields]]``) has its number in its path: ``fields.0``."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()

    def line(self, *path: str) -> int | None:
        """The line of a key, or of its table where the key can't be found."""
        table, found = "", None
        counts: Counter[str] = Counter()
        for number, line in enumerate(self.lines, 1):
            if head := re.match(r"\s*(\[\[?)\s*([^\]]+?)\s*\]", line):
                table = head[2].replace('"', "").replace(" ", "")
                if head[1] == "[[":
                    counts[table] += 1
                    table += f".{counts[table] - 1}"
                if table == ".".join(path):
                    return number
                if (path and table == path[0]) or table == ".".join(path[:2]):
                    found = found or number
            elif key := re.match(r"""\s*["']?([\w.-]+)["']?\s*=""", line):
                whole = f"{table}.{key[1]}" if table else key[1]
                if whole == ".".join(path):
                    return number
                if ".".join(path).startswith(f"{whole}."):
                    found = number
        return found


def read_toml(path: str | Path, expected: str) -> tuple[dict[str, Any], str]:
    """The tables of a file, and its text."""
    with open_file(path) as stream:
        data = stream.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"this is no text in UTF-8 ({error})", file=str(path)) from error
    return parse_toml(text, str(path), expected=expected), text


def check_toml(
    model: type[T],
    tables: Mapping[str, Any],
    file: str = "",
    text: str = "",
    *,
    values: Mapping[str, Any] | None = None,
    context: Any = None,
) -> T:
    """Return the tables of a file as ``model``, a class with pydantic's types; ``text`` is the file's content.

    All problems are one error, in the order of the file. ``values`` are the tables in the form that the model has, if
    it is another; ``context`` is what the checks of the model need to know.
    """
    try:
        checked: T = TypeAdapter(model).validate_python(tables if values is None else values, context=context)
        return checked
    except ValidationError as error:
        problems = [_describe(each, model, tables) for each in error.errors(include_url=False)]
    lines = TomlLines(text)
    placed = sorted({(lines.line(*problem.path) or 0, problem.text) for problem in problems})
    (line, found), *rest = placed
    others = tuple(f"line {number}: {each}" if number else each for number, each in rest)
    raise InputError(found, file=file, line=line or None, more=others)


def _describe(error: ErrorDetails, model: Any, tables: Mapping[str, Any]) -> Problem:
    """One of pydantic's errors, with its place in the file."""
    kind, facts, message = error["type"], error.get("ctx", {}), error["msg"]
    path, value = _follow(error["loc"], tables)
    shown = ".".join(path)
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        if len(path) > 1 or not any(name.startswith(f"{shown}.") for name in _properties(model)):
            return Problem(path, _unknown_key(model, *path[:-1], key=path[-1]))
        message = "Input should be a table"
    if kind in ("missing", "missing_argument") and path[-1] not in EXPECTED:
        return Problem(path, f"{shown} is missing")
    if kind == "value_error":
        said, *keys = facts["error"].args  # ValueError("k is 0; expected …", "k") names a key inside, too
        return Problem((*path, *map(str, keys)), said if keys else f"{shown}: {said}")
    if kind.startswith("union_tag"):
        key = facts["discriminator"].strip("'")
        lack = f"{facts['tag']!r}, not one of {facts['expected_tags']}" if "tag" in facts else "missing"
        return Problem((*path, key), f"{shown}.{key} is {lack}")
    names = (path[-1], facts.get("class_name"), kind)
    expected = next((EXPECTED[name] for name in names if name in EXPECTED), message.removeprefix("Input should be "))
    words = f": {message[:1].lower()}{message[1:]}" if expected == message else f", not {expected}"
    return Problem(path, f"{shown} is {_shorten(value)}{words}")


def _follow(place: Sequence[str | int], tables: Mapping[str, Any]) -> tuple[tuple[str, ...], Any]:
    """The keys of a place that pydantic names, and the value there. Its names of union members are no keys.

    A key with a dot, such as ``metrics.use``, stands for a key in a table. The items of a list of texts have no keys.
    """
    first = str(place[0]) if place else ""
    parts = [*([first] if first in tables else first.split(".", 1)), *place[1:]]
    path: list[str] = []
    value: Any = tables
    for number, name in enumerate(parts):
        inside = name in value if isinstance(value, Mapping) else isinstance(value, list) and name in range(len(value))
        if isinstance(name, str) and (name.startswith("(") or not (inside or number == len(parts) - 1)):
            continue
        if isinstance(name, int) and not (inside and isinstance(value[name], Mapping)):
            break
        path.append(str(name))
        value = value[name] if inside else None
    return tuple(path), value


def _shorten(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:39]}…"


def _unknown_key(model: Any, *table: str, key: str) -> str:
    known = _known_keys(model, table)
    near = difflib.get_close_matches(key, known, 1, 0.6)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {format_list(known, 20)}"
    place = f"[{'.'.join(table)}] has" if table else "there is"
    return f"{place} no {key!r}; {hint}"


def _properties(model: Any) -> dict[str, Any]:
    """The fields of a model that a file may have; ``metrics.use`` is ``use`` in the table ``metrics``."""
    schema = TypeAdapter(model).json_schema()
    return {name: facts for name, facts in schema["properties"].items() if not name.startswith("(")}


def _known_keys(model: Any, table: Sequence[str]) -> list[str]:
    """The keys of a table."""
    fields = _properties(model)
    if not table:
        return list(dict.fromkeys(name.partition(".")[0] for name in fields))
    if inside := [name.removeprefix(f"{table[0]}.") for name in fields if name.startswith(f"{table[0]}.")]:
        return inside
    definitions = TypeAdapter(model).json_schema()["$defs"]
    classes = [definitions[name] for name in re.findall(r"#/\$defs/(\w+)", json.dumps(fields[table[0]]))]
    return list(dict.fromkeys(name for each in classes for name in each.get("properties", ())))


def toml_string(value: str) -> str:
    """A text in quotes: as it is in single ones where that spares escapes, else with escapes in double ones."""
    if '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_key(name: str) -> str:
    """A name in front of a ``=``, in quotes where it needs them."""
    if re.fullmatch(r"[A-Za-z0-9_-]+", name):
        return name
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")


def format_toml(value: TomlValue) -> str:
    """A value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, list):
        return f"[{', '.join(toml_string(each) for each in value)}]"
    return "{" + ", ".join(f"{toml_key(name)} = {format_toml(each)}" for name, each in value.items()) + "}"
