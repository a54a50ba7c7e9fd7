"""How far judgments can be trusted: do labels hold the probability, does order decide, do others agree?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from ragworth.annotators.contract import UNIT_KEYS, AnnotationItem, AnnotationResult, Annotator
from ragworth.calls.job import Job
from ragworth.calls.programs import Forecast
from ragworth.errors import PromptError
from ragworth.stats.auc import auc_interval, pairs_within, win_rate
from ragworth.tables import OK
from ragworth.tasks.contract import plan_task, run_task
from ragworth.tasks.reliability import ReliabilityCheck, agreement_checks, kappa, mass_checks

FEW = 5
"""Queries below which an interval would promise too much."""

LEVEL = 1.0
"""Least relevance by which a human calls a passage relevant."""


def check_annotation(
    annotator: Annotator,
    items: Sequence[AnnotationItem],
    judged: AnnotationResult,
    job: Job,
) -> list[ReliabilityCheck]:
    """All that can be said of these judgments. The model is asked again in the other order."""
    found = mass_checks(judged.frame)
    if annotator.swapped:
        found += _check_other_order(annotator, items, judged, job)
    return found + _check_against_humans(annotator, judged)


def plan_annotation_and_checks(
    annotator: Annotator,
    items: Sequence[AnnotationItem],
    job: Job,
    checked: bool,
) -> list[tuple[str, Forecast]]:
    """What judging would take, and what checking would take on top of it."""
    parts = [("judgments", plan_task(annotator, items, job))]
    swapped = _swapped(annotator) if checked and annotator.swapped else None
    if swapped is not None:
        parts.append(("other order", plan_task(swapped, items, job)))
    return parts


def _swapped(annotator: Annotator) -> Annotator | None:
    """The same annotator with everything in the other order; None where a prompt has no other order."""
    try:
        return replace(annotator, swap=True)
    except PromptError:
        return None


def _check_other_order(
    annotator: Annotator, things: Sequence[AnnotationItem], judged: AnnotationResult, job: Job
) -> list[ReliabilityCheck]:
    """Ask again with everything in the other order."""
    title = "other order"
    swapped = _swapped(annotator)
    if swapped is None:
        missing = ", ".join(f"{Path(each.file).stem}-swapped.txt" for each in annotator.templates.values())
        return [
            ReliabilityCheck(title, "–", None, None, 0, judged.frame.height, f"there is no {missing} beside the prompt")
        ]
    return _agreement_of_runs(title, annotator, judged, run_task(swapped, things, job))


def _agreement_of_runs(
    title: str, annotator: Annotator, first: AnnotationResult, second: AnnotationResult
) -> list[ReliabilityCheck]:
    """How far two judgments of the same things agree."""
    keys = [*UNIT_KEYS[annotator.judged_unit], *(["aspect"] if "aspect" in first.frame.columns else [])]
    both = first.frame.select(*keys, "value").join(
        second.frame.select(*keys, pl.col("value").alias("other")), on=keys, maintain_order="left"
    )
    found: list[ReliabilityCheck] = []
    for aspect in annotator.value_names:
        mine = both.filter(pl.col("aspect") == aspect) if "aspect" in both.columns else both
        of = f" of {aspect}" if len(annotator.value_names) > 1 else ""
        found += agreement_checks(title, mine, labelled=annotator.labelled, ordinal=annotator.ordinal, of=of)
    return found


def _check_against_humans(annotator: Annotator, judged: AnnotationResult) -> list[ReliabilityCheck]:
    """How far judgments agree with the labels that the collection has."""
    collection, frame = annotator.texts.collection, judged.frame
    if annotator.judged_unit == "rating":
        if collection.ratings is None:
            return []
        labels = collection.ratings.frame.filter(pl.col("status") == OK)
        keys = ["query", "passage", "subquestion"]
        both = frame.join(labels.select(*keys, pl.col("value").alias("label")), on=keys).drop_nulls(["value"])
        value, label, query = (both[name].to_numpy() for name in ("value", "label", "query"))
        return [kappa("given ratings", value, label, query, frame.height, weighted=True)]
    if annotator.judged_unit != "passage" or collection.relevance is None:
        return []
    keys = ["query", "passage"]
    labels = collection.relevance.of("relevance").filter(pl.col("status") == OK)
    known = frame.join(labels.select(*keys, pl.col("value").alias("label")), on=keys, maintain_order="left")
    found: list[ReliabilityCheck] = []
    for aspect in annotator.value_names:
        mine = known.filter(pl.col("aspect") == aspect)
        found += _check_against_relevance(annotator, mine, frame.height // len(annotator.value_names), aspect)
    return found


def _check_against_relevance(
    annotator: Annotator, both: pl.DataFrame, total: int, aspect: str
) -> list[ReliabilityCheck]:
    """Against human labels of relevance: κ of labels, and whether values tell relevant passages from others."""
    title = "given labels"
    of = f" of {aspect}" if len(annotator.value_names) > 1 else ""
    checks = []
    if annotator.labelled:
        sure = both.drop_nulls(["value"])
        said, label = ((sure[name] >= LEVEL).to_numpy() * 1.0 for name in ("value", "label"))
        checks.append(kappa(title, said, label, sure["query"].to_numpy(), total, weighted=False, of=of))
    # Where there is a probability it says more than the label, also where the model's values were withdrawn.
    column = next((name for name in ("p_raw", "p", "expected") if name in both.columns and both[name].count()), "value")
    known = both.drop_nulls([column])
    relevant, groups = (known["label"] >= LEVEL).to_numpy(), known["query"].to_numpy()
    values = annotator.worth * known[column].to_numpy()
    of = of or (f" of {column}" if column != "value" else "")
    area = auc_interval(values, relevant, groups)
    few = "" if area.groups >= FEW or area.value is None else f"too few queries ({area.groups}) for an interval"
    checks.append(
        ReliabilityCheck(
            title, f"AUC{of}", area.value, None if few else area.interval, len(values), total, area.reason or few
        )
    )
    pairs, whose = pairs_within(values, relevant, groups)
    won = win_rate(pairs, whose)
    reason = few if won.value is not None else "no query has both kinds"
    span = None if few else won.interval
    checks.append(ReliabilityCheck(title, f"wins within queries{of}", won.value, span, len(values), total, reason))
    return checks
