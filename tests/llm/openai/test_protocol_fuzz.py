"""Replies with something wrong anywhere in them: an answer that can be kept, or a failure, and nothing else."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragworth.calls.checks import check_outcome
from ragworth.calls.serialization import response_from_json, response_to_json
from ragworth.core.errors import ModelError
from ragworth.llm.contract import Choose, Failure, Generate, Prompt, Request, Response, Score
from ragworth.llm.openai.call import EndpointCall
from ragworth.llm.openai.client import EndpointClient, EndpointReply
from ragworth.llm.openai.inference import EndpointRequest
from ragworth.llm.openai.options import EndpointOptions
from ragworth.llm.openai.probe import EndpointFacts, EndpointProbe
from ragworth.llm.openai.replies import EndpointError
from ragworth.llm.openai.requests import RefusedParameters
from tests.llm.openai.endpoint_replies import Refusal, Traits, reply

CHAT, TEXT = Prompt.chat("hello"), Prompt.text("One, two")
REQUESTS: list[tuple[str, Request]] = [
    ("generate", Generate(CHAT, max_tokens=3)),
    ("generate", Generate(CHAT, max_tokens=2, temperature=1.0, n=2, detail="logprobs")),
    ("generate", Generate(TEXT, max_tokens=2, detail="logprobs")),
    ("choose", Choose(CHAT, ("Yes", "No"))),
    ("choose", Choose(TEXT, ("Yes", "No"), "sequence")),
    ("score", Score(TEXT, "three")),
    ("score", Score(CHAT, "Yes")),
]
HOSTILE: list[Any] = [
    *(None, True, False, 0, 1, -1, 10**30, -(10**30), 2**63 - 1, 2**63, 10**400, -(10**400), 0.0, -0.5, 0.5, 1e308),
    *(-1e308, -745.0, -9999.0, -3.4028234663852886e38, math.nan, math.inf, -math.inf, "", "Yes", "x" * 999),
    *(
        "token_id:7",
        "token_id:" + "9" * 5000,
        "token_id:²",
        "\ud800",
        "\x00\x1b[31m",
        "\ufffd",
        [],
        {},
        [[]],
        [0],
        [None],
    ),
    *({"a": 1}, [{"token": "Yes", "logprob": 0}] * 3, {"Yes": 0, "No": 0}, [[[[[[[[[[1]]]]]]]]]]),
]
KINDS = [Traits("openai"), Traits("openai", chat=False), Traits("vllm"), Traits("llamacpp")]


class Canned(EndpointClient):
    """A client without a network: the toy's replies, each of them changed on its way."""

    def __init__(self, traits: Traits, change: Callable[[Any], Any]) -> None:
        super().__init__("http://toy/v1", EndpointOptions(retries=0), None)
        self._traits, self._change = traits, change

    async def exchange(self, path: str, content: bytes | None) -> EndpointReply:
        body = None if content is None else json.loads(content)
        try:
            status, value = 200, self._change(reply(self._traits, path if path[0] == "/" else f"/v1/{path}", body))
        except Refusal as refusal:
            status, value = refusal.status, refusal.body
        return EndpointReply(status, None, json.dumps(value))


@cache
def facts(traits: Traits) -> EndpointFacts:
    return asyncio.run(probed(Canned(traits, lambda value: value)))


async def probed(client: EndpointClient) -> EndpointFacts:
    return await EndpointProbe("toy", EndpointOptions(), EndpointCall(client, is_probe=True)).facts()


@st.composite
def changes(draw: st.DrawFn) -> Callable[[Any], Any]:
    """Puts something hostile in the place of some values, or leaves them out, or doubles them."""
    steps = draw(
        st.lists(
            st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from(["put", "put", "drop", "double"]),
                      st.sampled_from(HOSTILE)),
            min_size=1,
            max_size=3,
        )
    )  # fmt: skip

    def change(value: Any) -> Any:
        for where, how, what in steps:
            value = changed(value, where, how, what)
        return value

    return change


def changed(value: Any, where: float, how: str, what: Any) -> Any:
    value = json.loads(json.dumps(value))
    places = list(all_places(value))
    if not places:
        return what
    holder, key = places[int(where * len(places))]
    if how == "put":
        holder[key] = what
    elif how == "drop":
        del holder[key]
    elif isinstance(holder, list):
        holder.insert(key, holder[key])
    return value


def all_places(value: Any) -> Any:
    """Every value inside of a value, as what holds it and its key there."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from all_places(inner)


def asked(client: EndpointClient, known: EndpointFacts, name: str, request: Request) -> Response | Failure:
    asking = EndpointRequest("toy", known, "error", EndpointCall(client), RefusedParameters())
    try:
        outcome: Response = asyncio.run(getattr(asking, name)(request))
    except EndpointError as trouble:
        return trouble.failure
    return check_outcome(request, outcome)


@pytest.mark.parametrize("traits", KINDS, ids=lambda traits: f"{traits.kind}{'' if traits.chat else ' without chats'}")
@given(changes(), st.sampled_from(REQUESTS))
def test_whatever_is_changed_it_is_an_answer_or_a_failure(
    traits: Traits, change: Callable[[Any], Any], ask: tuple[str, Request]
) -> None:
    name, request = ask
    outcome = asked(Canned(traits, change), facts(traits), name, request)
    if isinstance(outcome, Failure):
        assert outcome.detail.isprintable()
        return
    text = response_to_json(outcome)
    assert text.isascii()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert response_from_json(name, text) == outcome
    assert all(0 <= number < 2**40 for number in outcome.usage[:-1])


@pytest.mark.parametrize("traits", KINDS, ids=lambda traits: f"{traits.kind}{'' if traits.chat else ' without chats'}")
def test_unchanged_replies_are_answers(traits: Traits) -> None:
    found = [asked(Canned(traits, lambda value: value), facts(traits), *one) for one in REQUESTS]
    failures = [one.reason for one in found if isinstance(one, Failure)]
    assert set(failures) <= ({"no-logprobs"} if traits.kind == "openai" else {"boundary"}), found
    assert len(failures) <= 3


@pytest.mark.parametrize("traits", KINDS, ids=lambda traits: f"{traits.kind}{'' if traits.chat else ' without chats'}")
@example(change=lambda value: value | {"chat_template": "\ud800"})
@given(change=changes())
def test_an_endpoint_that_lies_about_itself(traits: Traits, change: Callable[[Any], Any]) -> None:
    try:
        found = asyncio.run(probed(Canned(traits, change)))
    except (EndpointError, ModelError):
        return
    assert found.abilities
    assert 0 < found.vocabulary <= 10**9
    assert 0 < (found.context_length or 1) <= 10**9
