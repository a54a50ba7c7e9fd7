"""``ragworth build check``."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import click

from ragworth.cli.build_options import distinct_jobs, encoding_progress, open_jobs, role_options, take_role_options
from ragworth.cli.model_options import report_job
from ragworth.cli.output import print_notes
from ragworth.cli.task_output import check_rows_file, write_rows


@click.command("check", short_help="Check the questions of any collection.")
@click.argument("collection", nargs=-1, required=True, metavar="COLLECTION...")
@click.option(
    "-c", "--check", "names", multiple=True, metavar="NAME", help="Only this check; repeat for more.  [default: all]"
)
@click.option("--level", type=float, default=1.0, show_default=True, help="Lowest relevance that counts as relevant.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N questions.")
@click.option("--examples", type=click.IntRange(0), default=2, show_default=True, help="Failures to show per check.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    callback=check_rows_file,
    help="Write all findings to this file.",
)
@role_options(writer=False)
def command(**given: Any) -> None:
    """Check the questions of a collection: a workspace, a BEIR folder, a dataset of ragas or deepeval, or a folder that
    ragworth build questions wrote.

    Each check gives every question a value, a verdict (pass, fail, unknown) and a reason. Checks that ask a model are
    unknown without one; nothing passes silently. The round trip is a flag: it says what retrieval doesn't find.

    \b
    ragworth build check collection
    ragworth build check beir:FOLDER --reader none -o findings.csv
    ragworth build check testset.jsonl -c self-contained -c duplicate
    """
    from dataclasses import replace

    from ragworth.build.checks.reader import reader_flags
    from ragworth.build.checks.run import CheckSettings, plan_checks, run_checks
    from ragworth.build.question_set import read_question_set

    roles = take_role_options(given)
    settings = CheckSettings(given["names"], roles.encoder, None, roles.prompts, encoding_progress(roles))
    asks = any(check.asks_reader for check in settings.checks)  # unknown names are refused before anything is read
    questions = read_question_set(given["collection"], level=given["level"])
    if given["limit"]:
        questions = replace(questions, questions=questions.questions[: given["limit"]])
    with ExitStack() as stack:
        jobs, notes = open_jobs(stack, roles, writes=False) if asks else (None, [])
        reader, judge = (jobs.reader, jobs.judge) if jobs is not None else (None, None)
        print_notes(tuple(notes), roles.calling.quiet)
        if roles.calling.dry_run:
            click.echo(str(plan_checks(questions, settings, reader) or "no model is asked"))
            return
        for job in distinct_jobs(jobs) if jobs is not None else ():
            stack.enter_context(report_job(job, roles.calling))
        result = run_checks(questions, settings, reader, judge)
        write_rows(result.frame, given["output"])
        flags = reader_flags(reader.card if reader is not None else None)
        print_notes((*result.notes, *flags.values()), roles.calling.quiet)
        _print_findings(result, given["examples"], flags)


def _print_findings(result: Any, examples: int, flags: Any) -> None:
    from ragworth.build.checks.summary import examples_table, summarise_checks, summary_table

    number = len(result.questions.questions)
    print_table(f"Checks of {number:,} questions", summary_table(summarise_checks(result, flags)))
    if examples:
        print_table("Some of those that fail", examples_table(result, examples))


def print_table(title: str, frame: Any) -> None:
    """A table with its title; nothing if it has no rows."""
    from ragworth.report.render import render

    if frame.height:
        click.echo(f"\n{title}\n\n{render(frame, 'text').decode()}", nl=False)


def print_funnel(card: Any) -> None:
    """From drafts to kept, step by step."""
    import polars as pl

    rows = [("drafts", None, card.drafts)]
    rows += [(step["status"], -step["drafts"], step["left"]) for step in card.funnel]
    print_table("From drafts to questions", pl.DataFrame(rows, schema=["step", "drafts", "left"], orient="row"))
