"""From texts to judgments: what to judge, the job that does it, and the table that comes of it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ragworth.calls.job import Job
from ragworth.calls.store import Store
from ragworth.core.errors import InputError, MissingInputError, give_input
from ragworth.data import Contexts
from ragworth.data.coercion import Data
from ragworth.data.collection import Collection
from ragworth.judging.annotators import ANNOTATORS
from ragworth.judging.annotators.contract import NO_MODEL, AnnotationItem, AnnotationResult, Annotator
from ragworth.judging.answers.answer_book import AnswerBook
from ragworth.judging.contract import options_by_name, resolve_model, run_task
from ragworth.judging.text_lookup import TextLookup, check_positive_count, sample_by_query
from ragworth.llm.contract import Card, Model


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
) -> AnnotationResult:
    """Judge the passages of some contexts, or the contexts themselves, by asking a model.

    Parameters
    ----------
    kind: ``abstention``, ``relevance``, ``containment``, ``downstream``, ``likelihood``, ``confidence``, ``ratings``
        or ``contribution``.
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
    with nullcontext() if not ANNOTATORS.get(kind).asks_model else Job(resolve_model(model), store) as job:
        annotator = build_annotator(kind, job.card if job is not None else NO_MODEL, collection, prompts, settings)
        things = annotation_items(annotator, contexts, collection, k)
        return run_task(annotator, sample_by_query(things, limit, sample, sample_seed), job)


def build_annotator(
    kind: str,
    card: Card,
    collection: Collection,
    prompts: str | Path | None,
    settings: dict[str, Any],
    book: AnswerBook | None = None,
) -> Annotator:
    """An annotator by its name; a model that cannot do what it needs is refused here. ``book``: given answers."""
    chosen = ANNOTATORS.get(kind)
    more: dict[str, Any] = {"book": book} if book is not None and chosen.takes_answers else {}
    return chosen(card, TextLookup(collection), prompts, **options_by_name(chosen, settings, kind), **more)


def annotation_items(
    annotator: Annotator, contexts: Contexts | None, collection: Collection, k: int | None = None
) -> list[AnnotationItem]:
    """What is to be judged, each thing once; what the kind cannot do without is refused here."""
    check_positive_count("k", k)
    if annotator.judged_unit == "context":
        if contexts is None:
            raise InputError(f"{annotator.kind} judges whole contexts, and none were given", remedy="name a run")
        _check_collection(annotator, collection)
        return context_items(contexts.cut(k) if k else contexts)
    pairs = _query_passage_pairs(contexts.cut(k) if k and contexts is not None else contexts, collection)
    _check_collection(annotator, collection)
    if annotator.judged_unit == "passage":
        return [AnnotationItem(query, passage) for query, passage in pairs]
    questions: dict[str, list[str]] = {}
    for query, name in collection.subquestions.select("query", "subquestion").iter_rows():
        questions.setdefault(query, []).append(name)
    # A query without sub-questions still has its row, which says so.
    return [AnnotationItem(query, passage, name) for query, passage in pairs for name in questions.get(query, ["-"])]


def _check_collection(annotator: Annotator, collection: Collection) -> None:
    """Refuse a collection that lacks what cannot be done without, before anything is asked."""
    for kind, frame in (("queries", collection.queries), ("passages", collection.passages)):
        if not frame.height:
            raise InputError(
                f"there are no texts of {kind}",
                expected="a JSONL run with texts, or a collection",
                remedy=give_input(kind),
            )
    for kind, frame, option in (
        ("accepted answers", collection.answers, "answers"),
        ("sub-questions", collection.subquestions, "subquestions"),
    ):
        if option in annotator.compares and not frame.height:
            raise MissingInputError(annotator.kind, kind, "there are none", give_input(option))


def context_items(contexts: Contexts) -> list[AnnotationItem]:
    """Contexts in their order; those for which nothing was retrieved last."""
    shown: dict[tuple[str, str], list[str]] = {}
    for system, query, passage in contexts.frame.select("system", "query", "passage").iter_rows():
        shown.setdefault((system, query), []).append(passage)
    for pair in sorted(contexts.empty):
        shown.setdefault(pair, [])
    return [AnnotationItem(query, system=system, passages=tuple(each)) for (system, query), each in shown.items()]


def _query_passage_pairs(contexts: Contexts | None, collection: Collection) -> Iterable[tuple[str, str]]:
    if contexts is not None:
        frame = contexts.frame
    elif collection.relevance is not None:
        frame = collection.relevance.of("relevance")
    else:
        raise InputError("there is nothing to judge", expected="a run, or relevance labels whose passages are judged")
    return frame.select("query", "passage").unique(maintain_order=True).iter_rows()
