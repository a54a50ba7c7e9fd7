"""How values of an outcome are written: shares in percent, and digits that fit the uncertainty."""

from __future__ import annotations

from typing import NamedTuple

from ragworth.report.page.rankings import LEVEL
from ragworth.report.wording import digits_beside_zero, digits_within, signed


class OutcomeScale(NamedTuple):
    """The scale of an outcome: a share, which is written in percent, or a number."""

    share: bool

    def value(self, value: float, low: float | None = None, high: float | None = None) -> str:
        """A value with as many digits as its interval allows; of a share without one, whole percents."""
        return f"{signed(self._times * value, self._digits(low, high))}{' %' if self.share else ''}"

    def ends(self, low: float | None, high: float | None) -> str:
        """An interval as ``12 to 34 %``; empty if there is none."""
        if low is None or high is None:
            return ""
        digits = self._digits(low, high)
        words = " to ".join(signed(self._times * end, digits) for end in (low, high))
        return words + (" %" if self.share else "")

    def interval(self, low: float | None, high: float | None) -> str:
        """An interval of a mean, with its level."""
        ends = self.ends(low, high)
        return ends and f"{100 * LEVEL:g} % interval {ends}"

    def difference(self, value: float, low: float | None = None, high: float | None = None) -> str:
        """A difference, of shares in points; one that isn't 0 doesn't look like it."""
        digits = self._digits(low, high)
        number = self._times * value
        return f"{signed(number, digits_beside_zero(number, number, digits))}{' points' if self.share else ''}"

    def difference_interval(self, low: float | None, high: float | None) -> str:
        """The interval of a difference, with its level; one that leaves out 0 shows it."""
        if low is None or high is None:
            return ""
        first, last = self._times * low, self._times * high
        digits = digits_beside_zero(first, last, self._digits(low, high))
        words = f"{signed(first, digits)} to {signed(last, digits)}"
        return f"{100 * LEVEL:g} % interval {words}{' points' if self.share else ''}"

    @property
    def _times(self) -> int:
        return 100 if self.share else 1

    def _digits(self, low: float | None, high: float | None) -> int:
        if low is None or high is None:
            return 0 if self.share else 2
        return max(digits_within(high - low) - 2 * self.share, 0)
