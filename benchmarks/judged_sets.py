"""Tables of judgments out of real data, for ``ragworth study judges``: NoMIRACL, ClapNQ, MT-RAG, TREC DL 2019."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import polars as pl
from benchmarks.files import read_lines, write_table

from ragworth import formats
from ragworth.text_match.overlap import rouge_l, token_f1
from ragworth.text_match.refusals import find_refusal
from ragworth.workspace.config import WORKSPACE_FILE

TRUTH = "truth"
"""Who knows whether the contexts answer."""

DL19 = "DL19-graded-t5-rating-genq-exam-qrels-runs-with-text.jsonl.gz"

TOML = """\
title = "TREC DL 2019: 37 runs × 43 queries"
k = 20

[collection]
from = "exam:{file}"

[metrics]
use = ["nDCG@20", "P(rel=2)@20", "Cov(eta=4)@20", "alpha_nDCG(eta=4)@20"]
"""


class Answer(NamedTuple):
    """An answer of a NoMIRACL model."""

    model: str
    query: str
    answerable: bool
    text: str

    @property
    def declined(self) -> bool:
        return not self.text.strip() or find_refusal(self.text) is not None

    @property
    def kind(self) -> str:
        """What it comes to: declining is right where nothing answers."""
        if self.declined:
            return "abstained"
        return "correct" if self.answerable else "wrong"


def nomiracl_answers(data: Path) -> Iterator[Answer]:
    """All answers: 11 models, 250 questions whose passages answer and 250 whose passages do not."""
    for name, answerable in (("relevant", True), ("non_relevant", False)):
        for row in read_lines(data / "nomiracl_en" / f"{name}.en.test.vanilla_prompt.jsonl.gz"):
            for model, text in row["results"].items():
                yield Answer(model, f"{name}-{row['query_id']}", answerable, text or "")


def nomiracl(data: Path, folder: Path) -> None:
    """Whether each model says that the contexts answer, 1, or declines, 0; and whether they do."""
    every = list(nomiracl_answers(data))
    truth = {answer.query: int(answer.answerable) for answer in every}
    write_table(
        folder / "nomiracl.csv",
        ("judge", "query", "aspect", "value"),
        [
            *((TRUTH, query, "answer present", value) for query, value in truth.items()),
            *((answer.model, answer.query, "answer present", int(not answer.declined)) for answer in every),
        ],
    )


class Graded(NamedTuple):
    """An answer with what people and programs say of it."""

    system: str
    query: str
    people: dict[str, dict[str, float]]
    """By aspect and person."""
    automatic: dict[str, float]


def clapnq_graded(data: Path) -> Iterator[Graded]:
    """100 questions × 4 answers of ClapNQ, each graded by three people, 1 to 4."""
    whole = _read(data / "clapnq_human" / "rag_model_performance.json.gz")
    targets = {task["task_id"]: [each["value"] for each in task.get("targets", [])] for task in whole["tasks"]}
    for row in whole["results"]:
        text = " ".join(each["content"] for each in row["output"] if each["role"] == "assistant")
        yield _graded(
            row, row["scores"], ("fluency", "answer_relevance", "faithfulness"), text, targets.get(row["task_id"], [])
        )


def mtrag_graded(data: Path) -> Iterator[Graded]:
    """159 turns of conversations × 3 answers of MT-RAG, graded by people, 1 to 4."""
    whole = _read(data / "mtrag" / "reference_subset_with_human_evaluations.json.gz")
    targets = {task["task_id"]: [each["text"] for each in task.get("targets", [])] for task in whole["tasks"]}
    aspects = ("naturalness", "appropriateness", "completeness", "faithfulness")
    for row in whole["evaluations"]:
        yield _graded(row, row["annotations"], aspects, row["model_response"], targets.get(row["task_id"], []))


def _read(path: Path) -> dict[str, Any]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return json.load(stream)  # type: ignore[no-any-return]


def _graded(
    row: dict[str, Any], given: dict[str, Any], aspects: tuple[str, ...], text: str, targets: list[str]
) -> Graded:
    people = {
        aspect: {
            who: float(one["value"]) for who, one in given.get(aspect, {}).items() if one["value"] not in ("", None)
        }
        for aspect in aspects
    }
    automatic = {
        name: float(one["value"])
        for name, each in given.items()
        for who, one in each.items()
        if who in ("system", "composite") and isinstance(one["value"], int | float)
    }
    if text.strip() and targets:
        automatic |= {"token F1 (ours)": token_f1(text, targets), "ROUGE-L (ours)": rouge_l(text, targets)}
    return Graded(row["model_id"], row["task_id"], people, automatic)


def people(graded: Iterator[Graded], path: Path) -> None:
    """What each person says of each answer."""
    write_table(
        path,
        ("judge", "system", "query", "aspect", "value"),
        (
            (f"person {who}", one.system, one.query, aspect, value)
            for one in graded
            for aspect, each in one.people.items()
            for who, value in each.items()
        ),
    )


def means(graded: Iterator[Graded]) -> pl.DataFrame:
    """Every answer with the mean of the people (``people``), and every automatic value (``metric``, ``value``)."""
    rows = [
        (one.system, one.query, aspect, fmean(each.values()), name, value)
        for one in graded
        for aspect, each in one.people.items()
        if each
        for name, value in one.automatic.items()
    ]
    return pl.DataFrame(rows, schema=["system", "query", "aspect", "people", "metric", "value"], orient="row")


def clapnq(data: Path, folder: Path) -> None:
    people(clapnq_graded(data), folder / "clapnq.csv")


def mtrag(data: Path, folder: Path) -> None:
    people(mtrag_graded(data), folder / "mtrag.csv")


def dl19(data: Path, folder: Path) -> None:
    """A workspace of the official runs; and who calls a passage relevant: assessors (2 or 3), or ratings."""
    file = (data / "trecdl19_exam" / DL19).resolve()
    (folder / WORKSPACE_FILE).write_text(TOML.format(file=file), encoding="utf-8")
    found = formats.load(f"exam:{file}").collection
    assert found.relevance is not None and found.ratings is not None
    best = found.ratings.frame.group_by("query", "passage").agg(pl.col("value").max().alias("best"))
    both = found.relevance.frame.join(best, on=["query", "passage"], how="inner").sort("query", "passage")
    rows = []
    for query, passage, grade, rating in both.select("query", "passage", "value", "best").iter_rows():
        rows.append(("assessors", query, passage, "relevant", int(grade >= 2)))
        rows += [(f"some rating ≥ {eta}", query, passage, "relevant", int(rating >= eta)) for eta in (3, 4, 5)]
        rows += [
            ("assessors, 0–3", query, passage, "grade", grade),
            ("best rating, 0–5", query, passage, "grade", rating),
        ]
    write_table(folder / "relevant.csv", ("judge", "query", "passage", "aspect", "value"), rows)
