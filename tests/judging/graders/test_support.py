"""Support and citations by scripted judges, and judges that are unfit."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
import pytest

import ragworth
from ragworth import Collection
from ragworth.judging.graders.support import CONTROL_CLAIMS, claims_of
from ragworth.judging.judge import JudgingResult
from ragworth.llm.contract import Choose, Failure, Request
from ragworth.llm.scripted import Scripted, ScriptedReply

PASSAGES = {"p1": "Ann built the mill.", "p2": "The mill was sold in 1850.", "p3": "Bread is baked at night."}
WORLD = Collection.of(
    queries={"query": ["q1"], "text": ["Who built the mill?"]},
    passages={"passage": list(PASSAGES), "text": list(PASSAGES.values())},
)
TRUTH = {
    each.supported: "SUPPORTED" for each in CONTROL_CLAIMS
} | {each.contradicted: "CONTRADICTED" for each in CONTROL_CLAIMS} | {
    each.neither: "NEITHER" for each in CONTROL_CLAIMS
}  # fmt: skip
FACTS = {"Ann built the mill.": {"p1"}, "It was sold in 1850.": {"p2"}, "Ann built it, and it was sold.": {"p1", "p2"}}
"""Statements, and the passages that must all be there to support them."""


def parts(request: Request) -> tuple[str, set[str]]:
    text = request.prompt.messages[-1].content
    statement = re.search(r"<statement \w+>\n(.*?)\n</statement", text, re.S)
    assert statement is not None
    before = text[: statement.start()]
    return statement[1], {name for name, passage in PASSAGES.items() if passage in before}


def judge(request: Request) -> ScriptedReply:
    assert isinstance(request, Choose)
    statement, shown = parts(request)
    if statement in TRUTH:
        label = TRUTH[statement]
    elif statement == "Bob built the mill.":
        label = "CONTRADICTED" if "p1" in shown else "NEITHER"
    else:
        label = "SUPPORTED" if statement in FACTS and FACTS[statement] <= shown else "NEITHER"
    return {each: 0.8 if each == label else 0.1 for each in request.labels}


def graded(kind: str, text: str, script: Any = judge, **settings: Any) -> JudgingResult:
    answers = pl.DataFrame({"system": ["run"], "query": ["q1"], "text": [text], "shown": [list(PASSAGES)]})
    return ragworth.grade(kind, answers, WORLD, Scripted(script), **settings)


def values(found: JudgingResult) -> dict[str, float | None]:
    return dict(found.frame.select("aspect", "value").iter_rows())


def test_each_sentence_has_a_label_and_the_passages_behind_it() -> None:
    found = graded("support", "Ann built the mill. Bob built the mill. It has two wheels. It was sold in 1850.")
    assert values(found) == pytest.approx({"supported": 0.5, "contradicted": 0.25, "unsupported": 0.25})
    row = found.frame.row(0, named=True)
    assert row["labels"] == ["supported", "contradicted", "neither", "supported"]
    assert row["supporting"] == [["p1"], [], [], ["p2"]]
    assert row["contradicting"] == [[], ["p1"], [], []]
    assert row["probabilities"][0] == pytest.approx([0.8, 0.1, 0.1])
    assert any("6 of 6 that are supported" in note for note in found.notes)


def test_passages_are_asked_about_alone_only_if_wanted() -> None:
    model = Scripted(judge)
    answers = pl.DataFrame({"system": ["run"], "query": ["q1"], "text": ["Ann built the mill."], "shown": [["p1"]]})
    found = ragworth.grade("support", answers, WORLD, model, alone=False)
    assert model.calls == 18 + 1
    assert found.frame["supporting"].null_count() == found.frame.height


def test_a_judge_that_says_the_same_to_everything_is_unfit() -> None:
    found = graded("support", "Ann built the mill.", lambda request: {"SUPPORTED": 0.9})
    assert set(found.frame["status"]) == {"unfit-model"}
    assert found.frame["value"].null_count() == found.frame.height
    assert any("6 of 18 control statements" in note for note in found.notes)
    assert found.frame["labels"][0].to_list() == ["supported"]  # what it said is kept


def test_a_judge_that_is_right_twelve_times_is_fit() -> None:
    def script(request: Request) -> ScriptedReply:
        statement, _ = parts(request)
        wrong = statement in TRUTH and TRUTH[statement] == "NEITHER"
        return {"CONTRADICTED": 0.9} if wrong else judge(request)

    assert values(graded("support", "Ann built the mill.", script))["supported"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "status"), [("I don't know.", "declined"), ("", "empty-answer"), ("[1] [2]", "no-statement")]
)
def test_answers_that_state_nothing_have_a_status(text: str, status: str) -> None:
    assert set(graded("support", text).frame["status"]) == {status}


def test_one_sentence_that_fails_leaves_no_value() -> None:
    def script(request: Request) -> ScriptedReply:
        return Failure("timed-out") if parts(request)[0] == "It was sold in 1850." else judge(request)

    found = graded("support", "Ann built the mill. It was sold in 1850.", script)
    assert set(found.frame["status"]) == {"timed-out"}


def test_claims_know_their_citations() -> None:
    found = claims_of("Ann built the mill [1]. [2] It was sold [1, 3][9].", ["p1", "p2", "p3"])
    assert [(claim.text, claim.cited, claim.strays) for claim in found] == [
        ("Ann built the mill.", (0, 1), 0),
        ("It was sold.", (0, 2), 1),
    ]


@pytest.mark.parametrize(
    ("text", "recall", "precision"),
    [
        ("Ann built the mill [1].", 1.0, 1.0),
        ("Ann built the mill [2].", 0.0, 0.0),
        # Both are needed: neither does alone, and without either the rest doesn't.
        ("Ann built it, and it was sold [1][2].", 1.0, 1.0),
        # The third is not: it doesn't support the statement, and the others do without it.
        ("Ann built it, and it was sold [1][2][3].", 1.0, 2 / 3),
        ("Ann built the mill [1]. It was sold in 1850.", 0.5, 1.0),
        ("Ann built the mill [1][8].", 1.0, 0.5),
        ("Ann built the mill.", 0.0, None),
    ],
)
def test_citation_precision_and_recall_are_those_of_alce(text: str, recall: float, precision: float | None) -> None:
    found = values(graded("citations", text))
    assert found["citation-recall"] == pytest.approx(recall)
    assert found["citation-precision"] == (pytest.approx(precision) if precision is not None else None)


def test_what_can_be_known_from_the_answers_is_not_asked() -> None:
    model = Scripted(judge)
    text = "Ann built the mill [1]. It was sold in 1850 [1]. Ann built the mill [1][3]."
    answers = pl.DataFrame({"system": ["run"], "query": ["q1"], "text": [text], "shown": [list(PASSAGES)]})
    ragworth.grade("citations", answers, WORLD, model)
    # 18 controls; one call for each of the first two; both, each alone, and the others without [3], which is [1] alone.
    assert model.calls == 18 + 2 + 1 + 1
