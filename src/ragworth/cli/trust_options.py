"""Options for what a workspace may not decide on its own: where it writes, and what it sends to a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class TrustOptions(NamedTuple):
    """What the user says: where to write (`config.Paths`), and what is allowed (`evaluation.consent.Consent`)."""

    paths: Any
    consent: Any


def trust_options(function: F) -> F:
    """Where to write, and which keys and files may go to a server."""
    options = [
        click.option("--results", type=click.Path(file_okay=False), help="Results folder."),
        click.option("--store", type=click.Path(dir_okay=False), help="Call store file."),
        click.option("--cache", type=click.Path(file_okay=False), help="Cache folder."),
        click.option(
            "--allow-key",
            "allow_keys",
            multiple=True,
            metavar="NAME",
            help="Allow the workspace to send this environment variable to the server it names; remembered.",
        ),
        click.option(
            "--allow-read",
            "allow_reads",
            multiple=True,
            type=click.Path(exists=True),
            help="Let the workspace send texts of this file or folder, which is outside of it, to its servers; "
            "remembered.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def take_trust_options(chosen: dict[str, Any]) -> TrustOptions:
    """What these options say; they are taken out of ``chosen``."""
    from ragworth.config import OutputPaths
    from ragworth.evaluation.consent import Consent

    places = OutputPaths(*(chosen.pop(name) for name in ("results", "store", "cache")))
    return TrustOptions(places, Consent(tuple(chosen.pop("allow_keys")), tuple(chosen.pop("allow_reads"))))
