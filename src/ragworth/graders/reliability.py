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
from ragworth.graders.grading import Graded, finished, made, planned
from ragworth.graders.human_labels import People
from ragworth.tasks.options import settings_of
from ragworth.tasks.reliability import Check, agreement, mass_checks, share_budget

KEYS = ["system", "query", "repeat", "aspect"]


def check(
    grader: Grader,
    answers: Sequence[Answer],
    graded: Graded,
    job: Job | None,
    second: Job | None = None,
    labels: People | None = None,
) -> list[Check]:
    """All that can be said of these grades. The other order, and another judge, are asked for it.

    ``labels`` are grades by people (`ragworth.graders.human_labels`).
    """
    found = mass_checks(graded.answers)
    if job is not None and hasattr(grader, "swapped"):
        found += _other_order(grader, answers, graded, job)
    if second is not None:
        share_budget(job, second)
        own = {each.name: getattr(grader, each.name) for each in settings_of(type(grader))}
        other = made(grader.kind, second.card, grader.texts.collection, grader.book, grader.folder, own)
        found += _compared(
            f"judge {second.card.name}", grader, graded, finished(other, answers, second, controlled=False)
        )
    if grader.kind == "judge":
        alike = {name: getattr(grader, name) for name in ("citations", "level", "partial")}
        by_words = made("deterministic", None, grader.texts.collection, grader.book, None, alike)
        found += _compared("by words", grader, graded, finished(by_words, answers, None))
    return found + (_people(grader, graded, labels) if labels is not None else [])


def planned_all(
    grader: Grader, answers: Sequence[Answer], job: Job, other: Grader | None, second: Job | None, checked: bool
) -> list[tuple[str, Forecast]]:
    """What grading would take, and what checking would take on top of it."""
    parts = [("grades", planned(grader, answers, job))]
    swapped = _swapped(grader) if checked else None
    if swapped is not None:
        parts.append(("other order", planned(swapped, answers, job, controlled=False)))
    if other is not None and second is not None:
        parts.append((f"judge {second.card.name}", planned(other, answers, second, controlled=False)))
    return parts


def _swapped(grader: Grader) -> Grader | None:
    """The same grader with everything in the other order; None where a user's own prompt has no other order."""
    if not hasattr(grader, "swapped"):
        return None
    other = replace(grader, swapped=not grader.swapped)  # type: ignore[call-arg]
    own = grader.folder is not None and (Path(grader.folder) / f"{grader.prompts[0]}.txt").is_file()
    try:
        return None if own and not Path(other.prompt.file).is_relative_to(str(grader.folder)) else other
    except PromptError:
        return None


def _other_order(grader: Grader, answers: Sequence[Answer], graded: Graded, job: Job) -> list[Check]:
    """Ask again with everything in the other order."""
    title = "other order"
    other = _swapped(grader)
    if other is None:
        reason = f"there is no {grader.prompts[0]}-swapped.txt beside your own prompt"
        return [Check(title, "–", None, None, 0, graded.answers.height, reason)]
    return _compared(title, grader, graded, finished(other, answers, job, controlled=False))


def _compared(title: str, grader: Grader, first: Graded, second: Graded) -> list[Check]:
    """How far two grades of the same answers agree."""
    both = first.answers.select(*KEYS, "value").join(
        second.answers.select(*KEYS, pl.col("value").alias("other")), on=KEYS, maintain_order="left"
    )
    return [
        one
        for aspect in grader.aspects
        for one in agreement(
            title,
            both.filter(pl.col("aspect") == aspect),
            labelled=grader.labelled,
            ordinal=grader.ordinal,
            of=_of(grader, aspect),
        )
    ]


def _of(grader: Grader, aspect: str) -> str:
    return f" of {aspect}" if len(grader.aspects) > 1 else ""


def _people(grader: Grader, graded: Graded, labels: People) -> list[Check]:
    """How far outcomes agree with grades by people; with those of single answers, where they tell repeats apart."""
    found: list[Check] = []
    for aspect, theirs in labels.frames.items():
        keys = theirs.columns[:-1]
        single = "repeat" in keys
        mine = (graded.answers if single else graded.frame).filter(pl.col("aspect") == aspect)
        both = mine.join(theirs.rename({"value": "other"}), on=keys, how="left", maintain_order="left")
        of = _of(grader, aspect)
        if labels.binary:
            # A partially correct answer is a correct one: only what was shown for it is at fault.
            right = (pl.col("value") > 0).cast(pl.Float64)
            share = right if single else pl.col("each").list.eval((pl.element() > 0).cast(pl.Float64)).list.mean()
            both, of = both.with_columns(value=share), f"{of}, correct or not"
        # The mean of several labels is no label.
        labelled = grader.labelled and (single or mine["of"].max() == 1)
        found += agreement("given labels", both, labelled=labelled, ordinal=grader.ordinal, of=of)
    return found
