"""The ablation: every figure is that of the same metric elsewhere, on the same held-out queries."""

from __future__ import annotations

from typing import Any

import pytest

from ragworth.fitting import AblationResult, FittingTables, ablate_tables, fit
from ragworth.fitting.sentences import ablation_sentence
from ragworth.metrics.theta import Variant
from tests.fitting.samples import World, world
from tests.fitting.test_sweep import by_query, scored

pytest.importorskip("sklearn")

FAST: dict[str, Any] = {"resamples": 200, "grid": (0.01, 1.0), "folds": 3}
LEARNED: dict[str, Variant] = {
    "UDCG_θ": "full",
    "UDCG_θ, relevance only": "relevance",
    "UDCG_θ, binary": "binary",
}


@pytest.fixture(scope="module")
def given() -> World:
    return world(60, seed=4)


@pytest.fixture(scope="module")
def found(given: World) -> AblationResult:
    return ablate_tables(FittingTables(*given[:3], name="NQ"), **FAST)


@pytest.mark.slow
def test_every_metric_as_elsewhere(given: World, found: AblationResult) -> None:
    fixed = ["UDCG@5", "UDCG(gamma=0)@5", "nDCG(ideal=retrieved)@5", "P@5"]
    assert list(found.correlations) == [*LEARNED, *fixed]
    for name, variant in LEARNED.items():
        held = fit(*given[:3], 5, variant=variant, **FAST).figures["held_out"]
        assert found.correlations[name]["value"] == pytest.approx(held["value"])
        assert found.correlations[name]["low"] == pytest.approx(held["low"])
    for name in fixed:
        each = by_query(scored(given, name))
        assert found.correlations[name]["value"] == pytest.approx(sum(each.values()) / len(each), abs=1e-9)


def test_the_difference_from_ndcg_is_always_there() -> None:
    """Outcomes that follow nDCG's relevance alone, not the utilities: UDCG is not the best."""
    flat = world(60, noise=0.05, alpha=(2.0, 1.3, 1.0, 0.9, 0.8), beta=(0.0,) * 5, binary=True, seed=5)
    found = ablate_tables(FittingTables(*flat[:3], name="flat"), **FAST)
    pair = ("UDCG@5", "nDCG(ideal=retrieved)@5")
    assert next(iter(found.differences)) == pair
    gap = found.differences[pair]
    means = [found.correlations[name]["value"] for name in pair]
    assert gap["value"] == pytest.approx(means[0] - means[1], abs=0.02), "over the queries that both have"
    assert gap["low"] is not None and gap["p"] is not None
    said = ablation_sentence(found)
    assert said.startswith("flat (") and f"difference {gap['value']:+.3f} [{gap['low']:.3f}" in said
