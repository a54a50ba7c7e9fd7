"""``ragworth required``."""

from __future__ import annotations

from typing import Any

import click

from ragworth.cli.output import LOOKS, OutputTable, emit, output_format, print_notes


@click.command("required", short_help="Find the passages that a long answer needs.")
@click.argument("ratings")
@click.option("--eta", type=float, default=3.0, show_default=True, help="Lowest rating that counts as answered.")
@click.option(
    "--redundancy",
    type=click.Choice(["answered", "crux"]),
    default="answered",
    show_default=True,
    help="Rule for the passages outside the required subset: by the sub-questions they answer, or as CRUX's code does.",
)
@click.option("--skip-bad-lines", is_flag=True, help="Leave out, count and report lines that cannot be read.")
@click.option("-f", "--format", "look", type=click.Choice(LOOKS), help="Output format.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write to this file instead of the terminal.")
def command(
    ratings: str, eta: float, redundancy: Any, skip_bad_lines: bool, look: str | None, output: str | None
) -> None:
    """Classify each rated passage: required, partially or fully redundant, or answering nothing.

    \b
    ragworth required ratings.csv
    ragworth required exam:dl19.jsonl.gz --eta 4 -o required.csv
    ragworth required ratings.csv --redundancy crux
    """
    from ragworth import formats
    from ragworth.metrics.required_passages import required

    look = output_format(look, output)
    table = formats.read_ratings(ratings, skip_bad_lines=skip_bad_lines)
    print_notes(table.notes, quiet=False)
    classes = required(table, eta, redundancy)
    emit([OutputTable("required", "", classes, classes)], look, output)
