"""Answers of the reader to the test turns from what each arm retrieves, graded by their accepted answers."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import polars as pl

from ragworth.calls.job import Job
from ragworth.collection import Collection
from ragworth.generation.answering import answer_items, build_writer
from ragworth.graders.grading import grade
from ragworth.tables import Outcomes
from ragworth.tasks.contract import run_task
from training.rewriter import models
from training.rewriter.comparison import compare_arms
from training.rewriter.costs import stage
from training.rewriter.setup import Experiment

SHOWN = 10
"""Passages that the reader gets."""
LONGEST = 8
"""Most words of a typical accepted answer: longer ones can't be graded by matching."""


def write(experiment: Experiment) -> None:
    """Answer and grade every test with short accepted answers, unless that is done."""
    for test, collection in experiment.tests().items():
        path = _file(experiment.folder, test)
        if path.exists() or not has_short_answers(collection):
            continue
        path.parent.mkdir(exist_ok=True)
        _graded(experiment, test, collection).frame.write_parquet(path)


def has_short_answers(collection: Collection) -> bool:
    words = [len(text.split()) for text in collection.answers["text"]]
    return bool(words) and median(words) <= LONGEST


def _graded(experiment: Experiment, test: str, collection: Collection) -> Outcomes:
    shown = compare_arms(experiment.folder, test, collection).contexts.cut(SHOWN)
    with (
        stage(experiment.folder, f"answers to {test}") as cost,
        Job(models.reader(experiment.device), experiment.store) as job,
    ):
        writer = build_writer(job, collection, None, None, {})
        written = run_task(writer, answer_items(writer, shown, collection), job)
        cost.add(job)
    return grade("deterministic", written, collection).table


def read(folder: Path, test: str) -> Outcomes | None:
    """The grades of a test, None if there are none."""
    path = _file(folder, test)
    return Outcomes.trusted(pl.read_parquet(path)) if path.exists() else None


def _file(folder: Path, test: str) -> Path:
    return folder / "answers" / f"{test}.parquet"
