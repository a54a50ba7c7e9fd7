"""Whose answer is split, what becomes of answers that can't be, and sentences."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import ragworth
from ragworth.calls.job import Job
from ragworth.data import Contexts
from ragworth.judging import ANNOTATORS
from ragworth.judging.contract import plan_task
from ragworth.judging.contribution.design import Design
from ragworth.judging.contribution.rows import context_rows, context_sentence, passage_rows, position_profile
from ragworth.judging.runner import annotation_items, build_judge
from ragworth.llm.contract import Failure, Generate, Request, Score, Trace
from ragworth.llm.scripted import Scripted, ScriptedReply
from tests.judging.contribution.readers import ANSWER, additive, reader, run, shown, world

GIVEN = "It was built by Ann Lee [1]. She sold it in 1850 [2][3]."


def answers(text: str | None, **more: Any) -> pl.DataFrame:
    return pl.DataFrame({"system": ["run"], "query": ["q1"], "text": [text], "shown": [["p0", "p1", "p2"]], **more})


def by_sentence(k: int) -> Scripted:
    """Passage 0 makes the first sentence likelier, passage 1 the second."""

    def script(request: Request) -> ScriptedReply:
        assert isinstance(request, Score)
        words, numbers = request.continuation.split(), shown(request, k)
        first = words.index("Lee.") + 1
        logs = [-1.0 if 0 in numbers else -2.0] * first + [-1.0 if 1 in numbers else -4.0] * (len(words) - first)
        return Trace(tuple(words), tuple(logs))

    return Scripted(script)


def test_given_answers_are_split_by_sentence_without_their_citations() -> None:
    found = ragworth.grade("contribution", answers(GIVEN), world(3), by_sentence(3))
    row = context_rows(found.frame).row(0, named=True)
    assert row["answer"] == "It was built by Ann Lee. She sold it in 1850."
    assert row["sentences"] == ["It was built by Ann Lee.", "She sold it in 1850."]
    # 6 tokens, 1 nat each; 5 tokens, 3 nats each.
    assert row["by_sentence"][0] == pytest.approx([6.0, 0.0, 0.0])
    assert row["by_sentence"][1] == pytest.approx([0.0, 15.0, 0.0])
    got = dict(found.frame.select("aspect", "value").iter_rows())
    assert got["reliance"] == pytest.approx(21.0)
    assert got["cited-contributing"] == pytest.approx(2 / 3)  # the third passage is cited and does nothing
    rows = passage_rows(found.frame)
    assert rows["sentence"].to_list() == [1, 2, None]
    assert rows["cited"].to_list() == [True, True, True]


@pytest.mark.parametrize(("text", "status"), [("NO-RESPONSE", "declined"), ("  ", "empty-answer"), (None, "timed-out")])
def test_answers_without_a_statement_have_a_status_and_no_value(text: str | None, status: str) -> None:
    more = {"status": ["timed-out"]} if text is None else {}
    found = ragworth.grade("contribution", answers(text, **more), world(3), by_sentence(3))
    assert set(found.frame["status"]) == {status}
    assert found.frame["value"].null_count() == found.frame.height
    assert passage_rows(found.frame).select("status", "passage").rows() == [(status, None)]


def test_an_unknown_context_is_not_an_empty_one() -> None:
    bare = answers(GIVEN).drop("shown")
    found = ragworth.grade("contribution", bare, world(3), by_sentence(3))
    assert set(found.frame["status"]) == {"unknown-context"}


def test_an_empty_context_has_no_contributions_and_gains_nothing() -> None:
    contexts = Contexts({"query": ["q1"], "passage": [None], "rank": [None], "score": [None]})
    found = ragworth.annotate("contribution", contexts, world(2), reader(additive([1.0, 1.0]), 2))
    got = {row["aspect"]: (row["value"], row["status"]) for row in found.frame.iter_rows(named=True)}
    assert got["reliance"] == (0.0, "ok")
    assert {status for aspect, (_, status) in got.items() if aspect != "reliance"} == {"empty-context"}
    assert passage_rows(found.frame).select("status", "passage").rows() == [("empty-context", None)]
    assert position_profile(found.frame).height == 0


def test_the_likeliest_accepted_answer_is_split() -> None:
    seen = []

    def script(request: Request) -> ScriptedReply:
        assert isinstance(request, Score)
        seen.append(request.continuation)
        return -1.0 if request.continuation == "Ann" else -2.0

    found = ragworth.annotate("contribution", run(2), world(2, ("Lee", "Ann")), Scripted(script), answer="accepted")
    assert context_rows(found.frame)["answer"][0] == "Ann"
    assert seen.count("Lee") == 1


def test_an_accepted_answer_may_say_that_something_is_unknown() -> None:
    model = reader(additive([2.0, 0.0]), 2)
    found = ragworth.annotate("contribution", run(2), world(2, ("unknown",)), model, answer="accepted")
    assert context_rows(found.frame)["contributions"][0].to_list() == pytest.approx([2.0, 0.0])


@pytest.mark.parametrize("k", [1, 2, 3, 7])
@pytest.mark.parametrize("method", ["leave-one-out", "exact", "permutations"])
def test_every_method_takes_contexts_of_any_size_and_keeps_its_bound(k: int, method: str) -> None:
    weights = [float(n) for n in range(k)]
    settings: dict[str, Any] = {"answer": "accepted", "method": method, "subsets": 64}
    found = ragworth.annotate("contribution", run(k), world(k), reader(additive(weights), k), **settings)
    row = context_rows(found.frame)
    assert row["contributions"][0].to_list() == pytest.approx(weights, abs=1e-6)
    assert row["subsets"][0] <= Design(method, 64).most_subsets(k)


def test_one_failed_subset_leaves_no_value() -> None:
    def script(request: Request) -> ScriptedReply:
        if isinstance(request, Generate):
            return ANSWER
        return Failure("timed-out", "too slow") if shown(request, 3) == {1} else -1.0

    found = ragworth.annotate("contribution", run(3), world(3), Scripted(script))
    assert set(found.frame["status"]) == {"timed-out"}


def test_tokens_that_differ_between_subsets_leave_no_value() -> None:
    def script(request: Request) -> ScriptedReply:
        if isinstance(request, Generate):
            return ANSWER
        n = 2 + (0 in shown(request, 2))
        return Trace(("t",) * n, (-1.0,) * n)

    found = ragworth.annotate("contribution", run(2), world(2), Scripted(script))
    assert set(found.frame["status"]) == {"tokens-differ"}


def test_exact_refuses_contexts_that_are_too_large() -> None:
    found = ragworth.annotate("contribution", run(13), world(13), reader(additive([0.0] * 13), 13), method="exact")
    assert set(found.frame["status"]) == {"too-many-passages"}


def test_a_plan_counts_what_is_known_and_bounds_the_rest() -> None:
    with Job(reader(additive([1.0] * 5), 5), None, only_plan=True) as job:
        annotator = build_judge(ANNOTATORS, "contribution", job.card, world(5), None, {})
        items = annotation_items(annotator, Contexts(run(5)), world(5))
        plan = plan_task(annotator, items, job)
        assert (plan.plan.missing, plan.waiting) == (1, 1)
        assert "32 subsets" in annotator.plan_notes(items)[0]
        accepted = build_judge(ANNOTATORS, "contribution", job.card, world(5), None, {"answer": "accepted"})
        assert plan_task(accepted, items, job).plan.missing == 32


def test_a_model_without_scores_is_refused() -> None:
    model = reader(additive([1.0]), 1, abilities=("generate", "choose"))
    with pytest.raises(ragworth.core.errors.ModelError, match="score"):
        ragworth.annotate("contribution", run(1), world(1), model)


def test_the_profile_and_the_sentence_say_where_the_answer_comes_from() -> None:
    found = ragworth.annotate(
        "contribution", run(3), world(3), reader(additive([8.0, -2.0, 1.0]), 3), answer="accepted"
    )
    profile = position_profile(found.frame)
    assert profile["position"].to_list() == [1, 2, 3]
    assert profile["contribution"].to_list() == pytest.approx([8.0, -2.0, 1.0])
    assert profile["share"].to_list() == pytest.approx([8 / 9, 0.0, 1 / 9])
    values = context_rows(found.frame)["contributions"][0].to_numpy()
    assert context_sentence(values, 0.1) == "2 passages of 3 carry 100 % of the answer; 1 of 3 goes against it"
    assert context_sentence(values, 0.1, accepted=True).endswith("; 1 of 3 does harm")
    assert "no passage makes" in context_sentence(values * 0, 0.1)
