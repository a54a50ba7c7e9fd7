"""``ragworth build``: a group whose commands are imported when they are needed."""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "questions": "ragworth.cli.build_questions:command",
    "check": "ragworth.cli.build_check:command",
    "crux": "ragworth.cli.build_crux:crux_command",
    "stats": "ragworth.cli.build_stats:stats_command",
    "pool": "ragworth.cli.build_pool:pool_command",
    "nuggets": "ragworth.cli.build_nuggets:nuggets_command",
    "assign": "ragworth.cli.build_nuggets:assign_command",
}


class BuildGroup(click.Group):
    """Commands by name, imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from ragworth.cli.suggestions import suggest_command

            raise suggest_command(error, self, ctx, args[0]) from None


@click.group("build", cls=BuildGroup, short_help="Build or check a test collection.")
def command() -> None:
    """Build a test collection from documents, or check any collection.

    \b
    ragworth build questions docs/ -o collection
    ragworth build check collection
    """
