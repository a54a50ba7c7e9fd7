"""Where results go: the terminal or a file, in one of six looks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

from ragworth.core.errors import InputError

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
