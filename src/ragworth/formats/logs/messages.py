"""Find questions and answers in what chat models, chains and traces get and return.

An input may be a text, an object with a field of a usual name, JSON that is written as text, or a list of messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragworth.core.nested_text import parse_json
from ragworth.formats.logs.names import FIELDS
from ragworth.formats.logs.values import as_answer

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


def parse_if_json(value: Any) -> Any:
    """Parse objects, lists and quoted texts that are written as text; other values stay as they are."""
    if isinstance(value, str) and value.strip()[:1] in ("{", "[", '"'):
        try:
            return parse_json(value)
        except ValueError:
            return value
    return value


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
        if found := next((texts for texts in inside if texts), []):
            return found
    if isinstance(value, list) and depth <= MAX_DEPTH and not any(is_message(each) for each in value):
        return [text for each in value for text in find_references(each, depth + 1)]
    text = find_answer(value)
    return [] if text is None else [text]


def is_message(value: Any) -> bool:
    """Tell whether an object is a message, or an item of a response."""
    return isinstance(value, Mapping) and ("type" in value or bool(role_of(value)))


def role_of(message: Mapping[str, Any]) -> Any:
    """Return the role of a message, which may be in an object of its own or spread over columns."""
    inner = message.get("message")
    nested = inner.get("role") if isinstance(inner, Mapping) else None
    return message.get("role") or message.get("message.role") or nested


def _find_number(value: Any, depth: int = 0) -> str | None:
    if isinstance(value, Mapping) and depth <= MAX_DEPTH:
        inside = (_find_number(parse_if_json(value[key]), depth + 1) for key in ANSWER_KEYS if key in value)
        return next((text for text in inside if text is not None), None)
    return as_answer(value) if isinstance(value, int | float) else None


def _find(value: Any, keys: tuple[str, ...], role: str, depth: int = 0) -> str | None:
    value = parse_if_json(value)
    if isinstance(value, str):
        return value if value.strip() else None
    if depth > MAX_DEPTH:
        return None
    inside: list[Any] = []
    if isinstance(value, Mapping):
        inside = [value[key] for key in (*keys, *WRAPPERS) if key in value]
    elif isinstance(value, list):
        roles = [role_of(each) if isinstance(each, Mapping) else None for each in value]
        of_role = [each for each, name in zip(value, roles, strict=True) if name in ROLES[role]]
        inside = of_role[::-1] or [each for each, name in zip(value, roles, strict=True) if not name]
    return next((text for each in inside if (text := _find(each, keys, role, depth + 1))), None)
