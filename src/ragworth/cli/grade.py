"""``ragworth grade``: a command for each grader, made from its settings."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click

from ragworth.cli.calling import Calling, calling_options, introduced, job, model_options, opened, told
from ragworth.cli.checking import check_options, checked
from ragworth.cli.output import tell
from ragworth.cli.reading import material, reading_options, taken
from ragworth.cli.results import result_options, show, summary, write
from ragworth.cli.settings import setting_options


class Kinds(click.Group):
    """A command for each registered grader."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from ragworth.answers.grading import GRADERS

        return GRADERS.names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from ragworth.answers.grading import GRADERS

        return command_for(cmd_name) if cmd_name in GRADERS.names() else None


@click.group("grade", cls=Kinds, short_help="Grade answers: by comparing texts, or by asking a model.")
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
    from ragworth.answers.grading import GRADERS
    from ragworth.judging.settings import settings_of

    chosen = GRADERS.get(kind)

    def run(**given: Any) -> None:
        graded(kind, **given)

    decorators: list[Any] = [
        click.argument("graded_answers", metavar="ANSWERS"),
        reading_options,
        setting_options(settings_of(chosen)),
        click.option("--each", type=click.Path(dir_okay=False), help="Write the grade of each single answer here."),
    ]
    if chosen.asks:
        folder = click.Path(file_okay=False)
        prompts = click.option("--prompts", type=folder, help="Folder of own prompts that replace ours.")
        people = click.option("--labels", help="With --check: outcomes by people: system, query, value.")
        decorators += [prompts, check_options, people, model_options, result_options, calling_options]
    else:
        decorators += [result_options, click.option("--quiet", is_flag=True, help="No notes on standard error.")]
    for decorate in reversed(decorators):
        run = decorate(run)
    title = f"{chosen.title[0].upper()}{chosen.title[1:]}."
    return click.command(kind, help=_about(chosen), short_help=title)(run)


def _about(chosen: Any) -> str:
    """The words of a grader's docstring, with the prompts it asks with."""
    import inspect

    about = (inspect.getdoc(chosen) or chosen.title).replace("``", "")
    return f"{about}\n\nPrompts: {', '.join(chosen.prompts)}." if chosen.asks else f"{about}\n\nNo model is asked."


def graded(
    kind: str, *, graded_answers: str, each: str | None, output: str | None, look: str, quiet: bool, **given: Any
) -> None:
    """Read, check, grade, write."""
    from ragworth.answers import grading
    from ragworth.errors import InputError
    from ragworth.formats import answers as reading

    wanted = taken(given)
    table, frame = reading.read(graded_answers, skip_bad_lines=wanted.skip_bad_lines)
    found = material(wanted)
    contexts = found.contexts.cut(wanted.k) if found.contexts is not None and wanted.k else found.contexts
    book = grading.book_of(frame, contexts)
    things = grading.some(book.answers, wanted.limit, wanted.sample, wanted.sample_seed)

    def tell_all(result: Any) -> None:
        write(result.frame, output)
        write(result.answers, each)
        tell((*table.notes, *found.notes, *result.notes), quiet)
        show(result.frame, look, labelled(result) if "label" in result.frame.columns else summary(result.frame), output)

    if not grading.GRADERS.get(kind).asks:
        grader = grading.made(kind, None, found.collection, book, None, given)
        tell_all(grading.finished(grader, things, None))
        return
    calling = Calling(
        quiet=quiet, **{name: given.pop(name) for name in Calling.__dataclass_fields__ if name != "quiet"}
    )
    check, second, labels = (given.pop(name) for name in ("check", "second", "labels"))
    options = given.pop("second_option")
    if (second or labels) and not check:
        raise InputError("a second model and labels are for --check", remedy="give --check too")
    people = _outcomes(labels) if labels else None
    prompts, asked = given.pop("prompts"), opened(given.pop("model"), given.pop("settings"))
    with closing(asked), job(asked, calling, None) as work:
        grader = grading.made(kind, work.card, found.collection, book, prompts, given)
        if calling.dry_run:
            click.echo(str(grading.planned(grader, things, work)))
            return
        introduced(work.card, calling)
        with told(work, calling):
            result = grading.finished(grader, things, work)
            tell_all(result)
            if check:
                from ragworth.answers.checking import check as look_closer

                checked(lambda more: look_closer(grader, things, result, work, more, people), second, options, calling)


def _outcomes(path: str) -> Any:
    """Outcomes by people, whatever their aspect is called."""
    import polars as pl

    from ragworth.formats.frames import read_table
    from ragworth.tables import Outcomes

    table, _ = read_table(path)
    if "aspect" not in table.columns:
        table = table.with_columns(pl.lit("human").alias("aspect"))
    return Outcomes(table, source=path)


def labelled(result: Any) -> Any:
    """For each system, the shares of its answers with each label, and the mean outcome."""
    import polars as pl

    from ragworth.answers.graders.deterministic import VALUES

    single = result.answers
    known = pl.col("label").is_not_null()
    shares = [((pl.col("label") == label).sum() / known.sum()).alias(label) for label in VALUES]
    return single.group_by("system", maintain_order=True).agg(
        (known.sum().cast(pl.String) + " of " + pl.len().cast(pl.String)).alias("n of N"),
        *shares,
        pl.col("value").mean().alias("mean"),
    )
