"""Graders: hand-worked values with the arithmetic beside them, and every reason why there may be none."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
import pytest

import ragworth
from ragworth.calls.job import Job
from ragworth.core.errors import InputError, ModelError
from ragworth.data.tokens import TokenCounter
from ragworth.judging import GRADERS
from ragworth.judging.contract import plan_task
from ragworth.judging.graders import similarity as graders_by_similarity
from ragworth.judging.judge import Grader, JudgingResult
from ragworth.judging.runner import build_judge, to_answer_book
from ragworth.llm.contract import Choose, Chosen, Failure, Request, Usage
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.text_match.bertscore import BERTScorePair, BERTScoreSimilarity

TEXTS = ragworth.Collection.of(
    queries={"query": ["q1", "q2"], "text": ["Who built the mill?", "Who swims?"]},
    passages={"passage": ["a", "b", "c"], "text": ["Ann Lee built the mill.", "The mill is old.", "Ducks swim."]},
    answers={"query": ["q1", "q1", "q2"], "text": ["Ann Lee", "Ann", "ducks"]},
    relevance={"q1": {"a": 2, "b": 0}, "q2": {"c": 1}},
)


def table(*rows: tuple[Any, ...]) -> ragworth.Answers:
    """Answers from (system, query, repeat, text[, status])."""
    names = ("system", "query", "repeat", "text", "status")
    return ragworth.Answers([dict(zip(names, (*row, "ok")[:5], strict=True)) for row in rows])


def values(graded: JudgingResult, *columns: str) -> list[tuple[Any, ...]]:
    return graded.table.frame.select(*(columns or ("system", "query", "value", "status"))).rows()


# Three-way grades


def test_deterministic_grades() -> None:
    given = table(
        ("x", "q1", 0, "It was Ann Lee."),
        ("x", "q2", 0, "NO-RESPONSE"),
        ("y", "q1", 0, "Bob"),
        ("y", "q2", 0, "Ducks!"),
    )
    graded = ragworth.grade("deterministic", given, replace(TEXTS, relevance=None))
    assert graded.frame.select("system", "query", "aspect", "value", "status", "label").rows() == [
        ("x", "q1", "grade", 1.0, "ok", "correct"),
        ("x", "q2", "grade", 0.0, "ok", "abstained"),
        ("y", "q1", "grade", -1.0, "ok", "wrong"),
        ("y", "q2", "grade", 1.0, "ok", "correct"),
    ]
    assert graded.frame.select("repeats", "of", "each").row(2) == (1, 1, [-1.0])
    assert graded.frame["source"][0] == "deterministic"
    assert graded.notes == ()
    assert all(graded.frame["why"])


def test_what_words_cannot_decide_is_missing_and_never_wrong() -> None:
    texts = ragworth.Collection.of(
        queries={"query": ["q1", "q2"], "text": ["How much was it, in USD millions?", "Is it safe?"]},
        answers={"query": ["q1", "q2"], "text": ["$1577.00", "Yes"]},
    )
    given = table(
        ("x", "q1", 0, "It was $1,577 million."),
        ("x", "q2", 0, "Well, that depends."),
        ("y", "q2", 0, "Well, that depends."),
        ("y", "q2", 1, "No."),
    )
    graded = ragworth.grade("deterministic", given, texts)
    assert graded.frame.select("system", "query", "value", "status").rows() == [
        ("x", "q1", 1.0, "ok"),
        ("x", "q2", None, "undecided"),
        ("y", "q2", -1.0, "ok"),
    ]
    assert graded.frame["reason"][1] == "says neither yes nor no clearly, for 'Yes'"
    assert graded.frame.row(2, named=True)["repeats"] == 1, "the undecided repeat does not count"
    assert any("undecided 1" in note for note in graded.notes)


def test_labels_of_passages_have_no_part_in_a_grade() -> None:
    given = table(("x", "q1", 0, "Ann"), ("y", "q1", 0, "Ann"), ("z", "q1", 0, "Ann"), ("y", "q2", 0, "NO-RESPONSE"))
    rows = {"system": ["x", "y", "y"], "query": ["q1", "q1", "q2"], "passage": ["a", "b", "a"], "rank": [1, 1, 1]}
    shown = ragworth.Contexts(rows, empty=[("z", "q1")])
    # x shows a, which is relevant; y shows only b, which isn't; z shows nothing.
    for kind, model in (("deterministic", None), ("judge", choosing({"CORRECT": 1.0}))):
        graded = ragworth.grade(kind, given, TEXTS, model, contexts=shown)
        assert graded.frame["label"].to_list() == ["correct", "correct", "correct", "correct" if model else "abstained"]
        assert set(graded.frame["value"]) <= {1.0, 0.0, -1.0}
        assert "relevant_shown" not in graded.frame.columns


def test_what_was_shown_is_known_of_our_own_answers() -> None:
    model = Scripted({"*": "Ann"})
    made = ragworth.answer({"q1": {"b": 2.0, "a": 1.0}}, TEXTS, model, k=1, without=True, oracle=True)
    graded = ragworth.grade("deterministic", made, TEXTS)
    assert graded.frame.select("system", "label").rows() == [
        ("run", "correct"),
        ("(none)", "correct"),
        ("(oracle)", "correct"),
    ]
    assert graded.frame["source"][0].startswith("deterministic ← scripted · answer@")
    # The same from the frame; the whole run, given beside it, was not what was shown.
    deeper = ragworth.Contexts({"q1": {"b": 2.0, "a": 1.0}})
    assert to_answer_book(made.frame, deeper).shown("run", "q1") == ("b",)
    assert to_answer_book(made.table, deeper).shown("run", "q1") == ("b", "a")


def choosing(probabilities: Mapping[str, float]) -> Scripted:
    return Scripted(lambda request: probabilities)


def test_judge_by_probabilities() -> None:
    model = choosing({"CORRECT": 0.6, "WRONG": 0.2, "ABSTAINED": 0.1})
    graded = ragworth.grade("judge", table(("x", "q1", 0, "Ann L.")), TEXTS, model)
    row = graded.frame.row(0, named=True)
    assert (row["value"], row["label"], row["mass"]) == (1.0, "correct", pytest.approx(0.9))
    # (0.6 · 1 + 0.2 · −1 + 0.1 · 0) / 0.9
    assert row["expected"] == pytest.approx(0.4 / 0.9)
    assert row["probabilities"] == [0.6, 0.2, 0.1]
    assert row["source"].startswith("scripted · grade@")
    assert row["source"].endswith(" · first-token")


def test_what_the_judge_sees() -> None:
    seen: list[Request] = []

    def script(request: Request) -> ScriptedReply:
        seen.append(request)
        return {"WRONG": 1.0}

    ragworth.grade("judge", table(("x", "q1", 0, "Bob [1]")), TEXTS, Scripted(script), citations=False)
    ragworth.grade("judge", table(("x", "q1", 0, "Bob")), TEXTS, Scripted(script), prompt="grade-swapped")
    user = "Question: Who built the mill?\nAccepted answer: Ann Lee\nAccepted answer: Ann\n\nAnswer given:\n<answer "
    for request in seen:
        shown = request.prompt.messages[-1].content
        code = shown.removeprefix(user)[:6]
        assert shown == f"{user}{code}>\nBob\n</answer {code}>"
    first, second = (request.prompt.messages[0].content for request in seen)
    assert first.index("CORRECT") < first.index("WRONG") < first.index("ABSTAINED")
    assert second.index("ABSTAINED") < second.index("WRONG") < second.index("CORRECT")
    assert isinstance(seen[0], Choose)
    assert len({name[0] for name in seen[0].labels}) == 3


@pytest.mark.parametrize(
    ("said", "value", "label", "status"),
    [
        ("WRONG", -1.0, "wrong", "ok"),
        ("abstained.", 0.0, "abstained", "ok"),
        ('{"label": "CORRECT"}', 1.0, "correct", "ok"),
        ("It could be CORRECT or WRONG", None, None, "unparsable"),
        ("Hm.", None, None, "unparsable"),
        ("I'm sorry, I can't help with that", None, None, "refused"),
        ("", None, None, "unparsable"),
        (Failure("timed-out"), None, None, "timed-out"),
        (Failure("too-long", retry=False), None, None, "too-long"),
    ],
)
def test_judge_by_what_it_writes(said: ScriptedReply, value: float | None, label: str | None, status: str) -> None:
    model = Scripted(lambda request: said, abilities=("generate",))
    shown = ragworth.Contexts({"q1": {"b": 1.0}}, system="x")
    graded = ragworth.grade("judge", table(("x", "q1", 0, "Bob")), TEXTS, model, contexts=shown)
    assert graded.frame.select("value", "label", "status").rows() == [(value, label, status)]
    if status == "ok":
        assert graded.frame["raw"][0] == said
    elif isinstance(said, str):
        assert graded.frame["raw"][0] == said
        assert graded.notes == (f"0 of 1 outcome has a value; without one: {status} 1",)


# Against an ideal answer


def test_ideal_mode_and_expected_value() -> None:
    given = table(("x", "q1", 0, "Ann"), ("(oracle)", "q1", 0, "Ann Lee did"))
    model = choosing({"1": 0.1, "2": 0.05, "4": 0.4, "5": 0.25})
    graded = ragworth.grade("ideal", given, TEXTS, model)
    row = graded.frame.row(0, named=True)
    assert (row["value"], row["against"]) == (4.0, "Ann Lee did")
    # (1·0.1 + 2·0.05 + 4·0.4 + 5·0.25) / 0.8 = 3.05 / 0.8
    assert row["expected"] == pytest.approx(3.05 / 0.8)
    assert row["mass"] == pytest.approx(0.8)
    assert row["aspect"] == "ideal"


def test_ideal_answers_of_each_repeat() -> None:
    given = table(
        ("x", "q1", 0, "A"), ("x", "q1", 1, "B"), ("(oracle)", "q1", 0, "I0"), ("(oracle)", "q1", 1, "I1"),
        ("x", "q2", 0, "A"), ("x", "q2", 1, "B"), ("(oracle)", "q2", 0, "I"),
    )  # fmt: skip
    graded = ragworth.grade("ideal", given, TEXTS, Scripted({"*": "3"}, abilities=("generate",)))
    mine = graded.answers.filter(pl.col("system") == "x")
    assert mine["against"].to_list() == ["I0", "I1", "I", "I"]
    assert graded.frame.filter(pl.col("system") == "x")["expected"].to_list() == [None, None]


def test_ideal_answers_that_are_accepted_ones() -> None:
    def script(request: Request) -> ScriptedReply:
        return "5" if request.prompt.messages[-1].content.split("<ideal ")[1].splitlines()[1] == "Ann" else "2"

    graded = ragworth.grade(
        "ideal", table(("x", "q1", 0, "Ann")), TEXTS, Scripted(script, abilities=("generate",)), ideal="accepted"
    )
    assert graded.frame.select("value", "against").rows() == [(5.0, "Ann")]

    def failing(request: Request) -> ScriptedReply:
        return (
            "5"
            if request.prompt.messages[-1].content.split("<ideal ")[1].splitlines()[1] == "Ann"
            else Failure("timed-out")
        )

    graded = ragworth.grade(
        "ideal", table(("x", "q1", 0, "Ann")), TEXTS, Scripted(failing, abilities=("generate",)), ideal="accepted"
    )
    assert graded.frame["status"].to_list() == ["timed-out"]


@pytest.mark.parametrize("said", ["10", "3.5", "-1", "0", "6"])
def test_what_is_no_score(said: str) -> None:
    given = table(("x", "q1", 0, "Ann"), ("(oracle)", "q1", 0, "Ann Lee"))
    graded = ragworth.grade("ideal", given, TEXTS, Scripted({"*": said}, abilities=("generate",)))
    assert graded.frame.select("value", "status", "raw").row(0) == (None, "unparsable", said)


def test_no_ideal_answer() -> None:
    given = table(("x", "q1", 0, "Ann"), ("x", "q2", 0, "Ann"), ("(oracle)", "q2", 0, None, "timed-out"))
    graded = ragworth.grade("ideal", given, TEXTS, Scripted({"*": "3"}))
    assert graded.frame.select("status", "reason").rows() == [
        ("no-ideal", "(oracle) has no answer to the query 'q1'"),
        ("no-ideal", "the answer of (oracle) has no text: timed-out"),
    ]
    assert graded.notes == ("0 of 2 outcomes have a value; without one: no-ideal 2",)


# Comparing texts


def test_text_comparisons() -> None:
    graded = ragworth.grade("text", table(("x", "q1", 0, "It was Ann Lee")), TEXTS)
    # Tokens it, was, ann, lee against ann, lee: precision 2/4, recall 1, F1 = 2·0.5/1.5 = 2/3, and so is ROUGE-L.
    assert values(graded, "aspect", "value") == [
        ("em", 0.0),
        ("f1", pytest.approx(2 / 3)),
        ("containment", 1.0),
        ("rouge-l", pytest.approx(2 / 3)),
    ]
    assert graded.frame["source"].unique().to_list() == ["text"]


def test_repeats_are_averaged_over_those_that_have_a_value() -> None:
    given = table(
        ("x", "q1", 0, "Ann"), ("x", "q1", 1, None, "timed-out"), ("x", "q1", 2, "Bob"),
        ("x", "q2", 0, " "), ("x", "q2", 1, None, "refused"),
    )  # fmt: skip
    graded = ragworth.grade("deterministic", given, replace(TEXTS, relevance=None))
    # (1 − 1) / 2 over two of three; nothing at all for q2, with the status of the first.
    assert graded.frame.select("query", "value", "status", "repeats", "of", "each").rows() == [
        ("q1", 0.0, "ok", 2, 3, [1.0, None, -1.0]),
        ("q2", None, "empty-answer", 0, 2, [None, None]),
    ]
    assert graded.answers.select("repeat", "label").head(3).rows() == [(0, "correct"), (1, None), (2, "wrong")]
    assert graded.frame["label"].to_list() == [None, None]
    assert graded.notes == (
        "1 of 2 outcomes have a value; without one: empty-answer 1",
        "1 of 1 outcome comes from fewer than 3 repeats: the other answers are missing or could not be graded",
    )
    assert len(ragworth.Outcomes(graded.frame)) == 2


@pytest.mark.parametrize("kind", ["deterministic", "judge", "ideal", "text", "coverage"])
@pytest.mark.parametrize(
    ("text", "status"), [("  ", "ok"), (None, "timed-out"), (None, "refused"), (None, "too-long"), ("", "empty-answer")]
)
def test_answers_without_a_text(kind: str, text: str | None, status: str) -> None:
    def script(request: Request) -> ScriptedReply:
        raise AssertionError("nothing is asked about it")

    ideal = [("(oracle)", "q2", 0, None, "refused")] if kind == "ideal" else []
    graded = ragworth.grade(kind, table(("x", "q1", 0, text, status), *ideal), SUBS, Scripted(script))
    assert set(graded.frame["status"]) == {"empty-answer" if text is not None else status}
    assert graded.frame["value"].to_list() == [None] * graded.frame.height


@pytest.mark.parametrize(
    ("kind", "more"), [("deterministic", {}), ("judge", {}), ("text", {}), ("ideal", {"ideal": "accepted"})]
)
def test_no_accepted_answers(kind: str, more: dict[str, Any]) -> None:
    texts = ragworth.Collection.of(queries=TEXTS.queries, answers={"query": ["q2", "q1"], "text": ["ducks", " "]})
    graded = ragworth.grade(
        kind, table(("x", "q1", 0, "Ann"), ("x", "q2", 0, "Ann")), texts, Scripted({"*": {"3": 1.0}}), **more
    )
    assert set(graded.frame.filter(pl.col("query") == "q1")["status"]) == {"no-accepted-answers"}
    model = Scripted({"*": "?"})
    with pytest.raises(InputError, match=f"{kind} needs accepted answers, and no query") as caught:
        ragworth.grade(kind, table(("x", "q1", 0, "Ann"), ("x", "q2", 0, "Ann")), texts, model, limit=1, **more)
    assert "Collection.of(answers=" in str(caught.value)
    assert model.calls == 0


def test_truncated_answers_are_graded_and_counted() -> None:
    texts = replace(TEXTS, relevance=None)
    graded = ragworth.grade("deterministic", table(("x", "q1", 0, "Ann and", "truncated")), texts)
    assert values(graded) == [("x", "q1", 1.0, "ok")]
    assert graded.notes == ("1 answer that ended at the greatest length, graded all the same",)


# BERTScore and utility


class Pretend:
    """Stands in for BERTScore: F1 by a table, ``cut`` for texts that end in …"""

    identity = "bertscore:pretend"

    def __init__(self, f1: Mapping[tuple[str, str], float]) -> None:
        self.f1 = f1
        self.calls: list[int] = []

    def score(self, candidates: Sequence[str], references: Sequence[str]) -> list[BERTScorePair]:
        self.calls.append(len(candidates))
        pairs = list(zip(candidates, references, strict=True))
        return [
            BERTScorePair(None, None, None, "empty-candidate" if pair[0] == "☃" else "empty-reference")
            if "☃" in pair
            else BERTScorePair(
                0.5, 0.5, self.f1.get(pair, 0.0), "ok", int(pair[0].endswith("…")), int(pair[1].endswith("…"))
            )
            for pair in pairs
        ]


def pretend(monkeypatch: pytest.MonkeyPatch, f1: Mapping[tuple[str, str], float]) -> Pretend:
    scorer = Pretend(f1)
    compare = BERTScoreSimilarity(scorer)  # type: ignore[arg-type]
    monkeypatch.setattr(graders_by_similarity, "build_bertscore_similarity", lambda *given, **more: compare)
    return scorer


A, C = "Ann Lee built the mill.", "Ducks swim."


def test_bertscore_of_the_best_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = pretend(
        monkeypatch, {("Ann", "Ann Lee"): 0.75, ("Ann", "Ann"): 1.0, ("Eve…", "Ann Lee"): 0.25, ("Ann", A): 0.5}
    )
    given = table(("x", "q1", 0, "Ann"), ("y", "q1", 0, "Eve…"), ("z", "q1", 0, "☃"), ("z", "q2", 0, None, "refused"))
    graded = ragworth.grade("bertscore", given, TEXTS)
    assert graded.frame.select("value", "status", "cut", "against").rows() == [
        (1.0, "ok", False, "Ann"),
        (0.25, "ok", True, "Ann Lee"),
        (None, "empty-candidate", None, None),
        (None, "refused", None, None),
    ]
    assert scorer.calls == [6]  # all pairs at once
    assert (
        graded.notes[-1] == "1 answer and 0 reference texts were too long for the encoder and truncated for BERTScore"
    )
    assert graded.frame["source"][0] == "bertscore:pretend · against answers"
    passages = ragworth.grade("bertscore", table(("x", "q1", 0, "Ann")), TEXTS, references="relevant")
    assert values(passages) == [("x", "q1", 0.5, "ok")]


def test_references_that_cannot_be_compared_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {("Ann", "Ann Lee"): 0.75, ("Eve", "Ann Lee"): 0.25})
    texts = ragworth.Collection.of(
        passages={"passage": ["a", "s"], "text": ["Ann Lee", "☃"]},
        answers={"query": ["q1", "q1", "q2"], "text": ["Ann Lee", "☃", "☃"]},
        relevance={"q1": {"a": 1, "s": 1}},
    )
    given = table(("x", "q1", 0, "Ann"), ("y", "q1", 0, "Eve"), ("x", "q2", 0, "Ann"), ("(none)", "q1", 0, "Eve"))
    graded = ragworth.grade("bertscore", given, texts)
    assert graded.frame.select("value", "status", "skipped").rows() == [
        (0.75, "ok", 1),
        (0.25, "ok", 1),
        (None, "empty-reference", None),
        (0.25, "ok", 1),
    ]
    lost = "1 reference text couldn't be compared by BERTScore (empty-reference 1); the best of the others counts"
    assert graded.notes[-1] == lost
    utility = ragworth.grade("utility", given, texts)
    assert utility.frame.select("value", "skipped").row(0) == (pytest.approx(2.0), 1)
    assert utility.notes[-1] == lost


@pytest.mark.parametrize("references", ["answers", "relevant"])
def test_bertscore_needs_references(monkeypatch: pytest.MonkeyPatch, references: str) -> None:
    scorer = pretend(monkeypatch, {})
    bare = ragworth.Collection.of(queries=TEXTS.queries)
    with pytest.raises(InputError, match=r"needs accepted answers|needs to know which passages are relevant"):
        ragworth.grade("bertscore", table(("x", "q1", 0, "Ann")), bare, references=references)
    assert scorer.calls == []


def test_utility_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(
        monkeypatch, {("w0", A): 0.6, ("w1", A): 0.5, ("z0", A): 0.4, ("z1", A): 0.5, ("w0", C): 0.3, ("z", C): 0.6}
    )
    given = table(
        ("x", "q1", 0, "w0"), ("x", "q1", 1, "w1"), ("(none)", "q1", 0, "z0"), ("(none)", "q1", 1, "z1"),
        ("x", "q2", 0, "w0"), ("x", "q2", 1, "w0"), ("(none)", "q2", 0, "z"),
    )  # fmt: skip
    graded = ragworth.grade("utility", given, TEXTS)
    mine = graded.frame.filter(pl.col("system") == "x")
    # q1: (0.6 − 0.4)/0.4 = 0.5 and (0.5 − 0.5)/0.5 = 0, mean 0.25.
    # q2 has the zero-shot answer of one repeat alone, so U is from that repeat: (0.3 − 0.6)/0.6 = −0.5.
    assert mine["value"].to_list() == pytest.approx([0.25, -0.5])
    assert mine["each"].to_list() == [pytest.approx([0.5, 0.0]), [pytest.approx(-0.5), None]]
    assert mine.select("repeats", "of").rows() == [(2, 2), (1, 2)]
    assert "1 of 2 outcomes comes from fewer than 2 repeats" in " ".join(graded.notes)
    assert graded.answers.select("p", "p_without").row(0) == (0.6, 0.4)
    # Means over repeats, for the column without context: (0.4 + 0.5)/2 and 0.6.
    assert mine["p"].to_list() == pytest.approx([0.55, 0.3])
    assert mine["p_without"].to_list() == pytest.approx([0.45, 0.6])
    # The zero-shot answers are what others are held against; they have no outcome.
    assert set(graded.frame["system"]) == {"x"}


def test_utility_is_of_the_most_similar_relevant_passage(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {("w", A): 0.2, ("w", "The mill is old."): 0.8, ("z", A): 0.5})
    given = table(("x", "q1", 0, "w"), ("(none)", "q1", 0, "z"))
    # Only a is relevant: (0.2 − 0.5)/0.5. With relevance 0 as the lowest level, b is too: (0.8 − 0.5)/0.5.
    assert ragworth.grade("utility", given, TEXTS).frame["value"][0] == pytest.approx(-0.6)
    assert ragworth.grade("utility", given, TEXTS, level=0).frame["value"][0] == pytest.approx(0.6)


def test_utility_that_cannot_be_had() -> None:
    texts = ragworth.Collection.of(
        passages=TEXTS.passages,
        relevance={"q1": {"a": 1}, "q2": {"c": 0}, "q3": {"a": 1}, "q4": {"a": 1}, "q5": {"z": 1}},
    )
    given = table(
        *(("x", query, 0, "Ann") for query in ("q1", "q2", "q3", "q4", "q5")),
        ("(none)", "q1", 0, "nonsense"), ("(none)", "q2", 0, "Ann"), ("(none)", "q4", 0, None, "timed-out"),
        ("(none)", "q5", 0, "Ann"),
    )  # fmt: skip
    graded = ragworth.grade("utility", given, texts, similarity="f1")
    assert graded.frame.filter(pl.col("system") == "x").select("query", "value", "status").rows() == [
        ("q1", None, "zero-shot-worthless"),  # f1 of "nonsense" is 0, and nothing is divided by it
        ("q2", None, "no-relevant"),
        ("q3", None, "no-zero-shot"),
        ("q4", None, "no-zero-shot"),
        ("q5", None, "no-passage-text"),
    ]


def test_utility_of_a_repeat_without_its_zero_shot_answer() -> None:
    given = table(
        ("x", "q1", 0, "Ann Lee built it"), ("x", "q1", 1, "Ann"), ("x", "q1", 2, "Ann"),
        ("(none)", "q1", 0, "Ann"), ("(none)", "q1", 1, "Ann"),
    )  # fmt: skip
    graded = ragworth.grade("utility", given, TEXTS, similarity="rouge-l")
    # 1 (as above) and 0; the third has none to be held against: 1/2 over two of three.
    assert graded.frame.select("value", "repeats", "of", "each").row(0) == (
        pytest.approx(0.5),
        2,
        3,
        [pytest.approx(1.0), 0.0, None],
    )


def test_utility_says_how_many_repeats_are_missing() -> None:
    """q1 has three answers of three, q2 lacks a row, and all that q3 has failed."""
    texts = ragworth.Collection.of(passages=TEXTS.passages, relevance={query: {"a": 1} for query in ("q1", "q2", "q3")})
    rows: list[tuple[Any, ...]] = [("(none)", query, n, "Ann") for query in ("q1", "q2", "q3") for n in range(3)]
    rows += [("x", "q1", n, "Ann Lee") for n in range(3)] + [("x", "q2", n, "Ann Lee") for n in (0, 2)]
    rows += [("x", "q3", n, None, "refused") for n in range(3)]
    graded = ragworth.grade("utility", table(*rows), texts, similarity="f1")
    assert graded.frame.select("query", "repeats", "of", "status").rows() == [
        ("q1", 3, 3, "ok"),
        ("q2", 2, 3, "ok"),
        ("q3", 0, 3, "refused"),
    ]
    few = "of 2 outcomes {} from fewer than {} repeats: the other answers are missing or could not be graded"
    assert graded.notes[:2] == (
        "2 of 3 outcomes have a value; without one: refused 1",
        f"1 {few.format('comes', 3)}",
    )
    # f1 of "Ann" and the passage's four tokens (no article): 2·1·(1/4)/(1 + 1/4) = 0.4, also if the answer failed.
    assert graded.frame["p_without"].to_list() == pytest.approx([0.4] * 3)
    asked = ragworth.grade("utility", table(*rows), texts, similarity="f1", repeats=5)
    assert asked.frame["of"].to_list() == [5, 5, 5]
    assert f"2 {few.format('come', 5)}" in asked.notes


def test_a_model_that_ignores_its_context_gains_nothing_by_the_ratio_of_means() -> None:
    """All answers, with and without a context, are some of the ten words of the relevant passage, at random."""
    draw, names, words = random.Random(1), [f"q{n}" for n in range(60)], [f"word{n}" for n in range(10)]
    texts = ragworth.Collection.of(
        passages={"passage": ["a"], "text": [" ".join(words)]}, relevance={name: {"a": 1} for name in names}
    )
    rows = [
        (system, name, 0, " ".join(draw.sample(words, draw.randint(1, 8))))
        for name in names
        for system in ("x", "(none)")
    ]
    graded = ragworth.grade("utility", table(*rows), texts, similarity="f1")
    assert fmean(graded.frame["value"]) > 0.2  # the mean of ratios
    (said,) = [note for note in graded.notes if note.startswith("x: its answers ")]
    assert said.startswith("x: its answers are not significantly ") and "60 queries" in said
    assert any(note.startswith("utility is a mean of ratios and too high") for note in graded.notes)


def test_one_zero_shot_answer_for_all_repeats_is_noted() -> None:
    given = table(("x", "q1", 0, "Ann Lee"), ("x", "q1", 1, "Ann"), ("(none)", "q1", 0, "Ann"))
    graded = ragworth.grade("utility", given, TEXTS, similarity="f1")
    assert graded.frame.select("repeats", "of").rows() == [(2, 2)]
    assert graded.notes[-1].startswith("all 2 repeats are compared with a single answer without context")


@pytest.mark.model
@pytest.mark.parametrize("kind", ["utility", "bertscore"])
def test_bertscore_works_offline_and_names_its_encoder(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "transformers", None)
    given = table(("x", "q1", 0, "Ann Lee built it."), ("y", "q1", 0, "Snow " * 300), ("(none)", "q1", 0, "Water."))
    graded = ragworth.grade(kind, given, TEXTS)
    near, far = graded.frame["value"].to_list()[:2]
    assert near > far
    assert "bertscore:embedded:all-MiniLM-L6-v2@" in graded.frame["source"][0]
    assert " layer=6 " in graded.frame["source"][0]
    assert any("1 answer and 0 reference texts were too long" in note for note in graded.notes)
    with pytest.raises(ModelError, match="layer is 3"):
        ragworth.grade(kind, given, TEXTS, layer=3)


def test_the_encoder_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, Any]] = []

    def refuse(name: str, **options: Any) -> None:
        opened.append((name, options["layer"]))
        raise ModelError("not here")

    monkeypatch.setattr("ragworth.text_match.token_encoder.TokenEncoder", refuse)
    given = table(("x", "q1", 0, "Ann"), ("(none)", "q1", 0, "Ann"))
    with pytest.raises(ModelError, match="not here"):
        ragworth.grade("utility", given, TEXTS, encoder="paper")
    assert opened == [("bert-large-uncased", 18)]
    with pytest.raises(InputError, match="the paper uses layer 18"):
        ragworth.grade("utility", given, TEXTS, encoder="paper", layer=3)


def test_utility_needs_zero_shot_answers_and_relevance() -> None:
    with pytest.raises(InputError, match=r"no answers of the system '\(none\)'"):
        ragworth.grade("utility", table(("x", "q1", 0, "Ann")), TEXTS, similarity="f1")
    with pytest.raises(InputError, match="there are no answers to grade"):
        ragworth.grade("utility", table(("(none)", "q1", 0, "Ann")), TEXTS, similarity="f1")
    with pytest.raises(InputError, match="which passages are relevant"):
        bare = ragworth.Collection.of(queries=TEXTS.queries)
        ragworth.grade("utility", table(("(none)", "q1", 0, "Ann")), bare, similarity="f1")


# Coverage and density

SUBS = ragworth.Collection.of(
    queries=TEXTS.queries,
    passages=TEXTS.passages,
    answers=TEXTS.answers,
    subquestions={
        "query": ["q1"] * 4 + ["q2"],
        "subquestion": ["s1", "s2", "s3", "s4", "s1"],
        "text": ["S1", "S2", "S3", "S4", "T1"],
    },
    # a answers s1 and s2, b answers s3; nothing answers s4. The required subset is a, b: 6 + 5 tokens.
    ratings={
        "query": ["q1"] * 8,
        "passage": ["a"] * 4 + ["b"] * 4,
        "subquestion": ["s1", "s2", "s3", "s4"] * 2,
        "rating": [5, 3, 0, 2, 0, 0, 4, 1],
    },
)


def rating(scores: Mapping[str, ScriptedReply]) -> Scripted:
    """A judge that rates by the sub-question, whatever the answer."""
    return Scripted(
        lambda request: scores[request.prompt.messages[-1].content.rpartition(" ")[2]], abilities=("generate",)
    )


def test_coverage_and_density_by_hand() -> None:
    model = rating({"S1": "4", "S2": "3", "S3": "2"})
    graded = ragworth.grade("coverage", table(("x", "q1", 0, "Ann built it.")), SUBS, model)
    # Answerable are s1, s2, s3; answered at 3 and above: two of three. The answer has 3 words and a full stop, the
    # required subset 6 + 5: density = ((2/3)/4 / (1/11))^0.5 = (11/6)^0.5.
    assert values(graded, "aspect", "value") == [
        ("coverage", pytest.approx(2 / 3)),
        ("density", pytest.approx((11 / 6) ** 0.5)),
    ]
    row = graded.frame.row(0, named=True)
    assert (row["subquestions"], row["ratings"]) == (["s1", "s2", "s3"], [4.0, 3.0, 2.0])
    assert (row["tokens"], row["required_tokens"]) == (4, 11)
    assert model.calls == 3  # nothing is asked about s4, which nothing answers
    assert graded.notes == ("tokens are counted as words and punctuation marks",)
    assert "eta 3 · w 0.5 · words and punctuation marks" in row["source"]


def test_coverage_leaves_citations_out() -> None:
    cited, seen = table(("x", "q1", 0, "Ann built it [1][2], or so (3) [doc3].")), list[str]()

    def judge(request: Request) -> str:
        seen.append(request.prompt.messages[-1].content)
        return "4"

    graded = ragworth.grade("coverage", cited, SUBS, Scripted(judge, abilities=("generate",)))
    assert graded.frame["tokens"][0] == 7  # Ann built it , or so .
    assert all("Ann built it, or so." in text for text in seen)
    kept = ragworth.grade("coverage", cited, SUBS, Scripted(judge, abilities=("generate",)), citations=True)
    assert kept.frame["tokens"][0] == 19
    assert "[doc3]" in seen[-1]


def test_coverage_by_the_collections_tokens() -> None:
    letters = replace(SUBS, counter=TokenCounter("letters", len))
    graded = ragworth.grade(
        "coverage", table(("x", "q1", 0, "Ann")), letters, rating(dict.fromkeys(("S1", "S2", "S3"), "4"))
    )
    needed = sum(len(text) for passage, text in SUBS.passages.iter_rows() if passage in "ab")
    row = graded.frame.row(0, named=True)
    assert (row["tokens"], row["required_tokens"]) == (3, needed)
    assert "tokens are counted as letters" in graded.notes
    assert "eta 3 · w 0.5 · letters" in row["source"]


def test_coverage_equals_the_metrics_on_the_same_ratings() -> None:
    """An answer that is a passage has the coverage and density of that passage as a context."""
    scores = {"S1": "5", "S2": "3", "S3": "0"}
    graded = ragworth.grade("coverage", table(("x", "q1", 0, "Ann Lee built the mill.")), SUBS, rating(scores))
    metrics = ragworth.score(
        {"q1": {"a": 1.0}}, metrics=["Cov", "Den"], ratings=SUBS.ratings, tokens=ragworth.Tokens.of(SUBS.tokens())
    )
    assert graded.frame["value"].to_list() == pytest.approx(metrics.frame["value"].to_list())


def test_coverage_without_ratings_takes_all_sub_questions() -> None:
    graded = ragworth.grade("coverage", table(("x", "q2", 0, "Ducks")), SUBS, rating({"T1": "5"}))
    assert values(graded, "aspect", "value", "status") == [
        ("coverage", 1.0, "ok"),
        ("density", None, "no-required-subset"),
    ]
    assert graded.notes[-1] == "1 query without ratings: all sub-questions count as answerable, and there is no density"


@pytest.mark.parametrize(
    ("said", "status"), [("10", "unparsable"), ("I am sorry", "refused"), (Failure("timed-out"), "timed-out")]
)
def test_one_failed_rating_leaves_no_value(said: ScriptedReply, status: str) -> None:
    graded = ragworth.grade("coverage", table(("x", "q1", 0, "Ann")), SUBS, rating({"S1": "5", "S2": said, "S3": "5"}))
    assert graded.frame["status"].to_list() == [status, status]
    assert graded.frame["value"].to_list() == [None, None]


def changed(**more: Any) -> ragworth.Collection:
    return ragworth.Collection(**{**SUBS.__dict__, **more})


def test_coverage_where_passages_failed_to_be_rated() -> None:
    assert SUBS.ratings is not None
    frame = SUBS.ratings.frame
    failed = frame.with_row_index().with_columns(
        pl.when(pl.col("index") == pl.lit(7)).then(None).otherwise(pl.col("value")).alias("value"),
        pl.when(pl.col("index") == pl.lit(7)).then(pl.lit("refused")).otherwise(pl.col("status")).alias("status"),
    )
    unsure = changed(ratings=ragworth.Ratings(failed))  # b might have answered s4
    graded = ragworth.grade("coverage", table(("x", "q1", 0, "Ann")), unsure, rating({}))
    assert graded.frame["status"].to_list() == ["unjudged", "unjudged"]
    # Where the sub-question is answered by another passage, coverage is sure, though the required subset is not.
    other = frame.with_row_index().with_columns(
        pl.when(pl.col("index") == 4).then(None).otherwise(pl.col("value")).alias("value"),
        pl.when(pl.col("index") == 4).then(pl.lit("refused")).otherwise(pl.col("status")).alias("status"),
    )
    graded = ragworth.grade(
        "coverage",
        table(("x", "q1", 0, "Ann")),
        changed(ratings=ragworth.Ratings(other)),
        rating({"S1": "5", "S2": "5", "S3": "0"}),
    )
    assert values(graded, "value", "status") == [(pytest.approx(2 / 3), "ok"), (None, "unjudged")]


def test_coverage_that_cannot_be_had() -> None:
    given = table(("x", "q1", 0, "Ann"))
    assert ragworth.grade("coverage", given, SUBS, rating({}), eta=6).frame["status"].to_list() == ["no-answerable"] * 2
    assert (
        ragworth.grade("coverage", table(("x", "q9", 0, "Ann")), SUBS, rating({})).frame["status"][0]
        == "no-subquestions"
    )
    some_text = changed(subquestions=SUBS.subquestions.head(2))
    assert ragworth.grade("coverage", given, some_text, rating({})).frame["status"][0] == "no-subquestions"
    no_text = changed(passages=SUBS.passages.head(1))
    graded = ragworth.grade("coverage", given, no_text, rating({"S1": "5", "S2": "0", "S3": "0"}))
    assert values(graded, "value", "status") == [(pytest.approx(1 / 3), "ok"), (None, "no-tokens")]
    with pytest.raises(InputError, match="coverage needs sub-questions"):
        ragworth.grade("coverage", given, TEXTS, rating({}))


def test_an_answer_that_the_judge_could_not_see_whole() -> None:
    class Cutting(Scripted):
        def choose(self, requests: Sequence[Choose]) -> list[Chosen | Failure]:
            cut = Usage(5, 1, 0.0, cut=9)
            return [Chosen((0, 0, 0, 0, 0, 1), (0,) * 6, (1,) * 6, "first-token", cut) for _ in requests]

    model = Cutting({})
    model.card = replace(model.card, cuts=True)
    graded = ragworth.grade("coverage", table(("x", "q1", 0, "Ann")), SUBS, model)
    assert graded.frame["status"].to_list() == ["cut", "cut"]
    kept = ragworth.grade("coverage", table(("x", "q1", 0, "Ann")), SUBS, model, keep_cut=True)
    assert kept.frame.select("value", "cut").row(0) == (1.0, 9)


# All of them


def test_the_same_is_never_paid_twice(tmp_path: Path) -> None:
    model = choosing({"CORRECT": 1.0})
    given = table(("x", "q1", 0, "Ann"), ("y", "q1", 0, "Ann"), ("y", "q2", 0, "Ann"))
    store = tmp_path / "calls.sqlite"
    first = ragworth.grade("judge", given, TEXTS, model, store=store)
    assert model.calls == 2  # the same answer of two systems is one call
    again = ragworth.grade("judge", given, TEXTS, model, store=store)
    assert model.calls == 2
    assert again.frame.equals(first.frame)


def test_what_it_would_take() -> None:
    given = table(("x", "q1", 0, "Ann"), ("y", "q1", 0, "Ann"), ("y", "q2", 0, None, "refused"))
    model = choosing({"CORRECT": 1.0})
    with Job(model) as job:
        book = to_answer_book(given)
        grader = build_judge(GRADERS, "judge", job.card, TEXTS, None, {}, book)
        plan = plan_task(grader, grader.items(book.answers), job).plan
        assert (plan.asked, plan.distinct) == (2, 1)
        grader = build_judge(GRADERS, "coverage", job.card, SUBS, None, {}, book)
        assert plan_task(grader, grader.items(book.answers), job).plan.asked == 6
    assert model.calls == 0


def test_bad_input() -> None:
    given = table(("x", "q1", 0, "Ann"))
    with pytest.raises(InputError, match="unknown grader 'jugde'"):
        ragworth.grade("jugde", given, TEXTS)
    with pytest.raises(InputError, match="judge has no setting nonsense"):
        ragworth.grade("judge", given, TEXTS, choosing({}), nonsense=1)
    with pytest.raises(InputError, match="how is 'sideways'"):
        ragworth.grade("judge", given, TEXTS, choosing({}), how="sideways")
    with pytest.raises(InputError, match="w is -1"):
        ragworth.grade("coverage", given, SUBS, choosing({}), w=-1)
    with pytest.raises(InputError, match="no answers to grade"):
        ragworth.grade("text", ragworth.Answers({"system": [], "query": [], "text": []}), TEXTS)
    with pytest.raises(ModelError, match="cannot choose"):
        ragworth.grade("judge", given, TEXTS, Scripted({}, abilities=("generate",)), how="labels")
    with pytest.raises(ModelError, match=r"judge asks a model, and none was given[\s\S]*name a model"):
        build_judge(GRADERS, "judge", None, TEXTS, None, {}, to_answer_book(given))


def test_a_grader_of_ones_own() -> None:
    from dataclasses import dataclass
    from typing import ClassVar

    from ragworth.judging.findings import AspectValues
    from ragworth.judging.text_lookup import Answer

    @dataclass(frozen=True)
    class Length(Grader):
        kind: ClassVar[str] = "length"
        title: ClassVar[str] = "how long it is"
        aspects: ClassVar[tuple[str, ...]] = ("length",)

        def value(self, item: Answer) -> AspectValues:
            return AspectValues({"length": float(len(self.text(item)))})

    GRADERS.add("length", Length)
    try:
        assert values(ragworth.grade("length", table(("x", "q1", 0, "Ann")), TEXTS)) == [("x", "q1", 3.0, "ok")]
    finally:
        del GRADERS._targets["length"], GRADERS._loaded["length"]
