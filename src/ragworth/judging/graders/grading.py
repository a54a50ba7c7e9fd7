"""From answers to outcomes: which are to be graded, the job that does it, and the table that comes of it.

Several answers to a query (repeats) make one outcome: the mean of those that have a value. An answer that could
not be graded has no value; it never counts as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from ragworth.calls.job import Job
from ragworth.calls.programs import NoValue, Program
from ragworth.calls.store import Store
from ragworth.core.errors import InputError, format_count
from ragworth.core.registry import Registry
from ragworth.data import OK, TRUNCATED, Answers, Contexts, Outcomes
from ragworth.data.coercion import Data, to_frame
from ragworth.data.collection import Collection
from ragworth.formats.tables import parse_shown
from ragworth.judging.answers.answer_book import Answer, AnswerBook
from ragworth.judging.answers.writer import AnsweringResult, shown_contexts
from ragworth.judging.contract import Task, options_by_name, resolve_model, run_task
from ragworth.judging.findings import (
    UNFIT_MODEL,
    VALUE_COLUMNS,
    AspectValues,
    aspect_rows,
    frame_from_rows,
    missing_notes,
)
from ragworth.judging.graders.contract import Grader
from ragworth.judging.text_lookup import TextLookup, sample_by_query
from ragworth.llm.contract import Card, Model
from ragworth.llm.prompts.template import Template

GRADERS: Registry[type[Grader]] = Registry(
    "grader",
    "ragworth.graders",
    {
        "deterministic": "ragworth.judging.graders.deterministic:DeterministicGrader",
        "judge": "ragworth.judging.graders.judge:JudgeGrader",
        "ideal": "ragworth.judging.graders.ideal:IdealGrader",
        "text": "ragworth.judging.graders.text:TextGrader",
        "bertscore": "ragworth.judging.graders.bertscore:BERTScoreGrader",
        "utility": "ragworth.judging.graders.utility:UtilityGrader",
        "coverage": "ragworth.judging.graders.coverage:CoverageGrader",
        "support": "ragworth.judging.graders.support:SupportGrader",
        "citations": "ragworth.judging.graders.citations:CitationGrader",
        "contribution": "ragworth.judging.graders.contribution:ContributionGrader",
    },
)


@dataclass(frozen=True)
class GradingResult:
    """Outcomes: the table that studies read, and frames that have what is known of each beside it."""

    table: Outcomes
    frame: pl.DataFrame
    """The table's columns; then ``reason`` and ``raw``; ``repeats`` of ``of`` answers that have a value, and the
    value of ``each``; then the details of the grader where the outcome is that of one answer, or their mean over the
    answers for those that are averaged. Answers that are missing altogether count in ``of`` where the grader knows how
    many there should be."""
    answers: pl.DataFrame
    """The same for every single answer, with its details."""
    notes: tuple[str, ...] = ()


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
) -> GradingResult:
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
    things = sample_by_query(book.answers, limit, sample, sample_seed)
    if not GRADERS.get(kind).asks_model:
        return run_grading(build_grader(kind, None, collection, book, prompts, settings), things, None)
    with Job(resolve_model(model), store) as job:
        return run_grading(build_grader(kind, job.card, collection, book, prompts, settings), things, job)


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


def build_grader(
    kind: str,
    card: Card | None,
    collection: Collection,
    book: AnswerBook,
    prompts: str | Path | None,
    settings: dict[str, Any],
) -> Grader:
    """A grader by its name; what it cannot work with is refused here."""
    if not book.answers:
        raise InputError("there are no answers to grade", expected="a table of answers with at least one row")
    chosen = GRADERS.get(kind)
    return chosen(card, TextLookup(collection), book, prompts, **options_by_name(chosen, settings, kind))


@dataclass(frozen=True)
class GradingTask(Task[Answer, AspectValues, GradingResult]):
    """Grades answers. ``controlled`` are others that are judged besides, to see what the judge makes of them."""

    grader: Grader
    controlled: Sequence[Answer] = ()

    @property
    def max_rounds(self) -> int:
        return self.grader.rounds

    @property
    def templates(self) -> dict[str, Template]:
        return {self.grader.template.name: self.grader.template} if self.grader.asks_model else {}

    def program(self, item: Answer) -> Program[AspectValues]:
        return self.grader.program(item)

    def controls(self) -> list[Program[AspectValues]]:
        return [*self.grader.control_programs(), *(self.grader.program(answer) for answer in self.controlled)]

    def prepare(self, items: Sequence[Answer]) -> None:
        self.grader.prepare([*self.controlled, *items])

    def collect(
        self,
        items: Sequence[Answer],
        findings: Iterable[AspectValues | NoValue],
        controls: Sequence[AspectValues | NoValue],
    ) -> GradingResult:
        grader, rows = self.grader, []
        source = grader.source
        own, controls = (
            controls[: len(controls) - len(self.controlled)],
            controls[len(controls) - len(self.controlled) :],
        )
        unfit = grader.unfit_reason(own)
        for answer, found_value in zip(items, findings, strict=True):
            finding = _withdrawn(found_value, unfit) if unfit else found_value
            keys = {"system": answer.system, "query": answer.query, "repeat": answer.repeat}
            origin = f" ← {answer.source}" if answer.source != "given" else ""
            found = aspect_rows(keys, grader.aspects, finding, source)
            rows += [{**row, "source": row["source"] + origin} for row in found]
        keys_schema = {"system": pl.String, "query": pl.String, "repeat": pl.Int64, "aspect": pl.String}
        single = frame_from_rows(rows, {**keys_schema, **VALUE_COLUMNS, **grader.details})
        frame = _outcomes(rows, grader)
        notes = [
            *missing_notes(frame, "outcome"),
            *_notes(frame, items),
            *([unfit] if unfit else []),
            *(grader.control_notes(own) if own else []),
            *grader.warnings(single),
            *grader.notes(items, controls),
        ]
        return GradingResult(Outcomes.trusted(frame, tuple(notes)), frame, single, tuple(notes))


def _withdrawn(finding: AspectValues | NoValue, reason: str) -> AspectValues | NoValue:
    """A finding of a model that is unfit to judge: without its values, with what the model said."""
    if isinstance(finding, NoValue):
        return finding
    return finding._replace(values=dict.fromkeys(finding.values, NoValue(UNFIT_MODEL, reason)))


def grading_task(grader: Grader, answers: Sequence[Answer]) -> tuple[GradingTask, list[Answer]]:
    """The task, and the answers that get an outcome; refused where none does."""
    graded = [each for each in answers if grader.graded(each)]
    if not graded:
        raise InputError(
            "there are no answers to grade",
            expected="answers of a system that is not only there for others to be held against",
        )
    grader.check_for(graded)
    others = [each for each in answers if not grader.graded(each) and grader.control(each)]
    return GradingTask(grader, others), graded


def run_grading(grader: Grader, answers: Sequence[Answer], job: Job | None) -> GradingResult:
    """Grade answers, and put the repeats together."""
    task, graded = grading_task(grader, answers)
    return run_task(task, graded, job)


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
    return frame_from_rows([_outcome(each, grader) for each in together.values()], schema)


def _outcome(rows: Sequence[Mapping[str, Any]], grader: Grader) -> dict[str, Any]:
    values = [row["value"] for row in rows]
    good = [value for value in values if value is not None]
    facts = {"repeats": len(good), "of": max(len(rows), grader.expected_repeats), "each": values}
    if len(rows) == 1:
        return {**rows[0], **facts}
    first = next((row for row in rows if row["status"] == OK), rows[0])
    kept = {name: first.get(name) for name in ("system", "query", "aspect", "status", "source")}
    reason = {} if good else {"reason": first.get("reason"), "raw": first.get("raw")}
    means = {name: fmean(known) for name in grader.averaged if (known := [row[name] for row in rows if name in row])}
    return {**kept, **reason, **means, **facts, "value": fmean(good) if good else None}


def _notes(frame: pl.DataFrame, answers: Sequence[Answer]) -> Iterator[str]:
    known = frame.filter(pl.col("repeats") > 0)
    partly = known.filter(pl.col("repeats") < pl.col("of")).height
    if partly:
        number = f"{known['of'][0]} repeats" if known["of"].n_unique() == 1 else "all their repeats"
        verb = "comes" if partly == 1 else "come"
        yield (
            f"{partly:,} of {format_count(known.height, 'outcome')} {verb} from fewer than {number}: "
            "the other answers are missing or could not be graded"
        )
    ended = sum(each.status == TRUNCATED for each in answers)
    if ended:
        yield f"{format_count(ended, 'answer')} that ended at the greatest length, graded all the same"
