"""A judge as data: a prompt that declares labels with their scores, and a class of a few names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import ragworth
from ragworth.calls.job import Job
from ragworth.core.errors import PromptError
from ragworth.judging.contract import run_task
from ragworth.judging.judge import AnnotationItem, Annotator, Grader, LabelJudge
from ragworth.judging.text_lookup import Answer, AnswerBook, TextLookup
from ragworth.llm.contract import Card
from ragworth.llm.scripted import Scripted

TEXTS = ragworth.Collection.of(
    queries={"query": ["q1"], "text": ["Who built the mill?"]},
    passages={"passage": ["a"], "text": ["Ann Lee built the mill."]},
)
PROMPT = """Is it up to date?

[reply]
labels: CURRENT = 1, DATED = 0.5, OBSOLETE = -1

[user]
Is this right for the question {{query}}? {{%s}}
"""


@dataclass(frozen=True)
class Freshness(LabelJudge[AnnotationItem], Annotator):
    """Whether a passage is up to date."""

    kind, title, aspects, prompts = "fresh", "whether it is up to date", ("fresh",), ("fresh",)


@dataclass(frozen=True)
class AnswerFreshness(LabelJudge[Answer], Grader):
    """Whether an answer is up to date."""

    kind, title, aspects, prompts = "fresh", "whether it is up to date", ("fresh",), ("fresh",)


def test_an_annotator(tmp_path: Path) -> None:
    (tmp_path / "fresh.txt").write_text(PROMPT % "passage*")
    model = Scripted({"*": {"CURRENT": 0.2, "DATED": 0.5, "OBSOLETE": 0.1}})
    with Job(model) as job:
        found = run_task(Freshness(job.card, TextLookup(TEXTS), tmp_path), [AnnotationItem("q1", "a")], job)
    row = found.frame.row(0, named=True)
    # (0.2 · 1 + 0.5 · 0.5 − 0.1 · 1) / 0.8
    assert (row["value"], row["expected"], row["mass"]) == (0.5, pytest.approx(0.35 / 0.8), pytest.approx(0.8))
    assert row["source"].startswith("scripted · fresh@")


def test_a_grader_by_what_the_model_writes(tmp_path: Path) -> None:
    (tmp_path / "fresh.txt").write_text(PROMPT % "answer")
    answers = AnswerBook(ragworth.Answers([{"system": "x", "query": "q1", "text": text} for text in ["Ann"]]))
    with Job(Scripted({"*": "OBSOLETE."}, abilities=("generate",))) as job:
        grader = AnswerFreshness(job.card, TextLookup(TEXTS), tmp_path, book=answers)
        found = run_task(grader, grader.items(answers.answers), job)
    assert found.table.frame.select("system", "aspect", "value").rows() == [("x", "fresh", -1.0)]
    assert found.answers["raw"].to_list() == ["OBSOLETE."]


@pytest.mark.parametrize(
    ("labels", "slot", "words"),
    [
        ("labels: GOOD = 1, BAD = awful", "passage*", "declares no labels with scores"),
        ("labels: GOOD = 1", "passage*", "declares no labels with scores"),
        ("stop: X", "passage*", "declares no labels with scores"),
        ("labels: GOOD = 1, BAD = 0", "weather", "nothing is known to fill weather with"),
    ],
)
def test_prompts_that_say_too_little(labels: str, slot: str, words: str, tmp_path: Path) -> None:
    prompt = (PROMPT % slot).replace("labels: CURRENT = 1, DATED = 0.5, OBSOLETE = -1", labels)
    (tmp_path / "fresh.txt").write_text(prompt)
    with pytest.raises(PromptError, match=words):
        Freshness(Card("x", "y", abilities=frozenset({"choose"})), TextLookup(TEXTS), tmp_path)
