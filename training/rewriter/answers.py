"""Answers of the reader to the test turns from what each arm retrieves, graded by their accepted answers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import median

import polars as pl

from ragworth.calls.job import Job
from ragworth.collection import Collection
from ragworth.generation.answering import answer_items, build_writer
from ragworth.graders.grading import grade
from ragworth.tables import Contexts, Outcomes
from ragworth.tasks.contract import run_task
from training.rewriter import models
from training.rewriter.comparison import compare_arms
from training.rewriter.costs import Cost, stage
from training.rewriter.parts import run_parts, split_by_query
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
        _graded(experiment, test, collection).write_parquet(path)


def has_short_answers(collection: Collection) -> bool:
    words = [len(text.split()) for text in collection.answers["text"]]
    return bool(words) and median(words) <= LONGEST


def _graded(experiment: Experiment, test: str, collection: Collection) -> pl.DataFrame:
    shown = compare_arms(experiment.folder, test, collection).contexts.cut(SHOWN).frame
    with stage(experiment.folder, f"answers to {test}") as cost:
        work = partial(_graded_part, experiment, collection)
        return pl.concat(run_parts(work, split_by_query(shown, experiment.processes), cost))


def _graded_part(
    experiment: Experiment, collection: Collection, shown: pl.DataFrame, part: int
) -> tuple[pl.DataFrame, Cost]:
    cost = Cost()
    with Job(models.reader(experiment.device), experiment.store(part)) as job:
        writer = build_writer(job, collection, None, None, {})
        written = run_task(writer, answer_items(writer, Contexts.trusted(shown), collection), job)
        cost.add(job)
    return grade("deterministic", written, collection).table.frame, cost


def read(folder: Path, test: str) -> Outcomes | None:
    """The grades of a test, None if there are none."""
    path = _file(folder, test)
    return Outcomes.trusted(pl.read_parquet(path)) if path.exists() else None


def _file(folder: Path, test: str) -> Path:
    return folder / "answers" / f"{test}.parquet"
