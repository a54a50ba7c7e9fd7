"""``ragworth build pool``."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
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

DEPTH = 20


@click.command("pool", short_help="Judge what several systems retrieve, and write relevance labels.")
@reading_options
@click.option("--system", "systems", multiple=True, metavar="NAME=PIPELINE", help='Also pool this: "bm25=bm25 % 20".')
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="Folder to write to.")
@click.option("--graded", is_flag=True, help="Grades 0 to 3 instead of relevant or not.")
@click.option(
    "--level", type=float, default=1.0, show_default=True, help="Lowest label that counts as relevant, for N_p."
)
@click.option("--prompts", type=click.Path(file_okay=False), help="Folder with your own prompts.")
@model_options
@call_options
def pool_command(
    systems: tuple[str, ...],
    output: str,
    graded: bool,
    level: float,
    prompts: str | None,
    model: str,
    settings: tuple[str, ...],
    **given: Any,
) -> None:
    """Pool the first passages of runs and pipelines (--depth, 20 by default) and judge those without a label.

    The folder gets qrels.txt (given and new labels; qrels.parquet if an id has white space), judgments.parquet (new
    ones, with probabilities), pool.parquet and relevant.csv: how many relevant passages each query has, found and
    estimated. Judgments that failed aren't labels; run the same again to retry them.

    \b
    ragworth build pool bm25.run dense.run -c beir:FOLDER -k 20 -o pooled --dry-run
    ragworth build pool --queries queries.jsonl -p passages.jsonl --system "bm25=bm25 % 20" \\
        --system "dense=dense % 20" -q qrels.txt --graded -M openai:NAME@URL --max-cost 5 --price 0.15/0.60 -o pooled
    """
    from ragworth.build.pooling import pool_contexts, scale_notes, unjudged_items
    from ragworth.core.errors import format_count
    from ragworth.judging import ANNOTATORS
    from ragworth.judging.contract import plan_task, run_task
    from ragworth.judging.runner import build_judge
    from ragworth.judging.text_lookup import sample_by_query

    calling = CallOptions(**{name: given.pop(name) for name in CallOptions.__dataclass_fields__})
    wanted = take_collection_options(given)
    highest = 3 if graded else 1
    if level > highest:
        raise click.BadParameter(
            f"{level:g} is above every new label, which {'are 0 to 3' if graded else 'are 0 or 1; add --graded'}.",
            param_hint="--level",
        )
    found = read_collection(wanted)
    contexts = _pooled_contexts(found, systems, wanted.k or DEPTH)
    pool = pool_contexts(contexts, wanted.k or DEPTH)
    items = unjudged_items(pool, found.collection.relevance)
    items = sample_by_query(items, wanted.limit, wanted.sample)
    with ExitStack() as stack:
        asked = stack.enter_context(closing(open_named_model(model, settings)))
        job = stack.enter_context(open_job(asked, calling))
        annotator = build_judge(ANNOTATORS, "relevance", job.card, found.collection, prompts, {"graded": graded})
        pooled, of = format_count(pool.frame.height, "pooled passage"), format_count(len(pool.systems), "system")
        click.echo(f"{pooled} of {of}, {len(items):,} to judge")
        print_notes((*found.notes, *scale_notes(found.collection.relevance, highest)), calling.quiet)
        if calling.dry_run:
            click.echo(str(plan_task(annotator, items, job)))
            return
        print_capabilities(job.card, calling)
        with report_job(job, calling):
            result = run_task(annotator, items, job)
            _write(Path(output), pool, contexts, found.collection.relevance, result, level)
            print_notes(result.notes, calling.quiet)


def _pooled_contexts(found: Any, systems: tuple[str, ...], depth: int) -> Any:
    """Given runs, and what pipelines retrieve."""
    from ragworth.core.errors import InputError
    from ragworth.retrieval import StepContext, parse, retrieve

    pipelines = {}
    for text in systems:
        name, sign, pipeline = text.partition("=")
        if not sign or not name.strip():
            raise InputError(f"the system is {text!r}", expected='NAME=PIPELINE, such as "bm25=bm25 % 20"')
        pipelines[name.strip()] = parse(pipeline.strip())
    parts = [found.contexts] if found.contexts is not None else []
    if pipelines:
        context = StepContext.of(found.collection, relevance=found.collection.relevance, depth=depth)
        parts.append(retrieve(pipelines, context))
    if not parts:
        raise InputError("there is nothing to pool", expected="runs, or pipelines with --system")
    return type(parts[0]).concat(parts)


def _write(folder: Path, pool: Any, contexts: Any, given: Any, result: Any, level: float) -> None:
    from ragworth.build.pooling import estimate_relevant, merge_judgments
    from ragworth.data import Judgments
    from ragworth.formats.csv import write_csv
    from ragworth.report.render import render, save_bytes

    folder.mkdir(parents=True, exist_ok=True)
    save_bytes(render(pool.frame, "parquet"), folder / "pool.parquet")
    save_bytes(render(result.frame, "parquet"), folder / "judgments.parquet")
    labels = merge_judgments(given, Judgments.trusted(result.frame.select(list(Judgments.schema))))
    if labels.frame.height:
        _write_labels(labels, folder)
    counts = estimate_relevant(pool, contexts, labels, level)
    save_bytes(write_csv(counts), folder / "relevant.csv")
    click.echo(render(counts.head(10), "text").decode(), nl=False)
    _print_total(counts, folder)


def _write_labels(labels: Any, folder: Path) -> None:
    """Labels in TREC's format, or as a table if an id has white space, which that format can't have."""
    from ragworth import formats
    from ragworth.formats.trec import fits_trec

    path = folder / "qrels.parquet"
    formats.write(labels, f"trec:{path.with_suffix('.txt')}" if fits_trec(labels.frame) else path)


def _print_total(counts: Any, folder: Path) -> None:
    known = counts.drop_nulls("N_p")
    found = counts["found"].sum()
    if known.height:
        total, here = known["N_p"].sum(), known["found"].sum()
        click.echo(
            f"{found:,} relevant passages found; for {known.height:,} of {counts.height:,} queries, {here:,} of about "
            f"{total:,.0f} were found (a lower bound: systems that retrieve alike miss the same passages)"
        )
    else:
        click.echo(f"{found:,} relevant passages found; the number that exists can't be estimated")
    click.echo(f"written to {folder}", err=True)
