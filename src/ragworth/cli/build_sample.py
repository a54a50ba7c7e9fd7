"""``ragworth build sample`` and ``ragworth build review``: questions for people to look at, and what they found."""

from __future__ import annotations

from pathlib import Path

import click

from ragworth.cli.task_output import check_parent_folder


def _check_ending(ctx: click.Context, option: click.Parameter, path: str) -> str:
    if not path.endswith((".csv", ".jsonl")):
        raise click.BadParameter(f"unknown file extension: {path!r}; expected .csv or .jsonl")
    return check_parent_folder(ctx, option, path) or path


@click.command("sample", short_help="Draw questions for people to review.")
@click.argument("collection", type=click.Path(file_okay=False))
@click.option("-n", "--number", type=click.IntRange(1), default=60, show_default=True, help="Questions to review.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the draw.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    callback=_check_ending,
    help="File to fill in: .csv for a spreadsheet, .jsonl for a labelling site.",
)
def command(collection: str, number: int, seed: int, output: str) -> None:
    """Draw questions of a built COLLECTION at random. Each row has the question, its answers and its passages.

    Fill in the column sound with yes or no and, if you like, the column comment. Then run ragworth build review.

    \b
    ragworth build sample collection -n 60 -o review.csv
    """
    from ragworth.build.review import draw_sample, write_sample
    from ragworth.report.render import printable

    sample = draw_sample(collection, number, seed)
    write_sample(sample, output)
    click.echo(printable(f"{sample.height:,} questions to review: {output}"))


@click.command("review", short_help="Read a reviewed sample into the collection's card.")
@click.argument("collection", type=click.Path(file_okay=False))
@click.argument("reviewed", type=click.Path(dir_okay=False))
def review_command(collection: str, reviewed: str) -> None:
    """Read the sample that people REVIEWED, and write the share of sound questions, with its interval, into the card.

    \b
    ragworth build review collection review.csv
    """
    from ragworth.build.review import add_review, read_review
    from ragworth.report.render import printable

    found = read_review(reviewed, collection)
    add_review(collection, found, Path(reviewed).name)
    click.echo(printable(found.sentence))
    for kind, sentence in found.by_type.items():
        click.echo(printable(f"  {kind}: {sentence}"))
