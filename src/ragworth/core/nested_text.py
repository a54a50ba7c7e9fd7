"""Parse and check JSON and TOML that anybody may have written, and the limits that text files are read with.

How deep texts nest is bounded, and so are lines and compression ratios, so that a small file can't exhaust memory or
time. The limits are far beyond ordinary data; the environment variables ``RAGWORTH_MAX_LINE`` and
``RAGWORTH_MAX_RATIO`` change two of them.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from ragworth.core.errors import FormatError, InputError, quote_short

MAX_DEPTH = 100
"""Lists and objects within each other. Functions that walk through values recurse, which Python ends at 1,000 calls."""

TOO_DEEP = f"brackets are nested more than {MAX_DEPTH} deep"
REMEDY = "leave the nested value out, or write it as text"

MAX_DOTS = 1000
"""Dots in a line of TOML, outside of quotes. The time for a key with dots grows with the square of their number."""

DEFAULT_MAX_LINE = 32 << 20
"""Maximum line length in bytes. The longest line in the test collections we know has 2 MB."""

DEFAULT_MAX_RATIO = 200
"""Maximum compression ratio. Ordinary text has 3 to 20; the highest we know is 75."""

MIN_UNPACKED_SIZE = 64 << 20
"""Bytes that any compressed file may unpack to, whatever its ratio."""

SIZE_UNITS = {"": 0, "K": 10, "M": 20, "G": 30}


class ValueProblem(NamedTuple):
    """A wrong value: the path of its key, and what is wrong with it."""

    path: tuple[str | int, ...]
    text: str


class InvalidValueError(ValueError):
    """A value that isn't of the type that it should be."""

    def __init__(self, problems: list[ValueProblem]) -> None:
        self.problems, self.texts = problems, tuple(problem.text for problem in problems)
        super().__init__("; ".join(self.texts))


class NestingError(ValueError):
    """A text whose brackets nest too deeply."""

    def __init__(self) -> None:
        super().__init__(f"{TOO_DEEP}: {REMEDY}")


def parse_json(text: str | bytes, *, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Parse a JSON document; a :class:`NestingError` is a ValueError, as other mistakes are."""
    try:
        value = json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise NestingError from None
    check_depth(value, text)
    return value


def check_depth(value: Any, text: str | bytes) -> None:
    """Raise a :class:`NestingError` if a value, parsed from ``text``, nests too deeply."""
    brackets = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    level = [value] if brackets > MAX_DEPTH else []
    for _ in range(MAX_DEPTH):
        level = [each for outer in level for each in _inside(outer) if isinstance(each, dict | list)]
        if not level:
            return
    raise NestingError


def _inside(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def parse_toml(text: str, file: str, *, expected: str = "TOML, such as: k = 5") -> dict[str, Any]:
    """Parse a TOML document; an error names the file and, if it is known, the line."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > MAX_DOTS and re.sub(r"\"[^\"]*\"|'[^']*'", "", line).count(".") > MAX_DOTS:
            raise FormatError(f"a key has more than {MAX_DOTS:,} dots", file=file, line=number, expected=expected)
    try:
        tables = tomllib.loads(text)
        check_depth(tables, text + "[" * (text.count(".") + 1))  # a key with dots nests, too
    except tomllib.TOMLDecodeError as error:
        line_number = re.search(r"at line (\d+)", str(error))
        place = int(line_number[1]) if line_number else None
        raise FormatError(f"it is not valid TOML: {error}", file=file, line=place, expected=expected) from error
    except (RecursionError, NestingError):
        raise FormatError(TOO_DEEP, file=file, expected=expected, remedy=REMEDY) from None
    return tables


def validate_json(kind: Any, data: str | bytes) -> Any:
    """Parse JSON as a type, such as a dataclass; an :class:`InvalidValueError` has all problems."""
    from pydantic import ValidationError

    try:
        return _type_adapter(kind).validate_json(data, strict=True)
    except ValidationError as error:
        raise InvalidValueError([describe_problem(each) for each in error.errors(include_url=False)]) from None


def validate_value(kind: Any, value: Any) -> Any:
    """Return parsed JSON or TOML as a type, as `validate_json` does."""
    return validate_json(kind, json.dumps(value, default=str))


@cache
def _type_adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def describe_problem(problem: Mapping[str, Any]) -> ValueProblem:
    """One of pydantic's errors as a problem."""
    path, message = tuple(problem["loc"]), problem["msg"][:1].lower() + problem["msg"][1:120]
    hidden = problem["type"] in ("missing", "json_invalid", "union_tag_invalid")
    value = "" if hidden else f" is {quote_short(problem['input'], 40)}"
    return ValueProblem(path, f"{'.'.join(map(str, path))}{value}: {message}")


def max_line() -> int:
    """Maximum line length in bytes: ``RAGWORTH_MAX_LINE``, a number with an optional K, M or G."""
    return _number_from_environment("RAGWORTH_MAX_LINE", DEFAULT_MAX_LINE, "a number of bytes, such as 100M")


def max_ratio() -> int:
    """Maximum compression ratio: ``RAGWORTH_MAX_RATIO``."""
    return _number_from_environment("RAGWORTH_MAX_RATIO", DEFAULT_MAX_RATIO, "a whole number, such as 1000")


def _number_from_environment(variable: str, usual: int, expected: str) -> int:
    text = os.environ.get(variable, "").strip()
    if not text:
        return usual
    found = re.fullmatch(r"([0-9]{1,15}) ?([KMG]?)B?", text, re.IGNORECASE | re.ASCII)
    if found is None or not int(found[1]):
        raise InputError(f"the environment variable {variable} is {quote_short(text, 40)}", expected=expected)
    return int(found[1]) << SIZE_UNITS[found[2].upper()]
