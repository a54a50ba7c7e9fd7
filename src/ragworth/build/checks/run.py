"""Run checks on a set of questions: retrieval, the reader, the judge, and the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from ragworth.build.checks import CHECKS
from ragworth.build.checks.contract import Check, Evidence, ReaderReply, Reading
from ragworth.build.checks.reader import Reader, judge_undecided
from ragworth.build.question_set import QuestionSet
from ragworth.calls.job import Job
from ragworth.calls.programs import Forecast, NoValue
from ragworth.core.errors import MissingExtraError, ModelError
from ragworth.data import Contexts
from ragworth.judging.contract import plan_task, run_task
from ragworth.retrieval.pipeline import StepContext

RETRIEVERS = ("bm25", "dense")
DEPTH = 10
SCHEMA = {"question": pl.String, "check": pl.String, "verdict": pl.String, "value": pl.Float64, "reason": pl.String}


@dataclass(frozen=True)
class CheckSettings:
    """How to check: which checks, the encoder (``none`` for none), a cache of vectors, own prompts, and who is told how
    far the encoding of passages is: its name, the amount done, and the total."""

    names: tuple[str, ...] = ()
    encoder: str = "embedded"
    cache: Path | None = None
    prompts: str | Path | None = None
    told: Callable[[str, int, int], None] | None = None

    @property
    def checks(self) -> list[Check]:
        return [CHECKS.get(name)() for name in (self.names or CHECKS.names())]


@dataclass(frozen=True, eq=False)
class CheckResult:
    """The finding of every check on every question, and notes."""

    questions: QuestionSet
    frame: pl.DataFrame
    """question, check, verdict, value, reason."""
    notes: tuple[str, ...]
    repeats: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By question: earlier ones that it asks again, the most similar first."""

    def failed(self, check: str) -> list[str]:
        """Ids of the questions that fail a check, in order."""
        return self.frame.filter((pl.col("check") == check) & (pl.col("verdict") == "fail"))["question"].to_list()


def gather_evidence(questions: QuestionSet, settings: CheckSettings) -> tuple[Evidence, Contexts | None]:
    """What checks need before the reader is asked: what each retriever finds, and why one is missing."""
    missing: dict[str, str] = {}
    if settings.encoder == "none":
        missing["encoder"] = "the encoder is switched off"
    elif problem := _encoder_problem(settings.encoder):
        missing["encoder"] = problem
    found: list[Contexts] = []
    if any(check.retrieves for check in settings.checks) and questions.questions and questions.passages.height:
        for name in RETRIEVERS:
            pipeline = _pipeline(name, settings.encoder, missing)
            contexts = _retrieve(name, pipeline, questions, settings, missing) if pipeline else None
            found += [contexts] if contexts is not None else []
    every = Contexts.concat(found) if found else None
    return Evidence(questions, {}, _ranked(every), missing, settings.encoder), every


def _encoder_problem(encoder: str) -> str:
    from ragworth.retrieval.encoders import open_encoder

    try:
        open_encoder(encoder)
    except (MissingExtraError, ModelError) as error:
        return str(error).splitlines()[0]
    return ""


def _pipeline(name: str, encoder: str, missing: dict[str, str]) -> str:
    if name == "bm25":
        return f"bm25 % {DEPTH}"
    if "encoder" in missing:
        missing[name] = f"no dense retrieval: {missing['encoder']}"
        return ""
    return f'dense("{encoder}") % {DEPTH}' if encoder != "embedded" else f"dense % {DEPTH}"


def _retrieve(
    name: str, pipeline: str, questions: QuestionSet, settings: CheckSettings, missing: dict[str, str]
) -> Contexts | None:
    from ragworth.retrieval import retrieve

    try:
        return retrieve(
            {name: pipeline}, StepContext.of(questions.collection, cache=settings.cache, progress=settings.told)
        )
    except MissingExtraError as error:
        missing[name] = str(error).splitlines()[0]
        return None


def _ranked(contexts: Contexts | None) -> dict[str, dict[str, tuple[str, ...]]]:
    lists: dict[str, dict[str, list[str]]] = {}
    if contexts is not None:
        columns = contexts.frame.sort("system", "query", "rank", maintain_order=True)
        for system, query, passage in columns.select("system", "query", "passage").iter_rows():
            lists.setdefault(system, {}).setdefault(query, []).append(passage)
    return {system: {query: tuple(ids) for query, ids in each.items()} for system, each in lists.items()}


def needed_readings(evidence: Evidence, checks: Sequence[Check]) -> list[Reading]:
    """What all checks ask the reader, each thing once."""
    wanted = (
        reading
        for check in checks
        for question in evidence.questions.questions
        for reading in check.readings(question, evidence)
    )
    return list(dict.fromkeys(wanted))


def plan_checks(questions: QuestionSet, settings: CheckSettings, reader: Job | None) -> Forecast | None:
    """The calls that `run_checks` would make; None if no model is asked.

    Nothing is encoded for a plan, so passages that only dense retrieval finds for unanswerable questions aren't in it.
    """
    if reader is None:
        return None
    evidence, _ = gather_evidence(questions, replace(settings, encoder="none"))
    task = Reader(reader.card, questions, settings.prompts)
    return plan_task(task, needed_readings(evidence, settings.checks), reader)


def _easy_note(questions: QuestionSet, contexts: Contexts | None) -> list[str]:
    """A warning if retrieval had nothing to go wrong with, as in a dataset that has only the relevant passages."""
    relevant = {id for question in questions.questions for id in question.relevant}
    if contexts is None or not questions.passages["passage"].is_in(list(relevant)).all():
        return []
    return ["every passage is relevant to a question, so retrieval is easier here than among all of your passages"]


def run_checks(
    questions: QuestionSet, settings: CheckSettings, reader: Job | None = None, judge: Job | None = None
) -> CheckResult:
    """All findings. Without a reader, the checks that need one are ``unknown``, and the notes say so."""
    evidence, contexts = gather_evidence(questions, settings)
    notes = [f"{name}: {reason}" for name, reason in evidence.missing.items()]
    replies: Mapping[Reading, ReaderReply | NoValue] = {}
    wanted = needed_readings(evidence, settings.checks)
    if reader is not None and wanted:
        read = run_task(Reader(reader.card, questions, settings.prompts), wanted, reader)
        replies = read.replies
        notes += read.notes
        if judge is not None:
            replies, more = judge_undecided(replies, questions, judge, settings.prompts)
            notes += more
    elif wanted:
        skipped = ", ".join(check.name for check in settings.checks if check.asks_reader)
        notes.append(f"no reader was asked, so these checks say nothing: {skipped}")
    notes += _easy_note(questions, contexts)
    evidence = Evidence(questions, replies, evidence.retrieved, evidence.missing, settings.encoder)
    ids = [question.id for question in questions.questions]
    found = [
        (id, check.name, each)
        for check in settings.checks
        for id, each in zip(ids, check.find_all(evidence), strict=True)
    ]
    rows = [(id, name, each.verdict, each.value, each.reason) for id, name, each in found]
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    repeats = {id: each.repeats for id, _, each in found if each.repeats}
    return CheckResult(questions, frame, (*questions.notes, *notes), repeats)
