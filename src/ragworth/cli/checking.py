"""``--check``: how far judgments can be trusted, as a table."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click

from ragworth.cli.calling import Calling, job, opened


def checked(annotator: Any, things: Any, result: Any, work: Any, second: str | None, calling: Calling) -> None:
    """Print the checks; a second model has a job of its own over the same store, which is let go of meanwhile."""
    from ragworth.annotate.checking import check, table
    from ragworth.report.render import render

    if second is None:
        found = check(annotator, things, result, work)
    else:
        other = opened(second, ())
        with closing(other), job(other, calling, None) as more:
            found = check(annotator, things, result, work, more)
    if not found:
        click.echo("\nnothing to check: no labels of people, no label probabilities, no other order")
        return
    shown = table(found)
    if not any(shown[""].to_list()):
        shown = shown.drop("")
    click.echo(f"\nHow far these judgments can be trusted\n\n{render(shown, 'text').decode()}", nl=False)
