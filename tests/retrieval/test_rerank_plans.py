"""Re-ranking by asking a model, in pipelines: written forms, plans that ask nothing, and the store."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import ragworth
from ragworth.calls.store import Store
from ragworth.core.errors import InputError, PromptError
from ragworth.llm.contract import Choose, Prompt, Request
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.retrieval import Pipeline, retrieve
from ragworth.retrieval.asker import StepAsker
from ragworth.retrieval.reranker import LlmReranker
from ragworth.retrieval.steps.listwise import Listwise
from ragworth.retrieval.steps.useful import Useful
from tests.retrieval.judges import METHODS, graded, ideal, perfect, reranked
from tests.retrieval.samples import passages, world


def test_written_forms() -> None:
    for text in (
        "bm25 % 20 >> listwise(window=4, step=2) % 5",
        'bm25 >> useful(depth=5, model="hf:a/b")',
    ):
        assert str(Pipeline.of(text)) == text
    for wrong in ("listwise(window=3, step=3)", "useful(estimator=chance)", "listwise(window=1)"):
        with pytest.raises(InputError):
            Pipeline.of(f"bm25 >> {wrong}")


def test_nobody_to_ask() -> None:
    with pytest.raises(InputError, match="s: useful needs a model, but there is none"):
        retrieve({"s": "bm25 >> useful"}, replace(world(), model_access=None))


def test_what_systems_share_is_asked_once_and_kept(tmp_path: Path) -> None:
    model = Scripted(perfect)
    texts = {f"p{number}": f"mill grade {number}" for number in range(6)}
    context = world(texts, {"q": "mill"}, None, model=model, store=tmp_path / "calls.sqlite")
    systems = {"a": "bm25 >> useful", "b": "bm25 >> useful % 2", "c": "bm25 % 3 >> useful"}
    made = retrieve(systems, context)
    assert model.calls == 6
    assert passages(made, "b")["q"] == ["p5", "p4"]
    assert retrieve(systems, context) == made
    assert model.calls == 6


def test_useful_asks_what_the_judgment_asks(tmp_path: Path) -> None:
    model, store = Scripted(perfect), tmp_path / "calls.sqlite"
    context, before = graded([1, 2, 3], model, store=store)
    ragworth.annotate("abstention", before, context.collection, model, store=store)
    asked = model.calls
    Useful().apply(before, context)
    assert model.calls == asked


def planned(values: list[int], step: LlmReranker, store: Path, model: Scripted) -> tuple[list[str], list[str]]:
    context, before = graded(values, model)
    asker = StepAsker(model, store, plan=True)
    asker.begin_system("mine")
    made = step.apply(before, replace(context, model_access=asker))
    assert all(told.system == "mine" and told.step == str(step) for told in asker.forecasts)
    return made.frame["passage"].to_list(), [told.words for told in asker.forecasts]


@pytest.mark.parametrize("step", METHODS, ids=str)
def test_a_plan_asks_nothing_and_takes_what_there_is(step: LlmReranker, tmp_path: Path) -> None:
    model, store, values = Scripted(perfect), tmp_path / "calls.sqlite", [5, 6, 7, 8, 9, 9, 8, 7, 6]
    order, words = planned(values, step, store, model)
    assert order == [f"p{place:03}" for place in range(9)]
    assert model.calls == 0
    assert not store.exists()
    assert "0 answered already" in words[0]
    assert reranked(step, values, model, store=store) == ideal(values)
    asked = model.calls
    order, words = planned(values, step, store, model)
    assert order == [f"p{place:03}" for place in ideal(values)]
    assert "0 calls to make" in words[0]
    assert "at most 0 to write" in words[0]
    assert model.calls == asked


def calls_planned(systems: dict[str, str], store: Path | None, model: Scripted) -> list[int]:
    """The calls that each step is told to make."""
    asker = StepAsker(model, store, plan=True)
    texts = {f"p{number}": f"mill grade {number}" for number in range(9)}
    retrieve(systems, replace(world(texts, {"q": "mill"}, None), model_access=asker))
    return [int(re.findall(r"(\d+) calls? to make", told.words)[0]) for told in asker.forecasts]


def test_a_plan_counts_once_what_steps_share(tmp_path: Path) -> None:
    store, model = tmp_path / "calls.sqlite", Scripted(perfect)
    systems = {"a": "bm25 % 5 >> useful", "b": "bm25 % 8 >> useful", "c": "bm25 % 3 >> useful"}
    assert calls_planned(systems, store, model) == [5, 3, 0]
    assert calls_planned(systems, None, model) == [5, 8, 3]  # nothing is kept for the next step
    texts = {f"p{number}": f"mill grade {number}" for number in range(9)}
    context = world(texts, {"q": "mill"}, None, model=model, store=store)
    retrieve({"c": systems["c"]}, context)
    assert calls_planned(systems, store, model) == [2, 3, 0]
    before = model.calls
    retrieve(systems, context)
    assert model.calls == before + 5


def test_half_of_it_in_the_store(tmp_path: Path) -> None:
    """Killed after some calls: what was asked is not asked again, and comes to the same."""
    store, values = tmp_path / "calls.sqlite", [1, 4, 2, 9, 3, 3, 7]
    for step in (Useful(), Listwise(window=3, step=1)):
        count = 0

        def dying(request: Request) -> ScriptedReply:
            nonlocal count
            count += 1
            if count > 3:
                raise KeyboardInterrupt
            return perfect(request)

        with pytest.raises(BaseException):  # noqa: B017 (an interrupt, in whatever way it comes)
            reranked(step, values, Scripted(dying, batch=1), store=store)
        with Store(store) as kept:
            safe = len(list(kept.calls()))
        model = Scripted(perfect)
        made = reranked(step, values, model, store=store)
        fresh = Scripted(perfect)
        assert made == reranked(step, values, fresh)
        assert fresh.calls - model.calls == 3
        with Store(store) as kept:
            assert len(list(kept.calls())) == safe + model.calls


def test_sources_know_model_and_prompts(tmp_path: Path) -> None:
    context, _ = graded([1])
    other, _ = graded([1], Scripted(perfect, name="other"))
    for step in METHODS:
        assert step.sources(context) == step.sources(context)
        assert step.sources(context) != step.sources(other)
    (tmp_path / "abstention.txt").write_text("[user]\n{{passage*}}? {{query}}")
    own, _ = graded([1], prompts=tmp_path)
    assert Useful().sources(own) != Useful().sources(context)
    assert Listwise().sources(own) == Listwise().sources(context)
    (tmp_path / "abstention.txt").write_text("[user]\n{{passage*}}? {{answer}}")
    with pytest.raises(PromptError, match="it has no slot for query; nothing is known to fill answer with"):
        Useful().sources(own)


def test_the_judge_sees_no_accepted_answer() -> None:
    seen: list[Prompt] = []

    def noting(request: Request) -> ScriptedReply:
        seen.append(request.prompt)
        assert isinstance(request, Choose)
        return perfect(request)

    context, before = graded([1, 2], Scripted(noting))
    known = pl.DataFrame({"query": ["q"], "text": ["the secret"]})
    Useful().apply(before, replace(context, collection=replace(context.collection, answers=known)))
    assert seen
    assert not any("secret" in message.content for prompt in seen for message in prompt.messages)
