"""Show progress on one line: rate and time left; for a job also answers from the store, and failures.

Without rich: the rates and the lines for logs would stay ours, and it takes 90 ms to import.
"""

from __future__ import annotations

import sys
import time
from typing import TextIO

from ragworth.calls.budget import FREE, JobTally
from ragworth.core.errors import format_count, format_seconds

LOG_INTERVAL = 30.0
"""Seconds between lines where the output is not a terminal."""


class Progress:
    """Rewrites one line of a terminal, or writes a line to a file now and then."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._interval = 0.1 if self._terminal else LOG_INTERVAL
        self._written = time.monotonic() if not self._terminal else 0.0
        self._width = 0
        self._work = ""
        self.asking("")

    def asking(self, whose: str) -> None:
        """Begin a job, whose calls are reported under this name."""
        self._title, self._start = f"{whose}: " if whose else "", time.monotonic()
        self._expected: int | None = None
        """The number of calls that the last update expected in all."""
        self._grows = False
        """Whether that number has grown: more windows or rounds follow, so the total is unknown."""
        self._first = (0.0, 0, 0)
        """Seconds, calls and tokens at the first responses, which also took the time to load the model."""

    def update(self, tally: JobTally, waiting: int) -> None:
        now, expected = time.monotonic(), tally.calls + waiting
        self._grows |= self._expected is not None and expected > self._expected
        self._expected = expected
        if tally.calls and not self._first[1]:
            self._first = (now - self._start, tally.calls, tally.prompt_tokens + tally.new_tokens)
        if now - self._written >= self._interval:
            self._write(self.line(tally, waiting, now - self._start))

    def done(self, tally: JobTally) -> None:
        """Write the last line of a job."""
        self._write(self.line(tally, 0, time.monotonic() - self._start), last=True)

    def working(self, what: str, done: int, total: int) -> None:
        """Report progress of work that asks no model, such as encoding."""
        now = time.monotonic()
        if what != self._work:
            self._work, self._start, self._first = what, now, (0.0, done, 0)
        if done < total and now - self._written < self._interval:
            return
        pace = _pace(done - self._first[1], now - self._start, total - done)
        line = " · ".join([f"{what}: {done:,} of {total:,}", *pace])
        if self._terminal or done < total or now - self._start >= LOG_INTERVAL:
            self._write(line, last=done >= total)

    def line(self, tally: JobTally, waiting: int, seconds: float) -> str:
        """``412 of 2,000 calls · 38/s · 42 s left · 9,120 tokens/s · 1,204 from the store · 3 failed``."""
        words, left = [format_count(tally.calls, "call")], waiting
        if waiting and self._grows:
            words, left = [f"{words[0]} so far"], 0
        elif waiting:
            words = [f"{tally.calls:,} of {tally.calls + waiting:,} calls"]
        # While the job runs, its pace is that since the first responses; before there are more, it is unknown.
        first_seconds, first_calls, first_tokens = self._first if waiting else (0.0, 0, 0)
        seconds -= first_seconds
        pace = _pace(tally.calls - first_calls, seconds, left)
        words += pace
        if pace and (tokens := tally.prompt_tokens + tally.new_tokens - first_tokens):
            words.append(f"{tokens / seconds:,.0f} tokens/s")
        words += [f"{tally.cached:,} from the store", f"{tally.failed:,} failed"]
        if tally.price == FREE:
            words.append("free")
        elif tally.cost:
            words.append(f"cost {tally.cost:.4g}{' (estimated)' if tally.estimated else ''}")
        return self._title + " · ".join(words)

    def _write(self, line: str, *, last: bool = False) -> None:
        self._written = time.monotonic()
        if self._terminal:
            end = "\n" if last else ""
            self._stream.write(f"\r{line}{' ' * max(0, self._width - len(line))}{end}")
            self._width = len(line)
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()


def _pace(done: int, seconds: float, left: int) -> list[str]:
    """Return the rate in words, and the time left; nothing if there is no rate yet."""
    if not done or seconds <= 0:
        return []
    rate = done / seconds
    words = [f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"]
    return [*words, f"{format_seconds(left / rate)} left"] if left else words
