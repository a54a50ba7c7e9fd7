"""``ragworth check``."""

from __future__ import annotations

from typing import Any

import click


@click.command("check", short_help="Validate a workspace without asking a model.")
@click.argument("workspace", default=".", type=click.Path())
@click.option("--limit", type=click.IntRange(1), help="Only the first so many queries.")
@click.option("--quiet", is_flag=True, help="Say nothing where all is well.")
def command(workspace: str, limit: int | None, quiet: bool) -> None:
    """Read everything that a ragworth.toml names and report what is wrong, all of it at once.

    Files, ids, pipelines, settings, metrics and models are checked; nothing is asked, no weights are loaded, and
    nothing is written but the index of a retriever. Exit code 2 where something is wrong.
    """
    from ragworth import config
    from ragworth.evaluation.planning import planned
    from ragworth.report.render import printable

    space = config.read(workspace)
    stages = planned(space, limit=limit)
    if quiet:
        return
    for line in described(space, limit):
        click.echo(printable(line))
    for stage in stages:
        click.echo(f"{stage.stage}: {stage.words}")
    click.echo("All is well. Next: ragworth evaluate")


def described(space: Any, limit: int | None) -> list[str]:
    """What there is, in words."""
    from ragworth.errors import counted, listed
    from ragworth.evaluation.material import load

    material = load(space, limit)
    texts = material.collection
    parts = [counted(len(material.queries), "query", "queries"), counted(texts.passages.height, "passage")]
    parts += [counted(texts.answers.height, "accepted answer")] if texts.answers.height else []
    parts += [counted(texts.relevance.frame.height, "relevance label")] if texts.relevance is not None else []
    parts += [counted(texts.subquestions.height, "sub-question")] if texts.subquestions.height else []
    parts += [counted(texts.ratings.frame.height, "rating")] if texts.ratings is not None else []
    lines = [f"collection: {', '.join(parts)}", f"systems: {listed(list(material.systems), 30)}"]
    return [*lines, *(f"note: {note}" for note in material.notes)]
