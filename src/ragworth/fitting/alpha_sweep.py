"""Every α of F, F_e, T and T_u, from the scores with one α and the counts of passages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ragworth.fitting.grids import ParameterGrid, build_grid
from ragworth.fitting.parameter_choice import CorrelationOptions, best_in_sample, choose_pooled
from ragworth.fitting.rows import Bools, FittingRows, Floats, Texts
from ragworth.metrics.declaration import Metric
from ragworth.metrics.parsing import try_parse

PassageCounts = tuple[Floats, Floats]
"""How many passages each context shows, and how many of them are relevant."""
FEW = "too few queries, or a side that is constant, so nothing to cross-validate"


class AlphaSweep(NamedTuple):
    """A metric with every α of a grid: rows × values, with the outcome and the query of each row.

    ``clusters``, if queries are turns, has the conversation of each row: whole conversations are held out and drawn.
    """

    grid: ParameterGrid
    values: Floats
    outcome: Floats
    queries: Texts
    clusters: Texts | None = None

    def best(self, keep: Bools, options: CorrelationOptions) -> int:
        """The place of the best α over some rows."""
        return best_in_sample(self.grid, self._rows(keep), options)[0]

    def summary(self, keep: Bools, options: CorrelationOptions) -> dict[str, object]:
        """The best α of some rows as columns of a table: in-sample, and cross-validated over queries."""
        rows = self._rows(keep)
        place, value = best_in_sample(self.grid, rows, options)
        one = choose_pooled(self.grid, rows, options) if rows.queries >= 2 * options.folds else None
        span = one.interval if one is not None else None
        turns = {} if self.clusters is None else {"conversations": rows.queries}
        return {
            "best α": None if np.isnan(value) else self.grid.values[place],
            "in-sample": value,
            "cross-validated": one.held_out if one is not None else None,
            "low": span.low if span is not None else None,
            "high": span.high if span is not None else None,
            "contexts": len(rows.outcome),
            "queries": len(np.unique(self.queries[self._known(keep)])),
            **turns,
            "why": "" if one is not None else FEW,
        }

    def _known(self, keep: Bools) -> Bools:
        return np.asarray(keep & ~np.isnan(self.values).any(axis=1))

    def _rows(self, keep: Bools) -> FittingRows:
        there = self._known(keep)
        units = self.queries if self.clusters is None else self.clusters
        names, query = np.unique(units[there], return_inverse=True)
        return FittingRows(self.values[there], self.outcome[there], query.reshape(-1), names, {})


def alpha_sweeps(
    metrics: Sequence[str],
    values: Floats,
    outcome: Floats,
    queries: Texts,
    counts: Callable[[int | None], PassageCounts],
    clusters: Texts | None = None,
) -> dict[int, AlphaSweep]:
    """Metrics that have an α, by their column in ``values``; ``counts``: K and n_p of each row up to a cutoff."""
    parsed = {at: metric for at, name in enumerate(metrics) if (metric := try_parse(name)) is not None}
    return {
        at: AlphaSweep(*alpha_grid(metric, values[:, at], *counts(metric.cutoff)), outcome, queries, clusters)
        for at, metric in parsed.items()
        if has_alpha(metric)
    }


def has_alpha(metric: Metric) -> bool:
    """Whether its scores with one α give those with all others."""
    return metric.name in ("T", "T_u") or (metric.name in ("F", "F_e") and metric.values["alpha"] < 1)


def alpha_grid(metric: Metric, scores: Floats, shown: Floats, hits: Floats) -> tuple[ParameterGrid, Floats]:
    """A grid of α, and what the metric would be with each (contexts × values); NaN where it has no score.

    ``shown`` is K and ``hits`` n_p. 1/F = α·K/n_p + (1 − α)·N/n_p, so a score with one α gives N. For F_e that is the
    estimate, which can't be had from the passages shown.
    """
    grid = build_grid(f"{metric.name}(alpha=*)")
    alpha, given, shown, hits = np.array(grid.values), metric.values["alpha"], shown[:, None], hits[:, None]
    if metric.name in ("T", "T_u"):
        made = (1 - alpha) * hits - alpha * (shown - hits) / (np.maximum(shown, 1) if metric.name == "T" else 1)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            total = (hits / scores[:, None] - given * shown) / (1 - given)
            made = np.where(hits > 0, hits / (alpha * shown + (1 - alpha) * total), 0.0)
    return grid, np.where(np.isnan(scores)[:, None], np.nan, np.round(made, 9))
