"""A linear ranking support vector machine: which weights put the better of two contexts of one query first.

The machine sees the difference of the two contexts' features; there is no intercept, as it would cancel out. There are
two losses:

``squared-hinge`` (**Choice**: the default) is solved in the primal, which has one solution that does not depend on a
random order. Each pair is there in both orders, so that neither sign is the more frequent one. The pairs of one query
weigh 1 together, however many they are. What is wanted is a high mean over queries of the correlation within each; and
pairs of one query are not independent: ten contexts, half of them good, make 25 pairs, one good one among ten makes 9,
and neither query says more than the other.

``svmrank`` is the problem that SVMrank (Joachims 2006) solves by default: ½‖w‖² + C/n·Σξ, with the hinge loss ξ of
every pair and n queries. So a query with more pairs weighs more. **Choice**: queries without pairs don't count in n.
"""

from __future__ import annotations

import warnings
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from ragworth.core.errors import InputError, MissingExtraError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Loss = Literal["squared-hinge", "svmrank"]
LOSSES: tuple[Loss, ...] = get_args(Loss)

MAX_ITERATIONS = 10_000
"""Most steps of the solver; it needs a few dozen."""

SVMRANK_C = 0.01
"""The C of SVMrank, unless another is given."""


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


def fit_ranking_svm(features: Floats, pairs: RankedPairs, c: float, loss: Loss = "squared-hinge") -> Floats:
    """The weights of the features."""
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "learn", "learning the weights of UDCG") from error
    ahead = features[pairs.better] - features[pairs.worse]
    if loss == "svmrank":
        # A pair in the other order has the same loss; a classifier needs both signs.
        sign = np.where(np.arange(len(ahead)) % 2, -1, 1)
        scaled = c / len(np.unique(pairs.query))
        machine = LinearSVC(
            C=scaled, loss="hinge", dual=True, fit_intercept=False, tol=1e-6, max_iter=MAX_ITERATIONS, random_state=0
        )
        given = {"X": ahead * sign[:, None], "y": sign}
    else:
        share = 1 / np.bincount(pairs.query)[pairs.query]
        machine = LinearSVC(
            C=c, loss="squared_hinge", dual=False, fit_intercept=False, tol=1e-6, max_iter=MAX_ITERATIONS
        )
        given = {
            "X": np.concatenate([ahead, -ahead]),
            "y": np.repeat([1, -1], len(ahead)),
            "sample_weight": np.concatenate([share, share]) / 2,
        }
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            machine.fit(**given)
        except ConvergenceWarning as error:
            raise InputError(
                f"the support vector machine found no solution in {MAX_ITERATIONS:,} steps with C = {c:g}",
                remedy="learn with the other loss (--loss)",
            ) from error
    return np.asarray(machine.coef_[0], dtype=np.float64)
