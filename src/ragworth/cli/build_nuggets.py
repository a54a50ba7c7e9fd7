"""``ragworth build nuggets`` and ``ragworth build assign``."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click

from ragworth.cli.collection_options import read_collection, reading_options, take_collection_options
from ragworth.cli.model_options import (
    CallOptions,
    call_options,
    model_options,
    open_job,
    open_named_model,
    print_capabilities,
    report_job,
)
from ragworth.cli.output import print_notes
from ragworth.cli.task_output import check_parent_folder, write_rows


@click.command("nuggets", short_help="Collect the nuggets (facts of a good answer) of each query.")
@reading_options
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    callback=check_parent_folder,
    help="Write the nuggets to this JSONL file.",
)
@click.option("--most", type=click.IntRange(1), default=30, show_default=True, help="Maximum nuggets of a query.")
@click.option("--prompts", type=click.Path(file_okay=False), help="Folder with your own prompts.")
@model_options
@call_options
def nuggets_command(
    output: str,
    most: int,
    prompts: str | None,
    model: str,
    settings: tuple[str, ...],
    **given: Any,
) -> None:
    """Collect the nuggets of each query from the passages of runs, or from those labelled relevant.

    The list grows from one window of passages to the next; then each nugget is vital or okay, by the probabilities of
    the two labels. The file has AutoNuggetizer's format.

    \b
    ragworth build nuggets contexts.jsonl -o nuggets.jsonl -M openai:NAME@URL --dry-run
    ragworth build assign answers.parquet --nuggets nuggets.jsonl -o assignments.jsonl -M openai:NAME@URL
    """
    from ragworth.build.nuggets.creation import NuggetCreator
    from ragworth.build.nuggets.files import write_nuggets
    from ragworth.judging.contract import plan_task, run_task
    from ragworth.judging.text_lookup import TextLookup, sample_by_query

    calling = CallOptions(**{name: given.pop(name) for name in CallOptions.__dataclass_fields__})
    wanted = take_collection_options(given)
    found = read_collection(wanted)
    items = sample_by_query(_items(found, wanted.k), wanted.limit, wanted.sample)
    with closing(open_named_model(model, settings)) as asked, open_job(asked, calling) as job:
        texts = TextLookup(found.collection)
        creator = NuggetCreator(job.card, texts, prompts, most=most)
        if calling.dry_run:
            click.echo(str(plan_task(creator, items, job)))
            return
        print_capabilities(job.card, calling)
        with report_job(job, calling):
            result = run_task(creator, items, job)
            print_notes((*found.notes, *result.notes), calling.quiet)
        write_nuggets(result.lists, output)
        _print_nuggets(result.lists, len(items), output)


def _items(found: Any, depth: int | None) -> Any:
    """Queries with the passages of all runs, best ranks first; without a run, with those labelled relevant."""
    from ragworth.build.nuggets.creation import NuggetItem
    from ragworth.build.pooling import pool_contexts
    from ragworth.core.errors import InputError
    from ragworth.data import MAX_RANK
    from ragworth.judging.text_lookup import TextLookup

    if found.contexts is not None:
        pairs = pool_contexts(found.contexts, depth or MAX_RANK).frame.select("query", "passage").iter_rows()
    elif found.collection.relevance is not None:
        texts = TextLookup(found.collection)
        labelled = found.collection.relevance.of("relevance").filter(_relevant())["query"].unique(maintain_order=True)
        pairs = ((query, passage) for query in labelled for passage in texts.relevant(query)[:depth])
    else:
        raise InputError("there are no passages to read", expected="a run, or relevance labels (--qrels)")
    passages: dict[str, list[str]] = {}
    for query, passage in pairs:
        passages.setdefault(query, []).append(passage)
    return [NuggetItem(query, tuple(some)) for query, some in passages.items()]


def _relevant() -> Any:
    import polars as pl

    return (pl.col("status") == "ok") & (pl.col("value") >= 1)


def _print_nuggets(lists: Any, queries: int, output: str) -> None:
    number = sum(len(each.nuggets) for each in lists)
    vital = sum(nugget.importance == "vital" for each in lists for nugget in each.nuggets)
    click.echo(f"{number:,} nuggets, {vital:,} of them vital, for {len(lists):,} of {queries:,} queries")
    click.echo(f"written to {output}", err=True)


@click.command("assign", short_help="Say which nuggets answers support, and score them.")
@click.argument("answers")
@click.option("--nuggets", required=True, help="Nuggets: JSONL of ragworth build nuggets, or of AutoNuggetizer.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    callback=check_parent_folder,
    help="Write the assignments to this JSONL file.",
)
@click.option("--outcomes", type=click.Path(dir_okay=False), help="Write the scores of each answer to this table.")
@click.option("--prompts", type=click.Path(file_okay=False), help="Folder with your own prompts.")
@model_options
@call_options
def assign_command(
    answers: str,
    nuggets: str,
    output: str | None,
    outcomes: str | None,
    prompts: str | None,
    model: str,
    settings: tuple[str, ...],
    **given: Any,
) -> None:
    """Assign support, partial support or none to every nugget of each answer, and score the answers.


    \b
    ragworth build assign answers.parquet --nuggets nuggets.jsonl -o assignments.jsonl
    """
    from ragworth.build.nuggets.assignment import NuggetGrader, assigned_answers
    from ragworth.build.nuggets.files import read_nuggets, write_assignments
    from ragworth.data.collection import Collection
    from ragworth.judging.answers import read_answers
    from ragworth.judging.contract import plan_task, run_task
    from ragworth.judging.runner import to_answer_book
    from ragworth.judging.text_lookup import TextLookup

    calling = CallOptions(**given)
    lists, book = read_nuggets(nuggets), to_answer_book(read_answers(answers))
    with closing(open_named_model(model, settings)) as asked, open_job(asked, calling) as job:
        grader = NuggetGrader(job.card, TextLookup(Collection()), prompts, book=book, lists=lists)
        items = grader.items(book.answers)
        if calling.dry_run:
            click.echo(str(plan_task(grader, items, job)))
            return
        print_capabilities(job.card, calling)
        with report_job(job, calling):
            result = run_task(grader, items, job)
            if output:
                write_assignments(assigned_answers(grader, result), output)
            if outcomes:
                write_rows(result.frame, outcomes)
            print_notes(result.notes, calling.quiet)
        _print_scores(result.frame)


def _print_scores(frame: Any) -> None:
    from ragworth.cli.task_output import aspect_summary
    from ragworth.report.render import render

    click.echo(render(aspect_summary(frame), "text").decode(), nl=False)
