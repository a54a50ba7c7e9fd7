"""Suggestions for misspelt commands."""

from __future__ import annotations

import difflib
import os
import shlex

import click


def suggest_command(error: click.UsageError, group: click.Group, ctx: click.Context, wrong: str) -> click.UsageError:
    """Add the closest commands to the error of an unknown one, or the command that reads this file or folder."""
    if "Did you mean" in error.format_message():  # recent versions of click suggest those that are imported
        return error
    suggestion = ""
    if near := difflib.get_close_matches(wrong, group.list_commands(ctx), n=2):
        suggestion = f" Did you mean {' or '.join(map(repr, near))}?"
    elif ctx.parent is None and os.path.exists(wrong):  # noqa: PTH110 (pathlib's raises on an invalid name)
        suggestion = f" To evaluate a file or folder, run: ragworth evaluate {shlex.quote(wrong)}"
    return click.UsageError(f"{error.message}{suggestion}", error.ctx)
