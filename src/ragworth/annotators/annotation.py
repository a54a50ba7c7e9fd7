"""From texts to judgments: what to judge, the job that does it, and the table that comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ragworth.annotators import KINDS
from ragworth.annotators.contract import Annotator, Item
from ragworth.calls.job import Job
from ragworth.calls.programs import Forecast, forecast, run
from ragworth.calls.store import Store
from ragworth.collection import Collection
from ragworth.errors import InputError
from ragworth.llm.contract import Card, Model
from ragworth.tables import Contexts, Judgments, Outcomes, Ratings, Table
from ragworth.tables.coercion import Data
from ragworth.tasks.findings import frame_of, missing_notes, rows_of
from ragworth.tasks.models import opened
from ragworth.tasks.options import given
from ragworth.tasks.query_sample import of_queries, whole
from ragworth.tasks.reliability import doubts
from ragworth.tasks.text_lookup import Texts

KEYS = {"passage": ("query", "passage"), "rating": ("query", "passage", "subquestion"), "context": ("system", "query")}
TABLES: dict[str, type[Table]] = {"passage": Judgments, "rating": Ratings, "context": Outcomes}


@dataclass(frozen=True)
class Annotated:
    """Judgments: the table that metrics read, and a frame that has what the model said beside it."""

    table: Judgments | Ratings | Outcomes
    frame: pl.DataFrame
    """The table's columns, then ``reason``, ``raw`` and the details of the kind."""
    notes: tuple[str, ...] = ()


def annotate(
    kind: str,
    contexts: Contexts | Data | None,
    collection: Collection,
    model: Model | str | None = None,
    *,
    store: Store | str | Path | None = None,
    k: int | None = None,
    limit: int | None = None,
    sample: int | None = None,
    sample_seed: int = 0,
    prompts: str | Path | None = None,
    **settings: Any,
) -> Annotated:
    """Judge the passages of some contexts, or the contexts themselves, by asking a model.

    Parameters
    ----------
    kind: ``abstention``, ``relevance``, ``downstream``, ``likelihood``, ``confidence`` or ``ratings``.
    contexts: what systems show; None judges the passages that the collection has relevance labels for.
    collection: texts of queries and passages; accepted answers and sub-questions where the kind needs them.
    model: from `ragworth.llm`, or its written form; the embedded one by default.
    store: file in which every answer of the model is kept, so that it is never asked twice.
    k: judge the first k passages of each context only.
    limit, sample: only the first queries, or some drawn at random.
    prompts: folder of own prompts.
    settings: those of the kind; ``ragworth annotate KIND --help`` lists them.
    """
    if contexts is not None and not isinstance(contexts, Contexts):
        contexts = Contexts(contexts)
    with Job(opened(model), store) as job:
        annotator = made(kind, job.card, collection, prompts, settings)
        things = items(annotator, contexts, collection, k)
        return finished(annotator, of_queries(things, limit, sample, sample_seed), job)


def made(
    kind: str, card: Card, collection: Collection, prompts: str | Path | None, settings: dict[str, Any]
) -> Annotator:
    """An annotator by its name; a model that cannot do what it needs is refused here."""
    chosen = KINDS.get(kind)
    return chosen(card, Texts(collection), prompts, **given(chosen, settings, kind))


def items(annotator: Annotator, contexts: Contexts | None, collection: Collection, k: int | None = None) -> list[Item]:
    """What is to be judged, each thing once; what the kind cannot do without is refused here."""
    whole("k", k)
    if annotator.judged == "context":
        if contexts is None:
            raise InputError(f"{annotator.kind} judges whole contexts, and none were given", remedy="name a run")
        _readable(annotator, collection)
        return context_items(contexts.cut(k) if k else contexts)
    pairs = _pairs(contexts.cut(k) if k and contexts is not None else contexts, collection)
    _readable(annotator, collection)
    if annotator.judged == "passage":
        return [Item(query, passage) for query, passage in pairs]
    questions: dict[str, list[str]] = {}
    for query, name in collection.subquestions.select("query", "subquestion").iter_rows():
        questions.setdefault(query, []).append(name)
    # A query without sub-questions still has its row, which says so.
    return [Item(query, passage, name) for query, passage in pairs for name in questions.get(query, ["-"])]


def _readable(annotator: Annotator, collection: Collection) -> None:
    """Refuse a collection that lacks what cannot be done without, before anything is asked."""
    for kind, frame in (("queries", collection.queries), ("passages", collection.passages)):
        if not frame.height:
            raise InputError(
                f"there are no texts of {kind}",
                expected="a JSONL run with texts, or a collection",
                remedy=f"name them: --{kind} FILE, or --collection",
            )
    for kind, frame, option in (
        ("accepted answers", collection.answers, "answers"),
        ("sub-questions", collection.subquestions, "subquestions"),
    ):
        if option in annotator.compares and not frame.height:
            raise InputError(
                f"{annotator.kind} needs {kind}, and there are none",
                remedy=f"name a file: --{option} FILE (Python: Collection.of({option}=…))",
            )


def context_items(contexts: Contexts) -> list[Item]:
    """Contexts in their order; those for which nothing was retrieved last."""
    shown: dict[tuple[str, str], list[str]] = {}
    for system, query, passage in contexts.frame.select("system", "query", "passage").iter_rows():
        shown.setdefault((system, query), []).append(passage)
    for pair in sorted(contexts.empty):
        shown.setdefault(pair, [])
    return [Item(query, system=system, passages=tuple(each)) for (system, query), each in shown.items()]


def _pairs(contexts: Contexts | None, collection: Collection) -> Iterable[tuple[str, str]]:
    if contexts is not None:
        frame = contexts.frame
    elif collection.relevance is not None:
        frame = collection.relevance.of("relevance")
    else:
        raise InputError("there is nothing to judge", expected="a run, or relevance labels whose passages are judged")
    return frame.select("query", "passage").unique(maintain_order=True).iter_rows()


def planned(annotator: Annotator, things: Sequence[Item], job: Job) -> Forecast:
    """What judging these things would take."""
    work = [*(annotator.judge(item) for item in things), *annotator.controls()]
    return forecast(job, work, more=lambda round_: round_ + 1 < annotator.turns)


def finished(annotator: Annotator, things: Sequence[Item], job: Job) -> Annotated:
    """Judge them all, and see what the judgments say together."""
    controls = list(annotator.controls())
    work = (steps for part in (controls, map(annotator.judge, things)) for steps in part)
    found = iter(run(job, work))
    known = [next(found) for _ in controls]
    keys, table = KEYS[annotator.judged], TABLES[annotator.judged]
    source = annotator.source
    rows = [
        row
        for item, one in zip(things, found, strict=True)
        for row in rows_of({key: getattr(item, key) for key in keys}, annotator.valued, one, source)
    ]
    schema = {
        **dict.fromkeys([*keys, "aspect"], pl.String),
        "value": pl.Float64,
        "status": pl.String,
        "source": pl.String,
        "reason": pl.String,
        "raw": pl.String,
        **annotator.details,
    }
    frame, notes = annotator.conclude(frame_of(rows, schema), known)
    if table is Ratings:
        frame = frame.drop("aspect")
    what = "rating" if table is Ratings else "judgment"
    doubtful = doubts(frame, what) if annotator.labelled else []
    return Annotated(table.trusted(frame), frame, (*missing_notes(frame, what), *notes, *doubtful))  # type: ignore[arg-type]
