"""``ragworth grade``: a command for each grader, made from its settings."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

import click

from ragworth.cli.collection_options import material, reading_options, taken
from ragworth.cli.model_options import Calling, calling_options, introduced, job, model_options, opened, told
from ragworth.cli.output import tell
from ragworth.cli.registry_group import Kinds, about, title
from ragworth.cli.reliability import check_options, checked, forecasts, second_job
from ragworth.cli.task_options import setting_options
from ragworth.cli.task_output import n_of_n, none_at_all, result_options, show, summary, writable, write


@click.group(
    "grade",
    cls=Kinds,
    registry="ragworth.graders.grading:GRADERS",
    maker="ragworth.cli.grade:command_for",
    short_help="Grade answers: by comparing texts, or by asking a model.",
)
def command() -> None:
    """Grade the answers that ragworth answer wrote, or others: one command for each way to grade.

    ANSWERS is a table with system, query and text (Parquet, CSV, TSV or JSONL). What was shown for each is known from
    the file of ragworth answer; of other answers, from the runs named after it, cut with --depth. Accepted
    answers come with --answers, JSONL runs or --collection.

    \b
    ragworth grade deterministic answers.parquet --answers accepted.jsonl --qrels qrels.txt
    ragworth grade judge answers.parquet contexts.jsonl --model openai:NAME@http://localhost:8000 -o outcomes.parquet
    ragworth grade utility answers.parquet -c beir:FOLDER --encoder bert-large-uncased
    """


def command_for(kind: str) -> click.Command:
    """The command of a grader."""
    from ragworth.graders.grading import GRADERS
    from ragworth.tasks.options import settings_of

    chosen = GRADERS.get(kind)

    def run(**given: Any) -> None:
        graded(kind, **given)

    decorators: list[Any] = [
        click.argument("graded_answers", metavar="ANSWERS"),
        reading_options,
        setting_options(settings_of(chosen)),
        click.option(
            "--each",
            type=click.Path(dir_okay=False),
            callback=writable,
            help="Write the grade of each single answer to this file.",
        ),
    ]
    if chosen.asks:
        folder = click.Path(file_okay=False)
        prompts = click.option("--prompts", type=folder, help="Folder of own prompts that replace ours.")
        people = click.option("--labels", help="With --check: grades by people: system, query, value or label.")
        decorators += [prompts, check_options, people, model_options, result_options, calling_options]
    else:
        plan = click.option("--dry-run", is_flag=True, help="Say what would be graded, and grade nothing.")
        quiet = click.option("--quiet", is_flag=True, help="No notes on standard error.")
        decorators += [result_options, plan, quiet]
    for decorate in reversed(decorators):
        run = decorate(run)
    last = f"Prompts: {', '.join(chosen.prompts)}." if chosen.asks else "No model is asked."
    return click.command(kind, help=about(chosen, last), short_help=title(chosen))(run)


def graded(
    kind: str, *, graded_answers: str, each: str | None, output: str | None, look: str, quiet: bool, **given: Any
) -> None:
    """Read, check, grade, write."""
    from ragworth.errors import InputError, counted
    from ragworth.generation.answer_files import read_answers
    from ragworth.graders import grading
    from ragworth.graders.human_labels import read_labels
    from ragworth.graders.reliability import check as look_closer
    from ragworth.graders.reliability import planned_all
    from ragworth.tasks.query_sample import of_queries

    wanted = taken(given)
    answers = read_answers(graded_answers, skip_bad_lines=wanted.skip_bad_lines)
    found = material(wanted)
    contexts = found.contexts.cut(wanted.k) if found.contexts is not None and wanted.k else found.contexts
    book = grading.book_of(answers, contexts)
    things = of_queries(book.answers, wanted.limit, wanted.sample, wanted.sample_seed)

    def tell_all(result: Any) -> None:
        write(result.frame, output)
        write(result.answers, each)
        tell((*answers.notes, *found.notes, *result.notes), quiet)
        short = labelled(result) if "label" in result.frame.columns else summary(result.frame)
        show(result.frame, look, short, None if quiet else output)

    if not grading.GRADERS.get(kind).asks:
        plan = given.pop("dry_run")
        grader = grading.made(kind, None, found.collection, book, None, given)
        if plan:
            number = len(grading.parted(grader, things)[0])
            click.echo(f"{counted(number, 'answer')} would be graded; no model is asked")
            return
        result = grading.finished(grader, things, None)
        tell_all(result)
        none_at_all(result.frame, "outcome")
        return
    calling = Calling(
        quiet=quiet, **{name: given.pop(name) for name in Calling.__dataclass_fields__ if name != "quiet"}
    )
    check, second, labels = (given.pop(name) for name in ("check", "second", "labels"))
    options = given.pop("second_option")
    if (second or labels) and not check:
        raise InputError("a second model and labels are for --check", remedy="give --check too")
    prompts = given.pop("prompts")
    with ExitStack() as stack:
        asked = stack.enter_context(closing(opened(given.pop("model"), given.pop("settings"))))
        work = stack.enter_context(job(asked, calling, None))
        more = second_job(stack, second, options, calling)
        grader = grading.made(kind, work.card, found.collection, book, prompts, given)
        other = grading.made(kind, more.card, found.collection, book, prompts, given) if more is not None else None
        people = read_labels(labels, grader) if labels else None
        if calling.dry_run:
            forecasts(planned_all(grader, things, work, other, more, check))
            return
        introduced(work.card, calling)
        with told(work, calling):
            result = grading.finished(grader, things, work)
            tell_all(result)
            if check:
                checked(lambda: look_closer(grader, things, result, work, more, people), more, look, calling)
        none_at_all(result.frame, "outcome")


def labelled(result: Any) -> Any:
    """For each system, the shares of its answers with each label, and the mean outcome."""
    import polars as pl

    from ragworth.graders.deterministic import VALUES

    number = pl.col("label").is_not_null().sum()
    shares = [pl.when(number > 0).then((pl.col("label") == label).sum() / number).alias(label) for label in VALUES]
    facts = [number.alias("n"), pl.len().alias("N"), *shares, pl.col("value").mean().alias("mean")]
    return n_of_n(result.answers.group_by("system", maintain_order=True).agg(facts))
