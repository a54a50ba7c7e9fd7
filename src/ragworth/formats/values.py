"""Check ids, texts and numbers in untrusted JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

from ragworth.errors import BadLine, quote_short
from ragworth.formats.columns import bad_lines_error, check_bad_lines
from ragworth.formats.files import PathOrStr, read_lines
from ragworth.tables import MAX_RANK


class WrongLineError(Exception):
    """A problem with one line; handled inside the readers."""


def read_values(
    path: PathOrStr,
    bad: list[BadLine],
    *,
    skip: bool,
    expected: str,
    constant: Callable[[str], Any] | None = None,
) -> Iterator[tuple[int, Any]]:
    """Yield the JSON values of a file, one per line, with line numbers. Other lines are errors, or go to ``bad``.

    ``constant`` converts NaN and Infinity, which JSON does not have; by default they are errors.
    """
    decode = json.JSONDecoder(parse_constant=constant or _reject_constant).decode  # json.loads makes one for each line
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            yield number, decode(line.decode(json.detect_encoding(line), "surrogatepass"))
        except (ValueError, RecursionError, WrongLineError) as error:
            problem = str(error) if isinstance(error, WrongLineError) else f"this is not JSON ({explain_json(error)})"
            bad.append(BadLine(number, f"{problem} in {quote_short(line.decode('utf-8', 'replace'), 48)}"))
            if not skip:
                raise bad_lines_error(path, bad, expected) from error
            check_bad_lines(path, bad)


def explain_json(error: Exception) -> str:
    """What the parser found, and in which column of the line."""
    return f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)[:60]


def _reject_constant(name: str) -> float:
    raise WrongLineError(f"{name} is not a JSON number")


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


def as_text(value: object, what: str) -> str:
    """Return text that can be encoded again; a lone surrogate can't."""
    if not isinstance(value, str):
        raise WrongLineError(f"the {what} is {quote_short(value, 24)}, not text")
    if not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
        raise WrongLineError(f"the {what} contains a lone surrogate")
    return value


def as_id(value: object, what: str) -> str:
    """Return an id: text or a whole number."""
    if value == "":
        raise WrongLineError(f"the {what} is empty")
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise WrongLineError(f"the {what} is {quote_short(value, 24)}, not text or a whole number")
    return as_text(str(value), what)


def as_number(value: object, what: str) -> float:
    try:
        number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise WrongLineError(f"the {what} is {quote_short(value, 24)}, not a finite number")
    return number


def as_rank(value: object, what: str) -> int:
    """Return a position, from 0 or 1."""
    number = as_number(value, what)
    if not number.is_integer() or not 0 <= number <= MAX_RANK:
        raise WrongLineError(f"the {what} is {quote_short(value, 24)}, not a position")
    return int(number)
