"""Find values in rows by path: ``outputs.answer | outputs@assistant``.

A path leads into objects, lists (``results.0.text``) and JSON that is written as text. ``|`` separates alternatives, of
which the first that leads to a value counts. A converter may follow: ``messages@user`` is the user's last message, and
``@passages``, without a place, what the row itself calls passages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ragworth.formats.logs.messages import find_answer, find_question, find_references, parse_if_json
from ragworth.formats.logs.names import FIELDS, plain_name
from ragworth.formats.logs.values import as_row

Converter = Callable[[Any], Any]


def find_field(value: Any, field: str) -> Any:
    """Return the value of a field of ours that an object has under a usual name, or None."""
    keys = {plain_name(key): key for key in reversed(value)} if isinstance(value, Mapping) else {}
    return next((value[keys[name]] for name in FIELDS[field] if name in keys), None)


def find_documents(value: Any) -> list[Any] | None:
    """Return the list of passages that an object has under a usual name, or None."""
    passages = find_field(parse_if_json(value), "passages")
    return passages if isinstance(passages, list) else None


def find_only_text(value: Any) -> str | None:
    """Return the only text among the arguments of a function."""
    arguments = value.values() if isinstance(value, Mapping) else ()
    texts = [each for each in arguments if isinstance(each, str) and each.strip()]
    return texts[0] if len(texts) == 1 else None


CONVERTERS: dict[str, Converter] = {
    "user": find_question,
    "assistant": find_answer,
    "references": find_references,
    "documents": find_documents,
    "passages": lambda value: find_field(value, "passages"),
    "accepted": lambda value: find_field(value, "accepted"),
    "only_text": find_only_text,
    "json": parse_if_json,
}
"""Converters by name. None stands for nothing found, so that the next alternative counts."""


def converter(function: Converter) -> Converter:
    """Register a converter under the name of its function."""
    CONVERTERS[function.__name__] = function
    return function


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
        found = value[self.place] if isinstance(value, dict) and self.place in value else follow(value, self.place)
        return CONVERTERS[self.converter](found) if self.converter and found is not None else found


@lru_cache(maxsize=4096)
def parse_paths(text: str) -> tuple[Path, ...]:
    """Parse alternatives such as ``outputs.answer | outputs@assistant``."""
    return tuple(Path(*part.strip().split("@")) for part in text.split("|"))


def find(value: Any, paths: str) -> Any:
    """Return the first value that isn't None at one of the paths."""
    return next((found for path in parse_paths(paths) if (found := path.get(value)) is not None), None)


def follow(value: Any, place: str) -> Any:
    """Return the value at a place, or None. A key may have dots itself, as columns of tables have.

    Without a place, it is the value itself.
    """
    if not place:
        return value
    if isinstance(value, Mapping) and place in value:
        return value[place]
    first, dot, rest = place.partition(".")
    value = parse_if_json(value)
    if isinstance(value, list):
        inner = value[int(first)] if first.isdecimal() and int(first) < len(value) else None
    else:
        row = as_row(value)
        inner = None if row is None else row.get(first)
    return follow(inner, rest) if dot and inner is not None else inner
