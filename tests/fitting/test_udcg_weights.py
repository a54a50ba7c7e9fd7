"""Learning weights: planted ones are found again, nothing leaks, and what learning bought is told honestly."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import optimize as scipy_optimize

import ragworth
from ragworth.core.errors import InputError, MetricError, MissingExtraError
from ragworth.data import Contexts, Judgments, Outcomes
from ragworth.fitting import FittingTables, fit, fit_tables
from ragworth.fitting.ranking_svm import fit_ranking_svm, ranked_pairs
from ragworth.fitting.rows import Floats, assign_folds, build_fitting_rows
from ragworth.fitting.udcg_weights import FitData, feature_metrics, held_out_scores, scale_weights
from ragworth.metrics.theta import Theta, Variant
from tests.fitting.samples import ALPHA, BETA, World, cosine, graded, spearman, world
from tests.tiers import slow

pytest.importorskip("sklearn")

FAST: dict[str, Any] = {"resamples": 200, "grid": (0.01, 1.0), "folds": 3}
"""Fewer resamples, values of C and parts, where none of them is what is tested."""


@pytest.fixture(scope="module")
def planted() -> World:
    return world(150)


@pytest.fixture(scope="module")
def learned(planted: World) -> Theta:
    return fit(planted.contexts, planted.judgments, planted.outcomes, 5, resamples=500)


def mean_within(values: Floats, outcomes: Outcomes) -> float:
    """The mean Spearman correlation within queries, by SciPy; queries where a side is constant are left out."""
    frame = outcomes.frame.with_columns(pl.Series("score", values.round(12)))
    found = [
        spearman(part["score"], part["value"])
        for _, part in frame.group_by("query", maintain_order=True)
        if part["score"].n_unique() > 1 and part["value"].n_unique() > 1
    ]
    return float(np.mean(found))


@pytest.mark.slow
def test_planted_weights_are_found(learned: Theta) -> None:
    assert cosine(learned.alpha + learned.beta, ALPHA + BETA) > 0.97
    assert np.argsort(learned.alpha).tolist() == np.argsort(ALPHA).tolist()
    # The weakest harm is told from the strongest; those between lie close together.
    assert int(np.argmax(learned.beta)) == int(np.argmax(BETA))
    assert learned.beta[2] < learned.beta[0]
    # The size of weights is a matter of scale: those of help add up to 1, those of harm in proportion.
    assert sum(learned.alpha) == pytest.approx(1)
    assert sum(learned.beta) == pytest.approx(sum(BETA) / sum(ALPHA), abs=0.1)


def test_figures_are_what_they_say(planted: World, learned: Theta) -> None:
    """By another implementation: in-sample of the weights kept, and that of UDCG."""
    values = planted.helpful @ np.array(learned.alpha) + planted.harmful @ np.array(learned.beta)
    assert learned.figures["in_sample"]["value"] == pytest.approx(mean_within(values, planted.outcomes), abs=1e-12)
    plain = planted.helpful.sum(axis=1) + planted.harmful.sum(axis=1) / 3
    assert learned.figures["udcg"]["value"] == pytest.approx(mean_within(plain, planted.outcomes), abs=1e-9)
    held, base, gain = (learned.figures[name] for name in ("held_out", "udcg", "gain"))
    assert gain["value"] == pytest.approx(held["value"] - base["value"], abs=1e-12)
    assert gain["low"] < gain["value"] < gain["high"]
    assert held["low"] < held["value"] < held["high"]
    assert held["value"] < learned.figures["in_sample"]["value"]
    assert gain["low"] > 0, "the planted weights of places are worth learning"


@pytest.mark.slow
def test_held_out_figures_hold_on_new_queries(learned: Theta) -> None:
    """What the figure held out promises is what the weights do on 400 queries that nobody saw."""
    new = world(400, seed=99)
    values = new.helpful @ np.array(learned.alpha) + new.harmful @ np.array(learned.beta)
    held = learned.figures["held_out"]
    assert held["low"] < mean_within(values, new.outcomes) < held["high"]


def test_where_there_is_nothing_to_learn_the_figure_held_out_says_so() -> None:
    """Outcomes by chance: in-sample looks like something, held out it is nothing."""
    given = world(60, seed=3)
    rng = np.random.default_rng(1)
    chance = given.outcomes.frame.with_columns(pl.Series("value", rng.choice([-1.0, 0.0, 1.0], len(given.outcomes))))
    theta = fit(given.contexts, given.judgments, Outcomes(chance), 5, **FAST)
    assert theta.figures["in_sample"]["value"] > 0.05
    assert theta.figures["held_out"]["low"] < 0 or theta.figures["held_out"]["value"] < 0.02
    assert theta.figures["gain"]["low"] < 0


@pytest.mark.parametrize("fold", [0, *slow(1, 2, 3)])
def test_outcomes_held_out_play_no_part_in_scores_held_out(planted: World, fold: int) -> None:
    """Fails if parts split queries, or if C is chosen with the queries held out: then they would leak."""
    tables = FittingTables(planted.contexts, planted.judgments, planted.outcomes)
    rows = build_fitting_rows(tables, feature_metrics(5, "full", 1.0), "grade")
    rows = rows.where(rows.query < 32)
    chance = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], len(rows.outcome))
    mine = assign_folds(rows.query, 4, 0) == fold

    def scores(outcome: Floats) -> Floats:
        return held_out_scores(
            FitData(rows.values, outcome, rows.query, ranked_pairs(outcome, rows.query)), (0.01, 1.0), 4, 0
        )

    before, after = scores(chance), scores(np.where(mine, rows.outcome, chance))
    assert (after[mine] == before[mine]).all()
    assert (after[~mine] != before[~mine]).any(), "other parts did learn from these queries"


def test_cases_are_learned_from_together_unless_they_share_queries() -> None:
    """A query in two cases would be learned from in one while it is held out in the other."""
    one, other, shared = world(12, seed=1), world(12, seed=2, prefix="t"), world(12, seed=3)
    found = fit_tables([FittingTables(*one[:3]), FittingTables(*other[:3])], 5, **FAST)
    assert found.learned_from["all_queries"] == 24
    with pytest.raises(InputError, match="12 queries are in several cases: 'q0000'"):
        fit_tables([FittingTables(*one[:3]), FittingTables(*shared[:3])], 5, **FAST)


@pytest.mark.parametrize("folds", [2, 5, 7])
def test_parts_are_of_whole_queries_and_of_equal_size(folds: int) -> None:
    query = np.random.default_rng(0).integers(0, 33, 400) * 3
    part = assign_folds(query, folds, 0)
    assert all(len(set(part[query == each])) == 1 for each in np.unique(query))
    sizes = np.bincount([part[query == each][0] for each in np.unique(query)], minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    assert (assign_folds(query, folds, 0) == part).all()
    assert (assign_folds(query, folds, 1) != part).any()


@pytest.mark.slow
def test_variants(planted: World) -> None:
    """Harm was planted, so leaving it out costs; so does forgetting how much a relevant passage helps."""
    made: dict[Variant, Theta] = {
        variant: fit(*planted[:3], 5, variant=variant, **FAST) for variant in ("full", "relevance", "binary")
    }
    held = {variant: theta.figures["held_out"]["value"] for variant, theta in made.items()}
    assert held["full"] > held["relevance"] > held["binary"]
    for variant in ("relevance", "binary"):
        assert made[variant].beta == (0.0,) * 5
        assert made[variant].variant == variant
        assert cosine(made[variant].alpha, ALPHA) > 0.9


def test_binary_weights_are_those_of_relevant_passages(tmp_path: Path) -> None:
    given = world(150, binary=True, beta=(0.0,) * 5, seed=4)
    theta = fit(*given[:3], 5, variant="binary", **FAST)
    assert cosine(theta.alpha, ALPHA) > 0.98
    values = given.relevant @ np.array(theta.alpha)
    assert theta.figures["in_sample"]["value"] == pytest.approx(mean_within(values, given.outcomes), abs=1e-9)


def test_the_metric_scores_as_it_was_learned(planted: World, learned: Theta, tmp_path: Path) -> None:
    learned.write(tmp_path / "theta.json")
    scores = ragworth.score(planted.contexts, planted.judgments, ["UDCG(theta=theta.json)@5"], folder=tmp_path)
    rows = planted.outcomes.frame.join(scores.frame, on=["system", "query"], maintain_order="left")
    sums = planted.helpful @ np.array(learned.alpha) + planted.harmful @ np.array(learned.beta)
    assert rows["value_right"].to_numpy() == pytest.approx(1 / (1 + np.exp(-sums)), abs=1e-12)


def test_scaled_weights_order_contexts_as_before() -> None:
    weights = np.array([3.0, -1.0, 2.0, 0.5])
    assert scale_weights(weights, 2) == pytest.approx(weights / 4)
    assert scale_weights(np.array([0.0, 0.0, 2.0, 2.0]), 2) == pytest.approx([0, 0, 0.5, 0.5])
    assert scale_weights(np.zeros(4), 2).tolist() == [0, 0, 0, 0]


def test_pairs_are_all_those_of_one_query_that_differ() -> None:
    rng = np.random.default_rng(2)
    query, outcome = rng.integers(0, 9, 60), rng.choice([-1.0, 0.0, 1.0], 60)
    wanted = {(i, j) for i in range(60) for j in range(60) if query[i] == query[j] and outcome[i] > outcome[j]}
    found = ranked_pairs(outcome, query)
    assert set(zip(found.better.tolist(), found.worse.tolist(), strict=True)) == wanted
    assert len(found.better) == len(wanted)
    assert (query[found.better] == found.query).all()
    assert len(ranked_pairs(np.zeros(60), query).query) == 0
    assert len(ranked_pairs(outcome[:1], query[:1]).query) == 0


def test_a_query_with_many_pairs_weighs_as_much_as_one_with_few() -> None:
    """One pair says that the feature helps; a hundred pairs of another query say that it harms, as much."""
    features = np.array([[1.0], [0.0], *[[0.0]] * 10, *[[1.0]] * 10])
    outcome = np.array([1.0, 0.0, *[1.0] * 10, *[0.0] * 10])
    pairs = ranked_pairs(outcome, np.array([0, 0, *[1] * 20]))
    assert np.bincount(pairs.query).tolist() == [1, 100]
    assert fit_ranking_svm(features, pairs, 1.0) == pytest.approx([0.0], abs=1e-9)


def test_short_contexts_and_contexts_without_a_judgment(planted: World) -> None:
    """Places where nothing is shown add nothing; what has no judgment is left out and counted."""
    frame = planted.contexts.frame
    short = Contexts(frame.filter((pl.col("system") != "s00") | (pl.col("rank") <= 2)))
    shown = frame.filter((pl.col("system") == "s01") & (pl.col("query") == "q0000"))["passage"].to_list()
    judgments = planted.judgments.frame.filter(
        ~((pl.col("aspect") == "abstention") & pl.col("passage").is_in(shown[:1]))
    )
    lacking = frame.filter(pl.col("passage") == shown[0])
    touched = lacking.filter((pl.col("system") != "s00") | (pl.col("rank") <= 2)).height
    outcomes = Outcomes(planted.outcomes.frame.filter(~((pl.col("query") == "q0001") & (pl.col("system") == "s09"))))
    tables = FittingTables(short, Judgments(judgments), outcomes)
    rows = build_fitting_rows(tables, feature_metrics(5, "full", 1.0), "grade")
    assert rows.left_out == {"no outcome": 1, "unjudged": touched}
    assert len(rows.outcome) == 1500 - 1 - touched
    order = planted.outcomes.frame.with_row_index("at").filter(
        (pl.col("query") == "q0050") & (pl.col("system") == "s00")
    )
    at = int(order["at"][0])
    mine = rows.values[np.flatnonzero(rows.query == 50)[0]]
    wanted = np.concatenate([planted.helpful[at] * (np.arange(5) < 2), planted.harmful[at] * (np.arange(5) < 2)])
    assert mine == pytest.approx(wanted)
    theta = fit_tables([tables], 5, **FAST)
    assert theta.learned_from["left_out"] == rows.left_out


def test_empty_contexts_are_contexts(planted: World) -> None:
    frame = planted.contexts.frame.filter(~((pl.col("system") == "s00") & (pl.col("query") == "q0003")))
    rows = build_fitting_rows(
        FittingTables(Contexts(frame, empty=[("s00", "q0003")]), planted.judgments, planted.outcomes),
        feature_metrics(5, "full", 1.0),
        "grade",
    )
    assert len(rows.outcome) == 1500
    assert (rows.values[np.flatnonzero(rows.query == 3)[0]] == 0).all()
    without = build_fitting_rows(
        FittingTables(Contexts(frame), planted.judgments, planted.outcomes), feature_metrics(5, "full", 1.0), "grade"
    )
    assert without.left_out == {"an outcome without a context": 1}


def constant(value: float, given: World) -> Outcomes:
    return Outcomes(given.outcomes.frame.with_columns(pl.lit(value).alias("value")))


def test_nothing_to_learn_from(planted: World) -> None:
    contexts, judgments, outcomes = planted[:3]
    with pytest.raises(InputError, match=r"all 1,500 outcomes are 1: there is nothing to learn"):
        fit(contexts, judgments, constant(1.0, planted), 5)
    by_query = outcomes.frame.with_columns((pl.col("query") < "q0075").cast(pl.Float64).alias("value"))
    with pytest.raises(InputError, match="0 queries have contexts whose outcomes differ, of 150"):
        fit(contexts, judgments, Outcomes(by_query), 5)
    few = outcomes.frame.filter(pl.col("query") < "q0006")
    with pytest.raises(InputError, match="at least 10, for 5 parts"):
        fit(contexts, judgments, Outcomes(few), 5)
    with pytest.raises(InputError, match="no outcomes of 'score'") as caught:
        fit(contexts, judgments, outcomes, 5, outcome="score")
    assert "grade" in caught.value.expected
    failed = outcomes.frame.with_columns(pl.lit(None, pl.Float64).alias("value"), pl.lit("timed-out").alias("status"))
    with pytest.raises(InputError, match=r"not one of 1,500 outcomes of 'grade' has a value \(timed-out\)"):
        fit(contexts, judgments, Outcomes(failed), 5)
    with pytest.raises(InputError, match="no context has both its judgments and an outcome"):
        fit(contexts, judgments, graded([("other", "q0001", 1.0)]), 5)
    with pytest.raises(MetricError, match="needs abstention probabilities"):
        fit(contexts, Judgments(judgments.of("relevance")), outcomes, 5)


def test_without_scikit_learn_the_line_to_install_it(planted: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    with pytest.raises(MissingExtraError, match=r'pip install "ragworth\[learn\]"'):
        fit(*planted[:3], 5)


def test_svmrank_by_another_solver(planted: World) -> None:
    rows = build_fitting_rows(FittingTables(*planted[:3]), feature_metrics(2, "relevance", 1.0), "grade")
    rows = rows.where(rows.query < 6)
    pairs = ranked_pairs(rows.outcome, rows.query)
    ahead = rows.values[pairs.better] - rows.values[pairs.worse]

    def loss(w: Floats) -> float:
        return float(w @ w / 2 + 4.0 / len(set(pairs.query)) * np.maximum(0, 1 - ahead @ w).sum())

    mine = fit_ranking_svm(rows.values, pairs, 4.0, "svmrank")
    other = scipy_optimize.minimize(loss, mine + 0.3, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    assert loss(mine) == pytest.approx(other.fun, rel=1e-4)
    assert mine == pytest.approx(other.x, abs=1e-2)
    with pytest.raises(InputError, match="no solution in 10,000 steps with C = 1e"):
        fit_ranking_svm(rows.values, pairs, 1e12, "svmrank")


def test_scores_of_training_queries_are_noted(planted: World, tmp_path: Path) -> None:
    few = Outcomes(planted.outcomes.frame.filter(pl.col("query") < "q0100"))
    theta = fit(*planted[:2], few, 5, **FAST)
    theta.write(tmp_path / "t.json")
    both = [world(10, seed=8, prefix="other"), planted]
    first, second = (
        ragworth.score(each.contexts, each.judgments, ["UDCG(theta=t.json)@5", "UDCG@5"], folder=tmp_path).notes
        for each in both
    )
    assert not [note for note in first if "learned from" in note]
    (note,) = [note for note in second if "learned from" in note]
    assert note.startswith(
        f"UDCG(theta=t.json)@5: {len(theta.trained_on)} of 150 queries have the id of a query that its weights"
    )
