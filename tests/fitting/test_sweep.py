"""Sweeps: the whole grid as other tools have it, the choice on queries held out, and what is refused."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy import stats as scipy_stats

import ragworth
from ragworth.core.errors import InputError, MetricError
from ragworth.data import Contexts, Outcomes
from ragworth.fitting import FittingTables, SweepResult, sweep, sweep_tables
from ragworth.fitting.grids import build_grid
from ragworth.fitting.rows import assign_folds
from ragworth.stats.correlation import Measure
from tests.fitting.samples import World, spearman, world
from tests.tiers import slow


@pytest.fixture(scope="module")
def harmed() -> World:
    """Outcomes that follow UDCG with γ = 0.8, with noise."""
    return world(80, alpha=(2.0,) * 5, beta=(1.6,) * 5, seed=11)


@pytest.fixture(scope="module")
def swept(harmed: World) -> SweepResult:
    return sweep_tables(build_grid("UDCG(gamma=*)@5", steps=11), FittingTables(*harmed[:3]), resamples=200)


def scored(given: World, metric: str) -> pl.DataFrame:
    """query, outcome and score of each context."""
    scores = ragworth.score(given.contexts, given.judgments, [metric]).frame
    return given.outcomes.frame.join(scores, on=["system", "query"]).select(
        "query", "value", score=pl.col("value_right").round(12)
    )


def by_query(frame: pl.DataFrame) -> dict[str, float]:
    return {
        str(query): spearman(part["score"], part["value"])
        for (query,), part in frame.group_by("query", maintain_order=True)
        if part["score"].n_unique() > 1 and part["value"].n_unique() > 1
    }


@pytest.mark.slow
def test_the_grid_as_other_tools_have_it(harmed: World, swept: SweepResult) -> None:
    assert swept.table["value"].to_list() == pytest.approx(sorted([*np.linspace(0, 1, 11), 1 / 3]))
    assert swept.table.filter("default")["metric"].to_list() == ["UDCG@5"]
    for row in swept.table.gather_every(3).iter_rows(named=True):
        frame = scored(harmed, row["metric"])
        each = by_query(frame)
        assert row["within"] == pytest.approx(np.mean(list(each.values())), abs=1e-9)
        assert row["within_queries"] == len(each)
        assert row["pooled"] == pytest.approx(scipy_stats.spearmanr(frame["score"], frame["value"]).statistic, abs=1e-9)
        assert row["within_low"] < row["within"] < row["within_high"]
        assert row["pooled_low"] < row["pooled"] < row["pooled_high"]


def by_chance(given: World, seed: int) -> World:
    """The same contexts with outcomes that nothing leads to."""
    drawn = np.random.default_rng(seed).choice([-1.0, 1.0], len(given.outcomes))
    return given._replace(outcomes=Outcomes(given.outcomes.frame.with_columns(pl.Series("value", drawn))))


@pytest.mark.parametrize("seed", [0, *slow(1)])
def test_the_choice_by_another_implementation(harmed: World, seed: int) -> None:
    """Within queries: choose by the mean over four parts, test on the fifth. By chance, parts choose differently."""
    given = by_chance(harmed, seed)
    swept = sweep_tables(build_grid("UDCG(gamma=*)@5", steps=11), FittingTables(*given[:3]), resamples=100)
    values = swept.table["value"].to_list()
    each = [by_query(scored(given, metric)) for metric in swept.table["metric"]]
    queries = sorted(each[0])
    part = dict(zip(queries, assign_folds(np.arange(len(queries)), 5, 0).tolist(), strict=True))
    held, chosen = [], []
    for fold in range(5):
        means = [np.mean([found[q] for q in queries if part[q] != fold]) for found in each]
        best = int(np.argmax(means))
        chosen.append(values[best])
        held += [each[best][q] for q in queries if part[q] == fold]
    choice = swept.choices[0]
    assert len(set(chosen)) > 1
    assert choice.kind == "within"
    assert choice.held_out == pytest.approx(np.mean(held), abs=1e-9)
    assert sorted(value for value, n in choice.chosen.items() for _ in range(n)) == sorted(chosen)
    assert choice.in_sample == pytest.approx(swept.table["within"].max(), abs=1e-9)
    assert choice.best == values[int(np.argmax(swept.table["within"].to_numpy()))]
    assert choice.gain == pytest.approx(choice.held_out - choice.at_default, abs=1e-9)


def test_a_planted_value_is_found(swept: SweepResult) -> None:
    for choice in swept.choices:
        assert 0.5 <= choice.best <= 1
        assert set(choice.chosen) <= {0.5, 0.6, 0.7, 0.8, 0.9, 1.0}
        assert choice.in_sample >= choice.at_default
        assert choice.gain > 0
        assert choice.default == 1 / 3
    assert [choice.kind for choice in swept.choices] == ["within", "pooled"]


@pytest.mark.parametrize("measure", ["spearman", "pearson", "kendall"])
def test_the_pooled_choice_by_another_implementation(harmed: World, measure: Measure) -> None:
    """Parts choose different values: each is correlated within its part alone, so that no two scales are mixed."""
    other = {"spearman": scipy_stats.spearmanr, "pearson": scipy_stats.pearsonr, "kendall": scipy_stats.kendalltau}
    given = by_chance(harmed, 1)
    swept = sweep_tables(
        build_grid("UDCG(gamma=*)@5", steps=11), FittingTables(*given[:3]), measure=measure, resamples=100, folds=4
    )
    each = [scored(given, metric).sort("query", maintain_order=True) for metric in swept.table["metric"]]
    names = sorted(set(each[0]["query"]))
    place = dict(zip(names, assign_folds(np.arange(len(names)), 4, 0).tolist(), strict=True))
    part = np.array([place[query] for query in each[0]["query"]])

    def figure(at: int, which: npt.NDArray[np.bool_]) -> float:
        x, y = (each[at][name].to_numpy()[which] for name in ("score", "value"))
        return float(other[measure](x, y).statistic)

    chosen = [int(np.argmax([figure(at, part != fold) for at in range(len(each))])) for fold in range(4)]
    assert len(set(chosen)) > 1
    choice, default = swept.choices[1], swept.table["default"].to_list().index(True)
    best = int(np.argmax([figure(at, part >= 0) for at in range(len(each))]))
    assert choice.held_out == pytest.approx(np.mean([figure(at, part == fold) for fold, at in enumerate(chosen)]))
    assert choice.at_default == pytest.approx(np.mean([figure(default, part == fold) for fold in range(4)]))
    assert choice.in_sample == pytest.approx(np.mean([figure(best, part == fold) for fold in range(4)]))
    assert choice.gain == pytest.approx(choice.held_out - choice.at_default)
    assert choice.best == swept.table["value"][best]
    assert choice.interval is not None and choice.gain_interval is not None and choice.p is not None
    assert choice.interval.low < choice.held_out < choice.interval.high
    assert choice.gain_interval.low <= choice.gain <= choice.gain_interval.high


def test_a_metric_of_which_lower_is_better(harmed: World) -> None:
    found = sweep("Distraction(threshold=*)@5", *harmed[:3], resamples=200)
    within = found.choices[0]
    assert within.in_sample == pytest.approx(found.table["within"].min(), abs=1e-9)
    assert within.in_sample < within.at_default < 0
    assert within.gain < 0
    assert "better than the default 0.8" in found.sentences[0]
    assert "not clearly" not in found.sentences[0]


def test_one_context_a_query_has_no_correlation_within(harmed: World) -> None:
    one = Contexts(harmed.contexts.frame.filter(pl.col("system") == "s01"))
    found = sweep("T(alpha=*)@5", one, *harmed[1:3], resamples=100)
    assert found.table["within"].null_count() == found.table.height
    assert [choice.kind for choice in found.choices] == ["pooled"]
    assert found.left_out == {"an outcome without a context": 80 * 9}
    assert found.queries == found.contexts == 80


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("UDCG@5", "does not name one parameter to sweep"),
        ("UDCG(gamma=*, rel=*)@5", "does not name one parameter"),
        ("UDCG(*)@5", "does not name one parameter"),
        ("UDCG(gamma=**)@5", "does not name one parameter"),
        ("UDCG(gamma=0.*)@5", "does not name one parameter"),
        ("*", "does not name one parameter"),
        ("UDCG(gama=*)@5", "UDCG has no parameter 'gama' that is a number"),
        ("UDCG(raw=*)@5", "UDCG has no parameter 'raw' that is a number"),
        ("UDCG(theta=*)@5", "UDCG has no parameter 'theta' that is a number"),
        ("UDCG(theta=t.json, rel=*)@5", "has learned weights"),
        ("Nope(x=*)", "unknown metric 'Nope'"),
        ("UDCG(gamma=*, gamma=0.5)@5", "does not name one parameter"),
    ],
)
def test_patterns_that_are_none(pattern: str, said: str) -> None:
    with pytest.raises(MetricError, match=said):
        build_grid(pattern)


@pytest.mark.parametrize(
    "grid",
    [{"low": 1.0, "high": 0.0}, {"low": 0.5, "high": 0.5}, {"steps": 1}, {"steps": 5000}, {"high": float("nan")}],
)
def test_grids_that_are_none(grid: dict[str, float]) -> None:
    with pytest.raises(InputError, match="is no grid"):
        build_grid("UDCG(gamma=*)@5", **grid)  # type: ignore[arg-type]


def test_a_parameter_without_bounds_needs_them() -> None:
    with pytest.raises(InputError, match="rel from -inf to inf"):
        build_grid("P(rel=*)@5")
    assert build_grid("P(rel=*)@5", 0, 4, 5).values == (0.0, 1.0, 2.0, 3.0, 4.0)
    with pytest.raises(MetricError, match=r"gamma=1\.1 is invalid"):
        build_grid("UDCG(gamma=*)@5", 0, 2)


def test_nothing_to_sweep_over(harmed: World) -> None:
    contexts, judgments, outcomes = harmed[:3]
    same = Outcomes(outcomes.frame.with_columns(pl.lit(0.0).alias("value")))
    with pytest.raises(InputError, match="all 800 outcomes are 0"):
        sweep("UDCG(gamma=*)@5", contexts, judgments, same)
    few = Outcomes(outcomes.frame.filter(pl.col("query") < "q0004"))
    with pytest.raises(InputError, match="there are 4 queries with a score and an outcome"):
        sweep("UDCG(gamma=*)@5", contexts, judgments, few)
    with pytest.raises(InputError, match="there cannot be 1 part"):
        sweep("UDCG(gamma=*)@5", contexts, judgments, outcomes, folds=1)
