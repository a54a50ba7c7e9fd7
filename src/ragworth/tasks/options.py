"""Settings of annotators and graders: dataclass fields with a description and constraints.

The command line makes its options from them, so that a kind of judgment is one file.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import Field, field, fields
from typing import Any, TypeVar

from ragworth.core.errors import InputError, format_list, quote_short

T = TypeVar("T")

RANGE = re.compile(r"(\d{1,6})(?:\s*-\s*(\d{1,6}))?", re.ASCII)


def option(
    default: T, help: str, *, choices: tuple[str, ...] = (), low: float | None = None, high: float | None = None
) -> T:
    """Declare a setting, its description and constraints. A trailing ``_`` of the name is dropped outside Python."""
    about = {"help": help, "choices": choices, "low": low, "high": high}
    made: Any = field(default=default, kw_only=True, metadata=about)
    return made  # type: ignore[no-any-return]


def prompt_option(name: str) -> str:
    """The setting for another prompt than the one of this name."""
    return option("", f"another prompt than {name}: a name, such as papers/{name}, or a file")


def options_of(kind: type) -> list[Field[Any]]:
    """The settings of a class."""
    return [each for each in fields(kind) if "help" in each.metadata]


def validate_options(settings: Any, kind: str) -> None:
    """Reject invalid values, all at once."""
    wrong = []
    for each in options_of(type(settings)):
        value = getattr(settings, each.name)
        expected = _expected(each, value)
        if expected:
            wrong.append(f"{each.name} is {value!r}; it may be {expected}")
    if wrong:
        raise InputError(f"{kind}: {wrong[0]}", more=tuple(wrong[1:]))


def _expected(each: Field[Any], value: Any) -> str:
    """Say what the value of a setting may be; empty if this one is valid."""
    low, high, choices = (each.metadata[name] for name in ("low", "high", "choices"))
    if value is None and each.default is None:
        return ""
    if choices:
        return "" if value in choices else format_list(list(choices), 12)
    if isinstance(each.default, bool | str):
        words = "true or false" if isinstance(each.default, bool) else "a text"
        return "" if isinstance(value, type(each.default)) else words
    if each.default is None and low is None and high is None:
        return ""  # nothing says of what kind it is
    bounds = _bounds(low, high)
    exact = isinstance(each.default, int)
    kinds = (int,) if exact else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
        return f"{'a whole number' if exact else 'a number'} {bounds}".strip()
    inside = (low is None or value >= low) and (high is None or value <= high)
    return "" if inside else bounds


def _bounds(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"from {low:g} to {high:g}"
    return f"{low:g} or more" if low is not None else f"{high:g} or less" if high is not None else ""


def options_by_name(kind: type, settings: dict[str, Any], name: str) -> dict[str, Any]:
    """Look up settings by name; unknown names are an error."""
    known = [each.name for each in options_of(kind)]
    strange = [each for each in settings if each not in known]
    if strange:
        near = [close[0] for each in strange if (close := difflib.get_close_matches(each, known, n=1))]
        raise InputError(
            f"{name} has no setting {format_list(strange)}",
            expected=format_list(known, 20) or "no settings",
            remedy=f"did you mean {format_list(near)}?" if near else "",
        )
    return settings


def parse_numbers(text: str, what: str, high: int = 1000) -> list[int]:
    """The numbers of a list such as ``1-5,10,15``, each once, in ascending order; ``what`` they are, for errors."""
    found: set[int] = set()
    for part in text.split(","):
        match = RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= high:
            raise InputError(
                f"{what}: {quote_short(part.strip())} names no numbers",
                expected=f"numbers from 1 to {high:,} and ranges of them, such as 1-5,10,15",
            )
        found.update(range(first, last + 1))
    return sorted(found)


def parse_names(text: str | None) -> list[str]:
    """The names of a list with commas between them."""
    return [each.strip() for each in (text or "").split(",") if each.strip()]
