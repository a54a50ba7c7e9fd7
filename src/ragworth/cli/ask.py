"""``ragworth ask``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from statistics import median
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

LOW_MASS = 0.05
"""Probability of all labels together below which something is wrong with prompt, labels or model."""


@click.command("ask", short_help="Run a prompt on every row of a table.")
@click.argument("prompt")
@click.argument("rows")
@model_options
@click.option("--choose", "labels", metavar="A,B,…", help="Return the probabilities of these labels.")
@click.option("--label", "exactly", multiple=True, help="One such label, which may contain commas; repeat for more.")
@click.option(
    "--estimator",
    type=click.Choice(["first-token", "sequence"]),
    default="first-token",
    show_default=True,
    help="Take a label's probability from its first token, or from all of them.",
)
@click.option("--score", metavar="COLUMN", default="", help="Return the log-probability of the text in this column.")
@click.option(
    "--length", type=click.IntRange(1), default=256, show_default=True, help="Maximum number of tokens to generate."
)
@click.option(
    "--temperature", type=click.FloatRange(0), default=0.0, show_default=True, help="Sampling temperature; 0 is greedy."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Sampling seed.")
@click.option("--n", type=click.IntRange(1), default=1, show_default=True, help="Samples per row.")
@click.option(
    "--prompts", type=click.Path(file_okay=False), help="Folder with your own prompts; they replace the built-in ones."
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="Write JSONL to this file instead of the terminal."
)
@call_options
def command(
    prompt: str,
    rows: str,
    model: str,
    settings: tuple[str, ...],
    labels: str | None,
    exactly: tuple[str, ...],
    prompts: str | None,
    output: str | None,
    **given: Any,
) -> None:
    """Fill a prompt from each row of a table (JSONL, CSV, TSV, Parquet), ask the model, and write JSONL.

    Each distinct request is sent once and stored at once; run the same command again to resume.

    \b
    ragworth ask relevance pairs.jsonl --choose YES,NO
    ragworth ask my-prompt.txt questions.csv --model openai:NAME@http://localhost:8000 -o answers.jsonl
    ragworth ask answer contexts.jsonl --model hf:OWNER/NAME -O device=cuda --dry-run
    """
    from ragworth.formats.files import create_file
    from ragworth.judging import ask as prompt_table
    from ragworth.llm.prompts import load_prompt

    calling = CallOptions(**{name: given.pop(name) for name in CallOptions.__dataclass_fields__})
    chosen = (*(label.strip() for label in labels.split(",")), *exactly) if labels is not None else exactly
    way = prompt_table.AskOptions(labels=chosen, max_tokens=given.pop("length"), **given)
    asked = open_named_model(model, settings)
    card = getattr(asked, "partial", None) or asked.card  # without asking an endpoint
    template = load_prompt(prompt, prompts, card.prompts)
    table = prompt_table.read_rows(rows)
    requests = prompt_table.build_requests(template, table, way, rows)
    with closing(asked), open_job(asked, calling) as work:
        if calling.dry_run:
            click.echo(str(work.plan(requests)))
            return

        print_capabilities(work.card, calling)
        masses: list[float] = []

        def lines(plain: bool) -> Iterator[bytes]:
            for row, request, outcome in zip(table, requests, work.run(requests), strict=True):
                found = prompt_table.outcome_row(row, request, outcome)
                masses.extend([found["mass"]] if "mass" in found else [])
                yield prompt_table.to_jsonl(found, plain=plain)

        with report_job(work, calling):
            if output:
                with create_file(output) as file:
                    file.writelines(lines(plain=False))
            else:
                for line in lines(plain=True):
                    click.echo(line, nl=False)
    if masses and median(masses) < LOW_MASS and not calling.quiet:
        click.echo(
            f"note: the labels hold little of the probability together (median {median(masses):.2g}): "
            "does the prompt ask for them?",
            err=True,
        )
