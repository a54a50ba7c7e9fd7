"""How far grades can be trusted: does the order of the options decide, does the grader by words agree, do people?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from ragworth.calls.job import Job
from ragworth.calls.programs import Forecast
from ragworth.errors import PromptError
from ragworth.generation.answer_book import Answer
from ragworth.graders.contract import Grader
from ragworth.graders.grading import GradingResult, build_grader, grading_task, run_grading
from ragworth.graders.human_labels import HumanLabels
from ragworth.tasks.contract import plan_task
from ragworth.tasks.reliability import ReliabilityCheck, agreement_checks, mass_checks

KEYS = ["system", "query", "repeat", "aspect"]


def check_grading(
    grader: Grader,
    answers: Sequence[Answer],
    graded: GradingResult,
    job: Job | None,
    labels: HumanLabels | None = None,
) -> list[ReliabilityCheck]:
    """All that can be said of these grades. The model is asked again in the other order.

    ``labels`` are grades by people (`ragworth.graders.human_labels`).
    """
    found = mass_checks(graded.answers)
    if job is not None and hasattr(grader, "swapped"):
        found += _check_other_order(grader, answers, graded, job)
    if grader.kind == "judge":
        alike = {"citations": grader.citations}
        by_words = build_grader("deterministic", None, grader.texts.collection, grader.book, None, alike)
        found += _agreement_of_runs("by words", grader, graded, run_grading(by_words, answers, None))
    return found + (_check_against_humans(grader, graded, labels) if labels is not None else [])


def plan_grading_and_checks(
    grader: Grader, answers: Sequence[Answer], job: Job, checked: bool
) -> list[tuple[str, Forecast]]:
    """What grading would take, and what checking would take on top of it."""
    parts = [("grades", plan_task(*grading_task(grader, answers), job))]
    swapped = _swapped(grader) if checked else None
    if swapped is not None:
        parts.append(("other order", plan_task(*grading_task(swapped, answers, controlled=False), job)))
    return parts


def _swapped(grader: Grader) -> Grader | None:
    """The same grader with everything in the other order; None where a prompt has no other order."""
    if not hasattr(grader, "swapped"):
        return None
    try:
        other = replace(grader, swapped=not grader.swapped)  # type: ignore[call-arg]
        _ = other.template
    except PromptError:
        return None
    return other


def _check_other_order(
    grader: Grader, answers: Sequence[Answer], graded: GradingResult, job: Job
) -> list[ReliabilityCheck]:
    """Ask again with everything in the other order."""
    title = "other order"
    other = _swapped(grader)
    if other is None:
        reason = f"there is no {Path(grader.template.file).stem}-swapped.txt beside the prompt"
        return [ReliabilityCheck(title, "–", None, None, 0, graded.answers.height, reason)]
    return _agreement_of_runs(title, grader, graded, run_grading(other, answers, job, controlled=False))


def _agreement_of_runs(
    title: str, grader: Grader, first: GradingResult, second: GradingResult
) -> list[ReliabilityCheck]:
    """How far two grades of the same answers agree."""
    both = first.answers.select(*KEYS, "value").join(
        second.answers.select(*KEYS, pl.col("value").alias("other")), on=KEYS, maintain_order="left"
    )
    return [
        one
        for aspect in grader.aspects
        for one in agreement_checks(
            title,
            both.filter(pl.col("aspect") == aspect),
            labelled=grader.labelled,
            ordinal=grader.ordinal,
            of=_aspect_suffix(grader, aspect),
        )
    ]


def _aspect_suffix(grader: Grader, aspect: str) -> str:
    return f" of {aspect}" if len(grader.aspects) > 1 else ""


def _check_against_humans(grader: Grader, graded: GradingResult, labels: HumanLabels) -> list[ReliabilityCheck]:
    """How far outcomes agree with grades by people; with those of single answers, where they tell repeats apart."""
    found: list[ReliabilityCheck] = []
    for aspect, theirs in labels.frames.items():
        keys = theirs.columns[:-1]
        single = "repeat" in keys
        mine = (graded.answers if single else graded.frame).filter(pl.col("aspect") == aspect)
        both = mine.join(theirs.rename({"value": "other"}), on=keys, how="left", maintain_order="left")
        of = _aspect_suffix(grader, aspect)
        if labels.binary:
            right = (pl.col("value") > 0).cast(pl.Float64)
            share = right if single else pl.col("each").list.eval((pl.element() > 0).cast(pl.Float64)).list.mean()
            both, of = both.with_columns(value=share), f"{of}, correct or not"
        # The mean of several labels is no label.
        labelled = grader.labelled and (single or mine["of"].max() == 1)
        found += agreement_checks("given labels", both, labelled=labelled, ordinal=grader.ordinal, of=of)
    return found
