"""``ragworth build stats``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ragworth.cli.output import LOOKS, OutputTable, emit, output_format

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


def print_statistics(statistics: Any, drafts: Any, look: str, output: str | None) -> None:
    """The statistics, the ratings, and what became of the drafts."""
    tables = [
        OutputTable("statistics", "Collection, from its ratings", statistics.frame, statistics.readable),
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
@ETA
@REDUNDANCY
@FAILED
@click.option("--tokens", default="words", show_default=True, help="What to count: words, hf:FILE or tiktoken:NAME.")
@click.option("-f", "--format", "look", type=click.Choice(LOOKS), help="Output format.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write to this file instead of the terminal.")
def stats_command(
    collection: str | None,
    ratings: str | None,
    eta: float,
    redundancy: Any,
    failed: Any,
    tokens: str,
    look: str | None,
    output: str | None,
) -> None:
    """Print how many queries, sub-questions, required and redundant passages a collection has.

    COLLECTION is a folder that ragworth build crux wrote, or crux:FOLDER with released files. Its numbers are computed
    from ratings.

    \b
    ragworth build stats collection
    ragworth build stats crux:duc04 --redundancy crux
    ragworth build stats -r crux:case.log
    """
    from ragworth import formats
    from ragworth.build.crux.statistics import rating_statistics
    from ragworth.build.drafts import Drafts
    from ragworth.core.errors import InputError

    if (collection is None) == (ratings is None):
        raise InputError("name a collection, or a file of ratings", expected="one of COLLECTION and --ratings")
    summaries: list[str] = []
    look, drafts, texts, own = output_format(look, output), None, None, None
    if ratings is not None:
        table = formats.read_ratings(ratings)
    elif (Path(str(collection)) / "all-ratings.parquet").exists():
        place = Path(str(collection))
        table = formats.read_ratings(place / "all-ratings.parquet")
        drafts = Drafts.read(place / "drafts.jsonl")
        texts, summaries = _built_texts(place)
        own = formats.read_ratings(place / "summary-ratings.parquet")
    else:
        texts = formats.load(str(collection)).collection
        if texts.ratings is None:
            raise InputError("the collection has no ratings", file=str(collection), remedy="name them with --ratings")
        table = texts.ratings
    statistics = rating_statistics(
        table,
        texts.counting(tokens) if texts is not None else None,
        eta=eta,
        redundancy=redundancy,
        failed=failed,
        summary=own,
        summaries=summaries,
    )
    print_statistics(statistics, drafts, look, output)


def _built_texts(place: Path) -> tuple[Any, list[str]]:
    """The collection of a folder, and its summaries."""
    from ragworth.data.collection import merge_collections
    from ragworth.formats.texts import read

    kinds: tuple[Any, ...] = ("queries", "passages", "subquestions", "answers")
    parts = [read(place / f"{kind}.jsonl", kind) for kind in kinds]
    whole = merge_collections(parts)
    return whole, whole.answers["text"].to_list()
