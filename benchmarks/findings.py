"""Which metrics predict how good the real answers are: the tables of docs/findings.md.

    RAGWORTH_DATA=FOLDER python benchmarks/workspaces.py aragog work/aragog
    ragworth evaluate work/aragog
    python benchmarks/findings.py work/aragog
    RAGWORTH_DATA=FOLDER python benchmarks/findings.py nomiracl clapnq mtrag

For each outcome and each metric: Spearman's ρ over all contexts; Kendall's τ-b over the systems of one query, in the
mean over queries; τ-b of the systems' means; and the AUC with which the metric tells contexts that the model answered
from, from those it did not. All intervals are 95 % bootstrap intervals over queries. Beside the metrics stand what was
given (``context_relevance``) and how much was shown, which every metric should beat.

``nomiracl``: what eleven models make of questions whose passages do and do not answer. ``clapnq``, ``mtrag``: how the
published automatic scores of answers, and ours, go with the mean of the people who graded them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

if sys.path[0] == str(Path(__file__).resolve().parent):
    # Run as a script: our coverage.py must not stand for the package of that name.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.judged_sets import clapnq_graded, means, mtrag_graded, nomiracl_answers

from ragworth.results import Results
from ragworth.stats.auc import auc_interval
from ragworth.stats.bootstrap import mean_intervals
from ragworth.stats.correlation import kendall, spearman
from ragworth.stats.paired import TESTS, holm
from ragworth.stats.resampling import ConfidenceInterval, expanded_interval

Floats = npt.NDArray[np.float64]
OUTCOMES = ("sas", "f1")
RESAMPLES, SEED, LEVEL = 2000, 0, 0.95


class Estimate(NamedTuple):
    """A number and its interval."""

    value: float
    span: ConfidenceInterval | None

    def __str__(self) -> str:
        ends = f" [{self.span.low:.2f}, {self.span.high:.2f}]" if self.span is not None else ""
        return f"{self.value:.2f}{ends}".replace("-", "−")


class Within(NamedTuple):
    """τ-b of each query, NaN where there is none, and their mean."""

    each: Floats
    mean: Estimate

    @property
    def constant(self) -> int:
        """Queries on which all systems have the same value on one side."""
        return int(np.isnan(self.each).sum())


def grid(frame: pl.DataFrame, queries: list[str], systems: list[str]) -> Floats:
    """Values of (system, query) as queries × systems; NaN where there is none."""
    made = np.full((len(queries), len(systems)), np.nan)
    row, column = ({name: i for i, name in enumerate(names)} for names in (queries, systems))
    for system, query, value in frame.select("system", "query", "value").iter_rows():
        made[row[query], column[system]] = np.nan if value is None else value
    return made


def predictors(results: Results, queries: list[str], systems: list[str]) -> dict[str, Floats]:
    """Every metric; the given relevance of the context; and how much is shown."""
    made = {
        str(metric): grid(part, queries, systems)
        for (metric,), part in results.scores.frame.group_by("metric", maintain_order=True)
    }
    made["context_relevance (given)"] = outcome(results, "context_relevance", queries, systems)
    shown = results.contexts.frame.join(results.collection.tokens(), on="passage", how="left")
    sizes = shown.group_by("system", "query").agg(pl.len().alias("passages shown"), pl.col("tokens").sum())
    for name in ("passages shown", "tokens"):
        value = sizes.select("system", "query", pl.col(name).cast(pl.Float64).alias("value"))
        made["tokens shown" if name == "tokens" else name] = grid(value, queries, systems)
    return made


def outcome(results: Results, aspect: str, queries: list[str], systems: list[str]) -> Floats:
    assert results.outcomes is not None
    return grid(results.outcomes.frame.filter(pl.col("aspect") == aspect), queries, systems)


def pooled(x: Floats, y: Floats) -> tuple[Estimate, Floats]:
    """Spearman's ρ over all (system, query), and its values in the resamples."""
    return _resampled(x, y, lambda a, b: _known(spearman, a.ravel(), b.ravel()))


def by_system(x: Floats, y: Floats) -> tuple[Estimate, Floats]:
    """Kendall's τ-b of the systems' means, over queries that have both values for the system."""

    def means(a: Floats, b: Floats) -> float:
        both = ~np.isnan(a) & ~np.isnan(b)
        return kendall(*(np.where(both, side, 0.0).sum(axis=0) / both.sum(axis=0) for side in (a, b)))

    return _resampled(x, y, means)


def _resampled(x: Floats, y: Floats, of: Callable[[Floats, Floats], float]) -> tuple[Estimate, Floats]:
    """The same queries are drawn for every predictor, so that differences are those within resamples."""
    rng = np.random.default_rng(SEED)
    drawn = (rng.integers(0, len(x), len(x)) for _ in range(RESAMPLES))
    draws = np.array([of(x[rows], y[rows]) for rows in drawn])
    return Estimate(of(x, y), expanded_interval(draws, len(x), LEVEL)), draws


def _known(of: Callable[[Floats, Floats], float], x: Floats, y: Floats) -> float:
    both = ~np.isnan(x) & ~np.isnan(y)
    return of(x[both], y[both])


def within(x: Floats, y: Floats) -> Within:
    """Kendall's τ-b over the systems of each query."""
    each = np.array([_known(kendall, a, b) for a, b in zip(x, y, strict=True)])
    ends = mean_intervals(each[:, None], level=LEVEL, resamples=RESAMPLES, seed=SEED)
    return Within(each, Estimate(float(np.nanmean(each)), ConfidenceInterval(float(ends.low[0]), float(ends.high[0]))))


def answered(x: Floats, y: Floats) -> Estimate:
    """AUC of a predictor for contexts from which an answer was given."""
    whose = np.broadcast_to(np.arange(len(x))[:, None], x.shape).ravel()
    found = auc_interval(x.ravel(), ~np.isnan(y).ravel(), whose, resamples=RESAMPLES, seed=SEED)
    return Estimate(found.value if found.value is not None else float("nan"), found.interval)


def against_best(taus: dict[str, Within]) -> dict[str, float | None]:
    """Holm's p-values of paired randomisation tests of each mean τ-b against the highest; None for that itself."""
    best = max(taus, key=lambda name: taus[name].mean.value)
    others = [name for name in taus if name != best]
    p = []
    for name in others:
        gap = taus[best].each - taus[name].each
        p.append(TESTS["randomisation"](gap[~np.isnan(gap)], resamples=10_000, seed=SEED))
    return {best: None} | dict(zip(others, holm(np.array(p)).tolist(), strict=True))


def table(results: Results, aspect: str) -> Iterator[str]:
    """What is found for one outcome, in Markdown."""
    systems = results.contexts.systems
    queries = results.collection.queries["query"].to_list()
    y = outcome(results, aspect, queries, systems)
    known = predictors(results, queries, systems)
    taus = {name: within(x, y) for name, x in known.items()}
    p = against_best(taus)
    rho = {name: pooled(x, y) for name, x in known.items()}
    best = max(rho, key=lambda name: rho[name][0].value)
    yield f"{aspect}: {int((~np.isnan(y)).sum()):,} of {y.size:,} contexts have a value\n"
    yield "| | ρ, all contexts | behind the best | τ, within a query | queries | p against the best | τ, systems |"
    yield "| --- | --- | --- | --- | ---: | ---: | --- |"
    for name, x in known.items():
        gap = expanded_interval(rho[best][1] - rho[name][1], len(queries), LEVEL)
        less = "–" if name == best else str(Estimate(rho[best][0].value - rho[name][0].value, gap))
        value = p[name]
        tail = "–" if value is None else f"{value:.3f}"
        there = len(queries) - taus[name].constant
        yield f"| {name} | {rho[name][0]} | {less} | {taus[name].mean} | {there} | {tail} | {by_system(x, y)[0]} |"


def answers(results: Results) -> Iterator[str]:
    """Which contexts were answered from at all."""
    systems, queries = results.contexts.systems, results.collection.queries["query"].to_list()
    y = outcome(results, "sas", queries, systems)
    yield "| | AUC for an answer being given |"
    yield "| --- | --- |"
    for name, x in predictors(results, queries, systems).items():
        yield f"| {name} | {answered(x, y)} |"


def nomiracl(data: Path) -> Iterator[str]:
    """What each model makes of questions whose passages answer, and of those whose passages do not."""
    kinds = Counter((one.model, one.answerable, one.kind) for one in nomiracl_answers(data))
    yield "| model | answerable: says so | and declines | unanswerable: declines | and says it is there |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for model in sorted({model for model, _, _ in kinds}, key=lambda name: kinds[name, False, "wrong"]):
        cells = ((True, "correct"), (True, "abstained"), (False, "abstained"), (False, "wrong"))
        yield f"| {model} | " + " | ".join(str(kinds[(model, *cell)]) for cell in cells) + " |"


def automatic(frame: pl.DataFrame) -> Iterator[str]:
    """Spearman's ρ of automatic scores with the mean of the people, over all answers and within questions (τ-b)."""
    yield "| people on | automatic | ρ, all answers | τ, within a question | questions with a τ |"
    yield "| --- | --- | --- | --- | ---: |"
    systems, queries = (frame[name].unique(maintain_order=True).to_list() for name in ("system", "query"))
    for (aspect,), some in frame.group_by("aspect", maintain_order=True):
        mine = some.unique(["system", "query"], maintain_order=True).with_columns(value=pl.col("people"))
        y = grid(mine, queries, systems)
        for (metric,), part in some.group_by("metric", maintain_order=True):
            x = grid(part, queries, systems)
            if np.nanmax(x) == np.nanmin(x):
                continue
            inside = within(x, y)
            yield f"| {aspect} | {metric} | {pooled(x, y)[0]} | {inside.mean} | {len(queries) - inside.constant} |"


def real(name: str) -> Iterator[str]:
    """What is found in data that come with answers or grades, by their name."""
    data = Path(os.environ.get("RAGWORTH_DATA", ""))
    if not os.environ.get("RAGWORTH_DATA") or not data.is_dir():
        sys.exit("RAGWORTH_DATA names no folder: it must name the one of the real data")
    if name == "nomiracl":
        return nomiracl(data)
    every = means(clapnq_graded(data) if name == "clapnq" else mtrag_graded(data))
    models = every.filter(~pl.col("system").is_in(["target", "reference"]))
    # The answers that others are compared with are among those that were graded, and equal themselves.
    return chain(automatic(every), ["", "Without the accepted answers themselves:", ""], automatic(models))


def main() -> None:
    global RESAMPLES
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", help="nomiracl, clapnq, mtrag, or workspaces that were evaluated")
    parser.add_argument("--resamples", type=int, default=RESAMPLES)
    given = parser.parse_args()
    RESAMPLES = given.resamples
    for place in given.places:
        if place in ("nomiracl", "clapnq", "mtrag"):
            print(f"## {place}", "", *real(place), "", sep="\n")
            continue
        results = Results.read(Path(place) / "results")
        print(f"## {place}")
        for aspect in OUTCOMES:
            print("", *table(results, aspect), sep="\n")
        print("", *answers(results), "", sep="\n")


if __name__ == "__main__":
    main()
