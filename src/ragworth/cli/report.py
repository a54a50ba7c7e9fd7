"""``ragworth report``."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from ragworth.core.errors import InputError


@click.command("report", short_help="Write the report of a results folder again.")
@click.argument("results", default="results", type=click.Path())
@click.option("-m", "--metric", "metrics", multiple=True, help="Metrics to show, the main one first.  [default: all]")
@click.option("--open", "show", is_flag=True, help="Open the report in a browser.")
def command(results: str, metrics: tuple[str, ...], show: bool) -> None:
    """Write report.html, report.md and the figures of RESULTS again, from its tables. No model is asked.

    RESULTS is a results folder of ragworth evaluate, or a workspace that has one.

    \b
    ragworth report
    ragworth report examples/demo/results -m nDCG@5 --open
    """
    from ragworth.evaluation.output import write_report
    from ragworth.report.render import printable

    folder = find_results(Path(results))
    written = write_report(folder, metrics=list(metrics) or None)
    click.echo(f"Report: {printable(str(written))}")
    if show:
        show_report(written)


def find_results(place: Path) -> Path:
    """The results folder that a path names: itself, or the one of a workspace."""
    found = next((each for each in (place, place / "results") if (each / "manifest.json").is_file()), None)
    if found is None:
        raise InputError(
            "there are no results", file=str(place), expected="a results folder", remedy="run ragworth evaluate first"
        )
    return found


def show_report(path: Path) -> None:
    """Open a page in a browser; without one, print where it is."""
    from ragworth.report.render import printable

    if not webbrowser.open(path.resolve().as_uri()):
        click.echo(f"No browser was found. Open this file in one: {printable(str(path.resolve()))}")
