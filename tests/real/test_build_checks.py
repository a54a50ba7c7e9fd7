"""The checks of questions on two published sets that people wrote, from rules and BM25 alone.

ClapNQ's development set has answerable questions with their passage and answer; MuSiQue has questions on two to four
paragraphs. A failure isn't an error of the authors: each set was made for another purpose.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ragworth.build.checks.run import CheckSettings, run_checks
from ragworth.build.checks.summary import summarise_checks
from ragworth.build.question_set import Question, QuestionSet
from ragworth.build.questions.contract import SourceSpan


def _frame(passages: dict[str, str]) -> pl.DataFrame:
    return pl.DataFrame({"passage": list(passages), "text": list(passages.values())})


def read_clapnq(folder: Path) -> QuestionSet:
    """Answerable questions; the spans are the sentences that the annotators chose."""
    questions, passages = [], {}
    with gzip.open(folder / "clapnq_dev" / "clapnq_dev_answerable.jsonl.gz", "rt", encoding="utf-8") as stream:
        rows: list[dict[str, Any]] = [json.loads(line) for line in stream]
    for row in rows:
        passages[row["id"]] = row["passages"][0]["text"]
        chosen = row["output"][0].get("selected_sentences") or []
        answers = tuple(text for each in row["output"] if (text := each.get("answer", "").strip()))
        spans = tuple(SourceSpan(row["id"], text) for text in chosen if text.strip())
        questions.append(Question(row["id"], row["input"], answers, (row["id"],), spans))
    return QuestionSet(tuple(questions), _frame(passages))


def read_musique(folder: Path) -> QuestionSet:
    """Questions on several paragraphs, without spans."""
    questions, passages = [], {}
    with gzip.open(folder / "multihop" / "musique.json.gz", "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    rows = rows[0] if len(rows) == 1 and isinstance(rows[0], list) else rows
    for row in rows:
        support = []
        for paragraph in row["paragraphs"]:
            id = f"{row['id']} {paragraph['idx']}"
            passages[id] = f"{paragraph['title']}\n{paragraph['paragraph_text']}"
            support += [id] if paragraph["is_supporting"] else []
        answers = (row["answer"], *row.get("answer_aliases", ()))
        questions.append(Question(row["id"], row["question"], tuple(dict.fromkeys(answers)), tuple(support)))
    return QuestionSet(tuple(questions), _frame(passages))


SETS = {"ClapNQ": read_clapnq, "MuSiQue": read_musique}


@pytest.mark.real
@pytest.mark.parametrize("name", SETS)
def test_people_wrote_them_so_few_fail(data: Path, name: str) -> None:
    """At most one in twenty fails a check that drops questions, without a model: the rate of false alarms is low."""
    settings = CheckSettings(("verbatim", "self-contained", "language", "copied", "duplicate"), "none")
    for each in summarise_checks(run_checks(SETS[name](data), settings)):
        assert each.share is None or each.share.least <= 0.05, each
