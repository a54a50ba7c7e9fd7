"""Where results go: the terminal or a file, in one of six looks; how an evaluation goes, on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import click

from ragworth.core.errors import InputError, format_count

F = TypeVar("F", bound=Callable[..., Any])

LOOKS = ("text", "csv", "json", "markdown", "latex", "parquet")
NOTES = 12
"""How many notes are printed before they are only counted."""


class OutputTable(NamedTuple):
    """One table of a result: its title, in full for machines, and arranged for people."""

    name: str
    title: str
    frame: Any
    readable: Any


def output_options(function: F) -> F:
    """The options that say where results go and how they are resampled."""
    options = [
        click.option(
            "-f",
            "--format",
            "look",
            type=click.Choice(LOOKS),
            help="Output format.  [default: by --output, or text]",
        ),
        click.option(
            "-o", "--output", type=click.Path(dir_okay=False), help="Write to this file instead of the terminal."
        ),
        click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of intervals."),
        click.option(
            "--resamples",
            type=click.IntRange(100),
            help="Bootstrap or randomisation resamples.  [default: 2000 to score, 10000 to compare]",
        ),
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all resampling."),
        click.option("--quiet", is_flag=True, help="Don't print notes."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def output_format(look: str | None, output: str | None, level: float = 0.5) -> str:
    """The format of the output, by name or by the ending of the file; what can't be written is refused early."""
    from ragworth.report.render import look_for_path

    if not 0 < level < 1:
        raise InputError(f"the confidence level is {level}", expected="a number between 0 and 1, such as 0.95")
    wanted = look or (look_for_path(output) if output else "text")
    if wanted == "parquet" and not output:
        raise InputError("Parquet is not for terminals", remedy="name a file: --output scores.parquet")
    return wanted


def emit(sections: list[OutputTable], look: str, output: str | None, facts: dict[str, object] | None = None) -> None:
    """Write tables: all of them for people and as JSON, the first one as CSV and Parquet.

    ``facts`` go into JSON when there are several tables, which are then the parts of one object.
    """
    from ragworth.report.render import render, save_bytes

    if look in ("csv", "parquet"):
        data = render(sections[0].frame, look)
    elif look == "json" and len(sections) > 1:
        tables = {section.name: json.loads(render(section.frame, "json")) for section in sections}
        data = (json.dumps((facts or {}) | tables, ensure_ascii=False, indent=1) + "\n").encode()
    elif look == "json":
        data = render(sections[0].frame, look)
    else:
        title = {"text": "{}\n\n", "markdown": "## {}\n\n", "latex": "% {}\n"}[look]
        parts = [
            (title.format(section.title).encode() if section.title else b"") + render(section.readable, look)
            for section in sections
            if section.readable.height
        ]
        data = b"\n".join(parts)
    if output:
        save_bytes(data, output)
    else:
        click.echo(data.decode(), nl=False)


def print_notes(notes: tuple[str, ...], quiet: bool) -> None:
    """Print notes to standard error."""
    from ragworth.report.render import printable

    if quiet:
        return
    for note in notes[:NOTES]:
        click.echo(f"note: {printable(note)}", err=True)
    if len(notes) > NOTES:
        click.echo(f"note: … and {len(notes) - NOTES} more notes (Python: scores.notes)", err=True)


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
