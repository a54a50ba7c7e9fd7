"""The stages of an evaluation, each from what it needs to what it gives; what was made before is taken as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import polars as pl

from ragworth.annotators import annotation
from ragworth.annotators.contract import AnnotationItem, Annotator
from ragworth.calls.job import Job
from ragworth.calls.serialization import model_digest
from ragworth.collection import WORD_UNIT
from ragworth.config import TaskConfig
from ragworth.errors import InputError
from ragworth.evaluation.default_metrics import default_metrics
from ragworth.evaluation.model_pool import StageProgress, may_succeed_later, run_metered
from ragworth.evaluation.notes import notes_by_system, prefix_system_names
from ragworth.evaluation.retrieval_models import WorkspaceAsker, all_steps, steps_with_models
from ragworth.evaluation.stage_cache import StageResult, file_digest, frame_digest
from ragworth.evaluation.state import EvaluationState, task_settings
from ragworth.generation import answering
from ragworth.generation.answering import AnsweringResult, shown_contexts
from ragworth.generation.writer import AnswerItem as Wanted
from ragworth.generation.writer import AnswerWriter
from ragworth.graders import grading
from ragworth.graders.contract import Grader
from ragworth.graders.grading import GRADERS
from ragworth.metrics.engine import Tokens
from ragworth.retrieval import Pipeline, retrieve
from ragworth.retrieval.rerankers.asker import StepForecast
from ragworth.scoring import metric_file_digests, score
from ragworth.tables import OK, Answers, Contexts, Judgments, Outcomes, Ratings, Scores, Table

T = TypeVar("T", bound=Table)

STAGES = ("retrieve", "annotate", "answer", "grade", "score", "report")
"""In their order; reading the files comes before all of them."""

NEEDS = {
    "retrieve": (),
    "annotate": ("retrieve",),
    "answer": ("retrieve",),
    "grade": ("retrieve", "answer"),
    "score": ("retrieve", "annotate"),
    "report": STAGES[:-1],
}
"""What each stage cannot do without."""


def run_retrieve(state: EvaluationState, *, plan: bool = False, release: bool = False) -> list[StepForecast]:
    """What each system shows.

    ``plan``: no model is asked. Lists that one would have to be asked about stay in the order before, and what that
    would take is told. ``release``: runs that were read from files are dropped once nothing needs them.
    """
    material, asker = state.material, WorkspaceAsker(state.models, state.folder, plan=plan)
    setting = replace(material.setting, asking=asker)
    steps, asking = list(all_steps(material.systems)), steps_with_models(material.systems)

    def found(watching: StageProgress | None) -> tuple[Contexts, dict[str, list[str]]]:
        asker.watching = watching
        told = watching.working if watching is not None else None
        made = retrieve(material.systems, replace(setting, told=told))
        notes = (*made.notes, *material.collection.unknown(made))
        noted = notes_by_system(notes, material.systems)
        made.notes = tuple(prefix_system_names(notes, noted))
        return made, noted

    if plan and asking:
        state.contexts, _ = found(state.console.begun("retrieve"))
        return asker.told
    labelled = any({"relevance", "judgments"} & set(step.needs) for step in steps)
    key = {
        "systems": [[name, _system_key(system)] for name, system in material.systems.items()],
        "files": {str(step): list(map(file_digest, step.files(setting))) for step in steps},
        "sources": {str(step): step.sources(setting) for step in steps},
        "queries": [setting.ids, frame_digest(setting.queries)],
        "passages": material.texts_key[1],
        "labels": [frame_digest(table) for table in material.given] if labelled else [],
        "seed": setting.seed,
        "depth": setting.depth,
    }

    def make(watching: StageProgress | None) -> StageResult:
        contexts, noted = found(watching)
        facts = {"empty": sorted(contexts.empty), "notes": list(contexts.notes), "noted": noted, **asker.facts}
        lasting = not asker.told and not (asker.facts and may_succeed_later(asker.facts))
        return StageResult({}, facts, lasting=lasting, tables={"contexts": contexts})

    for step in asking:
        state.prompts |= step.templates(setting)
    if release and state.kept.has("retrieve", key):
        material.systems.clear()  # before the same contexts are read back from the cache
    made = state.stage("retrieve", key, make)
    if release:
        material.systems.clear()
    state.contexts = _table(made, "contexts", Contexts)
    state.contexts.empty = frozenset((system, query) for system, query in made.facts["empty"])
    return asker.told


def _table(made: StageResult, name: str, kind: type[T]) -> T:
    """A large table of a stage, made now or read back."""
    table = made.tables.get(name)
    found = table if isinstance(table, kind) else kind.trusted(made.frames[name])
    found.notes = tuple(made.facts["notes"])
    return found


def _system_key(system: Pipeline | Contexts) -> Any:
    return contexts_key(system) if isinstance(system, Contexts) else str(system)


def contexts_key(contexts: Contexts) -> list[Any]:
    """What contexts are, in short."""
    return [frame_digest(contexts), sorted(contexts.empty)]


def stage_annotator(state: EvaluationState, kind: str, job: Job) -> Annotator:
    """A kind of judgment as the workspace has it."""
    settings = task_settings(state.space.judgments[kind], state.space)
    return annotation.build_annotator(kind, job.card, state.collection, state.folder, settings)


def items_to_judge(state: EvaluationState, annotator: Annotator) -> list[AnnotationItem]:
    """What is to be judged: what is shown, where no label and no file says already what it is."""
    things = annotation.annotation_items(annotator, state.shown, state.collection)
    if annotator.judged != "passage":
        return things
    wanted = set(annotator.valued)
    known: dict[tuple[str, str], set[str]] = {}
    for table in state.material.given:
        rows = table.frame.filter(pl.col("aspect").is_in(list(wanted)))
        for query, passage, aspect in rows.select("query", "passage", "aspect").iter_rows():
            known.setdefault((query, passage), set()).add(aspect)
    for item in things:
        some = known.get((item.query, item.passage), wanted)
        if some != wanted:
            raise InputError(
                f"of {', '.join(sorted(wanted))}, files say {', '.join(sorted(some))} alone of the passage "
                f"{item.passage!r} for the query {item.query!r}",
                expected="all that the kind gives, or nothing",
            )
    return [item for item in things if (item.query, item.passage) not in known]


def run_annotate(state: EvaluationState, kind: str) -> None:
    """One kind of judgment."""
    name, task = f"annotate.{kind}", state.space.judgments[kind]
    with state.models.job(task.model) as job:
        annotator = stage_annotator(state, kind, job)
        state.prompts |= {each: annotator.prompt(each) for each in annotator.asked}
        things = items_to_judge(state, annotator)
        if not things:
            state.did(name, "skipped", notes=["nothing was left to judge: labels or files say it all"])
            return
        key = stage_key(state, job, task, [annotator.source]) | {"items": things}
        made = state.stage(name, key, partial(annotate_items, annotator, things, job, name))
    frame = state.said[kind] = made.frames["said"]
    if annotator.judged == "rating":
        state.ratings = Ratings.trusted(frame)
    elif annotator.judged == "context":
        add_outcomes(state, kind, frame)
    else:
        state.judgments.append(Judgments.trusted(frame))


def annotate_items(
    annotator: Annotator, things: Sequence[AnnotationItem], job: Job, name: str, watching: StageProgress | None
) -> StageResult:
    """What a kind of judgment gives for some things."""
    found, facts = run_metered(job, name, watching, partial(annotation.run_annotation, annotator, things, job))
    return StageResult(
        {"said": found.frame}, {**facts, "notes": list(found.notes)}, lasting=not may_succeed_later(facts)
    )


def answerable_contexts(state: EvaluationState) -> Contexts:
    """The contexts that are answered from: where some queries have accepted answers, only theirs."""
    writing, answers = state.space.answers, state.collection.answers
    if writing is None or writing.everything or not answers.height:
        return state.shown
    known = set(answers["query"].unique())
    made = Contexts.trusted(state.shown.frame.filter(pl.col("query").is_in(list(known))))
    made.empty = frozenset(pair for pair in state.shown.empty if pair[1] in known)
    return made


def stage_writer(state: EvaluationState, job: Job, *, plan: bool = False) -> tuple[AnswerWriter, list[Wanted]]:
    """How answers are asked for, and which."""
    writing = state.space.answers
    assert writing is not None
    settings = task_settings(writing.task, state.space)
    writer = answering.build_writer(job, state.collection, state.folder, state.space.k, settings, plan=plan)
    contexts = answerable_contexts(state)
    extra = {"without": writing.without, "oracle": writing.oracle}
    return writer, answering.answer_items(writer, contexts, state.collection, **extra)


def run_answer(state: EvaluationState) -> None:
    """What the model answers from each context."""
    writing = state.space.answers
    if writing is None:
        return
    if writing.file is not None:
        state.answers = state.material.answers
        assert state.answers is not None
        state.said["answers"] = state.answers.frame
        state.did("answer", "given", notes=list(state.answers.notes))
        return
    with state.models.job(writing.task.model) as job:
        writer, things = stage_writer(state, job)
        state.prompts[writer.template.name] = writer.template
        if writing.without:
            state.prompts[writer.template_alone.name] = writer.template_alone
        sources = [writer.source(system) for system in sorted({item.system for item in things})]
        key = stage_key(state, job, writing.task, sources) | {"items": things}
        key["oracle"] = state.material.labels_key if writing.oracle or writer.tie_k or writer.tie_length else ""
        made = state.stage("answer", key, partial(_answer_items, writer, things, job))
    frame = state.said["answers"] = made.frames["said"]
    notes = tuple(made.facts["notes"])
    state.answers = AnsweringResult(Answers.trusted(frame, notes), frame, shown_contexts(frame), notes)


def _answer_items(
    writer: AnswerWriter, things: Sequence[Wanted], job: Job, watching: StageProgress | None
) -> StageResult:
    found, facts = run_metered(job, "answer", watching, partial(answering.run_answering, writer, things, job))
    return StageResult(
        {"said": found.frame}, {**facts, "notes": list(found.notes)}, lasting=not may_succeed_later(facts)
    )


def run_grade(state: EvaluationState, kind: str) -> None:
    """One way of grading the answers."""
    task = state.space.grades[kind]
    if GRADERS.get(kind).asks:
        with state.models.job(task.model) as job:
            made = _grade_answers(state, kind, task, job)
    else:
        made = _grade_answers(state, kind, task, None)
    add_outcomes(state, kind, made.frames["said"])


def stage_grader(state: EvaluationState, kind: str, job: Job | None) -> Grader:
    """A grader as the workspace has it, for all answers."""
    assert state.answers is not None
    settings = task_settings(state.space.grades[kind], state.space)
    book = grading.to_answer_book(state.answers, state.shown)
    return grading.build_grader(kind, job.card if job else None, state.collection, book, state.folder, settings)


def _grade_answers(state: EvaluationState, kind: str, task: TaskConfig, job: Job | None) -> StageResult:
    grader, name = stage_grader(state, kind, job), f"grade.{kind}"
    if grader.asks:
        state.prompts[grader.prompt.name] = grader.prompt
    key = stage_key(state, job, task, [grader.source]) | {
        "answers": frame_digest(state.said["answers"]),
        "contexts": contexts_key(state.shown),
        "labels": state.material.labels_key,
    }

    def make(watching: StageProgress | None) -> StageResult:
        if job is None:
            found = grading.run_grading(grader, grader.book.answers, None)
            return StageResult({"said": found.frame}, {"notes": list(found.notes)})
        work = partial(grading.run_grading, grader, grader.book.answers, job)
        found, facts = run_metered(job, name, watching, work)
        return StageResult(
            {"said": found.frame}, {**facts, "notes": list(found.notes)}, lasting=not may_succeed_later(facts)
        )

    return state.stage(name, key, make)


def add_outcomes(state: EvaluationState, kind: str, frame: pl.DataFrame) -> None:
    """Outcomes of a kind. Where another, or a file, came first with the same aspect, this one is called KIND-ASPECT."""
    taken = {aspect for table in state.outcomes for aspect in table.frame["aspect"].unique()}
    own = pl.col("aspect")
    renamed = pl.when(own.is_in(list(taken))).then(pl.lit(f"{kind}-") + own).otherwise(own)
    named = frame.with_columns(renamed.alias("aspect"))
    state.said["grade" if "grade" in named["aspect"].unique() else kind] = named
    state.outcomes.append(Outcomes.trusted(named))


def run_score(state: EvaluationState) -> None:
    """Every metric for every system and query."""
    metrics = state.space.metrics or default_metrics(known_aspects(state), state.space.k)
    judgments = state.all_judgments = Judgments.concat(state.judgments) if state.judgments else None
    key = {
        "contexts": contexts_key(state.contexts),
        "judgments": frame_digest(judgments),
        "ratings": frame_digest(state.ratings),
        "passages": state.material.texts_key[1],
        "metrics": metrics,
        "files": metric_file_digests(list(metrics), state.space.folder),
    }

    def make(watching: StageProgress | None) -> StageResult:
        passages = state.collection.passages.height
        tokens = Tokens.of(state.collection.tokens(), WORD_UNIT) if passages else None
        found = score(
            state.contexts, judgments, list(metrics), ratings=state.ratings, tokens=tokens, folder=state.space.folder
        )
        # What came with the contexts was told with them.
        notes = [note for note in found.notes if note not in state.contexts.notes]
        return StageResult({}, {"notes": notes}, tables={"scores": found})

    made = state.stage("score", key, make)
    state.scores = _table(made, "scores", Scores)


def known_aspects(state: EvaluationState) -> set[str]:
    """What there is for metrics to read: aspects of judgments that have a value, ratings, lengths of passages."""
    parts = [part for table in state.judgments for part in table.parts]
    good = [part.select(pl.col("aspect").filter(pl.col("status") == OK).unique()).to_series() for part in parts]
    found = {aspect for aspects in good for aspect in aspects}
    found |= {"ratings"} if state.ratings is not None and state.ratings.frame.height else set()
    return found | ({"tokens"} if state.collection.passages.height else set())


def stage_key(state: EvaluationState, job: Job | None, task: TaskConfig, sources: Sequence[str]) -> dict[str, Any]:
    """What everything depends on that is asked, or compared, one by one."""
    return {
        "model": model_digest(job.card).hex() if job is not None else "",
        "declining": job.card.declining if job is not None else None,
        "settings": dict(task.settings),
        "sources": sources,
        "texts": state.material.texts_key,
    }
