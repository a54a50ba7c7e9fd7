"""``ragworth answer``."""

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
from ragworth.cli.task_options import setting_options
from ragworth.cli.task_output import check_parent_folder, n_of_n, print_rows, result_options, stop_if_none, write_rows


class LateOptionsCommand(click.Command):
    """A command with an option for each setting of the writer, made when they are first asked for.

    They are known to a module that takes its time to import, and the list of all commands does not need them.
    """

    _whole = False

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self._whole:
            from ragworth.judging.answers import AnswerWriter
            from ragworth.judging.contract import options_of

            options = click.command("settings")(setting_options(options_of(AnswerWriter))(lambda: None)).params
            place = next(n for n, option in enumerate(self.params) if option.name == "prompts")
            self.params[place:place] = options
            self._whole = True
        return super().get_params(ctx)


@click.command("answer", cls=LateOptionsCommand, short_help="Answer every query from each system's passages.")
@reading_options
@click.option("--without", is_flag=True, help="Also answer without context, as the system (none).")
@click.option("--oracle", is_flag=True, help="Also answer from the oracle context, as the system (oracle).")
@click.option(
    "--prompts", type=click.Path(file_okay=False), help="Folder with your own prompts; they replace the built-in ones."
)
@click.option(
    "--contexts",
    type=click.Path(dir_okay=False),
    callback=check_parent_folder,
    help="Write the contexts shown to this file, as a run.",
)
@model_options
@result_options
@call_options
def command(
    *,
    without: bool,
    oracle: bool,
    prompts: str | None,
    contexts: str | None,
    model: str,
    settings: tuple[str, ...],
    output: str | None,
    look: str,
    **given: Any,
) -> None:
    """Answer every query from the passages that each system retrieved for it.

    Texts come from JSONL runs, from --collection, or from --queries and --passages. The oracle's context is the
    required subset where there are ratings, else all relevant passages. A system that shows nothing for a query is
    asked with the same prompt, which then has no passages. Pass the output file (-o) to ragworth grade.

    \b
    ragworth answer contexts.jsonl -k 5 --without -o answers.parquet
    ragworth answer -c beir:FOLDER bm25.run --oracle --repeats 5 --temperature 0.3 -o answers.parquet
    ragworth answer reports.jsonl --ratings ratings.parquet --prompt answer-long --tie-k --tie-length --dry-run
    """
    from ragworth import formats
    from ragworth.data import ANSWERED_STATUSES
    from ragworth.judging import answers
    from ragworth.judging.contract import plan_task, run_task
    from ragworth.judging.text_lookup import sample_by_query

    if contexts is not None:
        formats.choose(contexts, "write_contexts")
    calling = CallOptions(**{name: given.pop(name) for name in CallOptions.__dataclass_fields__})
    wanted = take_collection_options(given)
    found = read_collection(wanted)
    asked = open_named_model(model, settings)
    with closing(asked), open_job(asked, calling) as work:
        writer = answers.build_writer(work, found.collection, prompts, wanted.k, given, plan=calling.dry_run)
        things = answers.answer_items(writer, found.contexts, found.collection, without=without, oracle=oracle)
        things = sample_by_query(things, wanted.limit, wanted.sample)
        if calling.dry_run:
            click.echo(str(plan_task(writer, things, work)))
            return
        print_capabilities(work.card, calling)
        print_notes(found.notes, calling.quiet)
        with report_job(work, calling):
            result = run_task(writer, things, work)
            write_rows(result.frame, output)
            if contexts is not None:
                formats.write(result.contexts, contexts, found.collection)
            print_notes(result.notes, calling.quiet)
            print_rows(result.frame, look, answer_overview(result.frame), None if calling.quiet else output)
        stop_if_none(result.frame, "answer", ANSWERED_STATUSES, "a text")


def answer_overview(frame: Any) -> Any:
    """For each system: how many answers have a text, how many of these decline or were cut short, and their length."""
    import polars as pl

    from ragworth.data import ANSWERED_STATUSES, TRUNCATED
    from ragworth.text_match.refusals import find_refusal

    good = pl.col("status").is_in(ANSWERED_STATUSES)
    declines = pl.Series("declines", [text is not None and find_refusal(text) is not None for text in frame["text"]])
    systems = frame.with_columns(declines).group_by("system", maintain_order=True)
    return n_of_n(
        systems.agg(
            good.sum().alias("n"),
            pl.len().alias("N"),
            (good & pl.col("declines")).sum().alias("declining"),
            (pl.col("status") == TRUNCATED).sum().alias("truncated"),
            pl.col("tokens").filter(good).mean().alias("mean tokens"),
        )
    )
