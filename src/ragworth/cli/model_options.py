"""Options that commands share which ask a model: which one, where answers are kept, how far to go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from ragworth.core.errors import InputError, JobStopped, format_count

F = TypeVar("F", bound=Callable[..., Any])


def model_options(function: F) -> F:
    """Which model."""
    options = [
        click.option("-M", "--model", default="embedded", show_default=True, help="Model to use; see ragworth models."),
        click.option(
            "-O", "--option", "settings", multiple=True, metavar="NAME=VALUE", help="Set an option of the model."
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def call_options(function: F) -> F:
    """Where answers are kept, and how far to go."""
    options = [
        click.option(
            "-s",
            "--store",
            default="calls.sqlite",
            show_default=True,
            type=click.Path(dir_okay=False),
            help="Call store: keeps every response, so that no call is paid for twice.",
        ),
        click.option("--dry-run", is_flag=True, help="Print what would be asked, without asking."),
        click.option("--max-calls", type=click.IntRange(0), help="Stop after this many calls."),
        click.option("--max-tokens", type=click.IntRange(0), help="Stop before using more than this many tokens."),
        click.option(
            "--max-cost", type=click.FloatRange(0), help="Stop before spending more than this; needs --price."
        ),
        click.option("--price", metavar="IN/OUT", help="The endpoint's price per million input and output tokens."),
        click.option(
            "--wait", type=click.FloatRange(0, 86400), default=0, help="Seconds to wait if the store is in use."
        ),
        click.option("--quiet", is_flag=True, help="Don't show progress."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@dataclass(frozen=True)
class CallOptions:
    """How calls are made."""

    store: str
    dry_run: bool
    max_calls: int | None
    max_tokens: int | None
    max_cost: float | None
    price: str | None
    wait: float
    quiet: bool


def open_named_model(spec: str, settings: tuple[str, ...]) -> Any:
    """A model from its written form and ``NAME=VALUE`` options."""
    from ragworth.llm import llm

    return llm(spec, **parse_model_options(settings))


def parse_model_options(settings: Sequence[str]) -> dict[str, Any]:
    """Options of a model out of NAME=VALUE."""
    return dict(map(_setting, settings))


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InputError(f"the option is {text!r}", expected="NAME=VALUE, such as device=cuda")
    known: dict[str, Any] = {"true": True, "false": False}
    if value.casefold() in known:
        return name, known[value.casefold()]
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


def open_job(model: Any, given: CallOptions) -> Any:
    """A job over a store, and who watches it."""
    from ragworth.calls.budget import JobLimits
    from ragworth.calls.job import Job
    from ragworth.calls.progress import Progress

    there = Path(given.store).exists()
    return Job(
        model,
        None if given.dry_run and not there else given.store,
        only_plan=given.dry_run,
        limits=JobLimits(given.max_calls, given.max_tokens, given.max_cost),
        price=parse_price(given.price),
        watcher=None if given.quiet else Progress(),
        wait=given.wait,
    )


def parse_price(text: str | None) -> Any:
    from ragworth.calls.budget import Price

    if text is None:
        return None
    read, slash, written = text.partition("/")
    try:
        return Price(float(read), float(written if slash else read))
    except ValueError as error:
        raise InputError(f"the price is {text!r}", expected="IN/OUT, such as 0.15/0.60") from error


def print_capabilities(card: Any, given: CallOptions) -> None:
    """Say what an endpoint was found to be able to do."""
    from ragworth.report.render import printable

    if card.endpoint and not given.quiet:
        can = ", ".join(sorted(card.abilities))
        click.echo(printable(f"{card.name} at {card.endpoint} can {can}"), err=True)
        for note in card.notes:
            click.echo(f"note: {printable(note)}", err=True)


@contextmanager
def report_job(work: Any, given: CallOptions) -> Iterator[None]:
    """Say how a job went, however it ended; a job that its budget ended is an early end."""
    from ragworth.report.render import printable

    try:
        yield
    finally:
        if work.watcher is not None:
            work.watcher.done(work.tally)
    tally = work.tally
    for note in work.notes:
        if not given.quiet and note not in work.card.notes:
            click.echo(f"note: {printable(note)}", err=True)
    if work.stopped:
        raise JobStopped(
            f"the budget of {work.stopped} is spent; {format_count(tally.not_asked, 'call')} left over\n"
            f"  to do: run the same again to go on from {given.store}"
        )
    if tally.failed and not tally.done and not tally.cached:
        raise JobStopped(
            f"all {format_count(tally.failed, 'call')} failed: {tally.failures}\n  to do: see the detail of each row"
        )
    if tally.failed and not given.quiet:
        failed = f"{format_count(tally.failed, 'call')} failed: {tally.failures}"
        click.echo(f"note: {failed}; what may pass is tried again next time", err=True)
