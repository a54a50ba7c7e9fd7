"""Annotate and grade: what to judge, the job that does it, and the table that comes of it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from ragworth.calls.job import Job
from ragworth.calls.store import Store
from ragworth.core.errors import InputError, MissingInputError, ModelError, give_input
from ragworth.core.registry import Registry
from ragworth.data import Answers, Contexts
from ragworth.data.coercion import Data, to_frame
from ragworth.data.collection import Collection
from ragworth.formats.tables import parse_shown
from ragworth.judging import ANNOTATORS, GRADERS
from ragworth.judging.answers import AnsweringResult, shown_contexts
from ragworth.judging.contract import options_by_name, resolve_model, run_task
from ragworth.judging.judge import NO_MODEL, AnnotationItem, Annotator, Judge, JudgingResult
from ragworth.judging.text_lookup import AnswerBook, TextLookup, check_positive_count, sample_by_query
from ragworth.llm.contract import Card, Model

JudgeT = TypeVar("JudgeT", bound=Judge[Any])


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
) -> JudgingResult:
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
        annotator = build_judge(ANNOTATORS, kind, job.card if job is not None else None, collection, prompts, settings)
        items = annotation_items(annotator, contexts, collection, k)
        return run_task(annotator, sample_by_query(items, limit, sample, sample_seed), job)


def grade(
    kind: str,
    answers: Answers | AnsweringResult | Data,
    collection: Collection,
    model: Model | str | None = None,
    *,
    contexts: Contexts | Data | None = None,
    store: Store | str | Path | None = None,
    prompts: str | Path | None = None,
    limit: int | None = None,
    sample: int | None = None,
    sample_seed: int = 0,
    **settings: Any,
) -> JudgingResult:
    """Grade answers.

    Parameters
    ----------
    kind: ``deterministic``, ``judge``, ``ideal``, ``text``, ``bertscore``, ``utility``, ``coverage``, ``support``,
        ``citations`` or ``contribution``.
    answers: from `ragworth.answer` or `ragworth.read_answers`, or a table with system, query, text and optionally
        repeat, status and shown (the ids of the passages shown).
    collection: texts of queries, accepted answers, relevance, sub-questions: what the grader needs.
    model: for those that ask one, from `ragworth.llm` or in its written form; the embedded one by default.
    contexts: what the systems showed, for answers of which it is not known yet (by a column ``shown``).
    store: file in which every answer of the model is kept, so that it is never asked twice.
    prompts: folder of own prompts.
    limit, sample: only the first queries, or some drawn at random.
    settings: those of the grader; ``ragworth grade KIND --help`` lists them.
    """
    book = to_answer_book(answers, contexts)
    wanted = sample_by_query(book.answers, limit, sample, sample_seed)
    with nullcontext() if not GRADERS.get(kind).asks_model else Job(resolve_model(model), store) as job:
        grader = build_judge(GRADERS, kind, job.card if job is not None else None, collection, prompts, settings, book)
        return run_task(grader, grader.items(wanted), job)


def build_judge(
    kinds: Registry[type[JudgeT]],
    kind: str,
    card: Card | None,
    collection: Collection,
    prompts: str | Path | None,
    settings: dict[str, Any],
    book: AnswerBook | None = None,
) -> JudgeT:
    """Build a judge by its name; a model or texts that it can't work with are refused here.

    ``card``: of the model, None for a kind that asks none. ``book``: the answers to grade, or those that were given.
    """
    chosen = kinds.get(kind)
    if chosen.asks_model and card is None:
        raise ModelError(
            f"{kind} asks a model, and none was given",
            expected="the card of a model",
            remedy="name a model, such as model=hf:NAME, or choose a kind that asks none",
        )
    if book is not None and not book.answers:
        raise InputError("there are no answers to grade", expected="a table of answers with at least one row")
    more = {"book": book} if book is not None else {}
    return chosen(card or NO_MODEL, TextLookup(collection), prompts, **options_by_name(chosen, settings, kind), **more)


def to_answer_book(answers: Answers | AnsweringResult | Data, contexts: Contexts | Data | None = None) -> AnswerBook:
    """Answers with what was shown for them: as they say themselves, or else as given."""
    if contexts is not None and not isinstance(contexts, Contexts):
        contexts = Contexts(contexts)
    if isinstance(answers, Answers):
        return AnswerBook(answers, contexts)
    if isinstance(answers, AnsweringResult):
        return AnswerBook(answers.table, _recorded_or_given(answers.contexts, contexts))
    frame = to_frame(answers)
    table = Answers(frame)
    return AnswerBook(table, _recorded_or_given(shown_contexts(table.frame.with_columns(parse_shown(frame))), contexts))


def _recorded_or_given(recorded: Contexts, given: Contexts | None) -> Contexts:
    """What was recorded of a system and query goes before what is given, which may be deeper than what was shown."""
    if given is None:
        return recorded
    pair = ["system", "query"]
    bare = pl.DataFrame(sorted(recorded.empty), schema=dict.fromkeys(pair, pl.String), orient="row")
    known = pl.concat([recorded.frame.select(pair), bare]).unique()
    merged = Contexts.trusted(pl.concat([recorded.frame, given.frame.join(known, on=pair, how="anti")]))
    merged.empty = recorded.empty | (given.empty - set(known.rows()))
    return merged


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
