"""``--check``: how far judgments and grades can be trusted, as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def check_options(function: F) -> F:
    """Whether to check."""
    return click.option("--check", is_flag=True, help="Say how far these values can be trusted.")(function)


def print_forecasts(parts: Sequence[tuple[str, Any]]) -> None:
    """What each part of the work would take; one line where there is only one."""
    for title, forecast in parts:
        click.echo(f"{title}: {forecast}" if len(parts) > 1 else str(forecast))


def print_check(found: Any, look: str) -> None:
    """Print checks; beside rows, on standard error."""
    from ragworth.report.render import render
    from ragworth.tasks.reliability import table

    text = "nothing to check: no labels of people, no label probabilities, no other order\n"
    if found:
        text = f"How far these values can be trusted\n\n{render(table(found), 'text').decode()}"
    click.echo(f"\n{text}", nl=False, err=look != "summary")
