"""How far grades can be trusted: agreement of the judge with himself, with words, with others and with people."""

from __future__ import annotations

import pytest

import ragworth
from ragworth.answers import grading
from ragworth.answers.checking import check
from ragworth.calls.job import Job
from ragworth.judging.checks import Check
from ragworth.llm.contract import Request
from ragworth.llm.scripted import Reply, Scripted

TEXTS = {"q1": "Paris", "q2": "I don't know.", "q3": "Rome", "q4": "It was Paris."}


def checks(model: Scripted, second: Scripted | None = None, people: dict[str, float] | None = None) -> dict[str, Check]:
    queries = list(TEXTS)
    texts = ragworth.Collection.of(
        queries={"query": queries, "text": [f"Where, {query}?" for query in queries]},
        answers={"query": queries, "text": ["Paris"] * len(queries)},
    )
    answers = {"system": ["s"] * 4, "query": queries, "text": list(TEXTS.values())}
    book = grading.book_of(answers)
    labels = None
    if people is not None:
        rows = {"system": ["s"] * len(people), "query": list(people), "value": list(people.values())}
        labels = ragworth.Outcomes({**rows, "aspect": ["human"] * len(people)})
    with Job(model) as job:
        grader = grading.made("judge", job.card, texts, book, None, {})
        graded = grading.finished(grader, book.answers, job)
        found = check(grader, book.answers, graded, job, Job(second) if second else None, labels)
    return {one.check: one for one in found if one.measure.startswith("Cohen")}


def judge(labels: dict[str, str], swapped: dict[str, str] | None = None) -> Scripted:
    def reply(request: Request) -> Reply:
        first = request.prompt.messages[0].content
        ordinary = first.index("CORRECT if") < first.index("ABSTAINED if")
        chosen = labels if ordinary or swapped is None else swapped
        text = request.prompt.messages[-1].content
        return {next(chosen[query] for query in TEXTS if query in text): 0.9}

    return Scripted(reply)


RIGHT = {"q1": "CORRECT", "q2": "ABSTAINED", "q3": "WRONG", "q4": "CORRECT"}


def test_a_judge_who_agrees_with_everybody() -> None:
    people = {"q1": 1.0, "q2": 0.0, "q3": -1.0, "q4": 1.0}
    found = checks(judge(RIGHT), judge(RIGHT), people)
    assert {name: one.value for name, one in found.items()} == {
        "other order": 1,
        "judge scripted": 1,
        "by words": 1,
        "given labels": 1,
    }
    assert {(one.n, one.total) for one in found.values()} == {(4, 4)}


def test_a_judge_who_goes_by_the_order() -> None:
    # In the other order everything is wrong: values 1, 0, −1, 1 against −1, −1, −1, −1. Quadratic weights: mean squared
    # difference (4 + 1 + 0 + 4) / 4 = 2.25, and the same by chance, since one side is constant: κ = 0.
    found = checks(judge(RIGHT, dict.fromkeys(TEXTS, "WRONG")))
    assert found["other order"].value == pytest.approx(0)


def test_people_may_have_judged_some_only() -> None:
    found = checks(judge(RIGHT), people={"q1": 1.0, "q3": -1.0})
    assert (found["given labels"].value, found["given labels"].n) == (1, 2)
