"""``ragworth init``."""

from __future__ import annotations

import shlex
from typing import Any

import click

NAMES = ("demo", "runs", "beir", "rag-log", "minimal")
"""Names of templates, here as well, so that help imports nothing heavy."""


@click.command("init", short_help="Write a first ragworth.toml.")
@click.argument("folder", default=".")
@click.option("-t", "--template", type=click.Choice(NAMES), help="Write this one, without looking at what is there.")
@click.option("--force", is_flag=True, help="Overwrite a ragworth.toml that is there already.")
@click.option("--quiet", is_flag=True, help="Say nothing about what was found.")
def command(folder: str, template: str | None, force: bool, quiet: bool) -> None:
    """Write a commented ragworth.toml into FOLDER from the files that lie there, up to two folders down.

    It knows TREC runs, qrels and sub-topic qrels, BEIR folders, JSON lines as RAG programs log them, texts, and tables
    of judgments, ratings, answers and outcomes. What it did not understand or had to assume is said. Where there are
    texts and no run, it sets up BM25 and some systems to hold it against. Of long files only the beginning is read.

    \b
    ragworth init
    ragworth init my-evaluation
    ragworth init my-evaluation --template rag-log
    """
    from ragworth.init import init_workspace

    started = init_workspace(folder, template, force=force)
    click.echo(_display_text(f"{started.file} is written."))
    if not quiet:
        _report(started.plan, template)
    where = "" if folder == "." else f" {shlex.quote(folder)}"
    if template is None and not started.plan.used:
        lines = ["Put files there, then:", f"  ragworth init{where} --force"]
    else:
        lines = ["Look through it, then:", f"  ragworth check{where}", f"  ragworth evaluate{where}"]
    click.echo(_display_text("\n".join(["", *lines])))


def _report(plan: Any, template: str | None) -> None:
    """What was found, assumed and left out."""
    if template is not None:
        click.echo(f"It is the template {template}: put the names of your files into it.")
        return
    if not plan.used:
        click.echo(f"Nothing to evaluate was found, so nothing is set. Templates: --template {', '.join(NAMES)}.")
    width = max((len(what) for what, _ in plan.used), default=0)
    for what, name in plan.used:
        click.echo(_display_text(f"  {what:<{width}}  {name}"))
    for title, lines in (("Assumed", plan.assumed), ("Not used", plan.unused), ("Missing", plan.lacking)):
        if lines:
            click.echo(f"\n{title}:")
        for line in lines:
            click.echo(_display_text(f"  {line}"))


def _display_text(text: str) -> str:
    from ragworth.report.render import printable

    return printable(text)
