"""``ragworth calls plan``, ``run-shard`` and ``merge``."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click

from ragworth.cli.model_options import model_options, open_named_model, parse_price
from ragworth.errors import InputError, JobStopped, RagworthError, StoreError, format_count


@click.command(
    "plan",
    short_help="Write the calls that a command would make as shards.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--shards", type=click.IntRange(1, 4096), required=True, help="Number of shards for each model.")
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="New folder for the plan.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def plan_shards(context: click.Context, shards: int, output: str, command: tuple[str, ...]) -> None:
    """Run COMMAND without asking a model, and write the calls that it would make to a folder of shards.

    Run each shard with run-shard, on any machine that can read the folder, and merge the answers. Then run the command
    itself: it finds all answers in the store. If a later step of the command depends on answers, plan again after
    merging, until nothing is left to plan.

    \b
    ragworth calls plan --shards 16 -o plan evaluate workspace
    ragworth calls run-shard plan 0
    ragworth calls merge plan workspace/calls.sqlite
    """
    from ragworth.calls.capture import capture_requests
    from ragworth.calls.shards.plan import ShardWriter

    root = context.find_root()
    asking = root.command.get_command(root, command[0]) if isinstance(root.command, click.Group) else None
    if asking is None or command[0] == "calls":
        raise InputError(f"the command is {command[0]!r}", expected="a command that asks a model, such as evaluate")
    writer = ShardWriter(output, shards)
    with capture_requests(writer):
        try:
            asking.main(list(command[1:]), prog_name=f"ragworth {command[0]}", standalone_mode=False)
        except RagworthError:
            if not writer.total:  # otherwise it stopped because it lacks answers
                raise
    if not writer.total:
        click.echo("There is nothing to plan: the command has all answers.")
        return
    made = writer.finish()
    models = ", ".join(sorted({made.card(shard).name for shard in made.shards}))
    click.echo(
        f"{format_count(made.calls, 'call')} to {models} in {format_count(len(made.shards), 'shard')}: {output}\n"
        f"Run each: ragworth calls run-shard {output} NUMBER, for 0 to {len(made.shards) - 1}"
    )


@click.command("run-shard", short_help="Make the calls of one shard.")
@click.argument("plan", type=click.Path(file_okay=False))
@click.argument("number", type=click.IntRange(0))
@model_options
@click.option("--max-calls", type=click.IntRange(0), help="Stop after this many calls.")
@click.option("--max-tokens", type=click.IntRange(0), help="Stop before using more than this many tokens.")
@click.option("--max-cost", type=click.FloatRange(0), help="Stop before spending more than this; needs --price.")
@click.option("--price", metavar="IN/OUT", help="The endpoint's price per million input and output tokens.")
@click.option("--quiet", is_flag=True, help="Don't show progress.")
def run_shard(
    plan: str,
    number: int,
    model: str,
    settings: tuple[str, ...],
    max_calls: int | None,
    max_tokens: int | None,
    max_cost: float | None,
    price: str | None,
    quiet: bool,
) -> None:
    """Make all calls of a shard that have no answer yet. After an interruption, the same command resumes.

    Answers are written every 1,500 calls and at the end; a kill loses at most those and the calls in flight. The model
    must be the one of the plan: the same weights, quantisation and endpoint.

    \b
    ragworth calls run-shard plan $SLURM_ARRAY_TASK_ID -M hf:models/llama -O device=cuda
    """
    from ragworth.calls.budget import JobLimits
    from ragworth.calls.progress import Progress
    from ragworth.calls.shards import run
    from ragworth.calls.shards.plan import ShardPlan

    found = ShardPlan.read(plan)
    total = found.shard(number).calls
    watcher = None if quiet else Progress(total)
    with closing(open_named_model(model, settings)) as asked:
        limits = JobLimits(max_calls, max_tokens, max_cost)
        done = run.run_shard(found, number, asked, limits=limits, price=parse_price(price), watcher=watcher)
    if watcher is not None:
        watcher.done(done.tally)
    answered = done.done + done.tally.done
    failed = f", {done.tally.failed:,} failed" if done.tally.failed else ""
    click.echo(f"shard {number}: {answered:,} of {total:,} calls have an answer, {done.done:,} had one before{failed}")
    if answered < total:
        raise JobStopped(f"{format_count(total - answered, 'call')} left\n  to do: run the same again")


@click.command("merge", short_help="Check the answers of all shards and add them to a store.")
@click.argument("plan", type=click.Path(file_okay=False))
@click.argument("store", type=click.Path(dir_okay=False))
@click.option("--no-prompts", is_flag=True, help="Don't store the prompts; they can't be shown or verified then.")
def merge(plan: str, store: str, no_prompts: bool) -> None:
    """Add the answers of a plan's shards to a store, as files next to it.

    Every answer is checked: it must be unchanged, planned, and from the planned model. If a call has several answers,
    the first is kept. You can merge again when there are more answers.
    """
    from ragworth.calls.shards.merge import merge_shards
    from ragworth.calls.shards.plan import ShardPlan

    merged = list(merge_shards(ShardPlan.read(plan), store, prompts=not no_prompts))
    calls, answers = sum(one.shard.calls for one in merged), sum(one.answers for one in merged)
    click.echo(f"{answers:,} of {format_count(calls, 'call')} have an answer in {store}")
    for noun, text, number in _counts(merged):
        if number:
            click.echo(f"note: {format_count(number, noun)} {text}", err=True)
    rejected = [problem for one in merged for problem in one.rejected]
    if rejected:
        raise StoreError(
            f"{format_count(len(rejected), 'answer or file', 'answers or files')} left out",
            file=plan,
            more=tuple(rejected[:5]),
            remedy="run their shards again, then merge again",
        )
    if incomplete := [str(number) for number, one in enumerate(merged) if one.missing]:
        more = f" and {len(incomplete) - 20:,} more" if len(incomplete) > 20 else ""
        raise JobStopped(
            f"{format_count(calls - answers, 'call')} without an answer in "
            f"{'shard' if len(incomplete) == 1 else 'shards'} {', '.join(incomplete[:20])}{more}\n"
            f"  to do: run {'it' if len(incomplete) == 1 else 'these shards'} again, then merge again"
        )


def _counts(merged: list[Any]) -> list[tuple[str, str, int]]:
    return [
        ("answer", "came twice with the same value", sum(one.repeated for one in merged)),
        ("answer", "came twice with different values; the first was kept", sum(one.conflicts for one in merged)),
        ("call", "failed", sum(sum(one.failed.values()) for one in merged)),
    ]
