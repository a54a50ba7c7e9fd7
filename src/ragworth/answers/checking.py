"""How far grades can be trusted: does the order of the options decide, does the grader by words agree, do people?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from ragworth.answers.book import Answer
from ragworth.answers.contract import Grader
from ragworth.answers.grading import Graded, finished, made
from ragworth.calls.job import Job
from ragworth.errors import PromptError
from ragworth.judging.checks import Check, agreement, mass_checks
from ragworth.judging.settings import settings_of
from ragworth.tables import Outcomes

KEYS = ["system", "query", "repeat", "aspect"]


def check(
    grader: Grader,
    answers: Sequence[Answer],
    graded: Graded,
    job: Job | None,
    second: Job | None = None,
    labels: Outcomes | None = None,
) -> list[Check]:
    """All that can be said of these grades. The other order, and another judge, are asked for it.

    ``labels`` are outcomes of people for the same (system, query), under the same aspects or one called ``human``.
    """
    found = mass_checks(graded.answers)
    if job is not None and hasattr(grader, "swapped"):
        found += _other_order(grader, answers, graded, job)
    if second is not None:
        own = {each.name: getattr(grader, each.name) for each in settings_of(type(grader))}
        other = made(grader.kind, second.card, grader.texts.collection, grader.book, grader.folder, own)
        found += _compared(f"judge {second.card.name}", grader, graded, finished(other, answers, second))
    if grader.kind == "judge":
        by_words = made("deterministic", None, grader.texts.collection, grader.book, None, {})
        found += _compared("by words", grader, graded, finished(by_words, answers, None))
    return found + (_people(grader, graded, labels) if labels is not None else [])


def _other_order(grader: Grader, answers: Sequence[Answer], graded: Graded, job: Job) -> list[Check]:
    """Ask again with everything in the other order."""
    title = "other order"
    name = f"{grader.prompts[0]}.txt"
    try:
        other = replace(grader, swapped=not getattr(grader, "swapped"))  # type: ignore[call-arg]  # noqa: B009
        own = grader.folder is not None and (Path(grader.folder) / name).is_file()
        if own and not Path(other.prompt.file).is_relative_to(str(grader.folder)):
            raise PromptError("the other order is not the user's own")
    except PromptError:
        reason = f"there is no {grader.prompts[0]}-swapped.txt beside your own prompt"
        return [Check(title, "–", None, None, 0, graded.answers.height, reason)]
    return _compared(title, grader, graded, finished(other, answers, job))


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
            of=f" of {aspect}" if len(grader.aspects) > 1 else "",
        )
    ]


def _people(grader: Grader, graded: Graded, labels: Outcomes) -> list[Check]:
    """How far outcomes agree with those of people."""
    found: list[Check] = []
    for aspect in grader.aspects:
        known = labels.frame.filter(pl.col("aspect").is_in([aspect, "human"]))
        both = graded.frame.filter(pl.col("aspect") == aspect).join(
            known.select("system", "query", pl.col("value").alias("other")),
            on=["system", "query"],
            maintain_order="left",
        )
        found += agreement("given labels", both, labelled=grader.labelled, of=f" of {aspect}")
    return found
