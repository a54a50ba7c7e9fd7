"""Options that the commands of ``ragworth build`` share which ask models in several roles."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from ragworth.cli.model_options import CallOptions, call_options, open_job, open_named_model

F = TypeVar("F", bound=Callable[..., Any])


def role_options(*, writer: bool) -> Callable[[F], F]:
    """Which model has which role, and how calls are made."""
    options = [
        click.option(
            "-M",
            "--model",
            "models",
            multiple=True,
            help="A language model; repeat it, and roles go to different models in the order named.",
        ),
        click.option("--reader", help="Model that reads passages, or none.  [default: embedded, if installed]"),
        click.option("--judge", help="Model that grades the reader's answers where comparing texts can't decide."),
        click.option(
            "-O", "--option", "settings", multiple=True, metavar="NAME=VALUE", help="Option of the models you name."
        ),
        click.option("--encoder", default="embedded", show_default=True, help="Encoder of texts, or none."),
        click.option("--prompts", type=click.Path(file_okay=False), help="Folder with your own prompts."),
    ]
    if writer:
        options.insert(1, click.option("--writer", help="Model that writes questions, or rules.  [default: rules]"))

    def decorated(function: F) -> F:
        function = call_options(function)
        for option in reversed(options):
            function = option(function)
        return function

    return decorated


@dataclass(frozen=True)
class RoleOptions:
    """Roles as they were given, and how calls are made."""

    models: tuple[str, ...]
    settings: tuple[str, ...]
    writer: str | None
    reader: str | None
    judge: str | None
    encoder: str
    prompts: str | None
    calling: CallOptions


def take_role_options(given: dict[str, Any]) -> RoleOptions:
    """The options of `role_options`, taken out of all that were given."""
    calling = CallOptions(**{name: given.pop(name) for name in CallOptions.__dataclass_fields__})
    names = ("models", "settings", "reader", "judge", "encoder", "prompts")
    return RoleOptions(writer=given.pop("writer", None), calling=calling, **{name: given.pop(name) for name in names})


def open_jobs(stack: ExitStack, given: RoleOptions, *, writes: bool) -> tuple[Any, list[str]]:
    """Jobs by role over one store, and notes. The same model in two roles is opened once."""
    from ragworth.build.questions.build import BuildJobs
    from ragworth.build.roles import NONE, ROLES, RULES, assign_roles, shared_role_warnings
    from ragworth.core.errors import MissingExtraError, ModelError

    # A command that writes nothing needs no writer, so its first model reads.
    models = given.models if writes else ("", *given.models) if given.models else ()
    roles = assign_roles(models, writer=given.writer, reader=given.reader, judge=given.judge)
    named = {name: getattr(roles, name) for name in ROLES if writes or name != "writer"}
    opened: dict[str, Any] = {}
    jobs: dict[str, Any] = {}
    notes: list[str] = []
    for role, spec in named.items():
        if spec in (RULES, NONE, ""):
            continue
        try:
            if spec not in opened:
                model = stack.enter_context(
                    closing(open_named_model(spec, () if spec == "embedded" else given.settings))
                )
                job = stack.enter_context(open_job(model, given.calling))
                _ = job.card
                opened[spec] = job
            jobs[role] = opened[spec]
        except (MissingExtraError, ModelError) as error:
            if role != "reader" or given.reader or given.models:
                raise
            notes.append(f"no reader, since the embedded model can't be opened: {str(error).splitlines()[0]}")
    if given.models or given.writer or given.reader or given.judge:
        notes += shared_role_warnings({role: job.card for role, job in jobs.items()})
    return BuildJobs(**jobs), notes


def encoding_progress(given: RoleOptions) -> Any:
    """Receives the progress of encoding passages, which can take minutes; None with --quiet."""
    from ragworth.calls.progress import Progress

    return None if given.calling.quiet else Progress().working


def distinct_jobs(jobs: Any) -> list[Any]:
    """Each job once, in the order of the roles."""
    found = [job for job in (jobs.writer, jobs.reader, jobs.judge) if job is not None]
    return list({id(job): job for job in found}.values())
