"""Replies as streams of events add up to one reply, or are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragworth.llm.openai.errors import EndpointError, parse_reply
from ragworth.llm.openai.protocol import read_choices, read_counts

DONE = "data: [DONE]\n\n"


def stream(*events: Any) -> str:
    return "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events)


def delta(text: str | None, finish: str | None = None, index: int = 0, **more: Any) -> Any:
    return {"choices": [{"index": index, "delta": {"content": text} if text else {}, "finish_reason": finish} | more]}


def logprob(token: str) -> Any:
    return {"content": [{"token": token, "logprob": -0.5, "top_logprobs": []}]}


def test_a_chat_in_events() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    events = stream(
        delta(None), delta("Ja", logprobs=logprob("Ja")), delta("\u2028!", "stop", logprobs=logprob("!")), usage
    )
    value = parse_reply(f": PROCESSING\n\n{events}{DONE}", str)
    (found,) = read_choices(value)
    assert (found.text, found.finish) == ("Ja\u2028!", "stop")
    assert [step.token.text for step in found.steps or ()] == ["Ja", "!"]
    assert read_counts(value) == (3, 2)


@pytest.mark.parametrize(
    ("text", "reason", "detail"),
    [
        (stream(delta("Ja")), "malformed", "broke off"),
        (stream(delta("Ja")) + DONE, "malformed", "broke off"),
        (DONE, "malformed", "broke off"),
        ("data: {\n\n", "malformed", "not a JSON object"),
        ("data: 7\n\n", "malformed", "not a JSON object"),
        (stream(delta("Ja"), {"error": {"message": "overloaded", "code": 503}}), "server-error", "overloaded"),
        (stream({"choices": 7}, {"choices": [8]}), "malformed", "broke off"),
    ],
)
def test_broken_streams(text: str, reason: str, detail: str) -> None:
    with pytest.raises(EndpointError) as caught:
        parse_reply(text, str)
    assert caught.value.failure.reason == reason
    assert detail in caught.value.failure.detail
