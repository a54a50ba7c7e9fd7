"""Grades by people: what their tables may hold, what is refused, and what they are compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ragworth
from ragworth.calls.job import Job
from ragworth.errors import InputError
from ragworth.graders import grading
from ragworth.graders.contract import Grader
from ragworth.graders.human_labels import parse_human_labels, read_human_labels
from ragworth.graders.reliability import check_grading
from ragworth.llm.contract import Request
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.tasks.reliability import ReliabilityCheck

QUERIES = ["q1", "q2", "q3", "q4"]
TEXTS = ragworth.Collection.of(
    queries={"query": QUERIES, "text": [f"Where, {query}?" for query in QUERIES]},
    answers={"query": QUERIES, "text": ["Paris"] * 4},
    subquestions={"query": QUERIES, "subquestion": ["s"] * 4, "text": ["Where?"] * 4},
)
GRADES = {"q1": "CORRECT", "q2": "ABSTAINED", "q3": "WRONG", "q4": "CORRECT"}
SCORES = {"q1": "5", "q2": "3", "q3": "1", "q4": "4"}


def model(says: dict[str, str]) -> Scripted:
    def reply(request: Request) -> ScriptedReply:
        text = "".join(message.content for message in request.prompt.messages)
        return {next((word for query, word in says.items() if f"Where, {query}?" in text), "3"): 0.9}

    return Scripted(reply)


def made(kind: str = "judge", repeats: int = 1, **settings: Any) -> tuple[Grader, Any, Job]:
    answers = [
        {"system": "s", "query": query, "repeat": n, "text": "Paris"} for query in QUERIES for n in range(repeats)
    ]
    job = Job(model(SCORES if kind == "ideal" else GRADES))
    return grading.build_grader(kind, job.card, TEXTS, grading.to_answer_book(answers), None, settings), answers, job


def people(values: list[Any], column: str = "value", **more: Any) -> pl.DataFrame:
    return pl.DataFrame({"system": ["s"] * len(values), "query": QUERIES[: len(values)], column: values, **more})


def compared(labels: Any, kind: str = "judge", repeats: int = 1, **settings: Any) -> list[ReliabilityCheck]:
    grader, _, job = made(kind, repeats, **settings)
    with job:
        graded = grading.run_grading(grader, grader.book.answers, job)
        theirs = parse_human_labels(labels, grader)
        return [one for one in check_grading(grader, grader.book.answers, graded, None, theirs) if "given" in one.check]


@pytest.mark.parametrize("column", ["value", "label"])
@pytest.mark.parametrize(
    "values",
    [
        ["correct", "abstained", "wrong", "correct"],
        [" Correct ", "ABSTAINED", "Wrong", "1"],
        ["1", "0", "-1", "1.0"],
        [1, 0, -1, 1],
        [1.0, 0.0, -1.0, 1.0],
    ],
    ids=str,
)
def test_words_and_numbers(values: list[Any], column: str) -> None:
    (found,) = compared(people(values, column))
    assert (found.value, found.measure, found.n, found.total) == (1.0, "Cohen κ", 4, 4)


def test_partially_correct_in_words() -> None:
    grader, *_ = made()
    for word in ("partially-correct", "Partially correct", "partially_correct", "0.5"):
        assert parse_human_labels(people([word, "wrong"]), grader).frames["grade"]["value"].to_list() == [0.5, -1.0]


def test_ones_and_noughts_are_correct_or_not() -> None:
    # The judge says correct, abstained, wrong, correct; by people, correct are the first and the last.
    (found,) = compared(people([1, 0, 0, 1]))
    assert (found.value, found.measure, found.n) == (1.0, "Cohen κ, correct or not", 4)
    (found,) = compared(people([True, False, False, True]))
    assert found.measure == "Cohen κ, correct or not"
    # In words, 0 is an abstention and nothing else: one of four differs.
    (found,) = compared(people(["correct", "abstained", "abstained", "correct"]))
    # Equal 3/4, by chance 2/4 · 2/4 + 1/4 · 2/4 = 3/8: κ = (3/4 − 3/8) / (5/8) = 3/5.
    assert found.measure == "Cohen κ"
    assert found.value == pytest.approx(3 / 5)


def test_scores_are_a_scale_and_grades_are_not() -> None:
    # Scores 5, 3, 1, 4 against 4, 3, 1, 4: squared differences 1, 0, 0, 0, mean 1/4; by chance the mean over all pairs:
    # (5: 1 4 16 1, 3: 1 0 4 1, 1: 9 4 0 9, 4: 0 1 9 0) = 60/16. κ = 1 − (1/4)/(60/16) = 14/15.
    (found,) = compared(people([4, 3, 1, 4]), "ideal", ideal="accepted")
    assert found.measure == "Cohen κ, quadratic"
    assert found.value == pytest.approx(14 / 15)


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        ("judge", [2, 1], "correct (1), partially-correct (0.5), abstained (0), wrong (-1)"),
        ("judge", ["right", "wrong"], "or 1 and 0 alone, for correct or not"),
        ("judge", ["", "wrong"], "row 1: the label is ''"),
        ("ideal", [0, 5], "one of 1, 2, 3, 4, 5"),
        ("ideal", ["correct", "wrong"], "one of 1, 2, 3, 4, 5"),
        ("ideal", [3.5], "one of 1, 2, 3, 4, 5"),
        ("coverage", ["much"], "numbers"),
    ],
)
def test_what_the_grader_cannot_give_is_refused(kind: str, values: list[Any], words: str) -> None:
    settings: dict[str, Any] = {"ideal": "accepted"} if kind == "ideal" else {}
    grader, *_ = made(kind, **settings)
    with pytest.raises(InputError) as caught:
        parse_human_labels(people(values), grader)
    assert words in str(caught.value)


def test_all_that_was_graded_counts() -> None:
    (found,) = compared(people([1, None, -1], status=["ok", "refused", "ok"]))
    assert (found.n, found.total, found.value) == (2, 4, 1.0)


@pytest.mark.parametrize(
    ("aspects", "used"),
    [
        (["grade", "human", "grade", "human"], [1.0, -1.0]),  # the grader's own goes first
        (["human", "other", "human", "other"], [1.0, -1.0]),
        (["ours"] * 4, [1.0, 0.0, -1.0, 1.0]),  # the only one there is
    ],
)
def test_aspects(aspects: list[str], used: list[float]) -> None:
    grader, *_ = made()
    assert parse_human_labels(people([1, 0, -1, 1], aspect=aspects), grader).frames["grade"]["value"].to_list() == used


def test_aspects_that_are_none_of_the_graders() -> None:
    grader, *_ = made()
    with pytest.raises(InputError, match="the labels are of fluency, truth") as caught:
        parse_human_labels(people([1, 0, -1, 1], aspect=["fluency", "truth"] * 2), grader)
    assert "grade, human" in str(caught.value)
    coverage, *_ = made("coverage")
    with pytest.raises(InputError, match="the labels are of ours"):
        parse_human_labels(people([1.0], aspect=["ours"]), coverage)
    assert list(parse_human_labels(people([1.0]), coverage).frames) == ["coverage"]
    assert list(parse_human_labels(people([1.0, 0.5], aspect=["density", "coverage"]), coverage).frames) == [
        "coverage",
        "density",
    ]


def test_tables_that_cannot_be_read() -> None:
    grader, *_ = made()
    with pytest.raises(InputError, match="needs a 'value' or 'label' column"):
        parse_human_labels({"system": ["s"], "query": ["q1"], "grade": [1]}, grader)
    with pytest.raises(InputError, match="a second label for system 's', query 'q1'"):
        parse_human_labels({"system": ["s", "s"], "query": ["q1", "q1"], "value": [1, 0]}, grader)
    with pytest.raises(InputError, match="there are no labels"):
        parse_human_labels(people([None]), grader)


def test_repeats() -> None:
    """Means over repeats are no labels; grades of single answers are."""
    found = compared(people([1, 0, -1, 1]), repeats=2)
    assert [one.measure for one in found] == ["Spearman ρ", "mean difference"]
    found = compared(people([1, 0, 0, 1]), repeats=2)
    assert [(one.measure, one.value) for one in found] == [
        ("Spearman ρ, correct or not", pytest.approx(1.0)),
        ("mean difference, correct or not", 0.0),
    ]
    single = {
        "system": ["s"] * 3,
        "query": ["q1", "q2", "q3"],
        "repeat": [0, 1, 1],
        "label": ["correct", "abstained", "wrong"],
    }
    (one,) = compared(single, repeats=2)
    assert (one.measure, one.value, one.n, one.total) == ("Cohen κ", 1.0, 3, 8)


def test_from_a_file(tmp_path: Path) -> None:
    grader, *_ = made()
    path = tmp_path / "people.csv"
    path.write_text("system,query_id,label\ns,q1,correct\ns,q2,1\n")
    assert read_human_labels(path, grader).frames["grade"]["value"].to_list() == [1.0, 1.0]
    path.write_text("system,query_id,value,label\ns,q1,wrong,right\ns,q2,-1,wrong\ns,q3,,\n")
    assert read_human_labels(path, grader).frames["grade"]["value"].to_list() == [-1.0, -1.0]
    path.write_text("system,query_id,label\ns,q1,perfect\n")
    with pytest.raises(InputError, match=r"people.csv: row 1: the label is 'perfect'"):
        read_human_labels(path, grader)
