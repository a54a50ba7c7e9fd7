"""Keys: equal where the output must be, and nowhere else. And JSON that gives back what it was made of."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.calls.serialization import (
    call_key,
    model_digest,
    request_from_json,
    request_to_json,
    response_from_json,
    response_to_json,
)
from ragworth.llm.contract import (
    Card,
    Choose,
    Chosen,
    Generate,
    Generated,
    Output,
    Prompt,
    PromptMessage,
    Request,
    Score,
    Scored,
    Trace,
    Usage,
)
from tests.calls.samples import REQUESTS, RESPONSES, SHORT, WIDE_REQUESTS

MODEL = model_digest(Card("scripted", "m"))
USAGE = Usage(3, 1, 0.5)


def content(request: Request) -> tuple[Any, ...]:
    """What decides the output of a request, by the words of the contract."""
    shared = (tuple(map(tuple, request.prompt.messages)), request.prompt.version)
    if isinstance(request, Choose):
        return ("choose", shared, request.labels, request.estimator)
    if isinstance(request, Score):
        return ("score", shared, request.continuation)
    drawn = () if request.temperature == 0 else (request.temperature, request.top_p, request.seed)
    rest = (request.max_tokens, request.stop, request.n, request.detail, request.schema)
    return ("generate", shared, drawn, rest)


@given(REQUESTS, REQUESTS)
def test_keys_are_equal_exactly_where_contents_are(one: Request, other: Request) -> None:
    assert (call_key(MODEL, one) == call_key(MODEL, other)) == (content(one) == content(other))


@given(REQUESTS, SHORT, SHORT)
def test_a_request_and_one_with_another_message_have_different_keys(one: Request, first: str, second: str) -> None:
    before = replace(one, prompt=replace(one.prompt, messages=(*one.prompt.messages, PromptMessage("user", first))))
    after = replace(one, prompt=replace(one.prompt, messages=(*one.prompt.messages, PromptMessage("user", second))))
    assert (call_key(MODEL, before) == call_key(MODEL, after)) == (first == second)
    assert call_key(MODEL, before) != call_key(MODEL, one)


BOUNDARIES = [
    [PromptMessage("user", "ab"), PromptMessage("user", "c")],
    [PromptMessage("user", "a"), PromptMessage("user", "bc")],
    [PromptMessage("user", "abc")],
    [PromptMessage("user", "abc"), PromptMessage("user", "")],
    [PromptMessage("system", "ab"), PromptMessage("user", "c")],
    [PromptMessage("user", "ab"), PromptMessage("assistant", "c")],
    [PromptMessage("text", "abc")],
    [PromptMessage("user", "ab1:user1c")],
]


def test_where_a_message_ends_and_who_speaks_is_part_of_the_key() -> None:
    keys = {call_key(MODEL, Score(Prompt(tuple(messages)), "x")) for messages in BOUNDARIES}
    assert len(keys) == len(BOUNDARIES)


def test_what_is_not_drawn_does_not_count() -> None:
    greedy = Generate(Prompt.text("a"))
    assert call_key(MODEL, greedy) == call_key(MODEL, replace(greedy, seed=7, top_p=0.5))
    drawn = replace(greedy, temperature=1.0)
    assert len({call_key(MODEL, one) for one in (drawn, replace(drawn, seed=7), replace(drawn, top_p=0.5))}) == 3


PART = st.sampled_from(["", "a", "b", "ab", '","'])
CARDS = st.builds(Card, PART, PART, PART, PART, PART, PART)


@given(CARDS, CARDS, st.sampled_from(["backend", "name", "revision", "quantisation", "template", "endpoint"]))
def test_models_are_told_apart_by_their_identity(one: Card, other: Card, field: str) -> None:
    for card in (other, replace(one, **{field: getattr(other, field)})):
        assert (model_digest(one) == model_digest(card)) == (one.identity == card.identity)


def test_what_a_model_can_do_is_not_who_it_is() -> None:
    card = Card("hf", "m", "abc")
    other = replace(card, abilities=frozenset({"choose"}), context_length=9, cuts=True, notes=("slow",))
    assert model_digest(card) == model_digest(other)


# Stores in the field hold these. A change here means that everybody pays again for everything.
PINNED: dict[str, Request] = {
    "ed8e23a4e432e9a3e8d1077d3711b9ca": Choose(
        Prompt((PromptMessage("system", "Be brief."), PromptMessage("user", "Is it?")), (), "v1"), ("yes", "no")
    ),
    "b1525713bd969dc6c58eb64ebe685814": Generate(
        Prompt.chat("Héllo"), max_tokens=5, temperature=0.5, stop=("\n",), seed=3, n=2
    ),
    "4ff9e0130da28377d9b8b58564ca5c5f": Score(Prompt.text("Once upon"), " a time"),
}


@pytest.mark.parametrize("key", PINNED, ids=["choose", "generate", "score"])
def test_keys_are_those_of_every_version_before(key: str) -> None:
    assert call_key(model_digest(Card("openai", "m", endpoint="http://localhost")), PINNED[key]).hex() == key


@given(WIDE_REQUESTS)
def test_requests_come_back_from_json(request: Request) -> None:
    text = request_to_json(request)
    assert request_from_json(text) == request
    assert call_key(MODEL, request_from_json(text)) == call_key(MODEL, request)
    assert text.isascii()


@given(RESPONSES)
def test_responses_come_back_from_json(found: tuple[str, Any]) -> None:
    kind, response = found
    # By their written form, in which nan equals nan and 1 is not 1.0.
    assert repr(response_from_json(kind, response_to_json(response))) == repr(response)


def test_bounds_are_left_out_where_a_probability_is_exact() -> None:
    exact = Chosen((0.5,), (0.5,), (0.5,), "first-token", USAGE)
    assert json.loads(response_to_json(exact)) == [[3, 1, 0.5, 0, 0, 0, ""], "first-token", [0.5]]
    known = exact._replace(low=(0.25,))
    assert json.loads(response_to_json(known))[2:] == [[0.5], [0.25], [0.5]]


def test_traces_with_and_without_entropies_and_bounds() -> None:
    for trace in (
        Trace(("a",), (-1.0,)),
        Trace(("a",), (-1.0,), (0.5,)),
        Trace(("a",), (-1.0,), None, ((0.1, math.inf),)),
        Trace((), (), (), ()),
    ):
        scored = Scored(trace, USAGE)
        assert response_from_json("score", response_to_json(scored)) == scored
        made = Generated((Output("a", "stop", trace), Output("\ud800\x00", "length")), USAGE)
        assert response_from_json("generate", response_to_json(made)) == made


# Tokens by their numbers


def test_given_tokens_decide_the_key_and_the_text_does_not() -> None:
    by_ids = Score(Prompt.text("a"), "bc", (7, 8))
    assert call_key(MODEL, by_ids) == call_key(MODEL, replace(by_ids, continuation="other"))
    others = [
        Score(Prompt.text("a"), "bc"),
        Score(Prompt.text("a"), "bc", (7,)),
        Score(Prompt.text("a"), "bc", (78,)),
        Score(Prompt.text("a"), "bc", (8, 7)),
        Score(Prompt.text("b"), "bc", (7, 8)),
        Score(Prompt.text("a"), "-ids:[7,8]"),
        Score(Prompt.text("a"), "ids:[7,8]"),
    ]
    assert len({call_key(MODEL, request) for request in (by_ids, *others)}) == len(others) + 1


@given(SHORT, st.lists(st.integers(0, 300_000), max_size=4).map(tuple))
def test_scores_with_tokens_come_back_from_json(text: str, ids: tuple[int, ...]) -> None:
    request = Score(Prompt.text("a"), text, ids)
    back = request_from_json(request_to_json(request))
    assert back == request
    assert call_key(MODEL, back) == call_key(MODEL, request)


def test_a_score_without_tokens_is_written_as_ever() -> None:
    assert "ids" not in json.loads(request_to_json(Score(Prompt.text("a"), "b")))


@pytest.mark.parametrize("ids", [None, (), (5, 70_000)], ids=str)
def test_tokens_of_traces_come_back(ids: tuple[int, ...] | None) -> None:
    trace = Trace(("a", "b")[: len(ids or ())], (-1.0,) * len(ids or ()), None, None, ids)
    scored = Scored(trace, USAGE)
    assert response_from_json("score", response_to_json(scored)) == scored
    made = Generated((Output("ab", "stop", trace),), USAGE)
    assert response_from_json("generate", response_to_json(made)) == made
