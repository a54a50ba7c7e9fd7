"""``ragworth calls``."""

from __future__ import annotations

from typing import Any

import click

from ragworth.cli.output import LOOKS, OutputTable, emit, output_format
from ragworth.core.errors import StoreError, format_count


@click.group("calls", short_help="Show, export, verify or merge call stores.")
def command() -> None:
    """Show, export, verify or merge stores of calls."""


@command.command("show", short_help="Summarize a store.")
@click.argument("store")
@click.option("-f", "--format", "look", type=click.Choice(LOOKS), help="Output format.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write to this file instead of the terminal.")
def show(store: str, look: str | None, output: str | None) -> None:
    """Show calls, tokens and time by model and kind.

    \b
    ragworth calls show calls.sqlite
    """
    import polars as pl

    from ragworth.calls import maintenance

    look = output_format(look, output)
    with _open_store(store) as calls:
        totals = maintenance.stored_calls(calls)
    rows = [one._asdict() | {"first": _day(one.first), "last": _day(one.last)} for one in totals]
    if not rows and look == "text" and not output:
        click.echo("The store is empty.")
        return
    frame = pl.DataFrame(rows, schema=None if rows else list(maintenance.StoredCalls._fields))
    emit([OutputTable("calls", "", frame, frame)], look, output)


@command.command("export", short_help="Write all calls as JSONL.")
@click.argument("store")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write to this file instead of the terminal.")
def export(store: str, output: str | None) -> None:
    """Write every call with its prompt, response and model, one JSON object per line. Damaged calls are left out.

    \b
    ragworth calls export calls.sqlite -o calls.jsonl
    """
    from ragworth.calls import maintenance
    from ragworth.formats.files import create_file
    from ragworth.judging.ask import to_jsonl

    with _open_store(store) as found:
        if output:
            with create_file(output) as file:
                file.writelines(to_jsonl(call, plain=False) for call in maintenance.export_calls(found))
        else:
            for call in maintenance.export_calls(found):
                click.echo(to_jsonl(call, plain=True), nl=False)


@command.command("verify", short_help="Check a store for damage.")
@click.argument("store")
def verify(store: str) -> None:
    """Check the file, every response, and that each belongs to its request. Exit code 2 on damage.

    Damaged responses are never used: the model is asked again.

    \b
    ragworth calls verify calls.sqlite
    """
    from ragworth.calls import maintenance

    with _open_store(store) as found:
        result = maintenance.verify(found)
    if result.problems:
        shown = tuple(result.problems[:5])
        raise StoreError(
            f"{format_count(len(result.problems), 'problem')} in {format_count(result.calls, 'call')}",
            file=store,
            more=shown,
            remedy="run the same command again: it asks again for answers that are damaged",
        )
    click.echo(f"{result.calls:,} calls are sound.")


@command.command("merge", short_help="Add the calls of other stores to a store.")
@click.argument("store")
@click.argument("others", nargs=-1, required=True)
def merge(store: str, others: tuple[str, ...]) -> None:
    """Add the responses of OTHERS to STORE, for calls made on several machines. A response that is there stays.

    \b
    ragworth calls merge calls.sqlite machine-1.sqlite machine-2.sqlite
    """
    from ragworth.calls import maintenance
    from ragworth.calls.store import Store

    with Store(store) as target:
        for other in others:
            with _open_store(other) as source:
                done = maintenance.merge(target, source)
            left_out = f", {done.damaged:,} damaged and left out" if done.damaged else ""
            click.echo(f"{other}: {done.added:,} added, {done.present:,} already there{left_out}")


def _open_store(store: str) -> Any:
    from ragworth.calls.store import Store

    return Store(store, create=False)


def _day(moment: float | None) -> str:
    from ragworth.calls.store import format_time

    return format_time(moment, "%Y-%m-%d %H:%M")
