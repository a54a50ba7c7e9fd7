"""``--check``: how far judgments and grades can be trusted, as a table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

import click

from ragworth.cli.calling import Calling, job, opened

F = TypeVar("F", bound=Callable[..., Any])


def check_options(function: F) -> F:
    """Whether to check, and by whom else."""
    options = [
        click.option("--check", is_flag=True, help="Say how far these values can be trusted."),
        click.option("--second", metavar="MODEL", help="With --check: another model, to see how far the two agree."),
        click.option("--second-option", multiple=True, metavar="NAME=VALUE", help="Option of that model."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def checked(check: Callable[..., Any], second: str | None, settings: tuple[str, ...], calling: Calling) -> None:
    """Print what ``check`` finds; it is given the job of a second model, over the same store, where one is named."""
    from ragworth.judging.checks import table
    from ragworth.report.render import render

    if second is None:
        found = check(None)
    else:
        other = opened(second, settings)
        with closing(other), job(other, calling, None) as more:
            found = check(more)
    if not found:
        click.echo("\nnothing to check: no labels of people, no label probabilities, no other order")
        return
    click.echo(f"\nHow far these values can be trusted\n\n{render(table(found), 'text').decode()}", nl=False)
