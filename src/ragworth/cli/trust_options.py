"""Options for what a workspace may not decide on its own: where it writes, and to which servers it sends texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

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
