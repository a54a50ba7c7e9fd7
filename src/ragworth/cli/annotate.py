"""``ragworth annotate``: a command for each kind of judgment, made from its settings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any, TypeVar

import click

from ragworth.cli.collection_options import read_collection, reading_options, take_collection_options
from ragworth.cli.contribution_options import (
    contribution_options,
    print_profile,
    with_given_answers,
    with_hops,
    write_contributions,
)
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
from ragworth.cli.registry_group import RegistryGroup, help_text, kind_title
from ragworth.cli.task_options import setting_options
from ragworth.cli.task_output import aspect_summary, print_rows, result_options, stop_if_none, write_rows

F = TypeVar("F", bound=Callable[..., Any])


@click.group(
    "annotate",
    cls=RegistryGroup,
    registry="ragworth.judging:ANNOTATORS",
    maker="ragworth.cli.annotate:command_for",
    short_help="Judge passages or contexts by asking a model.",
)
def command() -> None:
    """Judge passages or contexts by asking a model, with one command for each kind of judgment.

    Texts come from JSONL runs, from --collection, or from --queries, --passages, --answers and --subquestions. Without
    a run, the passages that have relevance labels are judged. Pass the output file (-o) to ragworth score.

    \b
    ragworth annotate abstention contexts.jsonl -o abstention.parquet
    ragworth annotate relevance --collection beir:FOLDER bm25.run --depth 10
    ragworth annotate confidence contexts.jsonl --model hf:OWNER/NAME -O device=cuda --dry-run
    """


def command_for(kind: str) -> click.Command:
    """The command of a kind."""
    from ragworth.judging import ANNOTATORS
    from ragworth.judging.contract import options_of

    chosen = ANNOTATORS.get(kind)
    own = contribution_options if chosen.takes_answers else _no_options

    @click.command(
        kind, help=help_text(chosen, f"Prompts: {', '.join(chosen.prompts)}."), short_help=kind_title(chosen)
    )
    @reading_options
    @setting_options(options_of(chosen))
    @click.option(
        "--prompts",
        type=click.Path(file_okay=False),
        help="Folder with your own prompts; they replace the built-in ones.",
    )
    @own
    @model_options
    @result_options
    @call_options
    def run(**given: Any) -> None:
        annotate_files(kind, **given)

    return run


def _no_options(function: F) -> F:
    return function


def annotate_files(
    kind: str,
    *,
    model: str,
    settings: tuple[str, ...],
    prompts: str | None,
    output: str | None,
    look: str,
    given_answers: str | None = None,
    hops: str | None = None,
    passages_output: str | None = None,
    pairs_output: str | None = None,
    **given: Any,
) -> None:
    """Read, check, judge, write."""
    from ragworth.judging import ANNOTATORS, runner
    from ragworth.judging.contract import plan_task, run_task
    from ragworth.judging.contribution.kinds import split_by_hops
    from ragworth.judging.text_lookup import sample_by_query

    calling = CallOptions(**{name: given.pop(name) for name in CallOptions.__dataclass_fields__})
    wanted = take_collection_options(given)
    found = read_collection(wanted)
    found, book = with_given_answers(found, given_answers, wanted)
    found, hop_table = with_hops(found, hops)
    if not ANNOTATORS.get(kind).asks_model:
        _compare_texts(kind, found, wanted, given, output, look, calling)
        return
    with ExitStack() as stack:
        asked = stack.enter_context(closing(open_named_model(model, settings)))
        work = stack.enter_context(open_job(asked, calling))
        annotator = runner.build_judge(ANNOTATORS, kind, work.card, found.collection, prompts, given, book)
        if hop_table is not None:
            annotator = split_by_hops(annotator, hop_table)
        things = runner.annotation_items(annotator, found.contexts, found.collection, wanted.k)
        things = sample_by_query(things, wanted.limit, wanted.sample)
        if calling.dry_run:
            click.echo(str(plan_task(annotator, things, work)))
            print_notes(tuple(annotator.plan_notes(things)), calling.quiet)
            return
        print_capabilities(work.card, calling)
        print_notes(found.notes, calling.quiet)
        with report_job(work, calling):
            result = run_task(annotator, things, work)
            write_rows(result.frame, output)
            if annotator.takes_answers:
                write_contributions(result.frame, passages_output, pairs_output, hop_table)
            print_notes(result.notes, calling.quiet)
            print_rows(result.frame, look, aspect_summary(result.frame), None if calling.quiet else output)
            if annotator.takes_answers and look == "summary":
                print_profile(result.frame, found.collection)
        stop_if_none(result.frame, "judgment")


def _compare_texts(
    kind: str, found: Any, wanted: Any, settings: dict[str, Any], output: str | None, look: str, calling: CallOptions
) -> None:
    """Judge without a model."""
    from ragworth.judging.runner import annotate

    if calling.dry_run:
        click.echo("no model is asked")
        return
    print_notes(found.notes, calling.quiet)
    sampling = {"limit": wanted.limit, "sample": wanted.sample}
    result = annotate(kind, found.contexts, found.collection, k=wanted.k, **sampling, **settings)
    write_rows(result.frame, output)
    print_notes(result.notes, calling.quiet)
    print_rows(result.frame, look, aspect_summary(result.frame), None if calling.quiet else output)
    stop_if_none(result.frame, "judgment")
