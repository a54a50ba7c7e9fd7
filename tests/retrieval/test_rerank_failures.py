"""Re-ranking by asking a model: calls that fail, texts that are not there, and what is noted of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ragworth.core.errors import InputError, ModelError
from ragworth.llm.contract import Failure, Request
from ragworth.llm.scripted import Scripted
from ragworth.retrieval.pipeline import unscored_contexts
from ragworth.retrieval.reranker import LlmReranker
from ragworth.retrieval.steps.listwise import Listwise
from ragworth.retrieval.steps.useful import Useful
from tests.retrieval.judges import METHODS, graded, grades, perfect
from tests.retrieval.samples import world


def failing(which: Callable[[Request], bool]) -> Scripted:
    return Scripted(lambda request: Failure("timed-out") if which(request) else perfect(request))


def test_what_was_not_judged_stands_behind() -> None:
    context, before = graded([1, 2, 3, 9, 4], failing(lambda request: grades(request)[0] in (2, 9)))
    made = Useful().apply(before, context)
    assert made.frame["passage"].to_list() == ["p004", "p002", "p000", "p001", "p003"]
    assert any("2 of 5 passages could not be judged and stand behind" in note for note in made.notes)
    assert any("timed-out 2" in note for note in made.notes)


def test_a_window_that_failed_keeps_its_order() -> None:
    values = [1, 2, 3, 4]
    model = failing(lambda request: grades(request) == [3, 4])
    context, before = graded(values, model)
    made = Listwise(window=2, step=1).apply(before, context)
    # 3, 4 fails; then 2, 3 and 1, 3 are turned round.
    assert made.frame["passage"].to_list() == ["p002", "p000", "p001", "p003"]
    assert any("1 of 3 windows could not be judged and kept their previous order" in note for note in made.notes)


@pytest.mark.parametrize("step", METHODS, ids=str)
def test_when_all_calls_fail_it_is_an_error(step: LlmReranker) -> None:
    context, before = graded([1, 2, 3], failing(lambda request: True))
    with pytest.raises(ModelError, match=r"none of .* could be judged: timed-out"):
        step.apply(before, context)
    assert step.apply(unscored_contexts([]), context).frame.height == 0


def test_an_order_that_nobody_can_read_is_an_error() -> None:
    context, before = graded([1, 2, 3], Scripted(lambda request: "I like them all."))
    with pytest.raises(ModelError, match="none of 1 window could be judged: unparsable 1"):
        Listwise().apply(before, context)


@pytest.mark.parametrize("step", METHODS, ids=str)
def test_passages_and_queries_without_texts(step: LlmReranker) -> None:
    texts = {"a": "grade 5", "b": "  ", "c": "grade 7"}
    context = world(texts, {"q": "Which?", "empty": " "}, None, model=Scripted(perfect))
    made = step.apply(unscored_contexts([("q", ["a", "b", "gone", "c"]), ("empty", ["a", "c"])]), context)
    assert made.frame.filter(query="q")["passage"].to_list() == ["c", "a", "b", "gone"]
    assert made.frame.filter(query="empty")["passage"].to_list() == ["a", "c"]
    (note,) = made.notes
    assert "4 passages without a text to judge by stand behind" in note
    assert all(why in note for why in ("no-query-text 2", "empty-passage 1", "no-passage-text 1"))
    with pytest.raises(InputError, match="have no texts"):
        step.apply(unscored_contexts([("q", ["x", "y"])]), context)


def test_a_passage_that_is_cut_is_noted() -> None:
    class Cutting(Scripted):
        def choose(self, requests: Any) -> Any:
            found: list[Any] = list(super().choose(requests))
            return [one._replace(usage=one.usage._replace(cut=9)) for one in found]

    context, before = graded([1, 2], Cutting(perfect))
    (note,) = Useful().apply(before, context).notes
    assert note.endswith("prompts that were too long for the model, and show only the beginning of their passages (2)")


def test_a_model_that_never_declines_is_noted() -> None:
    context, before = graded([1, 2], Scripted(lambda request: {"NO-RESPONSE": grades(request)[0] / 1000}))
    (note,) = Useful().apply(before, context).notes
    assert "practically never declines" in note
