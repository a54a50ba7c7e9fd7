"""``ragworth build crux``."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import click

from ragworth.cli.build_stats import ETA, FAILED, REDUNDANCY, print_statistics
from ragworth.cli.model_options import CallOptions, call_options, open_job, open_named_model, print_capabilities
from ragworth.cli.output import print_notes


@click.command("crux", short_help="Build report requests with rated sub-questions from documents and summaries.")
@click.argument("topics")
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="Folder of the collection.")
@click.option(
    "-n", "--questions", type=click.IntRange(1), default=15, show_default=True, help="Sub-questions of each topic."
)
@click.option(
    "--passages",
    type=click.Choice(["written", "cut"]),
    default="written",
    show_default=True,
    help="Passages written by the model, or cut from the documents word for word.",
)
@click.option("-M", "--writer", default="embedded:base", show_default=True, help="Model that writes the texts.")
@click.option("-O", "--writer-option", multiple=True, metavar="NAME=VALUE", help="Set an option of the writer.")
@click.option("-J", "--judge", default="embedded", show_default=True, help="Model that rates.")
@click.option("--judge-option", multiple=True, metavar="NAME=VALUE", help="Set an option of the judge.")
@click.option(
    "--temperature", type=click.FloatRange(0), default=0.7, show_default=True, help="Writer temperature; ratings use 0."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the texts.")
@click.option(
    "--attempts", type=click.IntRange(1), default=2, show_default=True, help="How often an unusable text is written."
)
@click.option(
    "--overlap",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="Drop passages of which less than this share of the words is in their document.",
)
@ETA
@REDUNDANCY
@FAILED
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N topics.")
@click.option("--title", default="", help="Title of the collection.  [default: name of the folder]")
@click.option("--prompts", type=click.Path(file_okay=False), help="Folder with your own prompts.")
@call_options
def crux_command(
    topics: str,
    output: str,
    questions: int,
    passages: Any,
    writer: str,
    writer_option: tuple[str, ...],
    judge: str,
    judge_option: tuple[str, ...],
    temperature: float,
    seed: int,
    attempts: int,
    overlap: float,
    eta: float,
    redundancy: Any,
    failed: Any,
    limit: int | None,
    title: str,
    prompts: str | None,
    **given: Any,
) -> None:
    """Build a collection as CRUX does: a report request, sub-questions and rated passages for each topic.

    TOPICS are documents with a summary: rows with document and summary (Multi-News), rows with documents and summaries
    or a folder with docs/ and models/ (DUC), or one folder per topic with documents and summary.txt.

    Every text that the writer drafts is in drafts.jsonl, with its status. Sub-questions that no passage answers are
    dropped. If the command is interrupted, run it again: it continues from the call store.

    \b
    ragworth build crux topics/ -o collection --dry-run
    ragworth build crux multi_news.jsonl -o collection -n 10 -M openai:NAME@URL -J openai:OTHER@URL
    ragworth evaluate collection
    """
    from ragworth.build.crux.chain import CruxChain, CruxOptions
    from ragworth.build.crux.output import check_folder, write_collection
    from ragworth.build.crux.topics import read_topics
    from ragworth.build.crux.writing import Sampling

    calling = CallOptions(**given)
    check_folder(output)
    found = read_topics(topics)
    options = CruxOptions(questions, passages, eta, redundancy, failed, overlap, Sampling(temperature, seed, attempts))
    with ExitStack() as stack:
        first = _open(stack, writer, writer_option, calling)
        same = (judge, judge_option) == (writer, writer_option)
        second = first if same else _open(stack, judge, judge_option, calling)
        chain = CruxChain(found.topics[:limit], first, second, options, prompts)
        same_note = ("the writer also judges its own texts; name another judge with -J",) if same else ()
        print_notes((*found.notes, *same_note), calling.quiet)
        if calling.dry_run:
            for stage in chain.plan():
                click.echo(str(stage))
            return
        for job in dict.fromkeys((first, second)):
            print_capabilities(job.card, calling)
        try:
            build = _run(chain, output)
        finally:
            for job in dict.fromkeys((first, second)):
                if job.watcher is not None:
                    job.watcher.done(job.tally)
        statistics = write_collection(chain, build, output, title)
        print_notes(build.notes, calling.quiet)
        print_statistics(statistics, build.drafts, "text", None)
        click.echo(f"written to {output}", err=True)


def _open(stack: ExitStack, spec: str, settings: tuple[str, ...], calling: CallOptions) -> Any:
    model = stack.enter_context(closing(open_named_model(spec, settings)))
    return stack.enter_context(open_job(model, calling))


def _run(chain: Any, output: str) -> Any:
    """Run the chain. If nothing can be rated, the drafts are written all the same."""
    from ragworth.build.crux.output import DRAFTS_FILE
    from ragworth.core.errors import JobStopped

    try:
        return chain.run()
    except JobStopped:
        if not chain.writer.stopped and not chain.judge.stopped:
            Path(output).mkdir(parents=True, exist_ok=True)
            chain.written_drafts().write(Path(output) / DRAFTS_FILE)
        raise
