"""Labels: each distinct context is labelled once, and every rewrite has a value or a reason."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ragworth.calls.job import Job
from ragworth.core.errors import InputError, MissingInputError
from ragworth.judging.rewriter import EMPTY_REWRITE
from ragworth.llm.contract import Choose, Failure, Generate, Request
from ragworth.llm.scripted import Scripted
from ragworth.rewriting.labels import EMPTY_CONTEXT, RewriteLabelling, context_key, retrieve_by_text
from ragworth.rewriting.tables import CANDIDATES, check_rewriting_table
from ragworth.rewriting.utilities import AnswerabilityUtility, GoldRankUtility
from tests.rewriting.conversation_samples import conversations

TEXTS = ("Who built the lighthouse?", "the lighthouse who built", "windmill", "xyzzy", " ")
"""The first two have the same words, so they retrieve the same passages; the last two retrieve none."""


def candidates(*texts: str) -> pl.DataFrame:
    rows = [{"query": "c1-2", "candidate": f"t{n}", "text": text, "source": "test"} for n, text in enumerate(texts)]
    return check_rewriting_table(rows, CANDIDATES)


def declines(request: Request) -> dict[str, float]:
    """Declines to answer unless the lighthouse is in the prompt; control questions go by their passages too."""
    assert isinstance(request, Choose)
    text = request.prompt.messages[-1].content
    p = 0.1 if "ighthouse was the work" in text else 0.9
    return {label: p if n == 0 else (1 - p) / 10 for n, label in enumerate(request.labels)}


def test_equal_contexts_are_labelled_once_and_the_same_again_asks_nothing(tmp_path: Path) -> None:
    task = RewriteLabelling(candidates(*TEXTS), conversations(), AnswerabilityUtility())
    assert task.distinct == 2
    model = Scripted(declines)
    with Job(model, tmp_path / "calls.sqlite") as job:
        planned = task.plan(job)[0].plan.distinct
        result = task.run(job)
        controls = planned - task.distinct
        assert job.tally.calls == planned
    assert 0 < controls < 40  # questions whose answers are known, whatever the number of rewrites
    frame = result.frame
    assert frame["status"].to_list() == ["ok", "ok", "ok", EMPTY_CONTEXT, EMPTY_REWRITE]
    assert frame["context"][0] == frame["context"][1] != frame["context"][2]
    assert frame["value"].head(3).to_list() == pytest.approx([0.9, 0.9, 0.1])  # 1 − the probability of declining
    assert "2 distinct contexts" in str(result)
    with Job(model, tmp_path / "calls.sqlite") as job:
        again = task.run(job)
        assert job.tally.calls == 0
    assert again.frame.equals(frame)


def test_confidence_takes_two_calls_for_each_distinct_context() -> None:
    task = RewriteLabelling(candidates(*TEXTS), conversations())

    def reply(request: Request) -> str | float:
        text = request.prompt.messages[-1].content
        return (
            ("Builder 1" if "work of builder 1" in text else "Nobody knows") if isinstance(request, Generate) else -1.0
        )

    with Job(Scripted(reply)) as job:
        frame = task.run(job).frame
        assert job.tally.calls == 2 * task.distinct == 4  # an answer, and the same tokens without the context
    assert frame["status"].to_list() == ["ok", "ok", "ok", EMPTY_CONTEXT, EMPTY_REWRITE]
    assert frame["value"].drop_nulls().to_list() == pytest.approx([-0.5] * 3)  # the entropy of the scripted tokens


def test_gold_rank_is_the_reciprocal_rank_and_asks_nobody() -> None:
    collection = conversations()
    texts = ("work builder lighthouse", "lighthouse built 1801", "windmill")
    shown = retrieve_by_text(texts, collection)
    result = RewriteLabelling(candidates(*texts), collection, GoldRankUtility()).run(None)
    expected = [1 / (shown[text].index("p1b") + 1) if "p1b" in shown[text] else 0.0 for text in texts]
    assert result.frame["value"].to_list() == pytest.approx(expected)
    assert expected[0] == 1.0
    assert expected[1] == 0.5
    assert expected[2] == 0.0


def test_turns_without_relevant_passages_have_no_rank_and_no_labels_are_an_error() -> None:
    collection = conversations()
    assert collection.relevance is not None
    rows = [{"query": "c1-1", "candidate": "a", "text": "lighthouse", "source": ""}]
    others = [row for row in collection.relevance.frame.select("query", "passage", "value").rows() if row[0] != "c1-1"]
    part = type(collection).of(
        queries=collection.queries,
        passages=collection.passages,
        relevance=pl.DataFrame(others, schema=["query", "passage", "value"], orient="row"),
    )
    result = RewriteLabelling(check_rewriting_table(rows, CANDIDATES), part, GoldRankUtility()).run(None)
    assert result.frame["status"].to_list() == ["no-relevant"]
    bare = type(collection).of(queries=collection.queries, passages=collection.passages)
    with pytest.raises(MissingInputError):
        RewriteLabelling(candidates("x"), bare, GoldRankUtility())


def test_a_reader_that_fails_leaves_a_status_not_a_value() -> None:
    task = RewriteLabelling(candidates("lighthouse", "windmill"), conversations())
    with Job(Scripted(lambda request: Failure("timed-out", "no response"))) as job:
        frame = task.run(job).frame
    assert frame["value"].null_count() == 2
    assert frame["status"].to_list() == ["timed-out", "timed-out"]


def test_steps_that_know_the_turn_and_unknown_turns_are_refused() -> None:
    with pytest.raises(InputError, match="labels of the turn"):
        retrieve_by_text(["x"], conversations(), "oracle % 3")
    with pytest.raises(InputError, match="no step that rewrites"):
        retrieve_by_text(["x"], conversations(), 'rewritten(by="last") >> bm25 % 3')
    rows = [{"query": "nobody", "candidate": "a", "text": "x", "source": ""}]
    with pytest.raises(InputError, match="'nobody'"):
        RewriteLabelling(check_rewriting_table(rows, CANDIDATES), conversations())


def test_keys_of_contexts_tell_order_and_boundaries() -> None:
    assert context_key(["a", "b"]) != context_key(["b", "a"])
    assert context_key(["ab"]) != context_key(["a", "b"])
    assert context_key([]) == ""
