"""Read JSON lines, and check ids, texts and numbers in untrusted JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

from ragworth.core.errors import BadLine, quote_short
from ragworth.core.nested_text import NestingError, check_depth
from ragworth.data import MAX_RANK
from ragworth.formats.files import PathOrStr, bad_lines_error, read_lines
from ragworth.formats.grades import RATING


class WrongLineError(Exception):
    """A problem with one line; handled inside the readers."""


def read_constant(name: str) -> float | None:
    """NaN is a missing value, as pandas writes it. Infinity is a number, which no field that we read may be."""
    return None if name == "NaN" else float(name)


JSON = json.JSONDecoder(parse_constant=read_constant)
"""Decodes JSON in the same way for all formats."""


def decode_line(line: bytes) -> Any:
    """Return the JSON value of a line."""
    value = JSON.decode(line.decode(json.detect_encoding(line), "surrogatepass"))
    check_depth(value, line)
    return value


def read_values(
    path: PathOrStr,
    bad: list[BadLine],
    *,
    skip: bool,
    expected: str,
    parse: Callable[[Any], Any] = lambda value: value,
) -> Iterator[tuple[int, Any]]:
    """Yield what ``parse`` makes of the JSON value of each line, with the line's number.

    Lines that aren't JSON, or that ``parse`` refuses with a :class:`WrongLineError`, are errors, or go to ``bad``.
    """
    lines = getattr(path, "lines", {})  # a head has parsed the first
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            value = parse(lines[number] if number in lines else decode_line(line))
        except (ValueError, RecursionError, WrongLineError) as error:
            bad.append(BadLine(number, _describe(error, line)))
            if not skip:
                raise bad_lines_error(path, bad, expected) from error
        else:
            yield number, value


def read_objects(
    path: PathOrStr, bad: list[BadLine], *, skip: bool, expected: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON objects of a file with line numbers. Other lines are errors, or go to ``bad``."""
    return read_values(path, bad, skip=skip, expected=expected, parse=as_object)


def as_object(value: Any) -> dict[str, Any]:
    """Return the object that a line should be."""
    if not isinstance(value, dict):
        raise WrongLineError(f"{type(value).__name__} instead of an object: {quote_short(value, 48)}")
    return value


def _describe(error: Exception, line: bytes) -> str:
    """The problem with a line."""
    if isinstance(error, WrongLineError):
        return str(error)
    if isinstance(error, RecursionError | NestingError):
        return str(NestingError())
    return f"this is not JSON ({explain_json(error)}) in {quote_short(line.decode('utf-8', 'replace'), 48)}"


def explain_json(error: Exception) -> str:
    """Return the parser's message, with the column of the line."""
    return f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)[:60]


def as_dict(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongLineError(f"{what} is {quote_short(value, 24)}, not an object")
    return value


def as_list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise WrongLineError(f"{what} is {quote_short(value, 24)}, not a list")
    return value


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; nothing if it is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _check_given(value: object, what: str) -> None:
    if value is None:
        raise WrongLineError(f"the {what} is missing")


def as_text(value: object, what: str) -> str:
    """Return text that can be encoded again; a lone surrogate can't."""
    _check_given(value, what)
    if not isinstance(value, str):
        raise WrongLineError(f"the {what} is {quote_short(value, 24)}, not text")
    if not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
        raise WrongLineError(f"the {what} contains a lone surrogate")
    return value


def as_id(value: object, what: str) -> str:
    """Return an id: text or a whole number."""
    _check_given(value, what)
    if value == "":
        raise WrongLineError(f"the {what} is empty")
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise WrongLineError(f"the {what} is {quote_short(value, 24)}, not text or a whole number")
    return as_text(str(value), what)


def as_number(value: object, what: str) -> float:
    _check_given(value, what)
    try:
        number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise WrongLineError(f"the {what} is {quote_short(value, 24)}, not a finite number")
    return number


def as_rating(value: object, what: str) -> float:
    """Return a rating of a sub-question."""
    number = as_number(value, what)
    if not RATING.has(number):
        raise WrongLineError(f"the {what} is {number:g}, not {RATING.expected}")
    return number


def as_rank(value: object, what: str) -> int:
    """Return a position, from 0 or 1."""
    number = as_number(value, what)
    if not number.is_integer() or not 0 <= number <= MAX_RANK:
        raise WrongLineError(f"the {what} is {quote_short(value, 24)}, not a position")
    return int(number)
