"""``ragworth annotate``: a command for each kind of judgment, made from its settings."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

import click

from ragworth.cli.calling import Calling, calling_options, introduced, job, model_options, opened, told
from ragworth.cli.checking import check_options, checked, forecasts, second_job
from ragworth.cli.kinds import Kinds, about, title
from ragworth.cli.output import tell
from ragworth.cli.reading import material, reading_options, taken
from ragworth.cli.results import none_at_all, result_options, show, summary, write
from ragworth.cli.settings import setting_options


@click.group(
    "annotate",
    cls=Kinds,
    registry="ragworth.annotate:KINDS",
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
    from ragworth.annotate import KINDS
    from ragworth.judging.settings import settings_of

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
    from ragworth.annotate import annotating
    from ragworth.annotate.checking import check as look_closer
    from ragworth.annotate.checking import planned_all
    from ragworth.errors import InputError
    from ragworth.judging.drawing import of_queries

    if second and not check:
        raise InputError("a second model is for --check", remedy="give --check too")
    calling = Calling(**{name: given.pop(name) for name in Calling.__dataclass_fields__})
    wanted = taken(given)
    found = material(wanted)
    with ExitStack() as stack:
        asked = stack.enter_context(closing(opened(model, settings)))
        work = stack.enter_context(job(asked, calling, None))
        more = second_job(stack, second, second_option, calling)
        annotator = annotating.made(kind, work.card, found.collection, prompts, given)
        other = annotating.made(kind, more.card, found.collection, prompts, given) if more is not None else None
        things = annotating.items(annotator, found.contexts, found.collection, wanted.k)
        things = of_queries(things, wanted.limit, wanted.sample, wanted.sample_seed)
        if calling.dry_run:
            forecasts(planned_all(annotator, things, work, other, more, check))
            return
        introduced(work.card, calling)
        tell(found.notes, calling.quiet)
        with told(work, calling):
            result = annotating.finished(annotator, things, work)
            write(result.frame, output)
            tell(result.notes, calling.quiet)
            show(result.frame, look, summary(result.frame), None if calling.quiet else output)
            if check:
                checked(lambda: look_closer(annotator, things, result, work, more), more, look, calling)
        none_at_all(result.frame, "judgment")
