"""Contributions recover what was planted in scripted readers, and cost what they promise."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import ragworth
from ragworth.judging.contribution import design
from ragworth.judging.contribution.rows import context_rows, pair_rows, passage_rows
from ragworth.judging.judge import JudgingResult
from tests.judging.contribution.readers import Value, additive, both, contradicted, either, reader, run, world

EXACT = 1e-9


def split(value: Value, k: int, **settings: Any) -> JudgingResult:
    settings = {"answer": "accepted", **settings}
    return ragworth.annotate("contribution", run(k), world(k), reader(value, k), **settings)


def values(found: JudgingResult) -> list[float]:
    return list(context_rows(found.frame)["contributions"][0])


def outcomes(found: JudgingResult) -> dict[str, float | None]:
    return dict(found.frame.select("aspect", "value").iter_rows())


def interaction(found: JudgingResult, first: str, second: str) -> float:
    rows = {(row["first"], row["second"]): row["interaction"] for row in pair_rows(found.frame).iter_rows(named=True)}
    return float(rows[first, second])


WEIGHTS = [3.0, -1.0, 0.0, 2.0, 0.5]


@pytest.mark.parametrize("method", ["exact", "leave-one-out", "permutations"])
def test_each_method_finds_additive_passages(method: str) -> None:
    found = split(additive(WEIGHTS), 5, method=method, subsets=32)
    assert values(found) == pytest.approx(WEIGHTS, abs=1e-6)
    got = outcomes(found)
    assert got["gain"] == pytest.approx(4.5)
    assert got["contributing"] == pytest.approx(3 / 5)
    assert got["harm"] == pytest.approx(1.0 / 6.5)  # |−1| of 3 + 1 + 2 + 0.5
    assert got["effective"] == pytest.approx(5.5**2 / (9 + 4 + 0.25))
    if method != "leave-one-out":
        assert got["redundancy"] == pytest.approx(0.0, abs=1e-6)


def test_twins_share_what_either_does_and_leave_one_out_sees_nothing() -> None:
    exact = split(either(4.0), 4)
    assert values(exact) == pytest.approx([2.0, 2.0, 0.0, 0.0], abs=EXACT)
    assert outcomes(exact)["redundancy"] == pytest.approx(1.0)
    assert outcomes(exact)["effective"] == pytest.approx(2.0)
    # With two passages that replace each other, the index is −4 in every context.
    assert interaction(exact, "p0", "p1") == pytest.approx(-4.0, abs=EXACT)
    assert passage_rows(exact.frame)["redundant_with"].to_list() == ["p1", "p0", None, None]
    alone = split(either(4.0), 4, method="leave-one-out")
    assert values(alone) == pytest.approx([0.0, 0.0, 0.0, 0.0], abs=EXACT)


def test_passages_that_need_each_other_have_synergy() -> None:
    found = split(both(4.0), 3)
    assert values(found) == pytest.approx([2.0, 2.0, 0.0], abs=EXACT)
    assert interaction(found, "p0", "p1") == pytest.approx(4.0, abs=EXACT)
    assert outcomes(found)["redundancy"] == pytest.approx(0.0, abs=EXACT)


def test_a_contradiction_does_harm() -> None:
    found = split(contradicted(6.0, 5.0), 3)
    # Half of the orders have passage 0 first: it adds 6, then passage 1 takes 5; in the others 1 adds 0, then 0 adds 1.
    assert values(found) == pytest.approx([3.5, -2.5, 0.0], abs=EXACT)
    assert outcomes(found)["harm"] == pytest.approx(2.5 / 6.0)
    assert split(contradicted(6.0, 5.0), 3, answer="generated").frame["aspect"].to_list()[:3] == [
        "reliance",
        "contributing",
        "opposition",
    ]


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_exact_contributions_sum_to_the_gain(k: int) -> None:
    draw = random.Random(k)
    table = {frozenset(n for n in range(k) if mask >> n & 1): -draw.uniform(1, 50) for mask in range(1 << k)}
    found = split(table.__getitem__, k)
    assert sum(values(found)) == pytest.approx(outcomes(found)["gain"], abs=1e-9)
    assert context_rows(found.frame)["subsets"].to_list() == [1 << k]


def tangled(k: int, seed: int = 0) -> Value:
    """Single effects, and as many pairs that replace or need each other."""
    draw = np.random.default_rng(seed)
    weights, mixed = draw.normal(0, 1, k), np.triu(draw.normal(0, 0.5, (k, k)), 1)

    def value(numbers: frozenset[int]) -> float:
        x = np.array([n in numbers for n in range(k)], dtype=np.float64)
        return float(-80 + weights @ x + x @ mixed @ x)

    return value


def true_shapley(k: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Of a value with single and pairwise effects: its own, and half of each pair's."""
    draw = np.random.default_rng(seed)
    weights, mixed = draw.normal(0, 1, k), np.triu(draw.normal(0, 0.5, (k, k)), 1)
    return np.asarray(weights + (mixed + mixed.T).sum(axis=1) / 2)


def test_exact_and_sampled_values_agree_with_the_formula() -> None:
    exact = split(tangled(6), 6)
    assert values(exact) == pytest.approx(true_shapley(6).tolist(), abs=1e-9)
    # Pairs of orders cancel effects of two passages at a time, so that even few orders are exact.
    found = split(tangled(10), 10)
    assert values(found) == pytest.approx(true_shapley(10).tolist(), abs=1e-9)
    row = context_rows(found.frame)
    assert row["method"][0] == "permutations" and row["settled"][0] == 1.0
    assert row["subsets"][0] <= 256 < 1 << 10


def saturating(k: int) -> Value:
    """Effects of all orders: each further passage adds less."""
    weights = np.linspace(2.0, 0.1, k)
    return lambda numbers: -20 + 6 * float(np.tanh(weights[sorted(numbers)].sum() / 3))


@pytest.fixture
def nearly_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sampling hardly stops before it has used its calls."""
    monkeypatch.setattr(design, "CERTAINTY", 0.9999)
    monkeypatch.setattr(design, "TOLERANCE", 0.0)


@pytest.mark.slow
@pytest.mark.usefixtures("nearly_certain")
def test_standard_errors_cover_the_truth_and_shrink_with_calls() -> None:
    k = 8
    truth = np.array(values(split(saturating(k), k, method="exact")))
    inside, errors = [], {}
    for subsets in (64, 200):
        rows = [
            context_rows(split(saturating(k), k, method="permutations", subsets=subsets, seed=seed).frame)
            for seed in range(12)
        ]
        found = np.array([row["contributions"][0].to_list() for row in rows])
        wide = np.array([row["errors"][0].to_list() for row in rows])
        assert all(row["subsets"][0] <= subsets for row in rows)
        inside.append(float((np.abs(found - truth) <= 3 * wide + 1e-9).mean()))
        errors[subsets] = float(np.sqrt(((found - truth) ** 2).mean()))
    assert min(inside) > 0.85  # 3 standard errors, from as few as 3 pairs of orders
    assert errors[200] < errors[64]


def test_sampling_stops_as_soon_as_the_ranking_is_certain() -> None:
    clear = context_rows(split(additive([4.0, 2.0, 1.0, 0.5, 0.0, -0.5, -1.0, -2.0]), 8).frame)
    assert clear["settled"][0] == 1.0
    # Four pairs of orders are the least; none of them disagree.
    assert clear["subsets"][0] <= 2 + 8 + 8 * 7


@pytest.mark.usefixtures("nearly_certain")
def test_a_ranking_that_stays_uncertain_has_a_note() -> None:
    open_ = split(saturating(8), 8, method="permutations", subsets=60)
    row = context_rows(open_.frame)
    assert row["settled"][0] < 1.0
    assert any("isn't certain" in note for note in open_.notes)


@pytest.mark.usefixtures("nearly_certain")
def test_contributions_are_exact_once_all_subsets_are_known() -> None:
    k = 4
    # Equal passages never get a certain order, so nothing but the number of subsets ends the sampling.
    found = split(lambda numbers: -20 + len(numbers) ** 0.5, k, method="permutations")
    row = context_rows(found.frame)
    assert row["method"][0] == "exact" and row["subsets"][0] == 2**k and row["errors"][0].to_list() == [0.0] * k
    assert values(found) == pytest.approx([k**0.5 / k] * k)  # √k nats, shared by k


def test_identical_subsets_are_asked_once_and_runs_continue_from_the_store(tmp_path: Any) -> None:
    model = reader(additive(WEIGHTS), 5)
    contexts = {"a": run(5), "b": run(5)}
    frame = [(s, q, p, v) for s, some in contexts.items() for q, each in some.items() for p, v in each.items()]
    table = ragworth.Contexts(
        {"system": [r[0] for r in frame], "query": [r[1] for r in frame], "passage": [r[2] for r in frame],
         "score": [r[3] for r in frame]}
    )  # fmt: skip
    first = ragworth.annotate("contribution", table, world(5), model, store=tmp_path / "calls.sqlite")
    assert model.calls == 1 + 32  # one answer, 32 subsets, for both systems together
    assert set(first.table.frame["system"]) == {"a", "b"}
    again = ragworth.annotate("contribution", table, world(5), model, store=tmp_path / "calls.sqlite")
    assert model.calls == 33
    assert again.frame.equals(first.frame)
