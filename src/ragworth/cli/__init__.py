"""The command line: parse, call, print. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from ragworth import __version__
from ragworth.cli.process import is_interrupt, resource_error, silence
from ragworth.core.errors import SURFACE, InputError, RagworthError
from ragworth.core.interrupts import EXIT_CODE

COMMANDS = {
    "init": "ragworth.cli.init:command",
    "build": "ragworth.cli.build:command",
    "check": "ragworth.cli.check:command",
    "evaluate": "ragworth.cli.evaluate:command",
    "report": "ragworth.cli.report:command",
    "study": "ragworth.cli.study:command",
    "train": "ragworth.cli.train:command",
    "rewrite": "ragworth.cli.rewrite:command",
    "score": "ragworth.cli.score:command",
    "compare": "ragworth.cli.compare:command",
    "estimate": "ragworth.cli.estimate:command",
    "label": "ragworth.cli.label:command",
    "chunk": "ragworth.cli.chunk:command",
    "export": "ragworth.cli.export:command",
    "required": "ragworth.cli.required:command",
    "metrics": "ragworth.cli.metrics:command",
    "annotate": "ragworth.cli.annotate:command",
    "answer": "ragworth.cli.answer:command",
    "grade": "ragworth.cli.grade:command",
    "utility": "ragworth.cli.utility:command",
    "tune": "ragworth.cli.tune:command",
    "models": "ragworth.cli.models:command",
    "prompt": "ragworth.cli.prompt:command",
    "ask": "ragworth.cli.ask:command",
    "calls": "ragworth.cli.calls:command",
}


ONE_FILE = frozenset(("collection", "queries", "passages", "answers", "subquestions", "ratings", "qrels", "judgments"))
"""Options that take one file each, where they can't be repeated."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed, and whose errors are one screen of words."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        self.commands.setdefault(cmd_name, command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        surface = SURFACE.set("command")
        try:
            return super().invoke(ctx)
        except RagworthError as error:
            from ragworth.report.render import printable

            click.echo(f"ragworth: {printable(self._told(ctx, error))}", err=True)
            if getattr(error, "hurried", False):
                # Somebody is in a hurry: threads that still compute are not waited for.
                sys.stdout.flush()
                os._exit(error.exit_code)
            ctx.exit(error.exit_code)
        except BrokenPipeError:
            # The reader of our output (head, less) has seen enough.
            silence(sys.stdout.fileno())
            ctx.exit(0)
        except (KeyboardInterrupt, click.Abort) as error:
            if not is_interrupt(error):
                raise
            click.echo("\nragworth: interrupted", err=True)
            ctx.exit(EXIT_CODE)
        except click.exceptions.Exit:
            raise
        except BaseException as error:
            lack = resource_error(error, self._command(ctx))
            if lack is None:
                raise
            error.__traceback__ = None  # and with it the tables that its frames hold
            click.echo(f"ragworth: {lack}", err=True)
            ctx.exit(lack.exit_code)
        finally:
            SURFACE.reset(surface)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            name, command, rest = super().resolve_command(ctx, args)
        except click.UsageError as error:
            from ragworth.cli.suggestions import suggest_command

            raise suggest_command(error, self, ctx, args[0]) from None
        if command is not None:
            _check_repeated(command, ctx, rest)
        return name, command, rest

    def _command(self, ctx: click.Context) -> click.Command | None:
        """The command that runs, or the group that it is in."""
        return self.commands.get(ctx.invoked_subcommand or "")

    def _told(self, ctx: click.Context, error: RagworthError) -> str:
        """An error in words, without advice to take an option that the command does not have."""
        command = self._command(ctx)
        if command is None or not isinstance(error, InputError) or not (option := error.hint.option):
            return str(error)
        return str(error) if _has_option(command, ctx, option) else error.message(error.hint.workspace)


def _check_repeated(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Refuse a second file for an option that takes one: the first would be ignored silently."""
    if isinstance(command, click.Group):
        inner = command.get_command(ctx, args[0]) if args and not args[0].startswith("-") else None
        return _check_repeated(inner, ctx, args[1:]) if inner is not None else None
    given = [text.partition("=")[0] for text in args[: args.index("--") if "--" in args else None]]
    for option in command.params:
        if isinstance(option, click.Option) and option.name in ONE_FILE and not option.multiple:
            names = [name for name in given if name in option.opts]
            if len(names) > 1:
                raise click.UsageError(f"{names[0]} is given {len(names)} times, but takes one value", ctx)
    return None


def _has_option(command: click.Command, ctx: click.Context, name: str) -> bool:
    """Whether a command, or one of its group, has an option."""
    if any(each.name == name for each in command.params):
        return True
    if not isinstance(command, click.Group):
        return False
    inside = (command.get_command(ctx, name) for name in command.list_commands(ctx))
    return any(each is not None and _has_option(each, ctx, name) for each in inside)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="ragworth")
@click.option("--safe-csv", is_flag=True, help="Write CSV and TSV that spreadsheets don't take for formulas.")
@click.option(
    "--executor",
    envvar="RAGWORTH_EXECUTOR",
    metavar="ray[:ADDRESS][,actors=N,…]",
    help="Run calls on a Ray cluster instead of in this process.",
)
@click.pass_context
def main(ctx: click.Context, safe_csv: bool, executor: str | None) -> None:
    """What retrieved passages are worth to the language model that reads them.

    Runs are TREC files, Parquet, CSV or JSONL; judgments are TREC qrels, BEIR folders or tables. A path may
    carry its format in front (exam:FILE, beir:FOLDER, ir_datasets:ID) and a run its name (bm25=FILE).
    """
    if safe_csv:
        from ragworth.formats.csv import SAFE_CSV_VARIABLE

        before = os.environ.get(SAFE_CSV_VARIABLE, "")
        os.environ[SAFE_CSV_VARIABLE] = "1"
        ctx.call_on_close(lambda: os.environ.__setitem__(SAFE_CSV_VARIABLE, before))
    if executor:
        from ragworth.calls.executors import use_executor
        from ragworth.calls.ray import RayExecutor, parse_ray_settings

        ctx.with_resource(use_executor(RayExecutor(parse_ray_settings(executor))))
