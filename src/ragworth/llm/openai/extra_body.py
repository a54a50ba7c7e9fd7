"""The option ``extra_body``: fields that are added to requests, such as ``reasoning_effort`` or a server's own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

EXPECTED = 'an object such as {"reasoning_effort": "low"}, as a table in TOML or JSON on the command line'

OWN_FIELDS = frozenset(
    (
        "model",
        "messages",
        "prompt",
        "n",
        "stop",
        "seed",
        "temperature",
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "logprobs",
        "top_logprobs",
        "prompt_logprobs",
        "response_format",
        "echo",
        "stream",
    )
)
"""Fields that ragworth sets, by the options of its commands."""

TEMPLATE_FIELDS = ("chat_template_kwargs",)
"""Fields that change how a chat becomes text, so they also go to functions that tokenize chats."""

_SECRET = re.compile(r"api[_-]?key|authorization|secret|password|access[_-]?token|bearer", re.I)


def parse_extra_body(value: Any) -> dict[str, Any] | None:
    """Fields as a mapping, or as JSON; None if it is neither."""
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except (ValueError, RecursionError):
            return None
    if not isinstance(value, Mapping) or any(not isinstance(name, str) for name in value):
        return None
    try:
        copied: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    except (ValueError, TypeError, RecursionError):
        return None
    return copied


def extra_body_problem(value: Any) -> str:
    """What is wrong with the option; empty if nothing is."""
    fields = parse_extra_body(value)
    if fields is None:
        return f"is not {EXPECTED}"
    if own := sorted(OWN_FIELDS & fields.keys()):
        return f"sets {', '.join(own)}, which ragworth sets itself"
    if any(_SECRET.search(name) for name in _names(fields)):
        return "has a key in it: keys go into an environment variable, because options are stored"
    return ""


def _names(value: Any) -> Iterator[str]:
    """The names of all fields, also of those within others."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from _names(part)


def template_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in TEMPLATE_FIELDS if name in fields}
