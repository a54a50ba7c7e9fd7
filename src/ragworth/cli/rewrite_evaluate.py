"""``ragworth rewrite evaluate``."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

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
from ragworth.cli.rewrite_options import (
    conversation_options,
    parse_named,
    prompts_option,
    take_calls,
    take_conversations,
    turns_to_rewrite,
)
from ragworth.cli.task_output import ENDINGS, check_parent_folder
from ragworth.errors import MissingInputError, give_input

READ = 10
"""Passages that answers are written from."""


@click.command("evaluate", short_help="Compare rewriters with each other and with rules.")
@conversation_options
@click.option(
    "--arm",
    "arms",
    multiple=True,
    metavar="NAME=MODEL|FILE",
    help="A rewriter: an adapter's folder, a model, or a file of rewrites; repeat for more.",
)
@click.option(
    "--against",
    multiple=True,
    default=("last",),
    show_default=True,
    help="Arm to compare the others with; repeat for more.",
)
@click.option("--pipeline", default="bm25 % 100", show_default=True, help="How passages are retrieved.")
@click.option(
    "--metric", "metrics", multiple=True, help="Metric; repeat for more.  [default: RR, nDCG@3, R@10, R@20, R@100]"
)
@click.option(
    "--answer", "answers_wanted", is_flag=True, help="Also let --model answer from the first 10 passages, and grade."
)
@click.option(
    "--history", type=click.IntRange(0), default=6000, show_default=True, help="Maximum characters of history."
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, True, True),
    default=0.95,
    show_default=True,
    help="Confidence level of intervals.",
)
@click.option(
    "--resamples", type=click.IntRange(100), default=10_000, show_default=True, help="Resamples of intervals and tests."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of resampling.")
@prompts_option
@model_options
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(file_okay=False),
    callback=check_parent_folder,
    help="Folder for the tables and the report.",
)
@call_options
def evaluate(
    arms: tuple[str, ...],
    against: tuple[str, ...],
    pipeline: str,
    metrics: tuple[str, ...],
    answers_wanted: bool,
    history: int,
    level: float,
    resamples: int,
    seed: int,
    prompts: str | None,
    model: str,
    settings: tuple[str, ...],
    output: str,
    **more: Any,
) -> None:
    """Compare all arms on the same turns: rules, human rewrites where there are any, and the rewriters you name.

    Rewrites are greedy. Where a model gives none, the turn is searched as it is, and a note counts such turns.
    Differences are tested with whole conversations as units, and corrected by Holm.
    """
    from ragworth.report.render import render
    from ragworth.rewriting.evaluation.arms import Arm, baseline_arms
    from ragworth.rewriting.evaluation.page import means_table, sentences, write_evaluation
    from ragworth.rewriting.evaluation.run import DEFAULT_METRICS, ArmComparison
    from ragworth.stats.estimate import Resampling

    calling = take_calls(more)
    found, limit = take_conversations(more)
    turns = turns_to_rewrite(found.collection, limit)
    print_notes(found.notes, calling.quiet)
    specs = parse_named(arms, "--arm")
    files = {name: _read_arm(name, spec, turns) for name, spec in specs.items() if spec.endswith(ENDINGS)}
    rules = baseline_arms(turns, found.collection)
    comparison = ArmComparison(  # with empty arms first: mistakes are found before a model is asked
        turns,
        found.collection,
        [*rules, *(files.get(name) or Arm(name, {}) for name in specs)],
        pipeline,
        metrics or DEFAULT_METRICS,
        against,
        plan=Resampling(level, resamples, seed),
    )
    if answers_wanted and not found.collection.answers.height:
        raise MissingInputError("--answer", "accepted answers", "there are none", give_input("answers"))
    named = dict(files)
    for name, spec in specs.items():
        if name not in files:
            named[name], calling = _rewrite(name, spec, turns, history, prompts, calling)
    known = [named[name] for name in specs if named[name] is not None]
    if calling.dry_run:
        if answers_wanted:
            planned = replace(comparison, arms=[*rules, *known], against=())
            _plan_answers(planned, model, settings, prompts, calling)
        if answers_wanted and len(known) < len(specs):
            click.echo("what the models' rewrites retrieve isn't known yet, so answers from it are not counted")
        elif not answers_wanted:
            click.echo("nothing else is asked" if specs.keys() - files.keys() else "nothing is asked")
        return
    comparison = replace(comparison, arms=[*rules, *known])
    outcomes = _grade_answers(comparison, model, settings, prompts, calling) if answers_wanted else None
    result = comparison.evaluate(outcomes)
    paths = write_evaluation(result, Path(output))
    print_notes(result.notes, calling.quiet)
    click.echo(render(means_table(result), "text").decode())
    for sentence in sentences(result, 1 - level):
        click.echo(sentence)
    click.echo(f"\nReport: {paths[0]}")


def _read_arm(name: str, path: str, turns: list[Any]) -> Any:
    """An arm from a file of rewrites."""
    from ragworth.rewriting.evaluation.arms import arm_from_file
    from ragworth.rewriting.tables import REWRITES, read_rewriting_table

    return arm_from_file(name, turns, read_rewriting_table(path, REWRITES), path)


def _rewrite(
    name: str, spec: str, turns: list[Any], history: int, prompts: str | None, calling: CallOptions
) -> tuple[Any, CallOptions]:
    """An arm by a model that rewrites now, None after a plan was printed; and what is left of the budget."""
    from ragworth.generation.rewriter import QueryRewriter
    from ragworth.rewriting.evaluation.arms import arm_from_rewrites
    from ragworth.tasks.contract import plan_task, run_task

    with closing(open_named_model(spec, ())) as asked, open_job(asked, calling, len(turns)) as work:
        rewriter = QueryRewriter(work.card, prompts, history=history)
        if calling.dry_run:
            click.echo(f"{name}: {plan_task(rewriter, turns, work)}")
            return None, calling
        print_capabilities(work.card, calling)
        with report_job(work, calling):
            result = run_task(rewriter, turns, work)
        print_notes(tuple(f"{name}: {note}" for note in result.notes), calling.quiet)
        return arm_from_rewrites(name, turns, result.frame), _less_spent(calling, work)


def _less_spent(calling: CallOptions, work: Any) -> CallOptions:
    """The same options with what a job has spent taken off the budget, which is that of the whole command."""
    from ragworth.calls.budget import JobLimits

    left = JobLimits(calling.max_calls, calling.max_tokens, calling.max_cost).less(work.tally)
    return replace(calling, max_calls=left.calls, max_tokens=left.tokens, max_cost=left.cost)


def _grade_answers(
    comparison: Any, model: str, settings: tuple[str, ...], prompts: str | None, calling: CallOptions
) -> Any:
    """Grades of the answers from what each arm retrieves."""
    from ragworth.graders.grading import grade
    from ragworth.tasks.contract import run_task

    with closing(open_named_model(model, settings)) as asked, open_job(asked, calling, None) as work:
        writer, items = _answers_to_write(comparison, work, prompts)
        with report_job(work, calling):
            written = run_task(writer, items, work)
    graded = grade("deterministic", written, comparison.collection)
    print_notes((*written.notes, *graded.notes), calling.quiet)
    return graded.table


def _plan_answers(
    comparison: Any, model: str, settings: tuple[str, ...], prompts: str | None, calling: CallOptions
) -> None:
    """Print how many calls the answers take, as far as what is retrieved is known."""
    from ragworth.tasks.contract import plan_task

    with closing(open_named_model(model, settings)) as asked, open_job(asked, calling, None) as work:
        click.echo(f"answers: {plan_task(*_answers_to_write(comparison, work, prompts), work)}")


def _answers_to_write(comparison: Any, work: Any, prompts: str | None) -> tuple[Any, Any]:
    """The writer, and a question for each arm and turn with the first passages that the arm retrieves."""
    from ragworth.generation.answering import answer_items, build_writer

    writer = build_writer(work, comparison.collection, prompts, None, {})
    return writer, answer_items(writer, comparison.contexts.cut(READ), comparison.collection)
