"""Do intervals cover as often as they say, and do tests reject as seldom as they should?

Data are made of which the truth is known, over and over, and the share of 95 % intervals that hold it is counted; or
data in which nothing is to be found, and the share of tests that find something at the 5 % level. "Ties" are values
on a coarse grid with an outcome of 0 or 1. Prints the tables of docs/statistics.md.

    python benchmarks/coverage.py [means pooled] [--trials 2000]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtrit

from ragworth.stats.bootstrap import bootstrap_means, mean_intervals
from ragworth.stats.correlation import MEASURES, Measure
from ragworth.stats.paired import TESTS
from ragworth.stats.pooled import pooled_correlations, pooled_gaps
from ragworth.stats.prediction_powered import ppi_difference, ppi_mean
from ragworth.stats.within_query import query_correlations, within_query_correlations, within_query_gaps

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator

SIZES = (30, 100, 1000)
FEWER = (20, 50, 100)
TOGETHER = 4
"""Metrics made for one outcome, so that one call does for several trials."""
RHO = 0.6
LARGE = 200_000
"""Queries of a sample large enough to stand for the truth."""
ALIKE = 0.3
"""Share of the variance that rows of one query have in common."""


def share(hits: list[bool]) -> str:
    """In per cent, or a dash."""
    return f"{100 * float(np.mean(hits)):.1f}" if hits else "–"


def table(title: str, head: list[str], rows: Iterable[list[str]]) -> None:
    """A Markdown table, row by row as they come."""
    print(f"\n{title}\n\n| {' | '.join(head)} |\n| {' | '.join(['---'] + ['---:'] * (len(head) - 1))} |", flush=True)
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


MEANS: dict[str, tuple[Callable[[Rng, tuple[int, int]], Floats], float]] = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "skewed, 0 to 1": (lambda rng, shape: rng.beta(0.5, 1.0, size=shape), 1 / 3),
    "60 % zeros": (lambda rng, shape: np.where(rng.random(shape) < 0.6, 0.0, rng.beta(2, 2, size=shape)), 0.2),
    "0 or 1, mean 0.7": (lambda rng, shape: (rng.random(shape) < 0.7).astype(np.float64), 0.7),
}


UNIT = (0.0, 1.0)
BOTH = (-1.0, 1.0)


class Rare(NamedTuple):
    """Values of which few differ: how they are made, their mean, and between what they lie."""

    make: Callable[[Rng, tuple[int, int]], Floats]
    truth: float
    bounds: tuple[float, float]


def off_zero(share: float, size: Callable[[Rng, tuple[int, int]], Floats]) -> Callable[[Rng, tuple[int, int]], Floats]:
    """Values that are 0 but for a share of them."""
    return lambda rng, shape: np.where(rng.random(shape) < share, size(rng, shape), 0.0)


def moderate(rng: Rng, shape: tuple[int, int]) -> Floats:
    return rng.beta(2, 2, size=shape)


def small(rng: Rng, shape: tuple[int, int]) -> Floats:
    return rng.beta(1, 9, size=shape)


def signed(rng: Rng, shape: tuple[int, int]) -> Floats:
    return np.asarray(rng.choice([-1.0, 1.0], size=shape) * rng.beta(2, 2, size=shape))


RARE: dict[str, Rare] = {
    "0 or 1, mean 0.995": Rare(lambda rng, shape: (rng.random(shape) < 0.995).astype(np.float64), 0.995, UNIT),
    "0 or 1, mean 0.98": Rare(lambda rng, shape: (rng.random(shape) < 0.98).astype(np.float64), 0.98, UNIT),
    "0 or 1, mean 0.95": Rare(lambda rng, shape: (rng.random(shape) < 0.95).astype(np.float64), 0.95, UNIT),
    "0 or 1, mean 0.1": Rare(lambda rng, shape: (rng.random(shape) < 0.1).astype(np.float64), 0.1, UNIT),
    "0.5 % not 0, about 0.5": Rare(off_zero(0.005, moderate), 0.0025, UNIT),
    "2 % not 0, about 0.5": Rare(off_zero(0.02, moderate), 0.01, UNIT),
    "5 % not 0, about 0.5": Rare(off_zero(0.05, moderate), 0.025, UNIT),
    "10 % not 0, about 0.5": Rare(off_zero(0.1, moderate), 0.05, UNIT),
    "20 % not 0, about 0.5": Rare(off_zero(0.2, moderate), 0.1, UNIT),
    "5 % not 0, about 0.1": Rare(off_zero(0.05, small), 0.005, UNIT),
    "20 % not 0, about 0.1": Rare(off_zero(0.2, small), 0.02, UNIT),
    "differences, 5 % not 0": Rare(off_zero(0.05, signed), 0.0, BOTH),
    "differences, 20 % not 0": Rare(off_zero(0.2, signed), 0.0, BOTH),
    "near 0, seldom near 1": Rare(lambda rng, shape: rng.beta(0.05, 0.95, size=shape), 0.05, UNIT),
}


def cover_rare(kind: str, n: int, trials: int, resamples: int, seed: int) -> tuple[list[bool], list[bool], int]:
    """Whether each interval holds the mean, the same for the bootstrap alone, and how many intervals have no length."""
    make, truth, bounds = RARE[kind]
    values = make(np.random.default_rng(seed + n), (n, trials))
    found = mean_intervals(values, resamples=resamples, seed=seed, bounds=bounds)
    tail = float(ndtr(-stdtrit(n - 1, 0.975) * np.sqrt(n / (n - 1))))
    low, high = np.quantile(bootstrap_means(values, resamples, seed), [tail, 1 - tail], axis=0)
    near = 1e-12  # rounding
    plain = (low <= truth + near) & (truth - near <= high)
    held = (found.low <= truth + near) & (truth - near <= found.high)
    return list(held), list(plain), int((found.high <= found.low).sum())


def cover_mean(kind: str, n: int, trials: int, resamples: int, seed: int) -> list[bool]:
    """Whether each interval of a mean holds it."""
    make, truth = MEANS[kind]
    values = make(np.random.default_rng(seed + n), (n, trials))
    found = mean_intervals(values, resamples=resamples, seed=seed)
    return list((found.low <= truth) & (truth <= found.high))


NULLS: dict[str, Callable[[Rng, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "ties, a third of them 0": lambda rng, n: rng.choice([-1.0, -0.5, 0.5, 1.0, 0.0, 0.0], size=n),
    "two skewed systems": lambda rng, n: rng.beta(0.5, 1.0, size=n) - rng.beta(0.5, 1.0, size=n),
}


UNEQUAL: dict[str, Callable[[Rng, int], Floats]] = {
    "0 or 1 (10 %) against values near 0.1": lambda rng, n: (rng.random(n) < 0.1) - rng.beta(2, 18, size=n),
    "0 or 1 (20 %) against values near 0.2": lambda rng, n: (rng.random(n) < 0.2) - rng.beta(4, 16, size=n),
    "skewed against values near 0.33": lambda rng, n: rng.beta(0.5, 1, size=n) - rng.beta(20, 40, size=n),
}
"""Differences of two systems of equal mean and very different distribution."""


def reject_unequal(test: str, kind: str, n: int, trials: int, resamples: int, seed: int) -> list[bool]:
    """Whether each test finds a difference between systems of equal mean and unequal distribution."""
    rng = np.random.default_rng(seed + n)
    return [TESTS[test](UNEQUAL[kind](rng, n), resamples=resamples, seed=i) < 0.05 for i in range(trials)]


def reject_paired(test: str, kind: str, n: int, trials: int, resamples: int, seed: int) -> list[bool]:
    """Whether each test finds a difference where there is none."""
    rng = np.random.default_rng(seed + n)
    return [TESTS[test](NULLS[kind](rng, n), resamples=resamples, seed=i) < 0.05 for i in range(trials)]


def contexts(rng: Rng, n: int, rows: int, columns: int, *, ties: bool) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Metrics that all go equally well with one outcome, in pairs that are like each other; and whose row each is."""

    def noise(*more: int) -> Floats:
        each = rng.normal(size=(n, rows, *more))
        return np.asarray(np.sqrt(ALIKE) * rng.normal(size=(n, 1, *more)) + np.sqrt(1 - ALIKE) * each)

    y = noise()
    shared = np.repeat(noise(columns // 2), 2, axis=2)
    x = RHO * y[:, :, None] + np.sqrt((1 - RHO**2) / 2) * (shared + noise(columns))
    if ties:
        x, y = np.round(2 * x) / 2, (y > 0.3).astype(np.float64)
    return x.reshape(-1, columns), y.reshape(-1), np.repeat(np.arange(n), rows)


@cache
def truth(form: str, measure: Measure, rows: int, ties: bool) -> float:
    """The correlation of a very large sample."""
    rng = np.random.default_rng(12345)
    if form == "pooled":
        x, y, _ = contexts(rng, LARGE, 1, 2, ties=ties)
        return float(np.mean([MEASURES[measure](column, y) for column in x.T]))
    x, y, query = contexts(rng, LARGE, rows, 2, ties=ties)
    return float(np.nanmean(query_correlations(x, y, query, measure=measure).values))


def correlated(
    form: str, measure: Measure, n: int, rows: int, ties: bool, trials: int, resamples: int, seed: int
) -> tuple[list[bool], list[bool]]:
    """Whether each interval of a correlation holds it, and whether two equal ones are found to differ."""
    right = truth(form, measure, rows, ties)
    rng = np.random.default_rng(seed + n)
    pairs = [(i, i + 1) for i in range(0, TOGETHER, 2)]
    held: list[bool] = []
    apart: list[bool] = []
    for batch in range(max(1, trials // TOGETHER)):
        x, y, query = contexts(rng, n, rows, TOGETHER, ties=ties)
        estimates = pooled_correlations if form == "pooled" else within_query_correlations
        gaps = pooled_gaps if form == "pooled" else within_query_gaps
        for one in estimates(x, y, query, measure=measure, resamples=resamples, seed=batch):
            if one.interval is not None:
                held.append(one.interval.low <= right <= one.interval.high)
        for gap in gaps(x, y, query, pairs=pairs, measure=measure, resamples=resamples, seed=batch):
            if gap.p is not None:
                apart.append(gap.p < 0.05)
    return held, apart


def judged(rng: Rng, n: int, total: int, like: float, *, ties: bool) -> tuple[Floats, Floats]:
    """Cheap values of all, and expensive ones of a sample, NaN elsewhere; the expensive have mean 0."""
    both = rng.normal(size=total)
    expensive = both if not ties else (both > 0).astype(np.float64) - 0.5
    cheap = like * both + np.sqrt(1 - like**2) * rng.normal(size=total) + 0.4
    cheap = np.round(cheap) if ties else cheap
    expensive[rng.permutation(total)[n:]] = np.nan
    return cheap, expensive


def cover_predicted(
    kind: str, n: int, total: int, like: float, ties: bool, trials: int, seed: int
) -> tuple[list[bool], float, float]:
    """Whether each interval holds the mean; length against the plain one; values saved, as a multiple of n."""
    rng = np.random.default_rng(seed + n)
    held, lengths, saved = [], [], []
    for _ in range(trials):
        cheap, expensive = judged(rng, n, total, like, ties=ties)
        if kind == "mean":
            found = ppi_mean(cheap, expensive)
        else:
            hard = rng.normal(size=total)  # what makes a query hard for both systems
            found = ppi_difference((hard, hard + cheap), (hard, hard + expensive))
        assert found.interval is not None and found.plain_interval is not None and found.saved is not None
        held.append(found.interval.low <= 0 <= found.interval.high)
        plain = found.plain_interval
        lengths.append((found.interval.high - found.interval.low) / (plain.high - plain.low))
        saved.append(found.saved / n)
    return held, float(np.median(lengths)), float(np.median(saved))


def show_means(trials: int, resamples: int, seed: int) -> None:
    rows = ([kind, *(share(cover_mean(kind, n, trials, resamples, seed)) for n in SIZES)] for kind in MEANS)
    table("Coverage of intervals of means (%)", ["values", *(f"n = {n:,}" for n in SIZES)], rows)


def show_rare(trials: int, resamples: int, seed: int) -> None:
    def cell(kind: str, n: int) -> str:
        held, plain, empty = cover_rare(kind, n, trials, resamples, seed)
        assert not empty
        return f"{share(held)} ({share(plain)})"

    rows = ([kind, *(cell(kind, n) for n in FEWER)] for kind in RARE)
    title = "Few values differ: coverage (%), in brackets that of the bootstrap alone"
    table(title, ["values", *(f"n = {n}" for n in FEWER)], rows)


def show_few(trials: int, resamples: int, seed: int) -> None:
    def cell(a: float, b: float, n: int) -> str:
        values = np.random.default_rng(seed + n).beta(a, b, (n, trials))
        found, mean = mean_intervals(values, resamples=resamples, seed=seed, bounds=(0.0, 1.0)), a / (a + b)
        half = float(stdtrit(n - 1, 0.975)) * values.std(axis=0, ddof=1) / np.sqrt(n)
        student = np.abs(values.mean(axis=0) - mean) <= half
        return f"{share(list((found.low <= mean) & (mean <= found.high)))} ({share(list(student))})"

    rows = ([f"beta({a:g}, {b:g})", *(cell(a, b, n) for n in (2, 3, 4))] for a, b in ((1, 1), (5, 1), (0.3, 0.3)))
    title = "Two to four values from 0 to 1: coverage (%), in brackets that of Student's interval"
    table(title, ["values", *(f"n = {n}" for n in (2, 3, 4))], rows)


def show_unequal(trials: int, resamples: int, seed: int) -> None:
    rows = (
        [test, kind, *(share(reject_unequal(test, kind, n, trials, resamples, seed)) for n in FEWER)]
        for kind in UNEQUAL
        for test in ("randomisation", "t", "bootstrap", "bounded")
    )
    title = "Equal means, unequal distributions: true nulls rejected (%)"
    table(title, ["test", "systems", *(f"n = {n}" for n in FEWER)], rows)


def show_power(trials: int, resamples: int, seed: int) -> None:
    """Normal differences within -1 to 1, with a mean of three standard errors."""

    def found(test: str, n: int) -> list[bool]:
        rng = np.random.default_rng(seed + n)
        samples = (np.clip(rng.normal(0.75 / np.sqrt(n), 0.25, size=n), -1, 1) for _ in range(trials))
        return [TESTS[test](sample, resamples=resamples, seed=i) < 0.05 for i, sample in enumerate(samples)]

    tests = ("randomisation", "t", "bootstrap", "bounded")
    rows = ([test, *(share(found(test, n)) for n in FEWER)] for test in tests)
    table("A difference of three standard errors: found (%)", ["test", *(f"n = {n}" for n in FEWER)], rows)


def show_tests(trials: int, resamples: int, seed: int) -> None:
    rows = (
        [test, kind, *(share(reject_paired(test, kind, n, trials, resamples, seed)) for n in SIZES)]
        for test in TESTS
        for kind in NULLS
    )
    table("Paired tests: true nulls rejected (%)", ["test", "differences", *(f"n = {n:,}" for n in SIZES)], rows)


def settings(form: str) -> Iterator[tuple[Measure, int, bool]]:
    """Measures, contexts a query, ties or not."""
    measures: tuple[Measure, ...] = ("pearson", "spearman", "kendall", "kendall-c")
    for rows in (1, 5) if form == "pooled" else (10,):
        for ties in (False, True):
            for measure in measures:
                if ties or measure != "kendall-c":  # without ties it is τ-b
                    yield measure, rows, ties


def show_correlated(form: str, trials: int, resamples: int, seed: int) -> None:
    def cell(measure: Measure, rows: int, ties: bool, n: int) -> str:
        # The pairs of 5,000 rows are many.
        fewer = 6 if form == "pooled" and n * rows >= 5000 and measure.startswith("kendall") else 1
        held, apart = correlated(form, measure, n, rows, ties, trials // fewer, resamples, seed)
        return f"{share(held)} / {share(apart)}"

    lines = (
        [measure, str(rows), "ties" if ties else "none", *(cell(measure, rows, ties, n) for n in SIZES)]
        for measure, rows, ties in settings(form)
    )
    head = ["measure", "contexts a query", "ties", *(f"{n:,} queries" for n in SIZES)]
    table(f"Correlations, {form}: coverage / equal ones found to differ (%)", head, lines)


def show_predicted(trials: int, resamples: int, seed: int) -> None:
    rows = []
    for kind in ("mean", "difference"):
        for ties in (False, True):
            for like in (0.0, 0.6, 0.9):
                line = [kind, "0 or 1" if ties else "normal", f"{like}"]
                for n, total in ((30, 300), (100, 1000), (1000, 5000)):
                    some = trials if n < 1000 else trials // 2
                    held, length, saved = cover_predicted(kind, n, total, like, ties, some, seed)
                    line.append(f"{share(held)} / {length:.2f} / {round(saved, 1) + 0.0:+.1f}")
                rows.append(line)
    head = ["of", "expensive values", "correlation", "30 of 300", "100 of 1,000", "1,000 of 5,000"]
    table("Prediction-powered: coverage (%) / length against plain / values saved per value bought", head, rows)


SECTIONS: dict[str, Callable[[int, int, int], None]] = {
    "means": show_means,
    "rare": show_rare,
    "few": show_few,
    "tests": show_tests,
    "unequal": show_unequal,
    "power": show_power,
    "pooled": lambda *given: show_correlated("pooled", *given),
    "within": lambda *given: show_correlated("within", *given),
    "predicted": show_predicted,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="all without any")
    parser.add_argument("--trials", type=int, default=1000, help="fewer where each takes long")
    parser.add_argument("--resamples", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for section in given.sections or SECTIONS:
        SECTIONS[section](given.trials, given.resamples, given.seed)


if __name__ == "__main__":
    main()
