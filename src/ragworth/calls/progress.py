"""Show progress on one line: rate and time left; for a job also answers from the store, and failures.

Without rich: the rates and the lines for logs would stay ours, and it takes 90 ms to import.
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple, TextIO

from ragworth.calls.budget import FREE, JobTally
from ragworth.core.errors import format_count, format_seconds

LOG_INTERVAL = 30.0
"""Seconds between lines where the output is not a terminal."""


class JobPace(NamedTuple):
    """What a job had done after so many seconds."""

    seconds: float = 0.0
    calls: int = 0
    tokens: int = 0


class Progress:
    """Rewrites one line of a terminal, or writes a line to a file now and then. ``total``: all requests, if known."""

    def __init__(self, total: int | None = None, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._total = total
        self._start = time.monotonic()
        self._said = self._start if not self._terminal else 0.0
        self._width = 0
        self._title = ""
        self._most: int | None = None
        """The number of calls that the last update expected in all."""
        self._rounds = False
        """Whether that number has grown: responses lead to more calls, so the total isn't known."""
        self._first = JobPace()
        """At the first responses, which also took the time to load the model."""
        self._work: tuple[str, float, int] | None = None
        """Of work that isn't a job: its name, when it was first reported, and how much was done by then."""

    def asking(self, whose: str) -> None:
        """Begin a job, whose calls are reported under this name."""
        self._title, self._start = f"{whose}: " if whose else "", time.monotonic()
        self._most, self._rounds, self._first = None, False, JobPace()

    def update(self, tally: JobTally, waiting: int) -> None:
        now, most = time.monotonic(), tally.calls + waiting
        self._rounds = self._rounds or (self._total is None and self._most is not None and most > self._most)
        self._most = most
        if tally.calls and not self._first.calls:
            self._first = JobPace(now - self._start, tally.calls, tally.prompt_tokens + tally.new_tokens)
        if now - self._said < (0.1 if self._terminal else LOG_INTERVAL):
            return
        self._said = now
        self._write(self.line(tally, waiting, now - self._start))

    def done(self, tally: JobTally) -> None:
        """Write the last line of a job."""
        spent = time.monotonic() - self._start
        self._write(self.line(tally, 0, spent))
        if self._terminal:
            self._stream.write("\n")
        self._stream.flush()

    def working(self, what: str, done: int, total: int) -> None:
        """Report progress of work that asks no model, such as encoding."""
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
        # While the job runs, its pace is that since the first responses; before there are more, it is unknown.
        first = self._first if waiting else JobPace()
        calls, tokens = tally.calls - first.calls, tally.prompt_tokens + tally.new_tokens - first.tokens
        if calls and spent > first.seconds:
            words += _pace_words(calls / (spent - first.seconds), left)
            if tokens:
                words.append(f"{tokens / (spent - first.seconds):,.0f} tokens/s")
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
