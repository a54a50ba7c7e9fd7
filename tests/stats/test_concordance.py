"""Concordance of pairs of contexts: by hand, all ways round, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.stats import concordance as room
from ragworth.stats.concordance import NOTHING, TIED, concordance
from tests.strategies import examples

number = st.sampled_from([0.0, 0.5, 1.0, np.inf])
pairs = st.lists(st.tuples(number, number, number, number, st.integers(0, 3)), max_size=30)


def test_by_hand() -> None:
    values = [(2, 1), (1, 2), (3, 1), (1, 1), (5, 1), (np.nan, 1)]
    outcomes = [(1, 0), (1, 0), (1, 0), (1, 0), (1, 1), (1, 0)]
    # Right, wrong, right, tied, no difference in outcome, missing: C = 2, D = 1.
    found = concordance(values, outcomes)
    assert found.value == pytest.approx(1 / 3)
    assert found.counts == {"concordant": 2, "discordant": 1, "tied": 1, "even": 1} and found.n_left_out == 1
    # Two queries to one: p = 1.
    assert (found.n, found.p, found.reason) == (3, 1.0, "")


@examples(80)
@given(pairs)
def test_from_the_definition(rows: list[tuple[float, float, float, float, int]]) -> None:
    values, outcomes, query = [r[:2] for r in rows], [r[2:4] for r in rows], [r[4] for r in rows]
    c = sum((a > b and x > y) or (a < b and x < y) for a, b, x, y, _ in rows)
    d = sum((a > b and x < y) or (a < b and x > y) for a, b, x, y, _ in rows)
    found = concordance(values, outcomes, query, resamples=20)
    assert (found.counts["concordant"], found.counts["discordant"]) == (c, d)
    assert found.value == (pytest.approx((c - d) / (c + d)) if c + d else None)
    assert sum(found.counts.values()) == len(rows)
    turned = concordance(values, [(y, x) for x, y in outcomes], query, resamples=20)
    assert (turned.counts["concordant"], turned.counts["discordant"], turned.p) == (d, c, found.p)


def test_queries_are_drawn_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    values, outcomes = rng.normal(size=(60, 2)), np.tile([1.0, 0.0], (60, 1))
    once = concordance(values, outcomes, resamples=300)
    tenfold = concordance(
        np.tile(values, (10, 1)), np.tile(outcomes, (10, 1)), np.tile(np.arange(60), 10), resamples=300
    )
    assert once.interval is not None
    assert tenfold.interval == pytest.approx(once.interval)
    assert tenfold.p == once.p
    monkeypatch.setattr(room, "CHUNK", 100)
    assert concordance(values, outcomes, resamples=300).interval == pytest.approx(once.interval)
    assert concordance(values, outcomes, np.zeros(60), resamples=10).interval is None


def test_edges_say_why() -> None:
    for values, outcomes, reason in (
        (np.empty((0, 2)), np.empty((0, 2)), NOTHING),
        ([(1, 2)], [(1, 1)], NOTHING),
        ([(1, np.nan)], [(1, 0)], NOTHING),
        ([(1, 1)], [(1, 0)], TIED),
    ):
        found = concordance(values, outcomes)
        assert (found.value, found.reason, found.p, found.interval) == (None, reason, None, None)
    with pytest.raises(ValueError, match="pairs of outcomes"):
        concordance([(1, 2)], [(1, 2), (2, 1)])
