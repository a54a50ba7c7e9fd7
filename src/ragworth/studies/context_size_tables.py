"""Contexts of several sizes in tables: what metrics predict at each, how far that strays, what became of it."""

from __future__ import annotations

import numpy as np
import polars as pl

from ragworth.errors import format_list
from ragworth.studies.arms import KINDS, SHARE, ArmMean, arm_means
from ragworth.studies.context_size_results import SizedCase


def correlations(sized: SizedCase) -> pl.DataFrame:
    """What each metric predicts at each size."""
    rows = []
    for one in sized.found:
        ends = one.span if one.span is not None else (None, None)
        why = one.reason or ", ".join(f"{reason}: {number:,}" for reason, number in one.left_out.items())
        lost = sum(one.left_out.values())
        rows.append((sized.case.name, one.over, one.metric, one.k, one.value, *ends, one.deviation, one.n, lost, why))
    schema = {"case": pl.String, "over": pl.String, "metric": pl.String, "k": pl.Int64}
    schema |= dict.fromkeys(("correlation", "low", "high", "deviation"), pl.Float64)
    return pl.DataFrame(rows, schema=schema | {"n": pl.Int64, "left out": pl.Int64, "why": pl.String}, orient="row")


def spread(sized: SizedCase) -> pl.DataFrame:
    """How far each metric strays over the sizes, the best first."""
    rows = []
    for over in sized.ways:
        for metric in sized.ranked(over):
            line = sized.line(over, metric)
            values = np.array(list(line.values()))
            low, high = min(line, key=lambda k: line[k]), max(line, key=lambda k: line[k])
            deviation = float(values.std(ddof=1)) if len(values) > 1 else None
            ends = (line[low], low, line[high], high)
            rows.append((sized.case.name, over, metric, float(values.mean()), deviation, *ends, len(values)))
    numbers = {"mean": pl.Float64, "deviation": pl.Float64, "lowest": pl.Float64, "lowest at k": pl.Int64}
    numbers |= {"highest": pl.Float64, "highest at k": pl.Int64, "sizes": pl.Int64}
    schema = {"case": pl.String, "over": pl.String, "metric": pl.String, **numbers}
    return pl.DataFrame(rows, schema=schema, orient="row")


def change(sized: SizedCase) -> pl.DataFrame:
    """By how much each metric predicts better or worse at the largest size than at the smallest."""
    sizes, rows = list(sized.rows), []
    for metric, one, p in sized.changes():
        ends = one.interval if one.interval is not None else (None, None)
        chances = (one.p, p) if one.n > 1 else (None, None)
        rows.append((sized.case.name, metric, sizes[0], sizes[-1], one.value, *ends, *chances, one.n))
    schema = {"case": pl.String, "metric": pl.String, "from": pl.Int64, "to": pl.Int64}
    schema |= dict.fromkeys(("difference", "low", "high", "p", "p_holm"), pl.Float64)
    return pl.DataFrame(rows, schema=schema | {"queries": pl.Int64}, orient="row")


def outcomes(sized: SizedCase) -> pl.DataFrame:
    """What became of the contexts of each size; every query counts the same. One row where size makes no difference."""
    made = []
    for size, rows in list(sized.rows.items())[: None if sized.moves else 1]:
        mean: ArmMean = arm_means(sized.worth(size)[1][:, None], sized.study, SHARE if sized.graded else None)[0]
        row: dict[str, object] = {"case": sized.case.name, "k": size if sized.moves else None}
        if sized.graded:
            count = np.bincount(rows.units)
            shares = {
                kind: float((np.bincount(rows.units, rows.outcome == grade) / count).mean())
                for kind, grade in KINDS.items()
            }
            row |= shares
        else:
            row |= {"mean": mean.value}
        row |= {"low": mean.span.low if mean.span else None, "high": mean.span.high if mean.span else None}
        made.append(row | {"queries": mean.n, "contexts": len(rows.queries)})
    numbers = [name for name in (*KINDS, "mean", "low", "high") if name in made[0]]
    return pl.DataFrame(made, schema_overrides={"k": pl.Int64, **dict.fromkeys(numbers, pl.Float64)})


def lines(sized: SizedCase, over: str, most: int) -> tuple[pl.DataFrame, int]:
    """Curves to draw, the best first, those of equal metrics as one; and how many metrics are not drawn."""
    same: dict[tuple[tuple[int, float], ...], list[str]] = {}
    for metric in sized.ranked(over):
        line = sized.line(over, metric)
        same.setdefault(tuple((k, round(value, 9)) for k, value in line.items()), []).append(metric)
    names = {group[0]: format_list(group, 4) for group in list(same.values())[:most]}
    rows = [
        (names[one.metric], one.k, one.value, *(one.span or (None, None)), one.n)
        for metric in names
        for one in sized.found
        if one.over == over and one.metric == metric and one.value is not None
    ]
    numbers = dict.fromkeys(("value", "low", "high"), pl.Float64)
    schema = {"line": pl.String, "place": pl.Int64, **numbers, "n": pl.Int64}
    drawn = sum(len(group) for group in list(same.values())[:most])
    return pl.DataFrame(rows, schema=schema, orient="row"), len(sized.ranked(over)) - drawn
