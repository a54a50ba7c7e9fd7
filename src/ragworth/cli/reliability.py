"""``--check``: how far judgments and grades can be trusted, as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from typing import Any, TypeVar

import click

from ragworth.cli.model_options import CallOptions, open_job, open_named_model, report_job

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


def second_job(stack: ExitStack, second: str | None, settings: tuple[str, ...], calling: CallOptions) -> Any:
    """The job of a second model over the same store, opened before anything is asked; None where none is named."""
    if second is None:
        return None
    other = stack.enter_context(closing(open_named_model(second, settings)))
    return stack.enter_context(open_job(other, calling, None))


def print_forecasts(parts: Sequence[tuple[str, Any]]) -> None:
    """What each part of the work would take; one line where there is only one."""
    for title, forecast in parts:
        click.echo(f"{title}: {forecast}" if len(parts) > 1 else str(forecast))


def print_check(check: Callable[[], Any], more: Any, look: str, calling: CallOptions) -> None:
    """Print what ``check`` finds; beside rows, on standard error. ``more`` is the job of a second model."""
    from ragworth.report.render import render
    from ragworth.tasks.reliability import table

    if more is None:
        found = check()
    else:
        with report_job(more, calling):
            found = check()
    text = "nothing to check: no labels of people, no label probabilities, no other order\n"
    if found:
        text = f"How far these values can be trusted\n\n{render(table(found), 'text').decode()}"
    click.echo(f"\n{text}", nl=False, err=look != "summary")
