"""Options out of the settings of an annotator or grader."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import Field
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def setting_options(fields: Iterable[Field[Any]]) -> Callable[[F], F]:
    """A decorator that adds an option for each setting."""

    def decorated(function: F) -> F:
        for each in reversed(list(fields)):
            function = _option(each)(function)
        return function

    return decorated


def _option(each: Field[Any]) -> Callable[[F], F]:
    about, name = each.metadata, each.name.replace("_", "-")
    words = f"{about['help'][0].upper()}{about['help'][1:]}."
    if isinstance(each.default, bool):
        # A setting that is on by default is turned off by its negative.
        flag = f"--{name}/--no-{name}"
        return click.option(flag, each.name, default=each.default, show_default=True, help=words)
    kind: Any = {int: int, float: float}.get(type(each.default), str)
    if about["choices"]:
        kind = click.Choice(list(about["choices"]))
    elif about["low"] is not None or about["high"] is not None:
        ranges: Any = click.IntRange if kind is int else click.FloatRange
        kind = ranges(about["low"], about["high"])
    return click.option(
        f"--{name}", each.name, type=kind, default=each.default, show_default=each.default not in (None, ""), help=words
    )
