"""Which tokens to call key tokens: ``a`` and ``top`` of GroGU, chosen on a validation set by win rate."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.core.errors import InputError
from ragworth.judging.annotators.confidence import fallback_count

GRID_A = tuple(round(0.05 * n, 2) for n in range(11))
GRID_TOP = tuple(round(0.1 * n, 1) for n in range(11))
MEASURES = ("KeyPPL", "KeyEntropy")

Wins = npt.NDArray[np.float64]


class TunedMeasure(NamedTuple):
    """The best pair of settings of a measure, and how well it does."""

    measure: str
    a: float
    top: float
    win_rate: float
    """On the same queries that it was chosen on."""
    cross_validated: float
    """On queries that it was not chosen on."""
    pairs: int
    queries: int


class TuningResult(NamedTuple):
    best: tuple[TunedMeasure, ...]
    grid: pl.DataFrame
    """measure, a, top, win_rate: all pairs of settings."""


def tune_key_tokens(
    judged: pl.DataFrame,
    labels: pl.DataFrame,
    *,
    a: Sequence[float] = GRID_A,
    top: Sequence[float] = GRID_TOP,
    folds: int = 5,
    seed: int = 0,
) -> TuningResult:
    """Find ``a`` and ``top`` without asking the model again.

    Parameters
    ----------
    judged: the frame of a ``confidence`` annotation, with the tokens' entropies and surprisals.
    labels: what is better than what: a ``value`` for each (query, passage), or each (system, query), of ``judged``.
    folds: parts of the queries for cross-validation, which says how well the choice does on other queries.

    A pair is two contexts of the same query with different labels; it is won when the model is surer with the
    better one. Ties are half a win. Equal win rates go to the setting nearest to the paper's (0.05 and 0.1).
    """
    keys = [key for key in ("system", "query", "passage") if key in judged.columns]
    known = judged.filter(pl.col("answer_tokens").is_not_null() & pl.col("surprisals_alone").is_not_null())
    if not known.height:
        raise InputError(
            "there are no tokens to choose among",
            expected="judgments of confidence with key tokens, in Parquet or JSONL",
            remedy="ragworth annotate confidence … -o confidence.parquet",
        )
    rows = known.join(labels.select(*keys, pl.col("value").alias("label")).drop_nulls(), on=keys, maintain_order="left")
    pairs = _pairs(rows)
    if not pairs:
        raise InputError(
            "no two contexts of one query have different labels", expected="a better and a worse one for some queries"
        )
    queries = sorted({query for query, _, _ in pairs})
    order = random.Random(seed).sample(range(len(queries)), len(queries))
    fold = {query: order[n] % max(2, folds) for n, query in enumerate(queries)}
    parts = np.array([fold[query] for query, _, _ in pairs])
    settings = [(x, y) for x in a for y in top]
    measures = [m for m in MEASURES if m != "KeyEntropy" or rows["entropies_alone"].null_count() == 0]
    grid: list[tuple[str, float, float, float]] = []
    best: list[TunedMeasure] = []
    for measure in measures:
        sure = _confidences(rows, measure, a, top)
        wins = np.array([_wins(column, pairs) for column in sure])
        grid += [(measure, x, y, float(w.mean())) for (x, y), w in zip(settings, wins, strict=True)]
        chosen = _best_setting(wins, settings)
        held = [
            wins[_best_setting(wins[:, parts != part], settings), parts == part]
            for part in sorted(set(parts.tolist()))
            if (parts != part).any()
        ]
        across = float(np.concatenate(held).mean()) if held else float("nan")
        best.append(
            TunedMeasure(measure, *settings[chosen], float(wins[chosen].mean()), across, len(pairs), len(queries))
        )
    schema = {"measure": pl.String, "a": pl.Float64, "top": pl.Float64, "win_rate": pl.Float64}
    return TuningResult(tuple(best), pl.DataFrame(grid, schema=schema, orient="row"))


def _pairs(rows: pl.DataFrame) -> list[tuple[str, int, int]]:
    """Rows of one query of which the first has the better label."""
    places: dict[str, list[int]] = {}
    for number, query in enumerate(rows["query"]):
        places.setdefault(query, []).append(number)
    label = rows["label"].to_list()
    return [(query, i, j) for query, each in places.items() for i in each for j in each if label[i] > label[j]]


def _confidences(rows: pl.DataFrame, measure: str, a: Sequence[float], top: Sequence[float]) -> Wins:
    """The measure of every row for every pair of settings: (settings × rows).

    The key tokens depend on ``a`` alone and those taken in their place on ``top`` alone, so each is computed once.
    """
    name = "surprisals" if measure == "KeyPPL" else "entropies"
    by_a, by_top = np.full((len(a), rows.height), np.nan), np.empty((len(top), rows.height))
    for number, (with_context, alone) in enumerate(rows.select(name, f"{name}_alone").iter_rows()):
        values = np.asarray(with_context)
        change = np.abs(values - np.asarray(alone))
        for place, least in enumerate(a):
            if (key := change > least).any():
                by_a[place, number] = values[key].mean()
        highest = np.cumsum(-np.sort(-values))
        for place, share in enumerate(top):
            many = fallback_count(share, len(values))
            by_top[place, number] = highest[many - 1] / many
    means = np.array([np.where(np.isnan(x), y, x) for x in by_a for y in by_top])
    return -np.exp(means) if measure == "KeyPPL" else -means


def _wins(sure: Wins, pairs: list[tuple[str, int, int]]) -> Wins:
    """1 for a pair that is won, ½ for a tie."""
    better, worse = sure[[i for _, i, _ in pairs]], sure[[j for _, _, j in pairs]]
    close = np.isclose(better, worse, rtol=1e-12, atol=0)
    return np.where(close, 0.5, np.where(better > worse, 1.0, 0.0))


def _best_setting(wins: Wins, settings: Sequence[tuple[float, float]]) -> int:
    rates = wins.mean(axis=1)
    return max(
        range(len(settings)),
        key=lambda n: (round(float(rates[n]), 12), -abs(settings[n][0] - 0.05) - abs(settings[n][1] - 0.1)),
    )
