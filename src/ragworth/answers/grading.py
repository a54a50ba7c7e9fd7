"""From answers to outcomes: which are to be graded, the job that does it, and the table that comes of it.

Several answers to a query (repeats) make one outcome: the mean of those that have a value. An answer that could
not be graded has no value; it never counts as 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from ragworth.answers.book import Answer, Book
from ragworth.answers.contract import Grader
from ragworth.answers.generating import Answered, shown_contexts
from ragworth.calls.job import Job
from ragworth.calls.steps import Forecast, NoValue, Steps, forecast, run
from ragworth.calls.store import Store
from ragworth.collection import Collection
from ragworth.doors import Data, to_frame
from ragworth.errors import InputError, counted
from ragworth.judging.drawing import drawn
from ragworth.judging.findings import Finding, frame_of, missing_notes, rows_of
from ragworth.judging.settings import given
from ragworth.judging.texts import Texts
from ragworth.llm.contract import Card, Model
from ragworth.registry import Registry
from ragworth.tables import OK, TRUNCATED, Answers, Contexts, Outcomes

GRADERS: Registry[type[Grader]] = Registry(
    "grader",
    "ragworth.graders",
    {
        "deterministic": "ragworth.answers.graders.deterministic:Deterministic",
        "judge": "ragworth.answers.graders.judge:Judge",
        "ideal": "ragworth.answers.graders.ideal:Ideal",
        "text": "ragworth.answers.graders.text:Text",
        "bertscore": "ragworth.answers.graders.bertscore:Bertscore",
        "utility": "ragworth.answers.graders.utility:Utility",
        "coverage": "ragworth.answers.graders.coverage:Coverage",
    },
)


@dataclass(frozen=True)
class Graded:
    """Outcomes: the table that studies read, and frames that have what is known of each beside it."""

    table: Outcomes
    frame: pl.DataFrame
    """The table's columns; then ``reason`` and ``raw``; ``repeats`` of ``of`` answers that have a value, and the
    value of ``each``; then the details of the grader where the outcome is that of one answer."""
    answers: pl.DataFrame
    """The same for every single answer, with its details."""
    notes: tuple[str, ...] = ()


def grade(
    kind: str,
    answers: Answers | Answered | Data,
    collection: Collection,
    model: Model | None = None,
    *,
    contexts: Contexts | Data | None = None,
    store: Store | str | Path | None = None,
    prompts: str | Path | None = None,
    limit: int | None = None,
    sample: int | None = None,
    sample_seed: int = 0,
    **settings: Any,
) -> Graded:
    """Grade answers.

    Parameters
    ----------
    kind: ``deterministic``, ``judge``, ``ideal``, ``text``, ``bertscore``, ``utility`` or ``coverage``.
    answers: from `ragworth.answer`, or a table with system, query, text and optionally repeat and status.
    collection: texts of queries, accepted answers, relevance, sub-questions: what the grader needs.
    model: for those that ask one; the embedded one by default.
    contexts: what the systems showed; it is known already of answers that have a column ``shown``.
    store: file in which every answer of the model is kept, so that it is never asked twice.
    prompts: folder of own prompts.
    limit, sample: only the first queries, or some drawn at random.
    settings: those of the grader; ``ragworth grade KIND --help`` lists them.
    """
    book = book_of(answers, contexts)
    things = some(book.answers, limit, sample, sample_seed)
    if not GRADERS.get(kind).asks:
        return finished(made(kind, None, collection, book, prompts, settings), things, None)
    if model is None:
        from ragworth.llm import llm

        model = llm()
    with Job(model, store) as job:
        return finished(made(kind, job.card, collection, book, prompts, settings), things, job)


def book_of(answers: Answers | Answered | Data, contexts: Contexts | Data | None = None) -> Book:
    """Answers with what was shown for them: as they say themselves, or else as given."""
    if contexts is not None and not isinstance(contexts, Contexts):
        contexts = Contexts(contexts)
    if isinstance(answers, Answers):
        return Book(answers, contexts)
    if isinstance(answers, Answered):
        return Book(answers.table, _known(answers.contexts, contexts))
    frame = to_frame(answers)
    table = Answers(frame)
    if frame.schema.get("shown") != pl.List(pl.String):
        return Book(table, contexts)
    return Book(table, _known(shown_contexts(table.frame.with_columns(frame["shown"])), contexts))


def _known(recorded: Contexts, given: Contexts | None) -> Contexts:
    """What was recorded goes before what is given, which may be deeper than what was shown."""
    rest = [] if given is None else [given.only(name) for name in given.systems if name not in recorded.systems]
    return Contexts.concat([recorded, *rest])


def made(
    kind: str,
    card: Card | None,
    collection: Collection,
    book: Book,
    prompts: str | Path | None,
    settings: dict[str, Any],
) -> Grader:
    """A grader by its name; what it cannot work with is refused here."""
    if not book.answers:
        raise InputError("there are no answers to grade", expected="a table of answers with at least one row")
    chosen = GRADERS.get(kind)
    return chosen(card, Texts(collection), book, prompts, **given(chosen, settings, kind))


def some(answers: Sequence[Answer], limit: int | None, sample: int | None, seed: int) -> list[Answer]:
    """The answers to the first ``limit`` queries, or to ``sample`` queries drawn at random."""
    kept = set(drawn((each.query for each in answers), limit, sample, seed))
    return [each for each in answers if each.query in kept]


def planned(grader: Grader, answers: Sequence[Answer], job: Job) -> Forecast:
    """What grading these answers would take."""
    return forecast(job, map(grader.judge, answers), more=lambda round_: round_ + 1 < grader.rounds)


def finished(grader: Grader, answers: Sequence[Answer], job: Job | None) -> Graded:
    """Grade them all, and put the repeats together."""
    grader.prepare(answers)
    work = map(grader.judge, answers)
    found = run(job, work) if job is not None else map(_alone, work)
    source, rows = grader.source, []
    for each, one in zip(answers, found, strict=True):
        keys = {"system": each.system, "query": each.query, "repeat": each.repeat}
        given_by = f" ← {each.source}" if each.source != "given" else ""
        rows += [{**row, "source": row["source"] + given_by} for row in rows_of(keys, grader.aspects, one, source)]
    keys_schema = {"system": pl.String, "query": pl.String, "repeat": pl.Int64, "aspect": pl.String}
    facts = {"value": pl.Float64, "status": pl.String, "source": pl.String, "reason": pl.String, "raw": pl.String}
    single = frame_of(rows, {**keys_schema, **facts, **grader.details})
    frame = _outcomes(rows, grader)
    notes = [*missing_notes(frame, "outcome"), *_notes(frame, answers), *grader.notes()]
    return Graded(Outcomes.trusted(frame, tuple(notes)), frame, single, tuple(notes))


def _alone(steps: Steps[Finding]) -> Finding | NoValue:
    """What comes of work that asks nobody."""
    try:
        next(steps)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    except NoValue as none:
        return none
    raise AssertionError("a grader that needs no model asks one")


def _outcomes(rows: Sequence[Mapping[str, Any]], grader: Grader) -> pl.DataFrame:
    """A row for each (system, query, aspect), in order of first appearance."""
    together: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        together.setdefault((row["system"], row["query"], row["aspect"]), []).append(row)
    schema = {
        **Outcomes.schema,
        "reason": pl.String,
        "raw": pl.String,
        "repeats": pl.Int64,
        "of": pl.Int64,
        "each": pl.List(pl.Float64),
        **grader.details,
    }
    return frame_of([_outcome(each) for each in together.values()], schema)


def _outcome(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    values = [row["value"] for row in rows]
    good = [value for value in values if value is not None]
    facts = {"repeats": len(good), "of": len(rows), "each": values}
    if len(rows) == 1:
        return {**rows[0], **facts}
    first = next((row for row in rows if row["status"] == OK), rows[0])
    kept = {name: first.get(name) for name in ("system", "query", "aspect", "status", "source")}
    reason = {} if good else {"reason": first.get("reason"), "raw": first.get("raw")}
    return {**kept, **reason, **facts, "value": fmean(good) if good else None}


def _notes(frame: pl.DataFrame, answers: Sequence[Answer]) -> Iterator[str]:
    partly = frame.filter((pl.col("repeats") > 0) & (pl.col("repeats") < pl.col("of"))).height
    if partly:
        yield f"{counted(partly, 'outcome')} out of fewer answers than there are: some could not be graded"
    ended = sum(each.status == TRUNCATED for each in answers)
    if ended:
        yield f"{counted(ended, 'answer')} that ended at the greatest length, graded all the same"
