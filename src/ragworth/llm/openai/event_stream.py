"""Replies as a stream of server-sent events, which some endpoints send whether asked for or not, as one reply."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_STARTS = ("data:", "event:", "id:", "retry:", ":")
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")


class BrokenStreamError(ValueError):
    """A stream that isn't one of replies, or ends too early."""


def is_event_stream(text: str) -> bool:
    return text.lstrip().startswith(_STARTS)


def join_events(text: str) -> dict[str, Any]:
    """The reply that a stream adds up to, or the error in it."""
    choices: dict[Any, dict[str, Any]] = {}
    reply: dict[str, Any] = {}
    for event in _events(text):
        if event.get("error"):
            return {"error": event["error"]}
        reply |= {"usage": event["usage"]} if isinstance(event.get("usage"), dict) else {}
        parts = event.get("choices")
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict):
                _add(choices.setdefault(str(part.get("index", 0)), {}), part)
    if not choices or not all(choice.get("finish_reason") for choice in choices.values()):
        raise BrokenStreamError("the reply is a stream of events that broke off")
    return reply | {"choices": [choices[index] for index in sorted(choices, key=lambda each: (len(each), each))]}


def _events(text: str) -> Iterator[dict[str, Any]]:
    for line in text.split("\n"):
        data = line.strip().removeprefix("data:").strip() if line.lstrip().startswith("data:") else ""
        if data in ("", "[DONE]"):
            continue
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            raise BrokenStreamError("the reply is a stream of events, and one of them is not a JSON object")
        yield event


def _add(choice: dict[str, Any], part: dict[str, Any]) -> None:
    """Add a part of a choice to what came before."""
    choice["finish_reason"] = part.get("finish_reason") or choice.get("finish_reason")
    delta = part.get("delta", part.get("message"))
    if isinstance(part.get("text"), str):
        choice["text"] = choice.get("text", "") + part["text"]
    elif isinstance(delta, dict):
        message = choice.setdefault("message", {"content": None})
        for name in _TEXTS:
            if isinstance(delta.get(name), str):
                message[name] = (message.get(name) or "") + delta[name]
    _add_logprobs(choice, part.get("logprobs"))


def _add_logprobs(choice: dict[str, Any], logprobs: Any) -> None:
    for name, values in logprobs.items() if isinstance(logprobs, dict) else ():
        if isinstance(values, list):
            choice.setdefault("logprobs", {}).setdefault(name, []).extend(values)
