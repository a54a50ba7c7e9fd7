"""``ragworth check``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from ragworth.cli.input_options import (
    check_amount_options,
    input_options,
    open_inputs,
    quoted_inputs,
    take_input_options,
    take_trust_options,
    trust_options,
)


@click.command("check", short_help="Validate a workspace or files without asking a model.")
@input_options
@click.option("--quiet", is_flag=True, help="Print nothing if all is well.")
@trust_options
def command(limit: int | None, sample: int | None, every: bool, quiet: bool, **chosen: Any) -> None:
    """Read everything that a ragworth.toml names, or files as they are, and report everything that is wrong at once.

    Files, ids, pipelines, settings, metrics, models and paths are checked. No language model is asked or loaded, and
    nothing is written except the cache. Systems retrieve, because what they show is what a model would be asked about;
    encoders and cross-encoders of pipelines run on this machine. The results are cached, and ragworth evaluate
    continues from them. The exit code is 2 if something is wrong.
    """
    from ragworth.cli.output import WorkLine
    from ragworth.core.errors import format_count
    from ragworth.evaluation.plan import plan_evaluation
    from ragworth.report.render import printable

    check_amount_options(limit, sample, every)
    given = take_input_options(chosen)
    paths, allow_servers = take_trust_options(chosen)
    console = None if quiet else WorkLine()
    with interruptible():
        space, files = open_inputs(given, paths, quiet=quiet)
        found = plan_evaluation(
            space,
            limit=limit,
            sample=sample,
            every=every,
            console=console,
            allow_servers=allow_servers,
        )
    if quiet:
        return
    for line in [*describe_inputs(found.material), *(f"note: {note}" for note in found.notes)]:
        click.echo(printable(line))
    for stage in found.stages:
        click.echo(f"{stage.name}: {stage.words}")
    unused = len(files.unused) if files is not None else 0
    state = f"{format_count(unused, 'file')} not used (see above)" if unused else "All is well"
    click.echo(printable(f"{state}. Next: ragworth evaluate{quoted_inputs(given)}"))


def check_limit_options(limit: int | None, every: bool) -> None:
    """So many queries or all of them: both cannot be meant."""
    if limit is not None and every:
        raise click.UsageError("--limit takes some queries and --all takes all of them; give one of the two")


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C between the calls of models, where a job would have caught it, ends with what was done kept."""
    from ragworth.calls.job import JobInterrupted

    try:
        yield
    except KeyboardInterrupt as error:
        raise JobInterrupted("interrupted; what was done is kept: run the same again to go on") from error


def describe_inputs(material: Any) -> list[str]:
    """What there is, in words."""
    from ragworth.core.errors import format_count, format_list, quote_short

    texts = material.collection
    ratings = texts.ratings
    numbers = [
        (len(material.queries), "query", "queries"),
        (texts.turns.height, "turn", ""),
        (texts.turns["conversation"].n_unique() if texts.turns.height else 0, "conversation", ""),
        (texts.passages.height, "passage", ""),
        (texts.answers.height, "accepted answer", ""),
        *_label_counts(texts.relevance),
        (texts.subquestions.height, "sub-question", ""),
        (ratings.frame.height if ratings is not None else 0, "rating", ""),
        (material.answers.frame.height if material.answers is not None else 0, "given answer", ""),
        (len(material.outcomes) if material.outcomes is not None else 0, "given grade", ""),
    ]
    parts = [format_count(number, noun, plural) for number, noun, plural in numbers if number]
    systems = [name if name.isprintable() else quote_short(name) for name in material.written]
    lines = [f"collection: {', '.join(parts)}", f"systems: {format_list(systems, 30)}"]
    tables = [table for table in (material.answers, material.outcomes) if table is not None]
    notes = dict.fromkeys([*material.notes, *(note for table in tables for note in table.notes)])
    return [*lines, *(f"note: {note}" for note in notes)]


def _label_counts(labels: Any) -> list[tuple[int, str, str]]:
    """How many labels there are of relevance and of other aspects, and how many rows have no value."""
    if labels is None:
        return []
    known = labels.frame.drop_nulls("value")["aspect"].value_counts(sort=True).rows()
    counts = [(number, f"{aspect} label", "") for aspect, number in known]
    return [*counts, (labels.frame["value"].null_count(), "label without a value", "labels without a value")]
