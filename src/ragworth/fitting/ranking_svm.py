"""A linear ranking support vector machine: which weights put the better of two contexts of one query first.

The machine sees the difference of the two contexts' features. **Choice**: the loss is the squared hinge, solved in the
primal, which has one solution that does not depend on a random order; there is no intercept, as it would cancel out.
Each pair is there in both orders, so that neither sign is the more frequent one.

The pairs of one query weigh 1 together, however many they are. What is wanted is a high mean over queries of the
correlation within each; and pairs of one query are not independent: ten contexts, half of them good, make 25 pairs, one
good one among ten makes 9, and neither query says more than the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.errors import MissingExtraError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_ITERATIONS = 10_000
"""Most steps of the solver; it needs a few dozen."""


class RankedPairs(NamedTuple):
    """Rows of one query of which the first has the better outcome, and the query's number."""

    better: Ints
    worse: Ints
    query: Ints


def ranked_pairs(outcome: Floats, query: Ints) -> RankedPairs:
    """All pairs of rows of one query whose outcomes differ."""
    order = np.argsort(query, kind="stable")
    size = np.bincount(query)
    start = np.cumsum(size) - size
    parts: list[tuple[Ints, Ints]] = []
    for m in np.unique(size[size > 1]):
        same = np.flatnonzero(size == m)
        rows = order[start[same][:, None] + np.arange(m)]
        a, b = (rows[:, place].ravel() for place in np.triu_indices(int(m), 1))
        parts.append((a, b))
    if not parts:
        nothing = np.empty(0, dtype=np.int64)
        return RankedPairs(nothing, nothing, nothing)
    a, b = (np.concatenate(each) for each in zip(*parts, strict=True))
    differs = outcome[a] != outcome[b]
    a, b = a[differs], b[differs]
    up = outcome[a] > outcome[b]
    better, worse = np.where(up, a, b), np.where(up, b, a)
    place = np.lexsort((worse, better, query[better]))
    return RankedPairs(better[place], worse[place], query[better[place]])


def fit_ranking_svm(features: Floats, pairs: RankedPairs, c: float) -> Floats:
    """The weights of the features."""
    try:
        from sklearn.svm import LinearSVC
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "learn", "learning the weights of UDCG") from error
    ahead = features[pairs.better] - features[pairs.worse]
    share = 1 / np.bincount(pairs.query)[pairs.query]
    machine = LinearSVC(C=c, loss="squared_hinge", dual=False, fit_intercept=False, tol=1e-6, max_iter=MAX_ITERATIONS)
    machine.fit(
        np.concatenate([ahead, -ahead]),
        np.repeat([1, -1], len(ahead)),
        sample_weight=np.concatenate([share, share]) / 2,
    )
    return np.asarray(machine.coef_[0], dtype=np.float64)
