"""From scores by two judges to estimates: means and differences, with what the cheap judge saved of the other."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.comparison import ScoreMatrix, score_matrices, summarise, value_bounds
from ragworth.core.errors import InputError, format_count, format_list, quote_short
from ragworth.data import OK, Contexts, Judgments, Ratings, Scores
from ragworth.data.coercion import Data
from ragworth.metrics.ground_truth import Tokens
from ragworth.metrics.parsing import Metrics
from ragworth.stats.correlation import pearson
from ragworth.stats.paired import holm
from ragworth.stats.prediction_powered import PpiEstimate, ppi_difference, ppi_mean
from ragworth.stats.range_intervals import is_constant
from ragworth.two_judges.corrections import correct_cheap
from ragworth.two_judges.scores import TwoJudgeScores, judged_metrics

Floats = npt.NDArray[np.float64]

FEW_SAMPLED_QUERIES = 20
"""Queries below which an interval rests on too little to be relied on."""

ESTIMATE_COLUMNS: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(["metric", "system"], pl.String),
    **dict.fromkeys(["estimate", "low", "high", "weight", "correlation"], pl.Float64),
    **dict.fromkeys(["n", "total"], pl.Int64),
    "missing": pl.String,
    **dict.fromkeys(["cheap", "cheap_low", "cheap_high", "sample", "sample_low", "sample_high"], pl.Float64),
    **dict.fromkeys(["effective", "judged", "saved", "asked"], pl.Int64),
}
DIFFERENCE_COLUMNS: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(["metric", "baseline", "system"], pl.String),
    **dict.fromkeys(["difference", "low", "high", "p", "p_holm", "weight", "correlation"], pl.Float64),
    **dict.fromkeys(["n", "total"], pl.Int64),
    **dict.fromkeys(["cheap", "sample", "sample_low", "sample_high"], pl.Float64),
    "effective": pl.Int64,
}


class EstimationResult(NamedTuple):
    """What a budget came to.

    Attributes
    ----------
    frame: by metric and system: ``estimate`` with its interval ``low`` to ``high``; ``weight`` (λ, how much is made of
        the cheap judge) and the ``correlation`` (Pearson's r) of both judges' values in the sample; ``n`` queries of
        the sample that could be used, of ``total`` with a cheap value, and why others of the sample are ``missing``;
        the ``cheap`` mean and that of the ``sample`` alone with their intervals; ``effective``, the queries that the
        sample alone would have needed for an interval as short, at most all; ``judged``, the expensive judgments that
        the row is from, and ``saved``, how many more of them so many queries would have taken; ``asked``, the expensive
        judgments of what any of the systems shows. No usable query: no estimate. One: no interval.
    differences: by metric and system against ``baseline``, query by query: the same, and ``p`` of no difference, with
        Holm's correction over the systems of a metric.
    notes: what did not match, and what is to be taken with care.
    """

    frame: pl.DataFrame
    differences: pl.DataFrame
    notes: tuple[str, ...]


def estimate(
    contexts: Contexts | Data,
    cheap: Judgments | Data,
    expensive: Judgments | Data,
    metrics: Metrics,
    *,
    others: Judgments | Data | None = None,
    corrections: Judgments | Data | None = None,
    ratings: Ratings | None = None,
    tokens: Tokens | None = None,
    baseline: str | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    folder: Path | None = None,
) -> EstimationResult:
    """Mean of each metric as the expensive judge would have it for all queries, from a sample of them.

    Parameters
    ----------
    contexts: what the systems show.
    cheap: judgments of all that is shown.
    expensive: judgments of the same aspect or aspects for some queries, which must have been drawn at random.
    metrics: those that read one of these aspects, in their written form.
    others: judgments that both sides share, such as relevance where abstention is what is judged twice.
    corrections: expensive judgments of passages that were drawn independently of the sample, such as those on which
        judges disagree. They replace the cheap ones, so the cheap judge is closer to the expensive one.
    ratings, tokens: for metrics that read them besides.
    baseline: the system that others are compared with; the first when not given.
    level: of all intervals.
    resamples, seed: of the interval of the cheap mean, the only one that is resampled.
    folder: where paths of files start that metrics name.

    A query counts for a system where the expensive judge has judged all that the cheap one has, as far down as the
    metric looks. Queries of which the cheap judge has judged nothing cannot be in the sample, and are left out of all.
    """
    shown = contexts if isinstance(contexts, Contexts) else Contexts(contexts)
    if baseline is not None and baseline not in shown.systems:
        known = format_list(list(shown.systems), 12)
        raise InputError(f"there is no system {quote_short(baseline)} to compare with", expected=known)
    shared = Judgments.concat([]) if others is None else _table(others)
    more = {"ratings": ratings, "tokens": tokens, "folder": folder}
    first, notes = _table(cheap), []
    if corrections is not None:
        corrected = correct_cheap(first.frame, _table(corrections).frame, ["query", "passage", "aspect"])
        first, notes = Judgments.trusted(corrected.frame, first.notes), [corrected.note]
    judged = TwoJudgeScores(shown, first, _table(expensive), shared, more)
    asked = judged_metrics(metrics, judged.aspects, folder)
    both = judged.scored(asked)
    alone = summarise(Scores.trusted(both), level=level, resamples=resamples, seed=seed)
    frame = estimate_means(both, alone, {each.name: judged.bought(each) for each in asked}, level)
    notes += [*judged.notes, *estimate_warnings(frame)]
    return EstimationResult(frame, compare_estimates(both, baseline, level), tuple(notes))


def _table(data: Judgments | Data) -> Judgments:
    return data if isinstance(data, Judgments) else Judgments(data)


def estimate_warnings(frame: pl.DataFrame) -> list[str]:
    """Notes on estimates to be read with care; the same note on several is given once."""
    told: dict[str, list[str]] = {}
    for row in frame.iter_rows(named=True):
        n, like = row["n"], row["correlation"]
        words = []
        if row["estimate"] is None:
            why = f" ({row['missing']})" if row["missing"] else ""
            words.append(f"no query of the sample can be used{why}, so there is no estimate")
        elif n < FEW_SAMPLED_QUERIES:
            queries = format_count(n, "query", "queries")
            words.append(
                f"{queries} of the sample could be used; with fewer than {FEW_SAMPLED_QUERIES}, do not rely on the "
                "interval"
            )
        if FEW_SAMPLED_QUERIES <= n < row["total"] and (like is None or abs(like) * math.sqrt(n) < 2):
            said = "one of the judges gives all queries the same" if like is None else f"r = {like:.2f}"
            words.append(f"the judges do not go together ({said}): the estimate is next to that of the sample alone")
        for each in words:
            told.setdefault(each, []).append(f"{row['metric']} of {row['system']}")
    return [f"{format_list(about, 3)}: {words}" for words, about in told.items()]


def estimate_means(
    both: pl.DataFrame, alone: pl.DataFrame, bought: dict[str, pl.DataFrame], level: float
) -> pl.DataFrame:
    """Estimates by metric and system, from scores with ``dear`` and ``use``."""
    means = {(row["metric"], row["system"]): row for row in alone.iter_rows(named=True)}
    why = _reasons(both)
    rows: list[dict[str, object]] = []
    for f, y in _sides(both):
        some = bought[f.metric]
        asked = some.select("query", "passage", "aspect").n_unique() if some.height else 0
        for i, system in enumerate(f.systems):
            cheap, dear = f.values[:, i], y.values[:, i]
            found = ppi_mean(cheap, dear, level=level, bounds=value_bounds(f.metric))
            used = pl.Series(y.queries).filter(pl.Series(~np.isnan(dear)))
            judged = some.filter((pl.col("system") == system) & pl.col("query").is_in(used.to_list())).height
            mean = means[f.metric, system]
            rows.append(
                {
                    "metric": f.metric,
                    "system": system,
                    "estimate": found.value,
                    **_shared_columns(found, cheap, dear),
                    "missing": why.get((f.metric, system), ""),
                    "cheap": mean["mean"],
                    "cheap_low": mean["low"],
                    "cheap_high": mean["high"],
                    "judged": judged,
                    "saved": None
                    if (queries := _effective(found)) is None
                    else round(judged * (queries / found.n - 1)),
                    "asked": asked,
                }
            )
    return pl.DataFrame(rows, schema=ESTIMATE_COLUMNS)


def compare_estimates(both: pl.DataFrame, baseline: str | None, level: float) -> pl.DataFrame:
    """Estimated differences from a baseline, query by query."""
    parts = [pl.DataFrame(schema=DIFFERENCE_COLUMNS)]
    for f, y in _sides(both):
        base = f.systems.index(baseline) if baseline is not None else 0
        rows: list[dict[str, object]] = []
        for i, system in enumerate(f.systems):
            if i == base:
                continue
            cheap, dear = (side.values[:, [base, i]].T for side in (f, y))
            found = ppi_difference((cheap[0], cheap[1]), (dear[0], dear[1]), level=level, bounds=value_bounds(f.metric))
            rows.append(
                {
                    "metric": f.metric,
                    "baseline": f.systems[base],
                    "system": system,
                    "difference": found.value,
                    **_shared_columns(found, cheap[1] - cheap[0], dear[1] - dear[0]),
                    "p": found.p,
                    "cheap": found.cheap,
                }
            )
        part = pl.DataFrame(rows, schema=DIFFERENCE_COLUMNS)
        corrected = holm(part["p"].fill_null(float("nan")).to_numpy())
        parts.append(part.with_columns(pl.Series("p_holm", corrected, dtype=pl.Float64).fill_nan(None)))
    return pl.concat(parts)


def _shared_columns(found: PpiEstimate, cheap: Floats, dear: Floats) -> dict[str, object]:
    """What rows of means and of differences share."""
    low, high = found.interval or (None, None)
    plain_low, plain_high = found.plain_interval or (None, None)
    return {
        "low": low,
        "high": high,
        "weight": found.weight if found.value is not None else None,
        "correlation": _correlation(cheap, dear),
        "n": found.n,
        "total": found.total,
        "sample": found.plain,
        "sample_low": plain_low,
        "sample_high": plain_high,
        "effective": _effective(found),
    }


def _effective(found: PpiEstimate) -> int | None:
    """Queries that the sample alone would have needed; there are no more than all."""
    return None if found.needed is None else min(found.needed, found.total)


def _correlation(cheap: Floats, dear: Floats) -> float | None:
    """Pearson's r over the queries that have both values; None where one side does not vary."""
    there = ~(np.isnan(cheap) | np.isnan(dear))
    f, y = cheap[there], dear[there]
    return None if len(f) < 2 or is_constant(f) or is_constant(y) else pearson(f, y)


def _sides(both: pl.DataFrame) -> list[tuple[ScoreMatrix, ScoreMatrix]]:
    """For each metric its values by the cheap and by the expensive judge, queries × systems."""
    dear = Scores.trusted(both.with_columns(pl.col("dear").alias("value")))
    return list(zip(score_matrices(Scores.trusted(both)), score_matrices(dear), strict=True))


def _reasons(both: pl.DataFrame) -> dict[tuple[str, str], str]:
    """Why queries of the sample are of no use, with counts."""
    counts = both.filter(pl.col("use") != OK).group_by("metric", "system", "use").len("number")
    made: dict[tuple[str, str], list[str]] = {}
    for metric, system, use, number in counts.sort("number", "use", descending=[True, False]).iter_rows():
        made.setdefault((metric, system), []).append(f"{number} {use}")
    return {key: ", ".join(words) for key, words in made.items()}
