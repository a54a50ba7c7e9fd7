"""What each stage took: seconds, calls and tokens."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragworth.calls.job import Job


class Cost:
    """Filled in while a stage runs."""

    def __init__(self) -> None:
        self.calls = self.cached = self.tokens_read = self.tokens_written = 0

    def add(self, job: Job) -> None:
        tally = job.tally
        self.calls += tally.calls
        self.cached += tally.cached
        self.tokens_read += tally.prompt_tokens
        self.tokens_written += tally.new_tokens

    def add_part(self, part: Cost) -> None:
        """Add what another process made."""
        for name, number in vars(part).items():
            setattr(self, name, getattr(self, name) + number)


@contextmanager
def stage(folder: Path, name: str) -> Iterator[Cost]:
    """Write a line about the stage when it is done."""
    cost, begun = Cost(), time.monotonic()
    yield cost
    line = {"stage": name, "seconds": round(time.monotonic() - begun, 1)} | vars(cost)
    with (folder / "costs.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    print(f"{name}: {line['seconds']:.0f} s, {cost.calls:,} calls, {cost.tokens_read:,} tokens read", flush=True)
