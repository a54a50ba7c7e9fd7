"""How long work goes, on one line: rate and time left; of a job also answers from the store, and failures.

Without rich: the rates and the lines for logs would stay ours, and it takes 90 ms to import.
"""

from __future__ import annotations

import sys
import time
from typing import TextIO

from ragworth.calls.budget import FREE, JobTally
from ragworth.errors import format_count, format_seconds

LOG_INTERVAL = 30.0
"""Seconds between lines where the output is not a terminal."""


class Progress:
    """Writes to a terminal's line again and again, to a file now and then. ``total``: requests in all, if known."""

    def __init__(self, total: int | None = None, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._total = total
        self._start = time.monotonic()
        self._said = self._start if not self._terminal else 0.0
        self._width = 0
        self._title = ""
        self._most: int | None = None
        """Calls that there were to be in all, when that was last told of."""
        self._rounds = False
        """Whether that has grown: answers lead to more calls, and how many there will be nobody knows."""
        self._work: tuple[str, float, int] | None = None
        """Of work that is no job: what, when it was first told of, and how much was done then."""

    def asking(self, whose: str) -> None:
        """A job begins; its calls are shown under this name."""
        self._title, self._start = f"{whose}: " if whose else "", time.monotonic()
        self._most, self._rounds = None, False

    def update(self, tally: JobTally, waiting: int) -> None:
        now, most = time.monotonic(), tally.calls + waiting
        self._rounds = self._rounds or (self._total is None and self._most is not None and most > self._most)
        self._most = most
        if now - self._said < (0.1 if self._terminal else LOG_INTERVAL):
            return
        self._said = now
        self._write(self.line(tally, waiting, now - self._start))

    def done(self, tally: JobTally) -> None:
        """The last word."""
        spent = time.monotonic() - self._start
        self._write(self.line(tally, 0, spent))
        if self._terminal:
            self._stream.write("\n")
        self._stream.flush()

    def working(self, what: str, done: int, total: int) -> None:
        """How far work is that asks nobody, such as encoding."""
        now = time.monotonic()
        if self._work is None or self._work[0] != what:
            self._work = (what, now, done)
        if done < total and now - self._said < (0.1 if self._terminal else LOG_INTERVAL):
            return
        _, begun, before = self._work
        if self._terminal or now - begun >= LOG_INTERVAL or done < total:
            self._said = now
            self._write(f"{what}: {_done_words(done, total, done - before, now - begun)}")
        if done >= total and self._terminal:
            self._stream.write("\n")
            self._stream.flush()

    def line(self, tally: JobTally, waiting: int, spent: float) -> str:
        """``412 of 2,000 calls · 38/s · 42 s left · 9,120 tokens/s · 1,204 from the store · 3 failed``."""
        left = waiting
        if self._total is not None and tally.asked:
            # Requests not looked at yet, at the share that was missing so far.
            missing = max(0, tally.distinct - tally.cached) / tally.asked
            left += round(missing * max(0, self._total - tally.asked))
        words = [f"{tally.calls:,} of {tally.calls + left:,} calls" if left else format_count(tally.calls, "call")]
        if left and self._rounds:
            words, left = [f"{format_count(tally.calls, 'call')} so far"], 0
        if tally.calls and spent > 0:
            words += _pace_words(tally.calls / spent, left)
            if tokens := tally.prompt_tokens + tally.new_tokens:
                words.append(f"{tokens / spent:,.0f} tokens/s")
        words.append(f"{tally.cached:,} from the store")
        words.append(f"{tally.failed:,} failed")
        if tally.price == FREE:
            words.append("free")
        elif tally.cost:
            words.append(f"cost {tally.cost:.4g}{' (estimated)' if tally.estimated else ''}")
        return self._title + " · ".join(words)

    def _write(self, line: str) -> None:
        if self._terminal:
            self._stream.write(f"\r{line}{' ' * max(0, self._width - len(line))}")
            self._width = len(line)
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()


def _done_words(done: int, total: int, since: int, spent: float) -> str:
    words = [f"{done:,} of {total:,}"]
    if since and spent > 0:
        words += _pace_words(since / spent, total - done)
    return " · ".join(words)


def _pace_words(rate: float, left: int) -> list[str]:
    words = [f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"]
    return [*words, f"{format_seconds(left / rate)} left"] if left else words
