"""``ragworth build crux``, ``ragworth build filter`` and ``ragworth build stats``."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import click

from ragworth.cli.model_options import CallOptions, call_options, open_job, open_named_model, print_capabilities
from ragworth.cli.output import LOOKS, OutputTable, chosen_look, emit, print_notes

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
    "--temperature", type=click.FloatRange(0), default=0.7, show_default=True, help="Of texts; ratings use 0."
)
@click.option("--top-p", type=click.FloatRange(0.0001, 1), default=0.95, show_default=True, help="Nucleus of texts.")
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
    top_p: float,
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
    options = CruxOptions(
        questions, passages, eta, redundancy, failed, overlap, Sampling(temperature, top_p, seed, attempts)
    )
    with ExitStack() as stack:
        first = _open(stack, writer, writer_option, calling)
        same = (judge, judge_option) == (writer, writer_option)
        second = first if same else _open(stack, judge, judge_option, calling)
        chain = CruxChain(found.topics[:limit], first, second, options, prompts)
        if calling.dry_run:
            for stage in chain.plan():
                click.echo(str(stage))
            return
        same_note = ("the writer also judges its own texts; name another judge with -J",) if same else ()
        print_notes((*found.notes, *same_note), calling.quiet)
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
    return stack.enter_context(open_job(model, calling, None, measure_pace=False))


def _run(chain: Any, output: str) -> Any:
    """Run the chain. If nothing can be rated, the drafts are written all the same."""
    from ragworth.build.crux.output import DRAFTS_FILE
    from ragworth.errors import JobStopped

    try:
        return chain.run()
    except JobStopped:
        if not chain.writer.stopped and not chain.judge.stopped:
            Path(output).mkdir(parents=True, exist_ok=True)
            chain.written_drafts().write(Path(output) / DRAFTS_FILE)
        raise


def print_statistics(statistics: Any, drafts: Any, look: str, output: str | None) -> None:
    """The statistics, the ratings, and what became of the drafts."""
    tables = [
        OutputTable("statistics", "Collection", statistics.frame, statistics.readable),
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
    summary_ratings: str | None,
    eta: float,
    redundancy: Any,
    failed: Any,
    tokens: str,
    look: str | None,
    output: str | None,
) -> None:
    """Print how many queries, sub-questions, required and redundant passages a collection has.

    COLLECTION is a folder that ragworth build crux wrote, or crux:FOLDER with released files.

    \b
    ragworth build stats collection
    ragworth build stats crux:duc04 --redundancy crux
    ragworth build stats -r crux:case.log
    """
    from ragworth import formats
    from ragworth.build.crux.statistics import rating_statistics
    from ragworth.build.drafts import Drafts
    from ragworth.errors import InputError

    if (collection is None) == (ratings is None):
        raise InputError("name a collection, or a file of ratings", expected="one of COLLECTION and --ratings")
    summaries: list[str] = []
    look, drafts, texts = chosen_look(look, output), None, None
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
    print_statistics(statistics, drafts, look, output)


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
