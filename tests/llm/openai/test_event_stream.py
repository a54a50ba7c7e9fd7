"""Replies as streams of events add up to one reply, or are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragworth.llm.contract import Generate, Generated, Prompt
from ragworth.llm.openai.errors import EndpointError, parse_reply
from ragworth.llm.openai.model import open_model
from ragworth.llm.openai.protocol import read_choices, read_counts
from tests.llm.openai.endpoint import Act, Endpoint

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


def test_several_outputs_are_put_in_order() -> None:
    value = parse_reply(stream(*(delta(str(n), "stop", index=n) for n in (2, 10, 0, 1))), str)
    assert [found.text for found in read_choices(value)] == ["0", "1", "2", "10"]


def test_a_plain_text_in_events() -> None:
    old = {"tokens": [" a"], "token_logprobs": [-1.0], "top_logprobs": [None]}
    parts = [{"choices": [{"text": " a", "logprobs": old, "finish_reason": end}]} for end in (None, "length")]
    (found,) = read_choices(parse_reply(stream(*parts), str))
    assert (found.text, found.finish, len(found.steps or ())) == (" a a", "length", 2)


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


def test_an_endpoint_that_always_streams() -> None:
    events = stream(delta("Yes"), delta(None, "stop")) + DONE
    with Endpoint(lambda seen: Act(body=events.encode())) as server:
        model = open_model(f"toy@{server.url}", extra_body={"stream": True})
        (found,) = model.generate([Generate(Prompt.chat("Is it?"), max_tokens=5)])
        assert isinstance(found, Generated) and found.outputs[0][:2] == ("Yes", "stop")
        assert server.asked()[-1].body["stream"] is True
        model.close()
