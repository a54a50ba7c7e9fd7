"""A sparse linear model of the value of a subset: an intercept and a weight for each passage.

Subsets are drawn at random, each passage with probability ½. The lasso, with its penalty chosen by cross-validation,
decides which passages have a weight at all; least squares on these then gives the weights, so that those of the
sentences sum to that of the answer. Paper: Cohen-Wang et al. 2024, ContextCite.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.contribution.subsets import Floats, SubsetValues, full_subset
from ragworth.stats.correlation import spearman

FOLDS = 5
PENALTIES = 12
"""Penalties to try, from the least that leaves no weight down to a thousandth of it."""
HELD_OUT = 0.25
"""Share of the subsets that are held out to see how well the model predicts."""
MAX_SWEEPS = 500


class SurrogateFit(NamedTuple):
    """Weights (passages × sentences), their standard errors for the whole answer, and the fit on held-out subsets."""

    values: Floats
    errors: Floats
    """NaN for passages without a weight: the lasso left them out."""
    r_squared: float
    """Share of the variance of held-out subsets that is predicted; NaN if they don't differ."""
    rank_correlation: float
    """Spearman ρ of predicted and true values of held-out subsets; NaN if either is constant."""
    held_out: int


def random_subsets(k: int, n: int, seed: str) -> list[int]:
    """Up to n different subsets of k passages, each drawn with its complement."""
    draw = random.Random(seed)
    n = min(n, 1 << k)
    found: dict[int, None] = {}
    while len(found) < n:
        mask = draw.getrandbits(k)
        found[mask] = None
        found[full_subset(k) ^ mask] = None
    return list(found)[:n]


def fit_surrogate(values: SubsetValues, masks: Sequence[int], k: int, seed: str) -> SurrogateFit:
    """Fit the values of these subsets; the last quarter of a random order of them is held out for the fit."""
    chosen = list(masks)
    random.Random(seed).shuffle(chosen)
    x = np.array([[mask >> i & 1 for i in range(k)] for mask in chosen], dtype=np.float64)
    y = np.array([values[mask] for mask in chosen])
    kept = len(chosen) - max(2, round(HELD_OUT * len(chosen)))
    weights, intercept = _relaxed_lasso(x[:kept], y[:kept])[:2]
    predicted, true = (x[kept:] @ weights + intercept).sum(axis=1), y[kept:].sum(axis=1)
    spread = float(((true - true.mean()) ** 2).sum())
    r_squared = 1 - float(((true - predicted) ** 2).sum()) / spread if spread > 0 else float("nan")
    final, _, errors = _relaxed_lasso(x, y)
    return SurrogateFit(final, errors, r_squared, spearman(predicted, true), len(true))


def _relaxed_lasso(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Weights, intercept (for each sentence) and standard errors by least squares, on what the lasso chooses."""
    k, total = x.shape[1], y.sum(axis=1)
    chosen = np.flatnonzero(lasso(x, total, choose_penalty(x, total)))
    weights, errors = np.zeros((k, y.shape[1])), np.full(k, np.nan)
    design = np.column_stack([np.ones(len(x)), x[:, chosen]])
    solution = np.linalg.lstsq(design, y, rcond=None)[0]
    weights[chosen] = solution[1:]
    freedom = len(x) - design.shape[1]
    if freedom > 0 and len(chosen):
        residual = float(((total - (design @ solution).sum(axis=1)) ** 2).sum()) / freedom
        inverse = np.linalg.pinv(design.T @ design)
        errors[chosen] = np.sqrt(np.maximum(residual * np.diag(inverse)[1:], 0.0))
    return weights, solution[0], errors


def choose_penalty(x: Floats, y: Floats) -> float:
    """The penalty whose predictions are best in cross-validation; ties go to the larger one."""
    centred = x - x.mean(axis=0)
    largest = float(np.abs(centred.T @ (y - y.mean())).max()) / len(y)
    if largest == 0:
        return 0.0
    folds = np.arange(len(y)) % min(FOLDS, len(y))
    penalties = largest * np.logspace(0, -3, PENALTIES)
    losses = []
    for penalty in penalties:
        loss = 0.0
        for fold in range(int(folds.max()) + 1):
            mine: npt.NDArray[np.bool_] = folds != fold
            weights = lasso(x[mine], y[mine], float(penalty))
            intercept = y[mine].mean() - x[mine].mean(axis=0) @ weights
            loss += float(((y[~mine] - x[~mine] @ weights - intercept) ** 2).sum())
        losses.append(loss)
    return float(penalties[int(np.argmin(losses))])


def lasso(x: Floats, y: Floats, penalty: float) -> Floats:
    """Weights that minimise ‖y − b − xw‖² / 2n + penalty · ‖w‖₁, by coordinate descent."""
    n = len(y)
    centred = x - x.mean(axis=0)
    gram, slope = centred.T @ centred / n, centred.T @ (y - y.mean()) / n
    scale = np.diag(gram).tolist()
    weights = [0.0] * len(scale)
    # ``slope`` is kept up to date: most weights are and stay 0, and these cost nothing.
    for _ in range(MAX_SWEEPS):
        largest_step = 0.0
        for i, size in enumerate(scale):
            if size <= 0:
                continue
            rest = slope.item(i) + size * weights[i]
            new = math.copysign(max(abs(rest) - penalty, 0.0), rest) / size
            if step := new - weights[i]:
                weights[i] = new
                slope -= step * gram[i]
                largest_step = max(largest_step, abs(step))
        if largest_step <= 1e-9 * max([1.0, *map(abs, weights)]):
            break
    return np.array(weights)
