"""Options of commands that take a workspace, a folder or files, and of what a workspace may not decide alone."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from ragworth.cli.model_options import parse_model_options

F = TypeVar("F", bound=Callable[..., Any])


class TrustOptions(NamedTuple):
    """The user's permissions: where to write (`config.OutputPaths`), and which servers the workspace may name."""

    paths: Any
    allow_servers: tuple[str, ...]


def trust_options(function: F) -> F:
    """Where to write, and which servers the workspace may name."""
    options = [
        click.option("--results", type=click.Path(file_okay=False), help="Results folder."),
        click.option("--store", type=click.Path(dir_okay=False), help="Call store file."),
        click.option("--cache", type=click.Path(file_okay=False), help="Cache folder."),
        click.option(
            "--allow-server",
            "allow_servers",
            multiple=True,
            metavar="HOST",
            help="Let the ragworth.toml name this server, which gets texts and your API key; remembered for this file.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def take_trust_options(chosen: dict[str, Any]) -> TrustOptions:
    """What these options say; they are taken out of ``chosen``."""
    from ragworth.workspace.config import OutputPaths

    places = OutputPaths(*(chosen.pop(name) for name in ("results", "store", "cache")))
    return TrustOptions(places, tuple(chosen.pop("allow_servers")))


def input_options(function: F) -> F:
    """What to evaluate, and how much of it."""
    options = [
        click.argument("inputs", nargs=-1, type=click.Path(), metavar="[WORKSPACE | FILE...]"),
        click.option(
            "--map",
            "columns",
            multiple=True,
            metavar="FIELD=COLUMN",
            help="What a log calls a field: question, answer, passages, accepted, system, …; repeat for more.",
        ),
        click.option(
            "-M",
            "--model",
            help="Model to ask instead of the workspace's, or the embedded one (see ragworth models); 'none' asks no "
            "model, and compares the answers and grades in the data.",
        ),
        click.option(
            "-O", "--option", "settings", multiple=True, metavar="NAME=VALUE", help="Set an option of the model."
        ),
        click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N queries."),
        click.option(
            "--sample", type=click.IntRange(1), metavar="N", help="Only N queries, drawn at random with the seed."
        ),
        click.option("--all", "every", is_flag=True, help="All queries, even if the workspace has a limit."),
        click.option(
            "--answer-again", is_flag=True, help="Let the model answer, and ignore answers and grades in logs."
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def check_amount_options(limit: int | None, sample: int | None, every: bool) -> None:
    """Refuse options that contradict each other."""
    if every and (limit is not None or sample is not None):
        raise click.UsageError("--limit and --sample take some queries, --all takes all of them; give one of the two")


def parse_mapping(pairs: Sequence[str]) -> dict[str, str]:
    """Split FIELD=COLUMN."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, column = pair.partition("=")
        if not (name and equals and column):
            raise click.UsageError(f"--map {pair!r} isn't FIELD=COLUMN, such as question=Query")
        if found.setdefault(name, column) != column:
            raise click.UsageError(f"--map names two columns for {name}: {found[name]} and {column}")
    return found


class InputOptions(NamedTuple):
    """What a command evaluates: files, or a workspace, and with which model."""

    inputs: Sequence[str]
    columns: Sequence[str]
    model: str | None
    settings: Sequence[str]
    answer_again: bool


def take_input_options(options: dict[str, Any]) -> InputOptions:
    """Take the values of these options out of all values of a command."""
    return InputOptions(**{name: options.pop(name) for name in InputOptions._fields})


def open_inputs(options: InputOptions, paths: Any, *, quiet: bool) -> tuple[Any, Any]:
    """The workspace to evaluate, and how files without a ``ragworth.toml`` were understood (None with one).

    What was found in files without a ``ragworth.toml`` goes to standard error.
    """
    from ragworth.evaluation.model_pool import NONE, with_model
    from ragworth.workspace.plan import JUDGED_NOTE
    from ragworth.workspace.read import answer_anew, read

    found = read(options.inputs or ".", parse_mapping(options.columns), paths)
    space = answer_anew(found.workspace) if options.answer_again else found.workspace
    if options.model is not None or options.settings:
        space = with_model(space, _choose_model(options, space.model))
    if found.plan is not None and not quiet:
        if space.model.use == NONE:
            found.plan.assumed[:] = [words for words in found.plan.assumed if words != JUDGED_NOTE]
        print_plan(found.plan)
        click.echo(_printable(describe_asking(space)), err=True)
    return space, found.plan


def _choose_model(options: InputOptions, known: Any) -> Any:
    """The model of the options; without a name, the known one with other options."""
    from dataclasses import replace

    from ragworth.evaluation.model_pool import resolve_model_path
    from ragworth.workspace.config import ModelSpec

    settings = parse_model_options(options.settings)
    if options.model is None:
        return replace(known, options={**known.options, **settings})
    return ModelSpec(resolve_model_path(options.model, Path.cwd()), settings, chosen=True)


def describe_asking(space: Any) -> str:
    """In one line, what is asked of which model."""
    from ragworth.judging import ANNOTATORS

    asked: dict[str, list[str]] = {}
    for kind, task in space.judgments.items():
        if kind not in ANNOTATORS or ANNOTATORS.get(kind).asks_model:
            asked.setdefault((task.model or space.model).use, []).append(f"{kind} of passages")
    if space.answers is not None and space.answers.file is None:
        asked.setdefault((space.answers.task.model or space.model).use, []).append("answers")
    parts = [f"{model} for {', '.join(what)}" for model, what in asked.items()]
    return f"asks {'; '.join(parts)}" if parts else "asks no model"


def print_plan(plan: Any, *, err: bool = True) -> None:
    """Say what was found, assumed and left out."""
    width = max((len(what) for what, _ in plan.used), default=0)
    for what, name in plan.used:
        click.echo(_printable(f"  {what:<{width}}  {name}"), err=err)
    for title, lines in (("Assumed", plan.assumed), ("Not used", plan.unused), ("Missing", plan.lacking)):
        if lines:
            click.echo(f"\n{title}:", err=err)
        for line in lines:
            click.echo(_printable(f"  {line}"), err=err)


def quoted_inputs(options: InputOptions) -> str:
    """The arguments of a command, to be pasted after its name."""
    named = [each for each in options.inputs if each != "."]
    named += [part for pair in options.columns for part in ("--map", pair)]
    named += ["--model", options.model] if options.model is not None else []
    named += [part for pair in options.settings for part in ("-O", pair)]
    return "".join(f" {shlex.quote(each)}" for each in named)


def _printable(text: str) -> str:
    from ragworth.report.render import printable

    return printable(text)
