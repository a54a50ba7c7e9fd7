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

from ragworth.calls.job import Job
from ragworth.calls.programs import Forecast, NoValue, Steps, forecast, run
from ragworth.calls.store import Store
from ragworth.collection import Collection
from ragworth.errors import InputError, counted
from ragworth.formats.answers import shown_column
from ragworth.generation.answer_book import Answer, Book
from ragworth.generation.answering import Answered, shown_contexts
from ragworth.graders.contract import Grader
from ragworth.llm.contract import Card, Model
from ragworth.registry import Registry
from ragworth.tables import OK, TRUNCATED, Answers, Contexts, Outcomes
from ragworth.tables.coercion import Data, to_frame
from ragworth.tasks.findings import Finding, frame_of, missing_notes, rows_of
from ragworth.tasks.models import opened
from ragworth.tasks.options import given
from ragworth.tasks.query_sample import of_queries
from ragworth.tasks.text_lookup import Texts

GRADERS: Registry[type[Grader]] = Registry(
    "grader",
    "ragworth.graders",
    {
        "deterministic": "ragworth.graders.deterministic:Deterministic",
        "judge": "ragworth.graders.judge:Judge",
        "ideal": "ragworth.graders.ideal:Ideal",
        "text": "ragworth.graders.text:Text",
        "bertscore": "ragworth.graders.bertscore:Bertscore",
        "utility": "ragworth.graders.utility:Utility",
        "coverage": "ragworth.graders.coverage:Coverage",
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
    model: Model | str | None = None,
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
    book = book_of(answers, contexts)
    things = of_queries(book.answers, limit, sample, sample_seed)
    if not GRADERS.get(kind).asks:
        return finished(made(kind, None, collection, book, prompts, settings), things, None)
    with Job(opened(model), store) as job:
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
    return Book(table, _known(shown_contexts(table.frame.with_columns(shown_column(frame))), contexts))


def _known(recorded: Contexts, given: Contexts | None) -> Contexts:
    """What was recorded of a system and query goes before what is given, which may be deeper than what was shown."""
    if given is None:
        return recorded
    pair = ["system", "query"]
    bare = pl.DataFrame(sorted(recorded.empty), schema=dict.fromkeys(pair, pl.String), orient="row")
    known = pl.concat([recorded.frame.select(pair), bare]).unique()
    merged = Contexts.trusted(pl.concat([recorded.frame, given.frame.join(known, on=pair, how="anti")]))
    merged.empty = recorded.empty | (given.empty - set(known.rows()))
    return merged


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


def parted(grader: Grader, answers: Sequence[Answer]) -> tuple[list[Answer], list[Answer]]:
    """The answers that are to have an outcome, and those that are judged as controls; refused where none are."""
    graded = [each for each in answers if grader.graded(each)]
    if not graded:
        raise InputError(
            "there are no answers to grade",
            expected="answers of a system that is not only there for others to be held against",
        )
    grader.check_for(graded)
    return graded, [each for each in answers if not grader.graded(each) and grader.control(each)]


def planned(grader: Grader, answers: Sequence[Answer], job: Job, *, controlled: bool = True) -> Forecast:
    """What grading these answers would take."""
    graded, controls = parted(grader, answers)
    work = map(grader.judge, [*graded, *(controls if controlled else [])])
    return forecast(job, work, more=lambda round_: round_ + 1 < grader.rounds)


def finished(grader: Grader, answers: Sequence[Answer], job: Job | None, *, controlled: bool = True) -> Graded:
    """Grade them all, and put the repeats together. Without ``controlled``, controls are left out."""
    graded, controls = parted(grader, answers)
    controls = controls if controlled else []
    grader.prepare([*controls, *graded])
    work = map(grader.judge, [*controls, *graded])
    found = iter(run(job, work) if job is not None else map(_alone, work))
    known = [next(found) for _ in controls]
    source, rows = grader.source, []
    for each, one in zip(graded, found, strict=True):
        keys = {"system": each.system, "query": each.query, "repeat": each.repeat}
        given_by = f" ← {each.source}" if each.source != "given" else ""
        rows += [{**row, "source": row["source"] + given_by} for row in rows_of(keys, grader.aspects, one, source)]
    keys_schema = {"system": pl.String, "query": pl.String, "repeat": pl.Int64, "aspect": pl.String}
    facts = {"value": pl.Float64, "status": pl.String, "source": pl.String, "reason": pl.String, "raw": pl.String}
    single = frame_of(rows, {**keys_schema, **facts, **grader.details})
    frame = _outcomes(rows, grader)
    notes = [
        *missing_notes(frame, "outcome"),
        *_notes(frame, graded),
        *grader.doubts(single),
        *grader.notes(graded, known),
    ]
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
