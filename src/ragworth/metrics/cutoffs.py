"""Metrics with other cutoffs than their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ragworth.metrics.declaration import Metric
from ragworth.metrics.parsing import try_parse


def metrics_at_sizes(metrics: Sequence[str], sizes: Sequence[int]) -> list[str]:
    """Metrics with a cutoff as they are; those without one at each size."""
    found: list[str] = []
    for name in metrics:
        metric = try_parse(name)
        free = metric is not None and metric.cutoff is None and metric.declaration.takes_cutoff
        found += [str(replace(metric, cutoff=size)) for size in sizes] if free else [str(metric or name)]  # type: ignore[type-var]
    return list(dict.fromkeys(found))


def with_k(name: str) -> str:
    """A metric with k for its cutoff."""
    metric = try_parse(name)
    return name if metric is None or metric.cutoff is None else f"{replace(metric, cutoff=None)}@k"


def metric_family(name: str) -> Metric | None:
    """A metric without its cutoff; with it if its weights are learned for one size; None for another tool's."""
    metric = try_parse(name)
    return metric if metric is None or metric.files else replace(metric, cutoff=None)
