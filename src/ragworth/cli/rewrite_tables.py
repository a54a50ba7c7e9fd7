"""``ragworth rewrite candidates``, ``label`` and ``pairs``: the tables that a rewriter is trained on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

import click

from ragworth.cli.collection_options import CollectionOptions, read_collection
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
from ragworth.cli.task_output import check_rows_file, stop_if_none, write_rows
from ragworth.core.errors import FormatError

F = TypeVar("F", bound=Callable[..., Any])

RULES = ("last", "all", "first+last", "history-terms", "human")


def conversation_options(function: F) -> F:
    """Where turns, passages and labels come from."""
    options = [
        click.option(
            "-c",
            "--collection",
            required=True,
            help="Conversations: JSONL with one turn per line, CANARD, CAsT, MT-RAG",
        ),
        click.option("-p", "--passages", help="Texts of passages: JSONL, Parquet, CSV or TSV."),
        click.option("-a", "--answers", help="Accepted answers: JSONL, Parquet, CSV or TSV."),
        click.option("-q", "--qrels", multiple=True, help="Relevance judgments: TREC qrels, BEIR folder or table."),
        click.option(
            "--turns",
            type=click.Choice(["conversation", "rewrite", "turn"]),
            default="conversation",
            show_default=True,
            help="What the reader is asked: the turn after its conversation, its human rewrite, or the turn alone.",
        ),
        click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N turns with a history."),
        click.option("--skip-bad-lines", is_flag=True, help="Leave out, count and report lines that cannot be read."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def prompts_option(function: F) -> F:
    """The user's own prompts."""
    return click.option(
        "--prompts",
        type=click.Path(file_okay=False),
        help="Folder with your own prompts; they replace the built-in ones.",
    )(function)


def take_conversations(given: dict[str, Any]) -> tuple[Any, int | None]:
    """What `conversation_options` name, taken out of all that were given, and how many turns are wanted."""
    names = ("collection", "passages", "answers", "qrels", "turns", "skip_bad_lines")
    known = {name: given.pop(name) for name in names}
    empty: dict[str, Any] = {"queries": None, "subquestions": None, "ratings": None, "runs": (), "k": None}
    empty |= {"limit": None, "sample": None}
    try:
        return read_collection(CollectionOptions(**known, **empty)), given.pop("limit")
    except FormatError as error:
        if error.hint.option != "columns":
            raise
        from ragworth.formats.conversations import EXPECTED

        # Columns of logs can be mapped; those of conversations can't.
        raise error.copy(expected=EXPECTED, remedy="") from error


def take_calls(given: dict[str, Any]) -> CallOptions:
    """The options of `call_options`, taken out of all that were given."""
    return CallOptions(**{name: given.pop(name) for name in CallOptions.__dataclass_fields__})


def turns_to_rewrite(collection: Any, limit: int | None) -> list[Any]:
    """The turns with a history, or the first of them."""
    from ragworth.data.conversations import turns_of
    from ragworth.rewriting.candidates import check_turns

    return check_turns(turns_of(collection))[:limit]


def output_option(help: str, name: str = "--output", *short: str, required: bool = True) -> Callable[[F], F]:
    """A file of rows, whose folder and ending are checked first."""
    return click.option(
        *short, name, required=required, type=click.Path(dir_okay=False), callback=check_rows_file, help=help
    )


@click.command("candidates", short_help="Propose rewrites of each turn.")
@conversation_options
@click.option(
    "--rules",
    default="last,all,first+last,history-terms",
    show_default=True,
    help=f"Rewrites by rule, with commas between them: {', '.join(RULES)}; empty for none.",
)
@click.option(
    "-n", "--samples", type=click.IntRange(0), default=0, show_default=True, help="Rewrites of each turn by the model."
)
@click.option("--temperature", type=click.FloatRange(0), default=0.8, show_default=True, help="Sampling temperature.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Sampling seed.")
@click.option(
    "--history", type=click.IntRange(0), default=6000, show_default=True, help="Maximum characters of history."
)
@click.option("--given", multiple=True, metavar="FILE", help="Rewrites from a file (query, text); repeat for more.")
@prompts_option
@model_options
@output_option("Write the candidates to this file: .jsonl, .parquet, .csv or .tsv.", "--output", "-o")
@call_options
def candidates(
    rules: str,
    samples: int,
    temperature: float,
    seed: int,
    history: int,
    given: tuple[str, ...],
    prompts: str | None,
    model: str,
    settings: tuple[str, ...],
    output: str,
    **more: Any,
) -> None:
    """Propose rewrites of every turn that has a history: by rule, sampled from a model, or from files.

    Rewrites of a turn that are equal apart from case and blanks are merged.
    """
    from ragworth.rewriting import candidates as made
    from ragworth.rewriting.tables import REWRITES, read_rewriting_table

    calling = take_calls(more)
    found, limit = take_conversations(more)
    turns = turns_to_rewrite(found.collection, limit)
    print_notes(found.notes, calling.quiet)
    wanted = [rule.strip() for rule in rules.split(",") if rule.strip()]
    proposals: list[Any] = made.by_rules(turns, wanted, found.collection)
    everyone, few = turns_to_rewrite(found.collection, None), {turn.query for turn in turns}
    for path in given:
        own = made.from_table(read_rewriting_table(path, REWRITES, several=True), everyone, path)
        proposals += [proposal for proposal in own if proposal.query in few]
    if samples:
        way = {"samples": samples, "temperature": temperature, "seed": seed, "history": history}
        sampled = _sample(turns, model, settings, prompts, way, calling)
        if sampled is None:
            return
        proposals += made.from_samples(sampled, "sample")
    elif calling.dry_run:
        click.echo("no model is asked")
        return
    merged = made.merge_candidates(turns, proposals)
    write_rows(merged.frame, output)
    click.echo(str(merged))


def _sample(
    turns: list[Any], model: str, settings: tuple[str, ...], prompts: str | None, way: Any, calling: CallOptions
) -> Any:
    """Rewrites by a model; None after a plan was printed."""
    from ragworth.judging.contract import plan_task, run_task
    from ragworth.judging.rewriter import QueryRewriter

    with closing(open_named_model(model, settings)) as asked, open_job(asked, calling) as work:
        rewriter = QueryRewriter(work.card, prompts, **way)
        if calling.dry_run:
            click.echo(str(plan_task(rewriter, turns, work)))
            return None
        print_capabilities(work.card, calling)
        with report_job(work, calling):
            result = run_task(rewriter, turns, work)
        print_notes(result.notes, calling.quiet)
        return result.frame


@click.command("label", short_help="Say what each candidate's passages are worth to the reader.")
@click.argument("candidates")
@conversation_options
@click.option(
    "-u",
    "--utility",
    type=click.Choice(["key-entropy", "answerability", "gold-rank"]),
    default="key-entropy",
    show_default=True,
    help="What counts: GroGU's confidence, 1 − abstention, or the rank of a relevant passage.",
)
@click.option("--pipeline", default="bm25 % 10", show_default=True, help="How passages are retrieved.")
@click.option(
    "--alpha", type=click.FloatRange(0), default=0.05, show_default=True, help="GroGU's threshold of key tokens."
)
@click.option("--top", type=click.FloatRange(0, 1), default=0.1, show_default=True, help="GroGU's K: share of tokens.")
@prompts_option
@model_options
@output_option("Write the labels to this file: .jsonl, .parquet, .csv or .tsv.", "--output", "-o")
@call_options
def label(
    candidates: str,
    utility: str,
    pipeline: str,
    alpha: float,
    top: float,
    prompts: str | None,
    model: str,
    settings: tuple[str, ...],
    output: str,
    **more: Any,
) -> None:
    """Retrieve with each candidate, and say what the passages are worth to the model that reads them.

    Candidates of a turn that retrieve the same passages in the same order are labelled once.
    """
    from ragworth.core.errors import format_count
    from ragworth.rewriting.labels import RewriteLabelling
    from ragworth.rewriting.tables import CANDIDATES, read_rewriting_table
    from ragworth.rewriting.utilities import UTILITIES

    calling = take_calls(more)
    found, limit = take_conversations(more)
    rows = read_rewriting_table(candidates, CANDIDATES)
    if limit is not None:
        rows = rows.filter(rows["query"].is_in(rows["query"].unique(maintain_order=True).head(limit).to_list()))
    chosen: Any = UTILITIES[utility]
    way = chosen(a=alpha, top=top) if utility == "key-entropy" else chosen()
    task = RewriteLabelling(rows, found.collection, way, pipeline, prompts)
    print_notes(found.notes, calling.quiet)
    rewrites, contexts = format_count(rows.height, "rewrite"), format_count(task.distinct, "distinct context")
    click.echo(f"{rewrites}, {contexts}", err=True)
    if not way.asks_model:
        if calling.dry_run:
            click.echo("no model is asked")
            return
        _write_labels(task.run(None), output, calling)
        return
    with closing(open_named_model(model, settings)) as asked, open_job(asked, calling) as work:
        if calling.dry_run:
            click.echo("\n".join(map(str, task.plan(work))) or "no model is asked")
            return
        print_capabilities(work.card, calling)
        with report_job(work, calling):
            result = task.run(work)
            _write_labels(result, output, calling)


def _write_labels(result: Any, output: str, calling: CallOptions) -> None:
    write_rows(result.frame, output)
    print_notes(result.notes, calling.quiet)
    click.echo(str(result))
    stop_if_none(result.frame, "rewrite")


@click.command("pairs", short_help="Pair the best rewrite of each turn with its worst.")
@click.argument("labels")
@click.option("-u", "--utility", default="", help="Kind of label, if the file has several.")
@click.option(
    "--keep",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.5,
    show_default=True,
    help="Share of the pairs to keep, those with the largest gaps.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of draws among equal ones.")
@click.option("--shuffle", type=click.IntRange(0), metavar="SEED", help="Swap the sides at random: a control.")
@output_option("Write the pairs to this file.", "--output", "-o")
@output_option("Write the best rewrite of each turn to this file, for SFT.", "--best", required=False)
@output_option("Write a random rewrite of each of these turns: a control for SFT.", "--random", required=False)
def pairs(
    labels: str,
    utility: str,
    keep: float,
    seed: int,
    shuffle: int | None,
    output: str,
    best: str | None,
    random: str | None,
) -> None:
    """Pair the best rewrite of each turn with its worst, and keep the pairs with the largest gaps."""
    from ragworth.rewriting.pairs import build_pairs, shuffle_pairs
    from ragworth.rewriting.tables import LABELS, read_rewriting_table

    found = build_pairs(read_rewriting_table(labels, LABELS), utility=utility, keep=keep, seed=seed)
    write_rows(found.pairs if shuffle is None else shuffle_pairs(found.pairs, shuffle), output)
    write_rows(found.best, best)
    write_rows(found.random, random)
    click.echo(str(found))
