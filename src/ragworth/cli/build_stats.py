"""``ragworth build stats`` and ``ragworth build filter``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ragworth.cli.output import LOOKS, OutputTable, emit, output_format, print_notes

ETA = click.option("--eta", type=float, default=3.0, show_default=True, help="Lowest rating that counts as answered.")
REDUNDANCY = click.option(
    "--redundancy",
    type=click.Choice(["answered", "crux"]),
    default="answered",
    show_default=True,
    help="Rule for the passages outside the required subset: by the sub-questions they answer, or as CRUX's code does.",
)
FAILED = click.option(
    "--failed",
    type=click.Choice(["leave-out", "zero"]),
    default="leave-out",
    show_default=True,
    help="Leave out sub-questions with a failed rating, or count such ratings as 0, as the paper does.",
)


def print_statistics(
    statistics: Any, drafts: Any, look: str, output: str | None, more: Sequence[OutputTable] = ()
) -> None:
    """The statistics, the ratings, and what became of the drafts."""
    tables = [
        OutputTable("statistics", "Collection, from its ratings", statistics.frame, statistics.readable),
        *more,
        OutputTable("ratings", "Ratings", statistics.histogram_frame, statistics.histogram_frame),
    ]
    if drafts is not None:
        funnel = draft_counts(drafts)
        tables.append(OutputTable("drafts", "Drafts", funnel, funnel))
    emit(tables, look, output)


def draft_counts(drafts: Any) -> Any:
    """Drafts by kind and status."""
    import polars as pl

    rows = [(draft.kind, draft.status) for draft in drafts]
    frame = pl.DataFrame(rows, schema={"kind": pl.String, "status": pl.String}, orient="row")
    return frame.group_by("kind", "status", maintain_order=True).agg(pl.len().alias("drafts"))


@click.command("stats", short_help="Print the statistics of a collection with rated sub-questions.")
@click.argument("collection", required=False)
@click.option("-r", "--ratings", help="Ratings of sub-questions, instead of a collection: a table or crux:FILE.")
@click.option("-q", "--qrels", help="Graded labels: also count the required and redundant passages that they state.")
@click.option("--summary-ratings", help="Ratings of the summaries, for their coverage.")
@ETA
@REDUNDANCY
@FAILED
@click.option("--tokens", default="words", show_default=True, help="What to count: words, hf:FILE or tiktoken:NAME.")
@click.option("-f", "--format", "look", type=click.Choice(LOOKS), help="Output format.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write to this file instead of the terminal.")
def stats_command(
    collection: str | None,
    ratings: str | None,
    qrels: str | None,
    summary_ratings: str | None,
    eta: float,
    redundancy: Any,
    failed: Any,
    tokens: str,
    look: str | None,
    output: str | None,
) -> None:
    """Print how many queries, sub-questions, required and redundant passages a collection has.

    COLLECTION is a folder that ragworth build crux wrote, or crux:FOLDER with released files. Its numbers are computed
    from ratings. Those of --qrels are counted from the labels: 3 required, 2 partially and 1 fully redundant.

    \b
    ragworth build stats collection
    ragworth build stats --qrels collection/qrels.txt
    ragworth build stats crux:duc04 --redundancy crux
    ragworth build stats -r crux:case.log
    """
    from ragworth import formats
    from ragworth.build.crux.statistics import label_statistics, rating_statistics
    from ragworth.build.drafts import Drafts
    from ragworth.errors import InputError

    labels = label_statistics(formats.read_judgments(qrels)) if qrels is not None else None
    if labels is not None and collection is ratings is None:
        emit([_labels_table(labels, str(qrels))], output_format(look, output), output)
        return
    if (collection is None) == (ratings is None):
        raise InputError("name a collection, or a file of ratings", expected="one of COLLECTION and --ratings")
    summaries: list[str] = []
    look, drafts, texts = output_format(look, output), None, None
    if ratings is not None:
        table = formats.read_ratings(ratings)
    elif (Path(str(collection)) / "all-ratings.parquet").exists():
        place = Path(str(collection))
        table = formats.read_ratings(place / "all-ratings.parquet")
        drafts = Drafts.read(place / "drafts.jsonl")
        texts, summaries = _built_texts(place)
        summary_ratings = summary_ratings or str(place / "summary-ratings.parquet")
    else:
        texts = formats.load(str(collection)).collection
        if texts.ratings is None:
            raise InputError("the collection has no ratings", file=str(collection), remedy="name them with --ratings")
        table = texts.ratings
    own = formats.read_ratings(summary_ratings) if summary_ratings else None
    statistics = rating_statistics(
        table,
        texts.counting(tokens) if texts is not None else None,
        eta=eta,
        redundancy=redundancy,
        failed=failed,
        summary=own,
        summaries=summaries,
    )
    print_statistics(statistics, drafts, look, output, [_labels_table(labels, str(qrels))] if labels else [])


def _labels_table(labels: Any, qrels: str) -> OutputTable:
    return OutputTable("labels", f"Labels in {qrels}", labels.frame, labels.readable)


def _built_texts(place: Path) -> tuple[Any, list[str]]:
    """The collection of a folder, and its summaries."""
    from ragworth.collection import merge_collections
    from ragworth.formats.texts import read

    kinds: tuple[Any, ...] = ("queries", "passages", "subquestions", "answers")
    parts = [read(place / f"{kind}.jsonl", kind) for kind in kinds]
    whole = merge_collections(parts)
    return whole, whole.answers["text"].to_list()


@click.command("filter", short_help="Drop sub-questions that no passage answers.")
@click.argument("ratings")
@ETA
@FAILED
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="Write the ratings of the answerable sub-questions here."
)
@click.option("--dropped", type=click.Path(dir_okay=False), help="Write the dropped sub-questions to this CSV file.")
def filter_command(ratings: str, eta: float, failed: Any, output: str | None, dropped: str | None) -> None:
    """Apply the consistency filter to RATINGS: keep the sub-questions that some passage answers.

    \b
    ragworth build filter ratings.parquet -o answerable.parquet --dropped dropped.csv
    """
    import polars as pl

    from ragworth import formats
    from ragworth.build.crux.consistency import filter_consistent
    from ragworth.errors import format_count
    from ragworth.report.render import save_bytes

    table = formats.read_ratings(ratings)
    print_notes(table.notes, quiet=False)
    found = filter_consistent(table, eta, failed)
    rows = [(query, name, *why) for (query, name), why in found.subquestions.items()]
    frame = pl.DataFrame(
        rows, schema=dict.fromkeys(("query", "subquestion", "status", "reason"), pl.String), orient="row"
    )
    if output:
        formats.write(found.ratings, output)
    if dropped:
        from ragworth.formats.spreadsheet import write_csv

        save_bytes(write_csv(frame), dropped)
    asked = table.frame.select("query", "subquestion").unique()
    kept = found.ratings.frame.select("query", "subquestion").unique()
    click.echo(f"{kept.height:,} of {format_count(asked.height, 'sub-question')} are answerable at η = {eta:g}")
    for status, number in found.counts.most_common():
        click.echo(f"dropped, {status}: {number:,}")
    lost = asked["query"].n_unique() - kept["query"].n_unique()
    if lost:
        click.echo(f"{format_count(lost, 'query has', 'queries have')} no answerable sub-question")
