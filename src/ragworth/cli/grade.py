"""``ragworth grade``: a command for each grader, made from its settings."""

from __future__ import annotations

from contextlib import ExitStack, closing
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
from ragworth.cli.registry_group import RegistryGroup, help_text, kind_title
from ragworth.cli.task_options import setting_options
from ragworth.cli.task_output import (
    aspect_summary,
    check_rows_file,
    n_of_n,
    print_rows,
    result_options,
    stop_if_none,
    write_rows,
)


@click.group(
    "grade",
    cls=RegistryGroup,
    registry="ragworth.judging:GRADERS",
    maker="ragworth.cli.grade:command_for",
    short_help="Grade answers: by comparing texts, or by asking a model.",
)
def command() -> None:
    """Grade answers, with one command for each grader.

    ANSWERS is a table with system, query and text (Parquet, CSV, TSV or JSONL). What was shown for each is known from
    the file of ragworth answer; of other answers, from the runs named after it, cut with --depth. Accepted
    answers come with --answers, JSONL runs or --collection.

    \b
    ragworth grade deterministic answers.parquet --answers accepted.jsonl --qrels qrels.txt
    ragworth grade judge answers.parquet contexts.jsonl --model openai:NAME@http://localhost:8000 -o outcomes.parquet
    ragworth grade utility answers.parquet -c beir:FOLDER --encoder paper
    """


def command_for(kind: str) -> click.Command:
    """The command of a grader."""
    from ragworth.judging import GRADERS
    from ragworth.judging.contract import options_of

    chosen = GRADERS.get(kind)

    def run(**given: Any) -> None:
        grade_files(kind, **given)

    decorators: list[Any] = [
        click.argument("graded_answers", metavar="ANSWERS"),
        reading_options,
        setting_options(options_of(chosen)),
        click.option(
            "--each",
            type=click.Path(dir_okay=False),
            callback=check_rows_file,
            help="Write the grade of each single answer to this file.",
        ),
    ]
    if "density" in chosen.aspects:
        decorators.append(
            click.option(
                "--tokens",
                default="words",
                show_default=True,
                help="What density counts as a token: words, hf:PATH/tokenizer.json or tiktoken:NAME.",
            )
        )
    if chosen.asks_model:
        folder = click.Path(file_okay=False)
        prompts = click.option(
            "--prompts", type=folder, help="Folder with your own prompts; they replace the built-in ones."
        )
        decorators += [prompts, model_options, result_options, call_options]
    else:
        plan = click.option("--dry-run", is_flag=True, help="Say what would be graded, and grade nothing.")
        quiet = click.option("--quiet", is_flag=True, help="Don't print notes.")
        decorators += [result_options, plan, quiet]
    for decorate in reversed(decorators):
        run = decorate(run)
    last = f"Prompts: {', '.join(chosen.prompts)}." if chosen.asks_model else "No model is asked."
    return click.command(kind, help=help_text(chosen, last), short_help=kind_title(chosen))(run)


def grade_files(
    kind: str, *, graded_answers: str, each: str | None, output: str | None, look: str, quiet: bool, **given: Any
) -> None:
    """Read, check, grade, write."""
    from ragworth.core.errors import format_count
    from ragworth.judging import GRADERS, runner
    from ragworth.judging.answers import read_answers
    from ragworth.judging.contract import plan_task, run_task
    from ragworth.judging.text_lookup import sample_by_query

    wanted = take_collection_options(given)
    answers = read_answers(graded_answers, skip_bad_lines=wanted.skip_bad_lines)
    found = read_collection(wanted)
    if "tokens" in given:
        found = found._replace(collection=found.collection.counting(given.pop("tokens")))
    contexts = found.contexts.cut(wanted.k) if found.contexts is not None and wanted.k else found.contexts
    book = runner.to_answer_book(answers, contexts)
    things = sample_by_query(book.answers, wanted.limit, wanted.sample)

    def tell_all(result: Any) -> None:
        write_rows(result.frame, output)
        write_rows(result.answers, each)
        print_notes((*answers.notes, *found.notes, *result.notes), quiet)
        short = label_shares(result) if "label" in result.frame.columns else aspect_summary(result.frame)
        print_rows(result.frame, look, short, None if quiet else output)

    if not GRADERS.get(kind).asks_model:
        plan = given.pop("dry_run")
        grader = runner.build_judge(GRADERS, kind, None, found.collection, None, given, book)
        if plan:
            number = sum(map(grader.judged, grader.items(things)))
            click.echo(f"{format_count(number, 'answer')} would be graded; no model is asked")
            return
        result = run_task(grader, grader.items(things), None)
        tell_all(result)
        stop_if_none(result.frame, "outcome")
        return
    calling = CallOptions(
        quiet=quiet, **{name: given.pop(name) for name in CallOptions.__dataclass_fields__ if name != "quiet"}
    )
    prompts = given.pop("prompts")
    with ExitStack() as stack:
        asked = stack.enter_context(closing(open_named_model(given.pop("model"), given.pop("settings"))))
        work = stack.enter_context(open_job(asked, calling))
        grader = runner.build_judge(GRADERS, kind, work.card, found.collection, prompts, given, book)
        if calling.dry_run:
            click.echo(str(plan_task(grader, grader.items(things), work)))
            return
        print_capabilities(work.card, calling)
        with report_job(work, calling):
            result = run_task(grader, grader.items(things), work)
            tell_all(result)
        stop_if_none(result.frame, "outcome")


def label_shares(result: Any) -> Any:
    """For each system, the shares of its answers with each label, and the mean outcome."""
    import polars as pl

    from ragworth.judging.graders.text import GRADER_VALUES

    number = pl.col("label").is_not_null().sum()
    shares = [
        pl.when(number > 0).then((pl.col("label") == label).sum() / number).alias(label) for label in GRADER_VALUES
    ]
    facts = [number.alias("n"), pl.len().alias("N"), *shares, pl.col("value").mean().alias("mean")]
    return n_of_n(result.answers.group_by("system", maintain_order=True).agg(facts))
