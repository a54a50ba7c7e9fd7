"""``ragworth init``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

NAMES = ("demo", "runs", "rag-log")
"""Names of templates, here as well, so that help imports nothing heavy."""


@click.command("init", short_help="Write a first ragworth.toml.")
@click.argument("folder", default=".")
@click.option("-t", "--template", type=click.Choice(NAMES), help="Write this template, without inspecting the folder.")
@click.option("-M", "--model", default="", help="Model to ask, whose server is then allowed for this file.")
@click.option(
    "--map",
    "columns",
    multiple=True,
    metavar="FIELD=COLUMN",
    help="What a log calls a field: question, answer, passages, accepted, system, …; written to [columns].",
)
@click.option("--force", is_flag=True, help="Overwrite an existing ragworth.toml.")
@click.option("--quiet", is_flag=True, help="Don't print what was found.")
def command(folder: str, template: str | None, model: str, columns: tuple[str, ...], force: bool, quiet: bool) -> None:
    """Inspect FOLDER, up to two levels deep, and write a commented ragworth.toml for its files.

    It recognises logs of RAG tools, TREC runs, qrels and sub-topic qrels, BEIR folders, texts, and tables of judgments,
    ratings, answers and outcomes. It says what it assumed, and what it can't use and why. If there are texts and no
    run or log, it sets up BM25 and some systems to compare with. ragworth evaluate understands the same files without
    a ragworth.toml.

    \b
    ragworth init
    ragworth init my-evaluation
    ragworth init my-evaluation --map question=Query
    ragworth init my-evaluation --model openai:NAME@https://llm.example.org
    ragworth init my-evaluation --template rag-log
    """
    from ragworth.cli.input_options import parse_mapping
    from ragworth.workspace.init import init_workspace

    mapping = parse_mapping(columns)
    started = init_workspace(folder, template, model=model, columns=mapping, kinds=judging_kinds(), force=force)
    _allow_server(started.file, model)
    click.echo(_display_text(f"Wrote {started.file}."))
    if not quiet:
        _report(started.plan, template)
    where = "" if folder == "." else f" {shlex.quote(folder)}"
    if template is None and not started.plan.used:
        lines = ["Put your files into the folder, then run:", f"  ragworth init{where} --force"]
    else:
        lines = ["Review it, then run:", f"  ragworth check{where}", f"  ragworth evaluate{where}"]
    click.echo(_display_text("\n".join(["", *lines])))


def judging_kinds() -> dict[str, dict[str, str]]:
    """The titles of kinds of judgment and of graders, by table."""
    from ragworth.judging import ANNOTATORS, GRADERS

    registries: dict[str, Any] = {"judgments": ANNOTATORS, "grades": GRADERS}
    return {table: {name: each.get(name).title for name in each.names()} for table, each in registries.items()}


def _allow_server(file: Path, model: str) -> None:
    """Remember that the file may name the server of a model that the user gave."""
    from ragworth.evaluation.trust_checks import ServerConsent, remote_hosts
    from ragworth.workspace import config

    if hosts := remote_hosts(asked := config.ModelSpec(model)):
        consent = ServerConsent(config.read(file), hosts)
        consent.check(asked)
        consent.remember()


def _report(plan: Any, template: str | None) -> None:
    """Say what was found, assumed and left out."""
    from ragworth.cli.input_options import print_plan

    if template is not None:
        click.echo(f"This is the template {template}: replace the file names with your own.")
        return
    if not plan.used:
        click.echo(f"Nothing to evaluate was found, so nothing is set. Templates: --template {', '.join(NAMES)}.")
    print_plan(plan, err=False)


def _display_text(text: str) -> str:
    from ragworth.report.render import printable

    return printable(text)
