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
from ragworth.calls.programs import Forecast, NoValue, forecast, run
from ragworth.calls.store import Store
from ragworth.collection import Collection
from ragworth.errors import InputError, counted
from ragworth.generation.writer import NONE, ORACLE, Item, Shown, Writer, Written
from ragworth.llm.contract import Model
from ragworth.tables import TRUNCATED, WRITTEN, Answers, Contexts
from ragworth.tables.coercion import Data
from ragworth.tasks.findings import frame_of
from ragworth.tasks.models import opened
from ragworth.tasks.options import given
from ragworth.tasks.query_sample import of_queries, whole
from ragworth.tasks.text_lookup import Texts
from ragworth.text_match.lengths import counter_of

DETAILS = {
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
class Answered:
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
) -> Answered:
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
        whole(name, number)
    settings |= {"tie_k": True} if k == "oracle" else {}
    settings |= {"tie_length": True} if length == "oracle" else {"length": length}
    depth = None if k == "oracle" else k
    if contexts is not None and not isinstance(contexts, Contexts):
        contexts = Contexts(contexts)
    with Job(opened(model), store) as job:
        writer = made(job, collection, prompts, depth, settings)
        things = items(writer, contexts, collection, without=without, oracle=oracle)
        return finished(writer, of_queries(things, limit, sample, sample_seed), job)


def made(
    job: Job,
    collection: Collection,
    prompts: str | Path | None,
    k: int | None,
    settings: dict[str, Any],
    *,
    plan: bool = False,
) -> Writer:
    """A writer with these settings. To plan, an endpoint is not even asked to count tokens."""
    whole("k", k)
    writer = Writer(job.card, Texts(collection), prompts, k, **given(Writer, settings, "answer"))
    if writer.tie_length and not (plan and job.card.endpoint):
        writer = replace(writer, counter=counter_of(job.model))
    return writer


def items(
    writer: Writer, contexts: Contexts | None, collection: Collection, *, without: bool = False, oracle: bool = False
) -> list[Item]:
    """What is to be answered: every query of any of the systems, for each system."""
    if contexts is None and not (without or oracle):
        raise InputError(
            "there is nothing to answer from",
            expected="a run",
            remedy="name a run, or ask --without or --oracle contexts",
        )
    if oracle:
        writer.oracle.check()
    shown: dict[tuple[str, str], list[Shown]] = {}
    systems: list[str] = []
    if contexts is not None:
        systems = contexts.systems
        taken = [name for name, wanted in ((NONE, without), (ORACLE, oracle)) if wanted and name in systems]
        if taken:
            raise InputError(f"a system is called {taken[0]!r} already", remedy="give it another name")
        for system, query, passage, rank in contexts.frame.select("system", "query", "passage", "rank").iter_rows():
            shown.setdefault((system, query), []).append(Shown(passage, rank))
        queries = [query for _, query in [*shown, *sorted(contexts.empty)]]
    else:
        queries = collection.queries["query"].to_list()
    queries = list(dict.fromkeys(queries))
    made = [Item(system, query, tuple(shown.get((system, query), ()))) for system in systems for query in queries]
    extra = [name for name, wanted in ((NONE, without), (ORACLE, oracle)) if wanted]
    made += [Item(name, query) for name in extra for query in queries]
    return [item._replace(repeat=repeat) for item in made for repeat in range(writer.repeats)]


def planned(writer: Writer, things: Sequence[Item], job: Job) -> Forecast:
    """What writing these answers would take."""
    return forecast(job, map(writer.write, things))


def finished(writer: Writer, things: Sequence[Item], job: Job) -> Answered:
    """Have them all written."""
    sources = {system: writer.source(system) for system in {item.system for item in things}}
    rows = [
        _row(writer, item, one, sources) for item, one in zip(things, run(job, map(writer.write, things)), strict=True)
    ]
    frame = frame_of(rows, {**Answers.schema, **DETAILS})
    notes = (*_notes(frame), *_ties(writer))
    return Answered(Answers.trusted(frame, notes), frame, shown_contexts(frame), notes)


def _row(writer: Writer, item: Item, one: Written | NoValue, sources: dict[str, str]) -> dict[str, Any]:
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


def _ties(writer: Writer) -> list[str]:
    notes = ["as many passages are shown as the oracle's context has"] if writer.tie_k else []
    if writer.tie_length:
        notes.append(f"answers may be as long as the oracle's context, counted in {writer.counter.name}")
    return notes


def _notes(frame: pl.DataFrame) -> list[str]:
    """How many answers have a text, and what to know about those that have."""
    notes = []
    good = frame.filter(pl.col("status").is_in(WRITTEN))
    if good.height < frame.height:
        lost = frame.filter(~pl.col("status").is_in(WRITTEN))["status"].value_counts(sort=True)
        words = ", ".join(f"{status} {number:,}" for status, number in lost.iter_rows())
        verb = "has" if frame.height == 1 else "have"
        notes.append(f"{good.height:,} of {counted(frame.height, 'answer')} {verb} a text; without one: {words}")
    bare = frame.filter((pl.col("system") != NONE) & (pl.col("shown").list.len() == 0))
    ended = good.filter(pl.col("status") == TRUNCATED).height
    cut = good.filter(pl.col("cut") > 0)
    strays = good.filter(pl.col("strays") > 0)
    if bare.height:
        notes.append(
            f"{counted(bare.height, 'answer')} from contexts that have no passages, asked with the same prompt"
        )
    if ended:
        notes.append(f"{counted(ended, 'answer')} ended at the greatest length (truncated)")
    if cut.height:
        lost_signs = counted(int(cut["cut"].sum()), "character")
        notes.append(f"{counted(cut.height, 'answer')} from passages that were cut to fit ({lost_signs} in all)")
    if strays.height:
        number = counted(int(strays["strays"].sum()), "citation")
        notes.append(f"{number} in {counted(strays.height, 'answer')} of a passage that was not shown")
    return notes
