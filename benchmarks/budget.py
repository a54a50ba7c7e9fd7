"""Judging on a budget: do the intervals hold, and how many expensive judgments are saved?

Two systems show five passages for each of very many queries. An expensive judge gives each passage a relevance and an
abstention probability; a cheap one gives others, which go with those of the expensive judge more or less, and for whom
the model is too ready to answer. UDCG@5 by each judge is computed by the engine. Then 1,000 queries are drawn, some of
them are judged by the expensive judge, and the interval of what that judge would say of all is held against the truth,
over and over. Prints the table of docs/howto/judge-on-a-budget.md.

    python benchmarks/budget.py
    python benchmarks/budget.py --trials 400 --queries 50000
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.comparison import score_matrices
from ragworth.metrics.engine import score_tables
from ragworth.stats.prediction_powered import PpiEstimate, ppi_difference, ppi_mean
from ragworth.tables import Contexts, Judgments

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator

SYSTEMS, K, TOTAL = 2, 5, 1000
SAMPLES = (20, 50, 100, 200)
LIKE = (0.0, 0.5, 0.8, 0.95)
METRIC = "UDCG@5"


class World(NamedTuple):
    """UDCG@5 of all queries, queries × systems, by each judge."""

    cheap: Floats
    expensive: Floats


def latent(rng: Rng, queries: int) -> Floats:
    """What makes passages relevant, and the model answer: query × system × passage × (relevance, answering)."""
    shape = (queries, SYSTEMS, K, 2)
    hard, how = rng.normal(size=(queries, 1, 1, 2)), rng.normal(size=(queries, SYSTEMS, 1, 2))
    return np.asarray(0.6 * hard + 0.4 * how + np.sqrt(1 - 0.36 - 0.16) * rng.normal(size=shape))


def judged(values: Floats, lean: float) -> Floats:
    """UDCG@5 by a judge who sees these; one who leans has the model answer more often. The first system is better."""
    values = values + np.array([0.2, 0.0])[None, :, None, None] + np.array([0.0, lean])
    n = len(values)
    system, query, rank = (each.ravel() for each in np.meshgrid(range(SYSTEMS), range(n), range(K), indexing="ij"))
    ids = pl.DataFrame({"system": system, "query": query, "rank": rank + 1}).with_columns(
        pl.format("s{}", "system").alias("system"),
        pl.format("q{}", "query").alias("query"),
        pl.format("p{}-{}", "system", "rank").alias("passage"),
    )
    seen = values.transpose(1, 0, 2, 3).reshape(-1, 2)
    relevance, abstention = (seen[:, 0] > 0.4).astype(float), 1 / (1 + np.exp(1.5 * seen[:, 1]))
    both = {"relevance": relevance, "abstention": abstention}
    frames = [ids.select("query", "passage", pl.lit(a).alias("aspect"), pl.Series("value", v)) for a, v in both.items()]
    scores = score_tables(Contexts(ids), Judgments(pl.concat(frames)), METRIC)
    return score_matrices(scores)[0].values


def world(queries: int, like: float, seed: int) -> World:
    """A cheap judge whose UDCG@5 correlates with the expensive one's as asked."""

    def made(share: float, size: int) -> World:
        rng = np.random.default_rng(seed)
        truth = latent(rng, size)
        other = share * truth + np.sqrt(1 - share**2) * latent(rng, size)
        return World(judged(other, 0.6), judged(truth, 0.0))

    low, high = 0.0, 1.0
    for _ in range(10 if like else 0):
        share = (low + high) / 2
        tried = made(share, 20_000)
        r = np.corrcoef(tried.cheap[:, 0], tried.expensive[:, 0])[0, 1]
        low, high = (share, high) if r < like else (low, share)
    return made((low + high) / 2 if like else 0.0, queries)


class Cell(NamedTuple):
    """How estimates from samples of one size did."""

    held: list[bool]
    length: list[float]
    saved: list[float]
    alone: list[bool]
    """Whether the interval of the cheap judge alone holds the truth."""

    def __str__(self) -> str:
        held, length, saved = (float(np.mean(each)) for each in (self.held, self.length, self.saved))
        return f"{100 * held:.1f} / {length:.2f} / {round(100 * saved)} %".replace("-", "−")


def tried(found: World, what: str, n: int, trials: int, seed: int) -> Cell:
    rng = np.random.default_rng(seed + n)
    truth = found.expensive.mean(axis=0)
    right = float(truth[0]) if what == "mean" else float(truth[1] - truth[0])
    cell = Cell([], [], [], [])
    for _ in range(trials):
        drawn = rng.choice(len(found.cheap), TOTAL, replace=False)
        cheap, dear = found.cheap[drawn], found.expensive[drawn].copy()
        dear[n:] = np.nan
        made = estimated(what, cheap, dear)
        only = estimated(what, cheap, cheap)
        assert made.interval and made.plain_interval and made.needed and only.interval
        cell.held.append(made.interval.low <= right <= made.interval.high)
        cell.length.append(_length(made.interval) / _length(made.plain_interval))
        cell.saved.append(1 - n / min(made.needed, TOTAL))
        cell.alone.append(only.interval.low <= right <= only.interval.high)
    return cell


def estimated(what: str, cheap: Floats, dear: Floats) -> PpiEstimate:
    if what == "mean":
        return ppi_mean(cheap[:, 0], dear[:, 0])
    return ppi_difference((cheap[:, 0], cheap[:, 1]), (dear[:, 0], dear[:, 1]))


def _length(span: tuple[float, float]) -> float:
    return span[1] - span[0]


def rows(queries: int, trials: int, seed: int) -> Iterator[list[str]]:
    for like in LIKE:
        found = world(queries, like, seed)
        for what in ("mean", "difference"):
            cells = [tried(found, what, n, trials, seed) for n in SAMPLES]
            alone = 100 * float(np.mean(cells[0].alone))
            x, y = ((each if what == "mean" else np.diff(each))[:, 0] for each in found)
            r = round(float(np.corrcoef(x, y)[0, 1]), 2) + 0.0
            yield [what, f"{r:.2f}", *map(str, cells), f"{alone:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--queries", type=int, default=100_000, help="of which each trial draws 1,000")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    head = ["of", "r", *(f"n = {n}" for n in SAMPLES), "cheap alone"]
    print(f"Coverage (%) / length against the sample alone / share of expensive judgments saved; N = {TOTAL:,}\n")
    print(f"| {' | '.join(head)} |\n| {' | '.join(['---', *['---:'] * (len(head) - 1)])} |", flush=True)
    for row in rows(given.queries, given.trials, given.seed):
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
