"""``ragworth build questions``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from ragworth.cli.build_options import distinct_jobs, encoding_progress, open_jobs, role_options, take_role_options
from ragworth.cli.model_options import report_job
from ragworth.cli.output import print_notes

CACHE_FOLDER = ".ragworth"
"""Vectors and indexes, in the place where ragworth evaluate looks for them."""


@click.command("questions", short_help="Write questions for your own documents, and check them.")
@click.argument("documents", nargs=-1, required=True, metavar="DOCS...")
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="Folder of the new collection.")
@click.option("--plan", "plan_file", type=click.Path(dir_okay=False), help="TOML file with shares of types and styles.")
@click.option("-n", "--questions", type=click.IntRange(1), help="Number of questions.  [default: 100]")
@click.option("--seed", type=click.IntRange(0), help="Seed of the plan.  [default: 0]")
@click.option("--words", type=click.IntRange(20), default=200, show_default=True, help="Length of a passage.")
@click.option("--title", default="", help="Title of the collection.  [default: name of the folder]")
@click.option("--license", "licence", default="not stated", help="Licence of the documents, for the card.")
@click.option(
    "--unknown",
    type=click.Choice(["keep", "drop"]),
    default="keep",
    show_default=True,
    help="What to do with a question that a check can't tell anything about.",
)
@click.option("--skip-bad-files", is_flag=True, help="Leave out, and report, files that can't be read.")
@role_options(writer=True)
def command(**given: Any) -> None:
    """Write questions for DOCS (folders or files: Markdown, HTML, PDF, text, or a table of documents), check them, and
    write a workspace for ragworth evaluate.

    Without a model, rules make questions from the sentences of the documents. Every draft is kept in drafts.jsonl with
    its status. Run the same command again to resume: every call is in the store.

    \b
    ragworth build questions docs -o collection --dry-run
    ragworth build questions docs manual.pdf -o collection -n 50 --plan plan.toml
    ragworth build questions docs -o collection -M openai:writer@http://localhost:8000 -M openai:reader@http://localhost:8001
    """
    from ragworth.build.outputs import FILES, write_collection
    from ragworth.build.questions.build import build_questions, prepare_corpus
    from ragworth.core.cache import mark_cache
    from ragworth.core.file_record import FileRecord
    from ragworth.retrieval.documents import read_documents

    roles = take_role_options(given)
    output = Path(given["output"])
    FileRecord(output, remedy="move it away, or name another folder").refuse_foreign(FILES)
    plan = _read_plan(given, roles)
    advice = "--skip-bad-files leaves out what can't be read"
    read = read_documents(given["documents"], skip_bad_files=given["skip_bad_files"], advice=advice)
    corpus = prepare_corpus(read, plan, given["words"])
    with ExitStack() as stack:
        jobs, notes = open_jobs(stack, roles, writes=True)
        settings = _settings(given, roles, plan, output)
        print_notes((*read.notes, *notes), roles.calling.quiet)
        if roles.calling.dry_run:
            _print_plan(corpus, settings, jobs)
            return
        mark_cache(output / CACHE_FOLDER)
        for job in distinct_jobs(jobs):
            stack.enter_context(report_job(job, roles.calling))
        built = build_questions(corpus, settings, jobs)
        dense = "dense" not in {note.split(":")[0] for note in built.checks.notes}
        write_collection(output, built.drafts, corpus.passages, built.checks.frame, built.card, dense=dense)
        _print_result(built, output, roles.calling.quiet)


def _read_plan(given: dict[str, Any], roles: Any) -> Any:
    from ragworth.build.questions.plan import QuestionPlan, read_plan
    from ragworth.build.roles import RULES

    changes = {name: given[name] for name in ("questions", "seed") if given[name] is not None}
    plan = read_plan(given["plan_file"], **changes) if given["plan_file"] else QuestionPlan(**changes)
    return plan if roles.models or roles.writer not in (None, RULES) else plan.for_rules()


def _settings(given: dict[str, Any], roles: Any, plan: Any, output: Path) -> Any:
    from ragworth.build.checks.run import CheckSettings
    from ragworth.build.questions.build import BuildSettings

    checks = CheckSettings((), roles.encoder, output / CACHE_FOLDER, roles.prompts, encoding_progress(roles))
    title = given["title"] or output.resolve().name
    return BuildSettings(plan, checks, title, given["licence"], given["unknown"] == "drop")


def _print_plan(corpus: Any, settings: Any, jobs: Any) -> None:
    """What would be written: sizes, strata, and calls."""
    import polars as pl

    from ragworth.build.questions.build import plan_build
    from ragworth.build.questions.plan import count_slots
    from ragworth.core.errors import format_count
    from ragworth.report.render import render

    documents, passages = corpus.documents.frame.height, corpus.passages.height
    click.echo(f"{format_count(documents, 'document')}, {format_count(passages, 'passage')}")
    click.echo(f"{settings.plan.questions:,} questions from {format_count(len(corpus.slots), 'draft')}:\n")
    table = pl.DataFrame(count_slots(corpus.slots), schema=["type", "style", "drafts"], orient="row")
    click.echo(render(table.pivot("style", index="type", values="drafts").fill_null(0), "text").decode(), nl=False)
    click.echo()
    for stage, forecast in plan_build(corpus, settings, jobs).items():
        if forecast is not None:
            click.echo(f"{stage}: {forecast}")
        elif stage == "check" and jobs.writer is not None:
            click.echo("check: depends on what the model writes")
        else:
            click.echo(f"{stage}: no model is asked")


def _print_result(built: Any, output: Path, quiet: bool) -> None:
    """The funnel and the checks."""
    from ragworth.build.checks.summary import summarise_checks, summary_table
    from ragworth.build.question_set import DRAFTS_FILE
    from ragworth.cli.build_check import print_funnel, print_table
    from ragworth.core.errors import JobStopped, format_count
    from ragworth.report.render import printable

    read = built.corpus.documents.notes  # they were printed when the documents were read
    print_notes(tuple(note for note in built.card.notes if note not in read), quiet)
    print_funnel(built.card)
    print_table("Checks of all drafts", summary_table(summarise_checks(built.checks, built.flags)))
    kept, planned = len(built.drafts.kept), built.card.settings["questions"]
    if not kept:
        raise JobStopped(
            f"none of {built.card.drafts:,} drafts was kept, so {output} is an empty collection\n"
            f"  to do: see why in {output / DRAFTS_FILE}; try other documents or another writer, or plan more drafts"
        )
    number = format_count(kept, "question") if kept == planned else f"{kept:,} of {planned:,} planned questions"
    click.echo(printable(f"\n{number}: {output}; next: ragworth evaluate {output}"))
