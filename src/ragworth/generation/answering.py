"""From contexts to answers: which ones are to be written, the job that asks for them, and the table they make.

A system for which nothing was retrieved still has to answer: it is asked with the same prompt, which then has no
passages, and how often that was so is in the notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from ragworth.calls.job import Job
from ragworth.calls.programs import Forecast, NoValue, forecast_programs, run_programs
from ragworth.calls.store import Store
from ragworth.collection import Collection
from ragworth.errors import InputError, format_count
from ragworth.generation.writer import (
    NO_CONTEXT_SYSTEM,
    ORACLE_SYSTEM,
    AnswerItem,
    AnswerWriter,
    ShownPassage,
    WrittenAnswer,
)
from ragworth.llm.contract import Model
from ragworth.tables import ANSWERED_STATUSES, TRUNCATED, Answers, Contexts
from ragworth.tables.coercion import Data
from ragworth.tasks.findings import frame_from_rows
from ragworth.tasks.models import resolve_model
from ragworth.tasks.options import options_by_name
from ragworth.tasks.query_sample import check_positive_count, sample_by_query
from ragworth.tasks.text_lookup import TextLookup
from ragworth.text_match.lengths import counter_for

DETAIL_COLUMNS = {
    "reason": pl.String,
    "finish": pl.String,
    "seed": pl.Int64,
    "shown": pl.List(pl.String),
    "cited": pl.List(pl.String),
    "strays": pl.Int64,
    "cut": pl.Int64,
    "prompt_tokens": pl.Int64,
}
"""What is kept beside the columns of the table: why there is no text, how the writing ended, the seed, the ids of the
passages in the order shown, those that the text cites and how many of its citations name none, characters of
passages that were cut off, and the prompt's tokens."""


@dataclass(frozen=True)
class AnsweringResult:
    """Answers: the table that graders read, and a frame that has what is known of each beside it."""

    table: Answers
    frame: pl.DataFrame
    """The table's columns, then those of `DETAILS`; ``shown`` alone of answers that were read from a file."""
    contexts: Contexts
    """What was shown, in the order shown; the oracle's contexts too."""
    notes: tuple[str, ...] = ()


def answer(
    contexts: Contexts | Data | None,
    collection: Collection,
    model: Model | str | None = None,
    *,
    store: Store | str | Path | None = None,
    k: int | Literal["oracle"] | None = None,
    length: int | Literal["oracle"] = 256,
    without: bool = False,
    oracle: bool = False,
    prompts: str | Path | None = None,
    limit: int | None = None,
    sample: int | None = None,
    sample_seed: int = 0,
    **settings: Any,
) -> AnsweringResult:
    """Have a model answer every query from what each system shows.

    Parameters
    ----------
    contexts: what systems show; None where only ``without`` or ``oracle`` is wanted, for all queries.
    collection: texts of queries and passages.
    model: from `ragworth.llm`, or in its written form; the embedded one by default.
    store: file in which every answer of the model is kept, so that it is never asked twice.
    k: passages shown; ``oracle`` for as many as the oracle's context of the query has.
    length: most tokens of an answer; ``oracle`` for as many as the oracle's context of the query has.
    without: also answer without any context, as the system ``(none)``.
    oracle: also answer from the oracle's context, as the system ``(oracle)``: the required subset where the
        collection has ratings, else all relevant passages.
    prompts: folder of own prompts.
    limit, sample: only the first queries, or some drawn at random.
    settings: the others of `Writer`; ``ragworth answer --help`` lists them.
    """
    for name, number in (("k", None if k == "oracle" else k), ("limit", limit), ("sample", sample)):
        check_positive_count(name, number)
    settings |= {"tie_k": True} if k == "oracle" else {}
    settings |= {"tie_length": True} if length == "oracle" else {"length": length}
    depth = None if k == "oracle" else k
    if contexts is not None and not isinstance(contexts, Contexts):
        contexts = Contexts(contexts)
    with Job(resolve_model(model), store) as job:
        writer = build_writer(job, collection, prompts, depth, settings)
        things = answer_items(writer, contexts, collection, without=without, oracle=oracle)
        return run_answering(writer, sample_by_query(things, limit, sample, sample_seed), job)


def build_writer(
    job: Job,
    collection: Collection,
    prompts: str | Path | None,
    k: int | None,
    settings: dict[str, Any],
    *,
    plan: bool = False,
) -> AnswerWriter:
    """A writer with these settings. To plan, an endpoint is not even asked to count tokens."""
    check_positive_count("k", k)
    writer = AnswerWriter(
        job.card, TextLookup(collection), prompts, k, **options_by_name(AnswerWriter, settings, "answer")
    )
    if writer.tie_length and not (plan and job.card.endpoint):
        writer = replace(writer, counter=counter_for(job.model))
    return writer


def answer_items(
    writer: AnswerWriter,
    contexts: Contexts | None,
    collection: Collection,
    *,
    without: bool = False,
    oracle: bool = False,
) -> list[AnswerItem]:
    """What is to be answered: every query of any of the systems, for each system."""
    if contexts is None and not (without or oracle):
        raise InputError(
            "there is nothing to answer from",
            expected="a run",
            remedy="name a run, or ask --without or --oracle contexts",
        )
    if oracle:
        writer.oracle.check()
    shown: dict[tuple[str, str], list[ShownPassage]] = {}
    systems: list[str] = []
    if contexts is not None:
        systems = contexts.systems
        taken = [
            name
            for name, wanted in ((NO_CONTEXT_SYSTEM, without), (ORACLE_SYSTEM, oracle))
            if wanted and name in systems
        ]
        if taken:
            raise InputError(f"a system is called {taken[0]!r} already", remedy="give it another name")
        for system, query, passage, rank in contexts.frame.select("system", "query", "passage", "rank").iter_rows():
            shown.setdefault((system, query), []).append(ShownPassage(passage, rank))
        queries = [query for _, query in [*shown, *sorted(contexts.empty)]]
    else:
        queries = collection.queries["query"].to_list()
    queries = list(dict.fromkeys(queries))
    made = [AnswerItem(system, query, tuple(shown.get((system, query), ()))) for system in systems for query in queries]
    extra = [name for name, wanted in ((NO_CONTEXT_SYSTEM, without), (ORACLE_SYSTEM, oracle)) if wanted]
    made += [AnswerItem(name, query) for name in extra for query in queries]
    return [item._replace(repeat=repeat) for item in made for repeat in range(writer.repeats)]


def plan_answering(writer: AnswerWriter, things: Sequence[AnswerItem], job: Job) -> Forecast:
    """What writing these answers would take."""
    return forecast_programs(job, map(writer.write, things))


def run_answering(writer: AnswerWriter, things: Sequence[AnswerItem], job: Job) -> AnsweringResult:
    """Have them all written."""
    sources = {system: writer.source(system) for system in {item.system for item in things}}
    rows = [
        _row(writer, item, one, sources)
        for item, one in zip(things, run_programs(job, map(writer.write, things)), strict=True)
    ]
    frame = frame_from_rows(rows, {**Answers.schema, **DETAIL_COLUMNS})
    notes = (*_notes(frame), *_tie_notes(writer))
    return AnsweringResult(Answers.trusted(frame, notes), frame, shown_contexts(frame), notes)


def _row(
    writer: AnswerWriter, item: AnswerItem, one: WrittenAnswer | NoValue, sources: dict[str, str]
) -> dict[str, Any]:
    row: dict[str, Any] = {"system": item.system, "query": item.query, "repeat": item.repeat}
    row |= {"source": sources[item.system], "seed": writer.seed_of(item)}
    if isinstance(one, NoValue):
        row |= {"status": one.status, "reason": one.detail}
    else:
        row |= one._asdict() | {"cited": list(one.cited)}
    try:
        row["shown"] = [each.id for each in writer.shown(item)]
    except NoValue:
        row["shown"] = None
    return row


def shown_contexts(frame: pl.DataFrame) -> Contexts:
    """What was shown, out of the column ``shown`` of answers: a table of contexts."""
    known = frame.filter(pl.col("shown").is_not_null()).unique(["system", "query"], keep="first", maintain_order=True)
    empty = known.filter(pl.col("shown").list.len() == 0).select("system", "query").rows()
    rows = (
        known.filter(pl.col("shown").list.len() > 0)
        .select("system", "query", pl.col("shown").alias("passage"))
        .explode("passage")
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("system", "query").cast(pl.UInt32))
    )
    made = Contexts.trusted(rows.with_columns(score=pl.lit(None, pl.Float64)))
    made.empty = frozenset((system, query) for system, query in empty)
    return made


def _tie_notes(writer: AnswerWriter) -> list[str]:
    notes = ["as many passages are shown as the oracle's context has"] if writer.tie_k else []
    if writer.tie_length:
        notes.append(f"answers may be as long as the oracle's context, counted in {writer.counter.name}")
    return notes


def _notes(frame: pl.DataFrame) -> list[str]:
    """How many answers have a text, and what to know about those that have."""
    notes = []
    good = frame.filter(pl.col("status").is_in(ANSWERED_STATUSES))
    if good.height < frame.height:
        lost = frame.filter(~pl.col("status").is_in(ANSWERED_STATUSES))["status"].value_counts(sort=True)
        words = ", ".join(f"{status} {number:,}" for status, number in lost.iter_rows())
        verb = "has" if frame.height == 1 else "have"
        notes.append(f"{good.height:,} of {format_count(frame.height, 'answer')} {verb} a text; without one: {words}")
    bare = frame.filter((pl.col("system") != NO_CONTEXT_SYSTEM) & (pl.col("shown").list.len() == 0))
    ended = good.filter(pl.col("status") == TRUNCATED).height
    cut = good.filter(pl.col("cut") > 0)
    strays = good.filter(pl.col("strays") > 0)
    if bare.height:
        notes.append(
            f"{format_count(bare.height, 'answer')} from contexts that have no passages, asked with the same prompt"
        )
    if ended:
        notes.append(f"{format_count(ended, 'answer')} ended at the greatest length (truncated)")
    if cut.height:
        lost_signs = format_count(int(cut["cut"].sum()), "character")
        notes.append(f"{format_count(cut.height, 'answer')} from passages that were cut to fit ({lost_signs} in all)")
    if strays.height:
        number = format_count(int(strays["strays"].sum()), "citation")
        notes.append(f"{number} in {format_count(strays.height, 'answer')} of a passage that was not shown")
    return notes
