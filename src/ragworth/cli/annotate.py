"""``ragworth annotate``: a command for each kind of judgment, made from its settings."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

import click

from ragworth.cli.collection_options import material, reading_options, taken
from ragworth.cli.model_options import Calling, calling_options, introduced, job, model_options, opened, told
from ragworth.cli.output import tell
from ragworth.cli.registry_group import Kinds, about, title
from ragworth.cli.reliability import check_options, checked, forecasts, second_job
from ragworth.cli.task_options import setting_options
from ragworth.cli.task_output import none_at_all, result_options, show, summary, write


@click.group(
    "annotate",
    cls=Kinds,
    registry="ragworth.annotators:KINDS",
    maker="ragworth.cli.annotate:command_for",
    short_help="Judge passages or contexts by asking a model.",
)
def command() -> None:
    """Judge what systems show by asking a model: one command for each kind of judgment.

    Texts come from JSONL runs, from --collection, or from --queries, --passages, --answers and --subquestions. Without
    a run, the passages that have relevance labels are judged. The file that -o names is what ragworth score reads.

    \b
    ragworth annotate abstention contexts.jsonl -o abstention.parquet
    ragworth annotate relevance --collection beir:FOLDER bm25.run --depth 10 --check
    ragworth annotate confidence contexts.jsonl --model hf:OWNER/NAME -O device=cuda --dry-run
    """


def command_for(kind: str) -> click.Command:
    """The command of a kind."""
    from ragworth.annotators import KINDS
    from ragworth.tasks.options import settings_of

    chosen = KINDS.get(kind)

    @click.command(kind, help=about(chosen, f"Prompts: {', '.join(chosen.prompts)}."), short_help=title(chosen))
    @reading_options
    @setting_options(settings_of(chosen))
    @click.option("--prompts", type=click.Path(file_okay=False), help="Folder of own prompts that replace ours.")
    @check_options
    @model_options
    @result_options
    @calling_options
    def run(**given: Any) -> None:
        annotated(kind, **given)

    return run


def annotated(
    kind: str,
    *,
    model: str,
    settings: tuple[str, ...],
    prompts: str | None,
    check: bool,
    second: str | None,
    second_option: tuple[str, ...],
    output: str | None,
    look: str,
    **given: Any,
) -> None:
    """Read, check, judge, write."""
    from ragworth.annotators import annotation
    from ragworth.annotators.reliability import check as look_closer
    from ragworth.annotators.reliability import planned_all
    from ragworth.errors import InputError
    from ragworth.tasks.query_sample import of_queries

    if second and not check:
        raise InputError("a second model is for --check", remedy="give --check too")
    calling = Calling(**{name: given.pop(name) for name in Calling.__dataclass_fields__})
    wanted = taken(given)
    found = material(wanted)
    with ExitStack() as stack:
        asked = stack.enter_context(closing(opened(model, settings)))
        work = stack.enter_context(job(asked, calling, None))
        more = second_job(stack, second, second_option, calling)
        annotator = annotation.made(kind, work.card, found.collection, prompts, given)
        other = annotation.made(kind, more.card, found.collection, prompts, given) if more is not None else None
        things = annotation.items(annotator, found.contexts, found.collection, wanted.k)
        things = of_queries(things, wanted.limit, wanted.sample, wanted.sample_seed)
        if calling.dry_run:
            forecasts(planned_all(annotator, things, work, other, more, check))
            return
        introduced(work.card, calling)
        tell(found.notes, calling.quiet)
        with told(work, calling):
            result = annotation.finished(annotator, things, work)
            write(result.frame, output)
            tell(result.notes, calling.quiet)
            show(result.frame, look, summary(result.frame), None if calling.quiet else output)
            if check:
                checked(lambda: look_closer(annotator, things, result, work, more), more, look, calling)
        none_at_all(result.frame, "judgment")
