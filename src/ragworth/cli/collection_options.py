"""Options that commands share which read a collection's texts and the contexts that systems show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class CollectionOptions:
    """Where texts and contexts come from, and how much of them is wanted."""

    runs: tuple[str, ...]
    collection: str | None
    queries: str | None
    passages: str | None
    answers: str | None
    subquestions: str | None
    qrels: tuple[str, ...]
    ratings: str | None
    turns: str
    k: int | None
    limit: int | None
    sample: int | None
    skip_bad_lines: bool


def reading_options(function: F) -> F:
    """Runs, a collection or its parts, and how much of it."""
    options = [
        click.argument("runs", nargs=-1, metavar="[NAME=]RUN..."),
        click.option(
            "-c",
            "--collection",
            help="Texts and relevance: beir:FOLDER, exam:FILE, ir_datasets:ID. JSONL runs have some.",
        ),
        click.option("--queries", help="Texts of queries: JSONL, Parquet, CSV or TSV; or conversations."),
        click.option("-p", "--passages", help="Texts of passages: JSONL, Parquet, CSV or TSV."),
        click.option("-a", "--answers", help="Accepted answers: JSONL, Parquet, CSV or TSV."),
        click.option("--subquestions", help="Sub-questions of queries: JSONL, Parquet, CSV or TSV."),
        click.option("-q", "--qrels", multiple=True, help="Relevance judgments: TREC qrels, BEIR folder or table."),
        click.option("-r", "--ratings", help="Ratings of sub-questions: table or TREC sub-topic qrels."),
        click.option(
            "--turns",
            type=click.Choice(["conversation", "rewrite", "turn"]),
            default="conversation",
            show_default=True,
            help="What the reader is asked in a conversation: the turn after it, its human rewrite, or the turn alone.",
        ),
        click.option("-k", "--depth", "k", type=click.IntRange(1), help="Only the first k passages of each context."),
        click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N queries."),
        click.option("--sample", type=click.IntRange(1), metavar="N", help="Only N queries, drawn at random."),
        click.option("--skip-bad-lines", is_flag=True, help="Leave out, count and report lines that cannot be read."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def take_collection_options(given: dict[str, Any]) -> CollectionOptions:
    """The options of `reading_options`, taken out of all that were given."""
    return CollectionOptions(
        **{name: given.pop(name) for name in CollectionOptions.__dataclass_fields__ if name in given}
    )


def read_collection(given: CollectionOptions) -> Any:
    """Read everything; all problems are reported together."""
    from ragworth.workspace.config import CollectionConfig
    from ragworth.workspace.files import FileReader
    from ragworth.workspace.problems import Problems

    parts = ("queries", "passages", "answers", "subquestions", "qrels", "ratings")
    named = {name: getattr(given, name) for name in (*parts, "turns")}
    files = CollectionConfig(whole=given.collection, **named)
    return FileReader(Problems(), skip_bad_lines=given.skip_bad_lines).with_runs(files, given.runs)
