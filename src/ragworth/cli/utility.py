"""``ragworth utility``."""

from __future__ import annotations

import click

from ragworth.cli.task_output import print_rows, result_options, write_rows


@click.command("utility", short_help="Compute the utility and class of every passage from judgments.")
@click.argument("judgments", nargs=-1, required=True)
@click.option("--rel", type=float, default=1.0, show_default=True, help="Lowest relevance that counts as relevant.")
@result_options
def command(judgments: tuple[str, ...], rel: float, output: str | None, look: str) -> None:
    """Utility, distracting effect and class (relevant, weak or hard distractor) of every passage.

    Computed from judgments of relevance and abstention; no model is asked.

    \b
    ragworth utility qrels.txt abstention.parquet
    ragworth utility relevance.parquet abstention.parquet -o utility.csv
    """
    import polars as pl

    from ragworth import formats
    from ragworth.core.errors import TableError, format_count
    from ragworth.data import Judgments
    from ragworth.metrics.utility import abstention_notes, utilities

    table = Judgments.concat([formats.read_judgments(path) for path in judgments])
    frame = utilities(table, rel)
    unlabelled = frame.filter(pl.col("relevance").is_null() & pl.col("class").is_not_null()).height
    passages = format_count(frame.height, "passage")
    if unlabelled == frame.height:
        raise TableError(
            f"none of the {passages} with an abstention probability has a relevance label",
            remedy="check that both use the same ids of queries and passages",
        )
    write_rows(frame, output)
    number = pl.len().alias("passages")
    kind = pl.coalesce("class", pl.lit("no value: ") + pl.col("status")).alias("class")
    short = frame.group_by(kind).agg(number, pl.col("utility").mean().alias("mean utility"))
    share = (pl.col("passages") / frame.height).alias("share")
    short = short.with_columns(share).select("class", "passages", "share", "mean utility").sort("class")
    print_rows(frame, look, short, output)
    for note in abstention_notes(table):
        click.echo(f"note: {note}", err=True)
    if unlabelled:
        words = f"{unlabelled:,} of {passages} {'has' if unlabelled == 1 else 'have'}"
        click.echo(f"note: {words} no relevance label and count{'s' * (unlabelled == 1)} as irrelevant", err=True)
