"""How far grades can be trusted: agreement of the judge with himself, with words, with others and with people."""

from __future__ import annotations

import pytest

import ragworth
from ragworth.calls.job import Job
from ragworth.graders import grading
from ragworth.graders.human_labels import parse_human_labels
from ragworth.graders.reliability import check_grading
from ragworth.llm.contract import Request
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.tasks.reliability import ReliabilityCheck

TEXTS = {"q1": "Paris", "q2": "I don't know.", "q3": "Rome", "q4": "It was Paris."}


def checks(model: Scripted, people: dict[str, float] | None = None) -> dict[str, ReliabilityCheck]:
    queries = list(TEXTS)
    texts = ragworth.Collection.of(
        queries={"query": queries, "text": [f"Where, {query}?" for query in queries]},
        answers={"query": queries, "text": ["Paris"] * len(queries)},
    )
    answers = {"system": ["s"] * 4, "query": queries, "text": list(TEXTS.values())}
    book = grading.to_answer_book(answers)
    rows = {"system": ["s"] * len(people or {}), "query": list(people or {}), "value": list((people or {}).values())}
    with Job(model) as job:
        grader = grading.build_grader("judge", job.card, texts, book, None, {})
        graded = grading.run_grading(grader, book.answers, job)
        labels = parse_human_labels(rows, grader) if people is not None else None
        found = check_grading(grader, book.answers, graded, job, labels)
    return {one.check: one for one in found if one.measure.startswith("Cohen")}


def judge(labels: dict[str, str], swapped: dict[str, str] | None = None) -> Scripted:
    def reply(request: Request) -> ScriptedReply:
        first = request.prompt.messages[0].content
        ordinary = first.index("CORRECT if") < first.index("ABSTAINED if")
        chosen = labels if ordinary or swapped is None else swapped
        text = request.prompt.messages[-1].content
        return {next(chosen[query] for query in TEXTS if query in text): 0.9}

    return Scripted(reply)


RIGHT = {"q1": "CORRECT", "q2": "ABSTAINED", "q3": "WRONG", "q4": "CORRECT"}


def test_a_judge_who_agrees_with_everybody() -> None:
    people = {"q1": 1.0, "q2": 0.0, "q3": -1.0, "q4": 1.0}
    found = checks(judge(RIGHT), people)
    assert {name: one.value for name, one in found.items()} == {
        "other order": 1,
        "by words": 1,
        "given labels": 1,
    }
    assert {(one.n, one.total) for one in found.values()} == {(4, 4)}


def test_a_judge_who_goes_by_the_order() -> None:
    # In the other order everything is wrong: one grade in four is the same, and as many by chance, since one side is
    # constant: κ = 0.
    found = checks(judge(RIGHT, dict.fromkeys(TEXTS, "WRONG")))
    assert found["other order"].value == pytest.approx(0)


def test_people_may_have_judged_some_only() -> None:
    found = checks(judge(RIGHT), people={"q1": 1.0, "q3": -1.0})
    assert (found["given labels"].value, found["given labels"].n, found["given labels"].total) == (1, 2, 4)


def test_words_are_compared_under_the_same_settings() -> None:
    """Where the judge makes no difference by what was shown, neither does the grader by words."""
    texts = ragworth.Collection.of(
        queries={"query": ["q1", "q3"], "text": ["Where, q1?", "Where, q3?"]},
        answers={"query": ["q1", "q3"], "text": ["Paris", "Paris"]},
        relevance={"q1": {"a": 1}, "q3": {"a": 1}},
    )
    answers = [{"system": "s", "query": query, "text": TEXTS[query], "shown": ["b"]} for query in ("q1", "q3")]
    book = grading.to_answer_book(answers)
    with Job(judge(RIGHT)) as job:
        grader = grading.build_grader("judge", job.card, texts, book, None, {})
        graded = grading.run_grading(grader, book.answers, job)
        found = check_grading(grader, book.answers, graded, None)
    assert [one.value for one in found if one.check == "by words"] == [1.0]


def test_grades_have_no_distances() -> None:
    # Judge 1, 0, −1, 1; people 1, −1, −1, −1. Equal: 2 of 4. By chance: correct 2/4 · 1/4, wrong 1/4 · 3/4, abstained
    # 0: 5/16. κ = (1/2 − 5/16) / (1 − 5/16) = 3/11, whatever lies between the numbers.
    found = checks(judge(RIGHT), people={"q1": 1.0, "q2": -1.0, "q3": -1.0, "q4": -1.0})["given labels"]
    assert found.measure == "Cohen κ"
    assert found.value == pytest.approx(3 / 11)
