"""Find values in rows by path: ``outputs.answer | outputs@assistant``.

A path leads into objects, lists (``results.0.text``) and JSON that is written as text. ``|`` separates alternatives, of
which the first that leads to a value counts. A converter may follow: ``messages@user`` is the user's last message.
Without a place, as in ``@passages``, a converter gets the whole row. Paths find questions, answers and accepted answers
also inside the objects in which tools write them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

from ragworth.formats.logs.names import FIELDS, plain_name
from ragworth.formats.logs.values import as_answer, as_row, parse_if_json

Converter = Callable[[Any], Any]
CONVERTERS: dict[str, Converter] = {}
"""Converters by name. None stands for nothing, so that the next alternative counts."""


def converter(function: Converter) -> Converter:
    """Register a converter under the name of its function."""
    CONVERTERS[function.__name__] = function
    return function


class Path(NamedTuple):
    """One alternative: where a value is, and what converts it."""

    place: str
    convert: Converter | None = None

    @property
    def first(self) -> str:
        """The key of the row."""
        return self.place.partition(".")[0]

    def get(self, value: Any) -> Any:
        """Return the value at the place, or None."""
        place, convert = self
        is_key = isinstance(value, dict) and place and (place in value or "." not in place)
        inner = value.get(place) if is_key else follow(value, place)
        return inner if convert is None or inner is None else convert(inner)


@lru_cache(maxsize=4096)
def parse_paths(text: str) -> tuple[Path, ...]:
    """Parse alternatives such as ``outputs.answer | outputs@assistant``."""
    parts = (part.strip().partition("@") for part in text.split("|") if part.strip())
    return tuple(Path(place, CONVERTERS[name] if at else None) for place, at, name in parts)


def find(value: Any, paths: str) -> Any:
    """Return the first value that isn't None at one of the paths."""
    for path in parse_paths(paths):
        if (inner := path.get(value)) is not None:
            return inner
    return None


def follow(value: Any, place: str) -> Any:
    """Return the value at a place, or None. A key may have dots itself, as columns of tables have.

    Without a place, it is the value itself.
    """
    if not place:
        return value
    if not isinstance(value, dict):
        value = parse_if_json(value)
    first, dot, rest = place.partition(".")
    if isinstance(value, list):
        inner = value[int(first)] if first.isdecimal() and int(first) < len(value) else None
        return follow(inner, rest) if dot else inner
    row = value if isinstance(value, dict) else as_row(value)
    if row is None or place in row:
        return None if row is None else row[place]
    return follow(row[first], rest) if dot and first in row else None


QUESTION_KEYS = ("question", "query", "user_input", "input", "prompt", "query_text", "text", "messages", "content")
ANSWER_KEYS = ("answer", "response", "output", "result", "completion", "text", "replies", "messages", "content")
REFERENCE_KEYS = ("answers", *ANSWER_KEYS, *FIELDS["accepted"])
WRAPPERS = (
    *("message", "message.content", "parts", "choices", "args", "kwargs", "data"),
    *("model_input", "inputs", "request", "state"),
)
"""Keys of objects that hold messages, or the arguments of a call."""

ROLES = {"user": ("user", "human"), "assistant": ("assistant", "ai")}
MAX_DEPTH = 6


def find_question(value: Any) -> str | None:
    """Return the question in an input: a text, a field of an object, or the last message of the user."""
    return _find(value, QUESTION_KEYS, "user")


def find_answer(value: Any) -> str | None:
    """Return the answer in an output: a text, a field of an object, or the last message of the assistant.

    A number, or true or false, is an answer if there is no text.
    """
    text = _find(value, ANSWER_KEYS, "assistant")
    return text if text is not None else _find_number(value)


def find_references(value: Any, depth: int = 0) -> list[str]:
    """Return the accepted answers in a reference output: like an answer, or a list of answers that are no messages."""
    value = parse_if_json(value)
    if isinstance(value, Mapping) and depth <= MAX_DEPTH:
        inside = (find_references(value[key], depth + 1) for key in REFERENCE_KEYS if key in value)
        if texts_inside := next((texts for texts in inside if texts), []):
            return texts_inside
    if isinstance(value, list) and depth <= MAX_DEPTH and not any(_is_message(each) for each in value):
        return [text for each in value for text in find_references(each, depth + 1)]
    text = find_answer(value)
    return [] if text is None else [text]


def role_of(message: Mapping[str, Any]) -> Any:
    """Return the role of a message, which may be in an object of its own or spread over columns."""
    inner = message.get("message")
    nested = inner.get("role") if isinstance(inner, Mapping) else None
    return message.get("role") or message.get("message.role") or nested


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and ("type" in value or bool(role_of(value)))


def _find_number(value: Any, depth: int = 0) -> str | None:
    if isinstance(value, Mapping) and depth <= MAX_DEPTH:
        inside = (_find_number(parse_if_json(value[key]), depth + 1) for key in ANSWER_KEYS if key in value)
        return next((text for text in inside if text is not None), None)
    return as_answer(value) if isinstance(value, int | float) else None


def _find(value: Any, keys: tuple[str, ...], role: str, depth: int = 0) -> str | None:
    """Return the first text in a value: in one of its keys, or in the last message of a role."""
    value = parse_if_json(value)
    if isinstance(value, str):
        return value if value.strip() else None
    inside: list[Any] = []
    if isinstance(value, Mapping):
        inside = [value[key] for key in (*keys, *WRAPPERS) if key in value]
    elif isinstance(value, list):
        roles = [role_of(each) if isinstance(each, Mapping) else None for each in value]
        of_role = [each for each, name in zip(value, roles, strict=True) if name in ROLES[role]]
        inside = of_role[::-1] or [each for each, name in zip(value, roles, strict=True) if not name]
    for each in inside if depth <= MAX_DEPTH else ():
        if (text := _find(each, keys, role, depth + 1)) is not None:
            return text
    return None


def find_field(value: Any, field: str) -> Any:
    """Return the value of a field of ours that an object has under a usual name, or None."""
    keys = {plain_name(key): key for key in reversed(value)} if isinstance(value, Mapping) else {}
    return next((value[keys[name]] for name in FIELDS[field] if name in keys), None)


def find_documents(value: Any) -> list[Any] | None:
    """Return the list of passages that an object has under a usual name, or None."""
    passages = find_field(parse_if_json(value), "passages")
    return passages if isinstance(passages, list) else None


CONVERTERS |= {
    "user": find_question,
    "assistant": find_answer,
    "references": find_references,
    "documents": find_documents,
    "passages": partial(find_field, field="passages"),
    "accepted": partial(find_field, field="accepted"),
}
