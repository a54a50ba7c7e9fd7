"""Options that commands share which read a collection's texts and the contexts that systems show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

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
    k: int | None
    limit: int | None
    sample: int | None
    sample_seed: int
    skip_bad_lines: bool
    ties: str = field(default="float64")


class CollectionInputs(NamedTuple):
    """What was read."""

    contexts: Any
    """None where no run was given."""
    collection: Any
    notes: tuple[str, ...]


def reading_options(function: F) -> F:
    """Runs, a collection or its parts, and how much of it."""
    options = [
        click.argument("runs", nargs=-1, metavar="[NAME=]RUN..."),
        click.option(
            "-c",
            "--collection",
            help="Texts and relevance: beir:FOLDER, exam:FILE, ir_datasets:ID. JSONL runs have some.",
        ),
        click.option("--queries", help="Texts of queries: JSONL, Parquet, CSV or TSV."),
        click.option("-p", "--passages", help="Texts of passages: JSONL, Parquet, CSV or TSV."),
        click.option("-a", "--answers", help="Accepted answers: JSONL, Parquet, CSV or TSV."),
        click.option("--subquestions", help="Sub-questions of queries: JSONL, Parquet, CSV or TSV."),
        click.option("-q", "--qrels", multiple=True, help="Relevance judgments: TREC qrels, BEIR folder or table."),
        click.option("-r", "--ratings", help="Ratings of sub-questions: table or TREC sub-topic qrels."),
        click.option("-k", "--depth", "k", type=click.IntRange(1), help="Only the first k passages of each context."),
        click.option("--limit", type=click.IntRange(1), help="Only the first so many queries."),
        click.option("--sample", type=click.IntRange(1), help="Only so many queries, drawn at random."),
        click.option("--sample-seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of that draw."),
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


def read_collection(given: CollectionOptions) -> CollectionInputs:
    """Read everything; what cannot be read is reported together."""
    from ragworth import formats
    from ragworth.cli.scoring_options import ErrorCollector
    from ragworth.collection import Collection, merge_collections
    from ragworth.formats import texts
    from ragworth.tables import Contexts, Judgments

    reading, skip = ErrorCollector(), given.skip_bad_lines
    loaded = reading.of(partial(formats.load, given.collection, skip_bad_lines=skip)) if given.collection else None
    runs = [reading.of(partial(_run, spec, given)) for spec in given.runs]
    parts = [
        reading.of(partial(texts.read, path, kind, skip_bad_lines=skip))
        for kind in ("queries", "passages", "answers", "subquestions")
        if (path := getattr(given, kind))
    ]
    qrels = [reading.of(partial(formats.read_judgments, path, skip_bad_lines=skip)) for path in given.qrels]
    ratings = reading.of(partial(formats.read_ratings, given.ratings, skip_bad_lines=skip)) if given.ratings else None
    reading.done()
    if loaded is not None:
        theirs = loaded.collection
        facts = {"relevance": None if qrels else theirs.relevance, "ratings": None if ratings else theirs.ratings}
        parts.append(Collection(**{**theirs.__dict__, **facts}))
    parts += [run.collection for run in runs]
    if qrels:
        parts.append(Collection(relevance=Judgments.concat(qrels)))
    if ratings is not None:
        parts.append(Collection(ratings=ratings))
    tables = [run.contexts for run in runs if run.contexts is not None]
    if not tables and loaded is not None and loaded.contexts is not None:
        tables = [loaded.contexts]
    contexts = Contexts.concat(tables) if tables else None
    collection = merge_collections(parts)
    notes = (*collection.notes, *(contexts.notes if contexts is not None else ()))
    return CollectionInputs(contexts, collection, tuple(dict.fromkeys(notes)))


def _run(spec: str, given: CollectionOptions) -> Any:
    """A run with the texts that came in its file, if it is of a kind that has them."""
    from ragworth import formats
    from ragworth.cli.scoring_options import named_run, read_run
    from ragworth.collection import Collection
    from ragworth.formats.contract import LoadedCollection

    name, path = named_run(spec)
    chosen, _ = formats.resolve(path, "contexts")
    if chosen.name != "jsonl":
        return LoadedCollection(Collection(), read_run(spec, given.ties, given.skip_bad_lines))
    loaded = formats.load(path, skip_bad_lines=given.skip_bad_lines)
    contexts = loaded.contexts
    if contexts is None:
        return LoadedCollection(Collection(), read_run(spec, given.ties, given.skip_bad_lines))
    return LoadedCollection(
        loaded.collection, contexts.renamed(name) if name and contexts.systems != [name] else contexts
    )
