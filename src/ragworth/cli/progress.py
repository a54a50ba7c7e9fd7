"""How an evaluation goes, on standard error: a line for each stage, and one that changes while it works."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from ragworth.cli.output import print_notes
from ragworth.core.errors import format_count

WORDS = {
    "done": "done",
    "kept": "from the cache",
    "given": "from the data",
    "skipped": "nothing to do",
    "incomplete": "partly done",
}
"""Statuses of stages, for people."""

MAX_TITLE = 40
"""Maximum characters of a title; a line that is wider than the terminal can't be overwritten."""


class StageLines:
    """A line on standard error for each stage; in a terminal one that changes while a model is asked."""

    def start_stage(self, name: str) -> Any:
        if os.environ.get("CI"):
            return None  # logs of machines: how each stage ended is enough
        if sys.stderr.isatty():
            click.echo(f"{name} …", err=True)
        return LiveLine()

    def finish_stage(self, facts: Mapping[str, Any]) -> None:
        words = [f"{facts['name']}: {WORDS[facts['status']]}"]
        if facts["status"] in ("done", "incomplete"):
            words += [format_count(facts["calls"], "call")] if "calls" in facts else []
            words += [f"{facts['stored']:,} from the store"] if facts.get("stored") else []
            words += [f"{facts['seconds']:.1f} s"]
        if facts.get("failed"):
            reasons = ", ".join(f"{reason} {number:,}" for reason, number in facts["reasons"].items())
            again = ", tried again next time" if facts["status"] == "incomplete" else ""
            words.append(f"{facts['failed']:,} failed ({reasons}){again}")
        click.echo(" · ".join(words), err=True)
        print_notes(tuple(facts.get("notes", ())), False)


class WorkLine(StageLines):
    """Shows the progress of long work, and no result, for commands that print their own."""

    def start_stage(self, name: str) -> Any:
        return None if os.environ.get("CI") else LiveLine()

    def finish_stage(self, facts: Mapping[str, Any]) -> None:
        pass


class LiveLine:
    """The progress of a stage, on one line that is overwritten; the result follows when the stage ends."""

    def __init__(self) -> None:
        from ragworth.calls.progress import Progress

        self._progress = Progress()

    def asking(self, whose: str) -> None:
        from ragworth.core.errors import format_cell

        name = format_cell(whose.removeprefix("retrieve, "))
        self._progress.asking(name if len(name) <= MAX_TITLE else f"{name[: MAX_TITLE - 1]}…")

    def update(self, tally: Any, waiting: int) -> None:
        self._progress.update(tally, waiting)

    def working(self, what: str, done: int, total: int) -> None:
        from ragworth.core.errors import format_cell

        self._progress.working(format_cell(what), done, total)

    def done(self, tally: Any) -> None:
        if sys.stderr.isatty():
            self._progress.done(tally)
