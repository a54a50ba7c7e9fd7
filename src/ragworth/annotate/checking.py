"""How far judgments can be trusted: do labels hold the probability, does order decide, do others agree?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from ragworth.annotate.annotating import KEYS, Annotated, finished, made
from ragworth.annotate.contract import Annotator, Item
from ragworth.calls.job import Job
from ragworth.errors import PromptError
from ragworth.judging.settings import settings_of
from ragworth.stats.agreement import cohen_kappa
from ragworth.stats.correlation import spearman
from ragworth.stats.ranking import auc_interval, pairs_within, win_rate
from ragworth.stats.resampled import Span
from ragworth.tables import OK

LITTLE = 0.05
"""Probability of all labels together below which a model does not take part in the choice."""

LEVEL = 1.0
"""Least relevance by which a human calls a passage relevant."""


class Check(NamedTuple):
    """One number about judgments, from ``n`` of ``total`` of them; or the reason why it cannot be had."""

    check: str
    measure: str
    value: float | None
    interval: Span | None
    n: int
    total: int
    reason: str = ""


def check(
    annotator: Annotator, things: Sequence[Item], judged: Annotated, job: Job, second: Job | None = None
) -> list[Check]:
    """All that can be said of these judgments. The other order, and another judge, are asked for it."""
    found = _mass(judged.frame)
    if annotator.swapped:
        found += _other_order(annotator, things, judged, job)
    if second is not None:
        own = {each.name: getattr(annotator, each.name) for each in settings_of(type(annotator))}
        other = made(annotator.kind, second.card, annotator.texts.collection, annotator.folder, own)
        found += _compared(f"judge {second.card.name}", annotator, judged, finished(other, things, second))
    return found + _humans(annotator, judged)


def _mass(frame: pl.DataFrame) -> list[Check]:
    """How much probability the labels hold together."""
    if "mass" not in frame.columns or not frame["mass"].count():
        return []
    mass = frame["mass"].drop_nulls().to_numpy()
    title = "labels' probability"
    return [
        Check(title, "median", float(np.median(mass)), None, len(mass), frame.height),
        Check(title, f"share below {LITTLE:g}", float((mass < LITTLE).mean()), None, len(mass), frame.height),
    ]


def _other_order(annotator: Annotator, things: Sequence[Item], judged: Annotated, job: Job) -> list[Check]:
    """Ask again with everything in the other order."""
    title = "other order"
    try:
        swapped = replace(annotator, swap=True)
        for name in swapped.asked:
            swapped.prompt(name)
    except PromptError:
        missing = ", ".join(f"{name}-swapped.txt" for name in annotator.asked)
        return [Check(title, "–", None, None, 0, judged.frame.height, f"there is no {missing} beside your own prompt")]
    return _compared(title, annotator, judged, finished(swapped, things, job))


def _compared(title: str, annotator: Annotator, first: Annotated, second: Annotated) -> list[Check]:
    """How far two judgments of the same things agree."""
    keys = [*KEYS[annotator.judged], *(["aspect"] if "aspect" in first.frame.columns else [])]
    both = first.frame.select(*keys, "value").join(
        second.frame.select(*keys, pl.col("value").alias("other")), on=keys, maintain_order="left"
    )
    found: list[Check] = []
    for aspect in annotator.valued:
        mine = both.filter(pl.col("aspect") == aspect) if "aspect" in both.columns else both
        found += _agreement(title, annotator, mine, f" of {aspect}" if len(annotator.valued) > 1 else "")
    return found


def _agreement(title: str, annotator: Annotator, both: pl.DataFrame, of: str) -> list[Check]:
    total = both.height
    known = both.drop_nulls(["value", "other"])
    a, b = known["value"].to_numpy(), known["other"].to_numpy()
    groups = known["query"].to_numpy()
    if annotator.labelled:
        many = len({*a.tolist(), *b.tolist()}) > 2
        return [_kappa(title, a, b, groups, total, "quadratic" if many else None, of)]
    rho = spearman(a, b)
    reason = "" if rho == rho else "one side is constant, or nothing was judged by both"
    checks = [Check(title, f"Spearman ρ{of}", rho if rho == rho else None, None, len(a), total, reason)]
    if len(a):
        checks.append(Check(title, f"mean difference{of}", float(np.abs(a - b).mean()), None, len(a), total))
    return checks


def _kappa(
    title: str,
    a: np.ndarray[tuple[int], np.dtype[np.float64]],
    b: np.ndarray[tuple[int], np.dtype[np.float64]],
    groups: np.ndarray[tuple[int], np.dtype[np.object_]],
    total: int,
    weights: str | None,
    of: str = "",
) -> Check:
    kappa = cohen_kappa(a, b, weights=weights, groups=groups, resamples=1000)  # type: ignore[arg-type]
    name = f"Cohen κ{', quadratic' if weights else ''}{of}"
    return Check(title, name, kappa.value, kappa.interval, kappa.n, total, kappa.reason)


def _humans(annotator: Annotator, judged: Annotated) -> list[Check]:
    """How far judgments agree with the labels that the collection has."""
    collection, frame = annotator.texts.collection, judged.frame
    if annotator.judged == "rating":
        if collection.ratings is None:
            return []
        labels = collection.ratings.frame.filter(pl.col("status") == OK)
        keys = ["query", "passage", "subquestion"]
        both = frame.join(labels.select(*keys, pl.col("value").alias("label")), on=keys).drop_nulls(["value"])
        value, label, query = (both[name].to_numpy() for name in ("value", "label", "query"))
        return [_kappa("given ratings", value, label, query, frame.height, "quadratic")]
    if annotator.judged != "passage" or collection.relevance is None:
        return []
    keys = ["query", "passage"]
    labels = collection.relevance.of("relevance").filter(pl.col("status") == OK)
    known = frame.join(labels.select(*keys, pl.col("value").alias("label")), on=keys, maintain_order="left")
    found: list[Check] = []
    for aspect in annotator.valued:
        mine = known.filter(pl.col("aspect") == aspect)
        found += _against(annotator, mine, frame.height // len(annotator.valued), aspect)
    return found


def _against(annotator: Annotator, both: pl.DataFrame, total: int, aspect: str) -> list[Check]:
    """Against human labels of relevance: κ of labels, and whether values tell relevant passages from others."""
    title = "given labels"
    of = f" of {aspect}" if len(annotator.valued) > 1 else ""
    checks = []
    if annotator.labelled:
        sure = both.drop_nulls(["value"])
        said, label = ((sure[name] >= LEVEL).to_numpy() * 1.0 for name in ("value", "label"))
        checks.append(_kappa(title, said, label, sure["query"].to_numpy(), total, None, of))
    # Where there is a probability it says more than the label, also where the model's values were withdrawn.
    column = next((name for name in ("p", "expected") if name in both.columns and both[name].count()), "value")
    known = both.drop_nulls([column])
    relevant, groups = (known["label"] >= LEVEL).to_numpy(), known["query"].to_numpy()
    values = annotator.worth * known[column].to_numpy()
    of = of or (f" of {column}" if column != "value" else "")
    area = auc_interval(values, relevant, groups)
    checks.append(Check(title, f"AUC{of}", area.value, area.interval, len(values), total, area.reason))
    pairs, whose = pairs_within(values, relevant, groups)
    won = win_rate(pairs, whose)
    reason = "" if won.value is not None else "no query has both kinds"
    checks.append(Check(title, f"wins within queries{of}", won.value, won.interval, len(values), total, reason))
    return checks


def table(checks: Sequence[Check]) -> pl.DataFrame:
    """Checks for people."""
    rows = [
        {
            "check": one.check,
            "measure": one.measure,
            "value": one.value,
            "95 % interval": "–" if one.interval is None else f"[{one.interval.low:.3f}, {one.interval.high:.3f}]",
            "n of N": f"{one.n:,} of {one.total:,}",
            "": one.reason,
        }
        for one in checks
    ]
    return pl.DataFrame(rows, schema_overrides={"value": pl.Float64})
