"""Parameters that an endpoint refuses, in its own words, are left out, remembered and noted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ragworth.llm.contract import (
    Failure,
    Generate,
    Generated,
    Prompt,
    PromptMessage,
    Span,
)
from ragworth.llm.openai import rate_limit
from ragworth.llm.openai.model import OpenAIModel, open_model
from ragworth.llm.openai.replies import EndpointError
from ragworth.llm.openai.requests import adapt_system_turn, find_refused
from tests.llm.openai import endpoint_toy as toy
from tests.llm.openai.endpoint import GOOD, Endpoint, status

CHAT = Prompt.chat("Is it so?", system="Be brief.")
SAMPLED = Generate(CHAT, max_tokens=4, temperature=0.7, top_p=0.9, stop=("z",), seed=3, n=2)
GREEDY = Generate(CHAT, max_tokens=4, stop=("z",))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "FIRST_WAIT", 0.005)


@contextmanager
def opened(**traits: Any) -> Iterator[tuple[OpenAIModel, Endpoint]]:
    with Endpoint(**traits) as server:
        model = open_model(f"toy@{server.url}")
        try:
            yield model, server
        finally:
            model.close()


WORDINGS = [
    (
        "temperature",
        "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value.",
    ),
    ("top_p", "`temperature` and `top_p` cannot both be specified for this model. Please use only one."),
    ("seed", '[{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]'),
    ("seed", 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'),
    ("stop", "Argument not supported on this model: stop"),
    ("system", "System role not supported"),
    ("system", "Unsupported value: 'messages[0].role' does not support 'system' with this model."),
    ("system", "Conversation roles must alternate user/assistant/user/assistant/..."),
]


ONE_OF_EACH = tuple({name: (name, message) for name, message in WORDINGS}.values())


@pytest.mark.parametrize(("name", "message"), WORDINGS)
def test_an_error_names_a_parameter_in_any_words(name: str, message: str) -> None:
    fields = {"temperature": 0.0, "top_p": 0.9, "seed": 1, "stop": ["x"], "messages": [{"role": "system"}]}
    assert find_refused(EndpointError(Failure("refused", f"HTTP 400: {message}", False), 400), fields) == name


@pytest.mark.parametrize(("name", "message"), ONE_OF_EACH)
def test_what_is_refused_is_left_out_from_the_beginning(name: str, message: str) -> None:
    with opened(refuses=((name, message),)) as (model, server):
        (note,) = [note for note in model.card.notes if "refuses" in note]
        assert name in note
        server.seen.clear()
        for request in (SAMPLED, GREEDY):
            assert isinstance(model.generate([request])[0], Generated)
        for sent in (one.body for one in server.asked()):
            kept = {"temperature", "top_p", "seed", "stop"} & sent.keys()
            assert name not in kept
            assert [one["role"] for one in sent["messages"]] == (["user"] if name == "system" else ["system", "user"])
        assert len(server.asked()) == 2


@pytest.mark.parametrize(
    "message",
    [
        "`temperature` must be strictly positive",
        "invalid params, temperature must be in (0, 1]",
        "temperature: Input should be greater than 0",
    ],
)
def test_a_temperature_of_0_that_is_refused_is_a_low_one(message: str) -> None:
    with Endpoint(lambda seen: GOOD if seen.body.get("temperature") else status(422, message)) as server:
        model = open_model(f"toy@{server.url}")
        assert model.card
        (note,) = model.warnings
        assert "0.01" in note
        for request, sent in ((GREEDY, 0.01), (SAMPLED, 0.7)):
            assert isinstance(model.generate([request])[0], Generated)
            assert server.asked()[-1].body["temperature"] == sent
        model.close()


def test_texts_are_cut_at_stop_texts_that_the_endpoint_does_not_take() -> None:
    with opened(refuses=(("stop", "stop is not supported"),)) as (model, _):
        whole = toy.decode(toy.generate(toy.encode(toy.template(_messages()), bos=True), 8).ids)
        (found,) = model.generate([Generate(CHAT, max_tokens=8, stop=(whole[3],), detail="logprobs")])
        assert isinstance(found, Generated)
        output = found.outputs[0]
        assert (output.text, output.finish) == (whole[: whole.index(whole[3])], "stop")
        assert output.trace is not None and "".join(output.trace.tokens).startswith(output.text)


def _messages() -> list[dict[str, str]]:
    return [{"role": one.role, "content": one.content} for one in CHAT.messages]


def test_spans_move_with_the_users_turn() -> None:
    long = Prompt(
        (PromptMessage("system", "Read."), PromptMessage("user", "A: text"), PromptMessage("assistant", "ok")),
        (Span(0, 0, 4), Span(1, 3, 7), Span(2, 0, 2)),
    )
    found = adapt_system_turn(long, frozenset({"system"}))
    assert found.messages[0] == PromptMessage("user", "Read.\n\nA: text")
    texts = [found.messages[one.message].content[one.start : one.end] for one in found.passages]
    assert texts == ["Read", "text", "ok"]
    assert adapt_system_turn(long, frozenset()) is long


def test_an_error_that_only_mentions_a_parameter_changes_nothing() -> None:
    message = "the messages are empty; see the parameters temperature and seed"
    with opened() as (model, server):
        assert model.card
        server.script(*[status(422, message)] * 9)
        (found,) = model.generate([GREEDY])
        assert isinstance(found, Failure) and (found.reason, found.retry) == ("refused", False)
        assert not [note for note in model.card.notes if "refuses" in note]


@pytest.mark.parametrize(
    ("code", "message", "found"),
    [
        (400, "temperature must be between 0 and 2", ""),
        (401, "temperature", ""),
        (400, "Unknown parameter: top_p. Known: temperature", "top_p"),
        (500, "the temperature of the GPU is too high for system messages", ""),
        (500, "Value error in template: System role not supported", "system"),
    ],
)
def test_which_parameter_an_error_names(code: int, message: str, found: str) -> None:
    fields = {"temperature": 2.5, "top_p": 0.9, "seed": 1, "stop": ["x"], "messages": [{"role": "system"}]}
    reason = "server-error" if code == 500 else "refused"
    assert find_refused(EndpointError(Failure(reason, message, False), code), fields) == found
