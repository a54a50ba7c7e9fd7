"""One type for every estimate: a value with its interval, its test and its counts, or the reason why it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragworth.stats.bootstrap import bootstrap_means, mean_intervals
from ragworth.stats.range_intervals import Bounds
from ragworth.stats.resampling import ConfidenceInterval, expanded_interval, expanded_p

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


class Resampling(NamedTuple):
    """How intervals are made: one plan for all estimates of an analysis."""

    level: float = 0.95
    resamples: int = 2000
    seed: int = 0

    @property
    def options(self) -> dict[str, Any]:
        """As keyword arguments of the functions in this package."""
        return self._asdict()

    @property
    def alpha(self) -> float:
        return 1 - self.level


class Estimate(NamedTuple):
    """A value with everything needed to judge it.

    Attributes
    ----------
    value: None if it is undefined; ``reason`` then says why.
    low, high: confidence interval; None if there is none.
    p: of the test that belongs to the value; ``p_holm`` corrected for the estimates of one family.
    n: number of units (mostly queries) that it is from; ``n_left_out`` that could not be used.
    reason: why the value or its interval is missing, or units are left out; or empty.
    counts: what else was counted, such as wins, ties and losses.
    reasons: how many units were left out, by reason.
    detectable: for a difference, the smallest true one that n units show with probability 0.8.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    n: int = 0
    n_left_out: int = 0
    reason: str = ""
    counts: Mapping[str, int] = {}
    detectable: float | None = None
    reasons: Mapping[str, int] = {}

    @property
    def interval(self) -> ConfidenceInterval | None:
        return ConfidenceInterval(self.low, self.high) if self.low is not None and self.high is not None else None

    def is_significant(self, alpha: float) -> bool:
        """Whether the value differs from that of no effect: by the corrected p if there is one."""
        p = self.p_holm if self.p_holm is not None else self.p
        return self.value is not None and p is not None and p < alpha

    def with_interval(self, span: ConfidenceInterval | None) -> Estimate:
        """The same with an interval, if there is one."""
        return self if span is None else self._replace(low=span.low, high=span.high)


def mean_estimates(values: Floats, plan: Resampling, bounds: Bounds | None = None) -> list[Estimate]:
    """The mean of each column over its rows (queries), whose values lie within ``bounds``; NaN is left out."""
    made = []
    for column, span in zip(values.T, mean_intervals(values, **plan.options, bounds=bounds).spans(), strict=True):
        known = column[~np.isnan(column)]
        mean = float(known.mean()) if len(known) else None
        made.append(Estimate(mean, n=len(known), n_left_out=len(column) - len(known)).with_interval(span))
    return made


def mean_of_groups(groups: Sequence[Floats], plan: Resampling) -> Estimate:
    """The mean of the groups' means, every group counting the same; NaN is left out.

    Units are resampled within their group, and the interval is widened as that of the smallest group would be.
    """
    known = [group[~np.isnan(group)] for group in groups]
    n, fewest = sum(map(len, known)), min(map(len, known))
    if not fewest:
        return Estimate(n=n, reason="a group has no value")
    draws = [bootstrap_means(part[:, None], plan.resamples, plan.seed + at)[:, 0] for at, part in enumerate(known)]
    value = float(np.mean([part.mean() for part in known]))
    return _from_draws(value, np.mean(draws, axis=0), fewest, plan)._replace(n=n)


def mean_of_columns(values: Floats, plan: Resampling) -> Estimate:
    """The mean of the columns' means over their rows (units), which are resampled; NaN is left out."""
    some = values[~np.isnan(values).all(axis=1)]
    # A column in which no resampled row has a value gives none for the resample.
    draws = bootstrap_means(some, plan.resamples, plan.seed).mean(axis=1)
    return _from_draws(float(np.nanmean(some, axis=0).mean()), draws, len(some), plan)._replace(p=None)


def _from_draws(value: float, draws: Floats, n: int, plan: Resampling) -> Estimate:
    return Estimate(value, p=expanded_p(draws, n), n=n).with_interval(expanded_interval(draws, n, plan.level))
