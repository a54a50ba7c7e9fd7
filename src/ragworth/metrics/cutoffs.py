"""Metrics with other cutoffs than their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ragworth.metrics.declaration import Metric
from ragworth.metrics.parsing import try_parse, with_parameter

TIED = "@required"
"""Ends the name of a metric whose cutoff is the size of each query's required subset."""


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


def cut_names(metrics: Iterable[Metric], k: int) -> dict[str, str]:
    """Names of metrics by those of the same metrics cut at k; those learned for another size are left out."""
    return {str(replace(metric, cutoff=k)): str(metric) for metric in metrics if metric.cutoff in (None, k)}


def at_threshold(name: str, eta: float) -> str:
    """A metric of sub-questions, maybe with the cutoff ``@required``, at this threshold; any other as it is."""
    return with_parameter(name.removesuffix(TIED), "eta", eta) + (TIED if name.endswith(TIED) else "")


def bare_name(name: str) -> str:
    """A metric without its cutoff, and without what counts as relevant or ideal."""
    if (metric := try_parse(name)) is None:
        return re.sub(r"@\d+$", "", name)  # a measure of another package
    kept = tuple(each for each in metric.parameters if each[0] not in ("rel", "ideal"))
    return str(replace(metric, cutoff=None, parameters=kept))


def metric_family(name: str) -> Metric | None:
    """A metric without its cutoff; with it if its weights are learned for one size; None for another tool's."""
    metric = try_parse(name)
    return metric if metric is None or metric.files else replace(metric, cutoff=None)
