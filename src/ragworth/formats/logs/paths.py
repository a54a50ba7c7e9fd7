"""Find values in rows by path: ``outputs.answer | outputs@assistant``.

A path leads into objects, lists (``results.0.text``) and JSON that is written as text. ``|`` separates alternatives, of
which the first that leads to a value counts. A converter may follow: ``messages@user`` is the user's last message, and
``@passages``, without a place, what the row itself calls passages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ragworth.formats.logs.fields import FIELDS, FieldFinder
from ragworth.formats.logs.messages import find_answer, find_question, find_references, parse_if_json


def find_field(value: Any, field: str) -> Any:
    """Return the value of a field of ours that an object has under a usual name, or None."""
    return FieldFinder({field: FIELDS[field]}).get(value, field) if isinstance(value, Mapping) else None


def find_documents(value: Any) -> list[Any] | None:
    """Return the list of passages that an object has under a usual name, or None."""
    passages = find_field(parse_if_json(value), "passages")
    return passages if isinstance(passages, list) else None


def find_only_text(value: Any) -> str | None:
    """Return the only text among the arguments of a function."""
    arguments = value.values() if isinstance(value, Mapping) else ()
    texts = [each for each in arguments if isinstance(each, str) and each.strip()]
    return texts[0] if len(texts) == 1 else None


CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "user": find_question,
    "assistant": find_answer,
    "references": find_references,
    "documents": find_documents,
    "passages": lambda value: find_field(value, "passages"),
    "accepted": lambda value: find_field(value, "accepted"),
    "only_text": find_only_text,
    "json": parse_if_json,
    "from_one": lambda value: max(int(value) - 1, 0) if isinstance(value, int) else value,
    "bars": lambda value: value.split("|") if isinstance(value, str) else value,
}
"""Converters by name. ``from_one``: a number that counts from 1. ``bars``: texts that are joined by ``|``."""


class Path(NamedTuple):
    """One alternative: where a value is, and what it is converted with."""

    place: str
    converter: str = ""

    @property
    def first(self) -> str:
        """The key of the row."""
        return self.place.partition(".")[0]

    def get(self, value: Any) -> Any:
        """Return the value at the place, or None."""
        found = follow(value, self.place)
        return CONVERTERS[self.converter](found) if self.converter and found is not None else found


@lru_cache(maxsize=4096)
def parse_paths(text: str) -> tuple[Path, ...]:
    """Parse alternatives such as ``outputs.answer | outputs@assistant``."""
    return tuple(Path(*part.strip().split("@")) for part in text.split("|"))


def find(value: Any, paths: str) -> Any:
    """Return the first value that isn't None at one of the paths."""
    return next((found for path in parse_paths(paths) if (found := path.get(value)) is not None), None)


def follow(value: Any, place: str) -> Any:
    """Return the value at a place, or None. A key may have dots itself, as columns of tables have."""
    if not place:
        return value
    value = parse_if_json(value)
    if isinstance(value, list):
        first, _, rest = place.partition(".")
        element = value[int(first)] if first.isdecimal() and int(first) < len(value) else None
        return follow(element, rest) if rest else element
    if not isinstance(value, Mapping):
        return None
    if place in value:
        return value[place]
    first, dot, rest = place.partition(".")
    return follow(value.get(first), rest) if dot else None
