"""Sets of passages chosen by what each adds, with a reader whose worth of a set is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from ragworth.llm.contract import Choose, Failure, Request
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.retrieval.contract import unscored_contexts
from ragworth.retrieval.steps.marginal import Marginal
from tests.retrieval.samples import world

TEXTS = {f"p{n}": f"This is passage number {n}." for n in range(4)}
Worth = Callable[[set[int]], float]


def shown(request: Request) -> set[int]:
    return {n for n in range(4) if TEXTS[f"p{n}"] in request.prompt.messages[-1].content}


def reader(worth: Worth) -> Scripted:
    """Declines with the probability that log-odds of answering ``worth`` mean."""

    def script(request: Request) -> ScriptedReply:
        assert isinstance(request, Choose)
        return {request.labels[0]: 1 / (1 + math.exp(worth(shown(request))))}

    return Scripted(script)


def chosen(step: Marginal, model: Scripted) -> list[str]:
    context = world(TEXTS, {"q": "Which is it?"}, None, model=model)
    made = step.apply(unscored_contexts([("q", list(TEXTS))]), context)
    return made.frame.sort("rank")["passage"].to_list()


def twins(numbers: set[int]) -> float:
    """0 and 1 say the same, which is worth most; 2 says something else; 3 makes the reader unsure."""
    return -3 + 4 * bool(numbers & {0, 1}) + 2 * (2 in numbers) - (3 in numbers)


def test_the_second_of_two_equals_comes_after_what_adds_something() -> None:
    model = reader(twins)
    assert chosen(Marginal(k=4), model) == ["p0", "p2", "p1", "p3"]
    assert model.calls == 4 + 3 + 2 + 1 <= Marginal(k=4).max_calls(4)


def test_it_stops_when_nothing_is_added_and_drops_the_rest() -> None:
    assert chosen(Marginal(k=4, least=0.5), reader(twins)) == ["p0", "p2"]


def test_behind_k_the_order_stays() -> None:
    assert chosen(Marginal(k=1), reader(lambda numbers: float(3 in numbers))) == ["p3", "p0", "p1", "p2"]


def test_a_set_that_fails_is_not_chosen_in_that_round() -> None:
    inner = reader(twins)._script

    def script(request: Request) -> ScriptedReply:
        return Failure("timed-out") if shown(request) == {0} else inner(request)

    assert chosen(Marginal(k=2), Scripted(script))[:2] == ["p1", "p2"]


def test_sure_and_impossible_answers_can_be_compared() -> None:
    def script(request: Request) -> ScriptedReply:
        assert isinstance(request, Choose)
        return {request.labels[0]: 0.0 if 2 in shown(request) else 1.0}

    assert chosen(Marginal(k=1), Scripted(script))[0] == "p2"


def test_a_model_without_label_probabilities_is_refused() -> None:
    model = Scripted(lambda request: "x", abilities=("generate",))
    context = world(TEXTS, {"q": "Which is it?"}, None, model=model)
    with pytest.raises(Exception, match="choose"):
        Marginal().problems(context)
