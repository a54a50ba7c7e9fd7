"""Contexts whose outcomes follow known weights: what a model would do that reads by them, with noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.stats import rankdata

from ragworth.data import Contexts, Judgments, Outcomes

Floats = npt.NDArray[np.float64]

ALPHA = (1.6, 0.9, 0.4, 0.7, 1.2)
"""Help by place: the ends count most, as to a model that loses what is in the middle."""
BETA = (0.9, 0.5, 0.2, 0.3, 0.6)
"""Harm by place."""


class World(NamedTuple):
    """Tables, and for each row of ``outcomes`` (in order) u⁺ and u⁻ by place and whether each passage is relevant."""

    contexts: Contexts
    judgments: Judgments
    outcomes: Outcomes
    helpful: Floats
    harmful: Floats
    relevant: Floats


def world(
    queries: int = 120,
    each: int = 10,
    k: int = 5,
    *,
    noise: float = 0.5,
    alpha: tuple[float, ...] = ALPHA,
    beta: tuple[float, ...] = BETA,
    binary: bool = False,
    seed: int = 0,
    prefix: str = "q",
) -> World:
    """``each`` contexts of ``k`` passages for each query, out of a pool of its own; half of them hold a relevant one.

    The outcome is 1 (correct), 0 (abstained) or −1 (wrong) by the weighed sum of utilities, with normal noise and a
    difficulty of each query, so that only contexts of the same query can be compared.
    """
    rng = np.random.default_rng(seed)
    pool = 4 * k
    relevance = (np.arange(pool) < k).astype(float)
    abstention = rng.uniform(0, 1, (queries, pool)).round(6)
    shown, places = [], []
    for q in range(queries):
        for s in range(each):
            if s % 2:
                good = rng.integers(1, k + 1)
                drawn = [*rng.choice(k, good, replace=False), *rng.choice(np.arange(k, pool), k - good, replace=False)]
                order = rng.permutation(drawn)
            else:
                order = rng.choice(pool, k, replace=False)
            places.append(order)
            shown += [(f"s{s:02}", f"{prefix}{q:04}", rank, f"p{q}-{p}") for rank, p in enumerate(order, 1)]
    order = np.array(places)
    query = np.repeat(np.arange(queries), each)
    relevant = relevance[order]
    sure = 1 - abstention[query[:, None], order]
    helpful, harmful = np.where(relevant > 0, sure, 0.0), np.where(relevant > 0, 0.0, -sure)
    sums = (relevant if binary else helpful) @ np.array(alpha) + harmful @ np.array(beta)
    signal = sums - np.repeat(rng.normal(0, 0.5, queries) + sums.mean(), each) + rng.normal(0, noise, len(sums))
    grade = np.where(signal > 0.3, 1.0, np.where(signal > -0.3, 0.0, -1.0))
    names = [(f"s{i % each:02}", f"{prefix}{i // each:04}") for i in range(len(sums))]
    judged = [
        (f"{prefix}{q:04}", f"p{q}-{p}", aspect, float(value))
        for q in range(queries)
        for p in range(pool)
        for aspect, value in (("relevance", relevance[p]), ("abstention", abstention[q, p]))
    ]
    return World(
        Contexts(pl.DataFrame(shown, schema=["system", "query", "rank", "passage"], orient="row")),
        Judgments(pl.DataFrame(judged, schema=["query", "passage", "aspect", "value"], orient="row")),
        graded([(*name, float(value)) for name, value in zip(names, grade, strict=True)]),
        helpful,
        harmful,
        relevant,
    )


def graded(rows: list[tuple[str, str, float]]) -> Outcomes:
    frame = pl.DataFrame(rows, schema=["system", "query", "value"], orient="row")
    return Outcomes(frame.with_columns(pl.lit("grade").alias("aspect")))


def spearman(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Without the p-value of SciPy's own, which takes most of its time."""
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])


def cosine(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    x, y = np.asarray(a), np.asarray(b)
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))
