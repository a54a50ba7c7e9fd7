"""``ragworth ask``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import click

from ragworth.cli.calling import Calling, calling_options, job, model_options, opened, told


@click.command("ask", short_help="Ask a model a prompt for every row of a table.")
@click.argument("prompt")
@click.argument("rows")
@model_options
@click.option("--choose", "labels", metavar="A,B,…", help="Probabilities of these labels as the next words.")
@click.option(
    "--estimator",
    type=click.Choice(["first-token", "sequence"]),
    default="first-token",
    show_default=True,
    help="Probability of a label: by its first token, or by all of them.",
)
@click.option("--score", metavar="COLUMN", default="", help="Log-probability of the text in this column.")
@click.option("--length", type=click.IntRange(1), default=256, show_default=True, help="Most tokens of a text.")
@click.option("--temperature", type=click.FloatRange(0), default=0.0, show_default=True, help="0 is greedy.")
@click.option("--top-p", type=click.FloatRange(0, 1, min_open=True), default=1.0, show_default=True, help="Nucleus.")
@click.option("--stop", multiple=True, help="A text that ends the output; repeat for more.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of sampling.")
@click.option("--n", type=click.IntRange(1), default=1, show_default=True, help="Samples for each row.")
@click.option("--prompts", type=click.Path(file_okay=False), help="Folder of own prompts that replace ours.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write JSONL to this file, not the terminal.")
@calling_options
def command(
    prompt: str,
    rows: str,
    model: str,
    settings: tuple[str, ...],
    labels: str | None,
    prompts: str | None,
    output: str | None,
    **given: Any,
) -> None:
    """Fill a prompt's slots from each row of a table (JSONL, CSV, TSV, Parquet), ask the model, write JSONL.

    Each distinct request is asked once and kept at once; the same command goes on where it was left.

    \b
    ragworth ask abstention pairs.jsonl --choose NO-RESPONSE,YES
    ragworth ask my-prompt.txt questions.csv --model openai:NAME@http://localhost:8000 -o answers.jsonl
    ragworth ask answer contexts.jsonl --model hf:OWNER/NAME -O device=cuda --dry-run
    """
    from ragworth import asking
    from ragworth.formats.files import created
    from ragworth.prompts import load

    calling = Calling(**{name: given.pop(name) for name in Calling.__dataclass_fields__})
    chosen = tuple(label.strip() for label in labels.split(",")) if labels else ()
    way = asking.Way(labels=chosen, max_tokens=given.pop("length"), **given)
    template = load(prompt, prompts)
    table = asking.read_rows(rows)
    requests = list(asking.requests(template, table, way))
    asked = opened(model, settings)
    with closing(asked), job(asked, calling, len(requests)) as work:
        if calling.dry_run:
            click.echo(str(work.plan(requests)))
            return

        def lines(plain: bool) -> Iterator[bytes]:
            for row, request, outcome in zip(table, requests, work.run(requests), strict=True):
                yield asking.written(asking.outcome_row(row, request, outcome), plain=plain)

        with told(work, calling):
            if output:
                with created(output) as file:
                    file.writelines(lines(plain=False))
            else:
                for line in lines(plain=True):
                    click.echo(line, nl=False)
