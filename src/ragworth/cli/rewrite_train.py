"""``ragworth rewrite train``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ragworth.cli.output import print_notes
from ragworth.cli.rewrite_tables import conversation_options, prompts_option, take_conversations
from ragworth.cli.task_output import check_parent_folder


def parse_rates(ctx: click.Context, option: click.Parameter, text: str) -> tuple[float, ...]:
    """Learning rates with commas between them."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is no list of numbers, such as 5e-7,5e-6") from None


@click.command("train", short_help="Train an adapter: SFT on the best rewrites, then DPO on the pairs.")
@conversation_options
@click.option("--sft", metavar="FILE", help="Rewrites (query, text) to imitate first.")
@click.option("--pairs", metavar="FILE", help="Pairs (query, chosen, rejected) for DPO.")
@click.option("--base", required=True, help="Model to train: hf:FOLDER, or embedded:base.")
@click.option(
    "--from", "start", type=click.Path(file_okay=False), help="Adapter to start from, such as an SFT warm-up."
)
@click.option(
    "--sft-rates", default="2e-5", show_default=True, callback=parse_rates, help="Learning rates of SFT to try."
)
@click.option(
    "--dpo-rates",
    default="5e-7,5e-6,5e-5",
    show_default=True,
    callback=parse_rates,
    help="Learning rates of DPO to try.",
)
@click.option("--epochs", type=int, default=3, show_default=True, help="Maximum passes over the data.")
@click.option("--beta", type=float, default=0.1, show_default=True, help="How closely DPO stays to its start.")
@click.option("--rank", type=int, default=16, show_default=True, help="Rank of the adapter.")
@click.option(
    "--lora-alpha", "alpha", type=int, default=32, show_default=True, help="Scale of the adapter, times rank."
)
@click.option("--batch", type=int, default=16, show_default=True, help="Examples of a step.")
@click.option("--micro-batch", type=int, default=8, show_default=True, help="Examples read at a time.")
@click.option(
    "--max-length", "max_tokens", type=int, default=2048, show_default=True, help="Maximum tokens of an example."
)
@click.option(
    "--history", type=click.IntRange(0), default=6000, show_default=True, help="Maximum characters of history."
)
@click.option(
    "--held-out",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.1,
    show_default=True,
    help="Share of the conversations to choose learning rate and epoch by.",
)
@click.option("--save-steps", type=int, default=50, show_default=True, help="Steps between two checkpoints.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of everything random.")
@prompts_option
@click.option("--dry-run", is_flag=True, help="Check everything and print the plan, without training.")
@click.option("--quiet", is_flag=True, help="Don't show progress.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(file_okay=False),
    callback=check_parent_folder,
    help="Folder of the adapter; nothing is overwritten.",
)
def train(
    sft: str | None,
    pairs: str | None,
    base: str,
    start: str | None,
    prompts: str | None,
    dry_run: bool,
    quiet: bool,
    output: str,
    **more: Any,
) -> None:
    """Train a LoRA adapter that rewrites turns; rewritten("FOLDER") loads it.

    A training that was killed goes on from its last checkpoint when the same command runs again. Learning rates and
    epochs are chosen by the loss on conversations held out of training.
    """
    from ragworth.rewriting.tables import PREFERENCES, REWRITES, read_rewriting_table
    from ragworth.rewriting.training.run import TrainingRun
    from ragworth.rewriting.training.settings import TrainingSettings

    found, _ = take_conversations(more)
    run = TrainingRun(
        found.collection,
        Path(output),
        base,
        read_rewriting_table(sft, REWRITES) if sft else None,
        read_rewriting_table(pairs, PREFERENCES) if pairs else None,
        Path(start) if start else None,
        prompts=prompts,
        settings=TrainingSettings(**more),
        told=None if quiet else lambda text: click.echo(text, err=True),
    )
    print_notes(found.notes, quiet)
    plan = run.plan()
    if dry_run:
        click.echo(str(plan))
        return
    if not quiet:
        click.echo(str(plan), err=True)
    done = run.train()
    for stage in done.about["chosen"]:
        loss = "" if stage["loss"] is None else f", held-out loss {stage['loss']:.4f}"
        click.echo(f"{stage['stage']}: learning rate {stage['rate']:g}, epoch {stage['epoch']:g}{loss}")
    for stage in ("sft", "dpo"):
        for reason, number in done.about["data"].get(stage, {}).get("left out", {}).items():
            click.echo(f"{stage}: {number:,} examples left out: {reason}")
    click.echo(f"{'adapter' if done.trained else 'the adapter was there already'}: {output}")
