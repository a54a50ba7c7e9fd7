"""Rank correlations by influence: the value is Spearman's, and the spread that of resampled groups."""

from __future__ import annotations

import numpy as np
import pytest

from ragworth.stats.correlation import spearman
from ragworth.stats.influence import spearman_influence


@pytest.mark.slow
@pytest.mark.parametrize("ties", [False, True])
def test_spread_over_groups_is_that_of_the_bootstrap(ties: bool) -> None:
    rng = np.random.default_rng(7)
    size = rng.integers(1, 4, size=800)  # rows of a group; groups differ in size
    group = np.repeat(np.arange(800), size)
    y = np.repeat(rng.normal(size=800), size) + rng.normal(size=len(group))
    x = 0.6 * y + rng.normal(size=len(group))
    if ties:
        x, y = np.round(2 * x) / 2, (y > 0.3).astype(np.float64)
    found = spearman_influence(x, y)
    assert found.value == pytest.approx(spearman(x, y), abs=1e-9)
    by_group = found.by_group(group)
    assert by_group.mean() == pytest.approx(found.value, abs=1e-9)
    rows = np.split(np.arange(len(group)), np.cumsum(size)[:-1])
    drawn = []
    for _ in range(600):
        some = np.concatenate([rows[i] for i in rng.integers(0, 800, 800)])
        drawn.append(spearman(x[some], y[some]))
    # 600 resamples know a standard error to 3 %.
    assert by_group.std() / np.sqrt(800) == pytest.approx(np.std(drawn), rel=0.1)
