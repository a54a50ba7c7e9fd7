"""The stages of an evaluation, each from what it needs to what it gives; what was made before is taken as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import polars as pl

from ragworth.annotators import ANNOTATORS, annotation
from ragworth.annotators.answer_confidence import AnswerConfidence, written_answers
from ragworth.annotators.containment import ContainmentAnnotator
from ragworth.annotators.contract import NO_MODEL, AnnotationItem, Annotator
from ragworth.calls.job import Job
from ragworth.calls.serialization import model_digest
from ragworth.config import AnswerConfig, TaskConfig
from ragworth.errors import InputError, format_count
from ragworth.evaluation.default_metrics import default_metrics
from ragworth.evaluation.model_pool import StageProgress, may_succeed_later, run_metered
from ragworth.evaluation.notes import notes_by_system, prefix_system_names
from ragworth.evaluation.retrieval_models import WorkspaceAsker, all_steps, steps_with_models
from ragworth.evaluation.stage_cache import StageResult, file_digest, frame_digest
from ragworth.evaluation.state import EvaluationState, StagePlan, task_settings
from ragworth.generation import answering
from ragworth.generation.writer import NO_CONTEXT_SYSTEM, ORACLE_SYSTEM, AnsweringResult, shown_contexts
from ragworth.graders import grading
from ragworth.graders.grading import GRADERS
from ragworth.metrics.engine import NOT_IN_RUN
from ragworth.results import SINGLE_ANSWERS
from ragworth.retrieval import Pipeline, retrieve
from ragworth.scoring import metric_file_digests, passage_tokens, score
from ragworth.tables import OK, Answers, Contexts, Judgments, Outcomes, Ratings, Scores, Table
from ragworth.tasks.contract import FindingT, ItemT, ResultT, Task, plan_task, run_task

T = TypeVar("T", bound=Table)

STAGES = ("retrieve", "annotate", "answer", "grade", "score", "report")
"""In their order; reading the files comes before all of them."""

PREFERRED_NOTE = (
    "relevance is judged by whether a passage contains an accepted answer, because the model that reads the passages "
    'can\'t show by its own opinion what misleads it (relevance = {how = "auto"} under [judgments] asks it anyway)'
)

NEEDS = {
    "retrieve": (),
    "annotate": ("retrieve",),
    "answer": ("retrieve",),
    "grade": ("retrieve", "answer"),
    "score": ("retrieve", "annotate"),
    "report": STAGES[:-1],
}
"""What each stage cannot do without."""


def run_retrieve(state: EvaluationState, *, release: bool = False) -> None:
    """What each system shows. In a plan, lists that a model would have to be asked about keep their order.

    ``release``: runs that were read from files are dropped once nothing needs them.
    """
    material, plan = state.material, state.plan
    if not material.systems:  # the data has answers or grades, and nobody says what was shown for them
        state.contexts = Contexts.trusted(pl.DataFrame(schema=Contexts.schema))
        return
    asker = WorkspaceAsker(state.models, state.folder, plan=plan is not None)
    setting = replace(material.setting, asking=asker)
    steps, asking = list(all_steps(material.systems)), steps_with_models(material.systems)

    def found(watching: StageProgress | None) -> tuple[Contexts, dict[str, list[str]]]:
        asker.watching = watching
        told = watching.working if watching is not None else None
        made = retrieve(material.systems, replace(setting, told=told), logged=material.logged)
        notes = (*made.notes, *material.collection.unknown(made))
        noted = notes_by_system(notes, material.systems)
        made.notes = tuple(prefix_system_names(notes, noted))
        return made, noted

    if plan is not None and asking:
        state.contexts, _ = found(state.console.begun("retrieve"))
        plan += [StagePlan(f"retrieve.{system}", f"{step}: {words}") for system, step, words in asker.told]
        return
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
    if material.logged:
        key["logged"] = True

    def make(watching: StageProgress | None) -> StageResult:
        if not material.systems:  # dropped, because the cache seemed to have their contexts
            raise InputError(
                "the contexts in the cache can't be read",
                expected="the contexts of an earlier run",
                remedy="run the command again: they have been removed from the cache, and will be made again",
            )
        contexts, noted = found(watching)
        facts = {"empty": sorted(contexts.empty), "notes": list(contexts.notes), "noted": noted, **asker.facts}
        lasting = not asker.told and not (asker.facts and may_succeed_later(asker.facts))
        searches = contexts.searches
        frames = {"searches": searches} if searches is not None and searches.height else {}
        return StageResult(frames, facts, lasting=lasting, tables={"contexts": contexts})

    for step in asking:
        state.prompts |= step.templates(setting)
    if release and state.kept.has("retrieve", key):
        material.systems.clear()  # before the same contexts are read back from the cache
    made = state.stage("retrieve", key, make)
    if release:
        material.systems.clear()
    state.contexts = _table(made, "contexts", Contexts)
    state.contexts.empty = frozenset((system, query) for system, query in made.facts["empty"])
    if "searches" in made.frames:
        state.said["searches"] = made.frames["searches"]


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


def run_task_stage(
    state: EvaluationState,
    name: str,
    task: Task[ItemT, FindingT, ResultT],
    items: Sequence[ItemT],
    job: Job | None,
    key: Mapping[str, Any],
    note: Callable[[pl.DataFrame], str] | None = None,
    more: Callable[[ResultT], Mapping[str, pl.DataFrame]] | None = None,
) -> StageResult | None:
    """Run a task as a stage. In a plan nothing is asked, and what the stage would give is None if it isn't kept.

    ``note``: what to remember besides, by the rows. ``more``: further frames to keep, by their names.
    """
    state.prompts |= task.templates

    def make(watching: StageProgress | None) -> StageResult:
        work = partial(run_task, task, items, job)
        found, facts = run_metered(job, name, watching, work) if job is not None else (work(), {})
        notes = [*found.notes, *([note(found.frame)] if note is not None else [])]
        notes += [job.note] if job is not None and job.note else []
        lasting = job is None or not may_succeed_later(facts)
        frames = {"said": found.frame, **(more(found) if more is not None else {})}
        return StageResult(frames, {**facts, "notes": notes}, lasting=lasting)

    if state.plan is not None:
        words = str(plan_task(task, items, job)) if job is not None else "no model is asked"
        state.plan.append(StagePlan(name, words))
        return state.kept.read(name, key)
    return state.stage(name, key, make)


def skip_stage(state: EvaluationState, name: str, note: str) -> None:
    """Remember that a stage has nothing to do."""
    if state.plan is not None:
        state.plan.append(StagePlan(name, "nothing is left to judge"))
    else:
        state.did(name, "skipped", notes=[note])


def stage_annotator(state: EvaluationState, kind: str, task: TaskConfig, job: Job) -> Annotator:
    """A kind of judgment as the workspace, or a study, has it."""
    settings = task_settings(task, state.space)
    return annotation.build_annotator(kind, job.card, state.collection, state.folder, settings)


def items_to_judge(state: EvaluationState, annotator: Annotator) -> list[AnnotationItem]:
    """What is to be judged: what is shown, where no label and no file says already what it is."""
    things = annotation.annotation_items(annotator, state.shown, state.collection)
    if annotator.judged != "passage":
        return things
    wanted = set(annotator.valued)
    known: dict[tuple[str, str], set[str]] = {}
    for table in state.judgments:
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


def run_annotate(state: EvaluationState, kind: str, task: TaskConfig) -> None:
    """One kind of judgment.

    Relevance that the reader would judge itself is judged by containment of an accepted answer instead, where a query
    has one and no labels: a reader's own opinion can't show what misleads it. The settings may ask for the reader.
    """
    name = f"annotate.{kind}"
    if not ANNOTATORS.get(kind).asks:
        _annotate_by_text(state, kind, dict(task.settings))
        return
    with state.models.job(task.model, plan=state.plan is not None) as job:
        annotator = stage_annotator(state, kind, task, job)
        if kind == "relevance" and _is_readers_opinion(state, task, annotator):
            _annotate_by_text(state, "containment", {}, preferred=True)
        items = items_to_judge(state, annotator)
        if not items:
            state.prompts |= annotator.templates
            skip_stage(state, name, "nothing was left to judge: labels or files say it all")
            return
        key = stage_key(state, job, task, [annotator.source]) | {"items": items}
        made = run_task_stage(state, name, annotator, items, job, key)
    if made is None:
        return
    frame = state.said[kind] = made.frames["said"]
    if annotator.judged == "rating":
        state.ratings = Ratings.trusted(frame)
    elif annotator.judged == "context":
        add_outcomes(state, kind, frame)
    else:
        state.judgments.append(Judgments.trusted(frame))


def _is_readers_opinion(state: EvaluationState, task: TaskConfig, annotator: Annotator) -> bool:
    """Whether relevance would be judged by a model that also reads the passages, without a word of how."""
    if not state.collection.answers.height or {"how", "graded"} & set(task.settings):
        return False
    space, answers = state.space, state.space.answers
    reading = [space.judgments[kind].model for kind in ("abstention",) if kind in space.judgments]
    reading += [answers.task.model] if answers is not None and answers.file is None else []
    readers = [model or space.model for model in reading]
    return (task.model or space.model) in readers or annotator.asked == ("abstention",)


def _annotate_by_text(state: EvaluationState, kind: str, settings: dict[str, Any], *, preferred: bool = False) -> None:
    """Judge without a model, also in a plan: it costs nothing, and less is left to ask.

    ``preferred``: only queries without labels for which that gives a value; a model is asked about the others.
    """
    annotator = annotation.build_annotator(kind, NO_MODEL, state.collection, state.folder, settings)
    items = items_to_judge(state, annotator)
    if preferred and isinstance(annotator, ContainmentAnnotator):
        labelled = {query for table in state.material.given for query in table.of("relevance")["query"].unique()}
        items = [item for item in items if item.query not in labelled and annotator.decides(item.query)]
    if not items:
        if not preferred:
            skip_stage(state, f"annotate.{kind}", "nothing was left to judge: labels or files say it all")
        return
    if state.plan is not None:
        state.plan.append(StagePlan(f"annotate.{kind}", "no model is asked"))
        frame = run_task(annotator, items, None).frame
    else:
        key = {"items": items, "texts": state.material.texts_key, "settings": settings, "source": annotator.source}
        note = (lambda _: PREFERRED_NOTE) if preferred else None
        made = run_task_stage(state, f"annotate.{kind}", annotator, items, None, key, note)
        assert made is not None
        frame = made.frames["said"]
    state.said[kind] = frame
    state.judgments.append(Judgments.trusted(frame))


def answerable_contexts(state: EvaluationState, writing: AnswerConfig) -> Contexts:
    """The contexts that are answered from: where some queries have accepted answers, only theirs."""
    answers = state.collection.answers
    if writing.everything or not answers.height:
        return state.shown
    known = set(answers["query"].unique())
    made = Contexts.trusted(state.shown.frame.filter(pl.col("query").is_in(list(known))))
    made.empty = frozenset(pair for pair in state.shown.empty if pair[1] in known)
    return made


def run_answer(state: EvaluationState, writing: AnswerConfig | None) -> None:
    """The answers in the data, and what the model answers for systems that have none there."""
    given = state.material.answers if writing is None or not writing.replace else None
    if given is not None:
        state.answers, state.said["answers"] = given, given.frame
        if writing is None or not _left_to_answer(state, given, writing):
            if state.plan is None:
                state.did("answer", "given", notes=list(given.notes))
            return
    assert writing is not None
    plan = state.plan is not None
    with state.models.job(writing.task.model, plan=plan) as job:
        settings = task_settings(writing.task, state.space)
        writer = answering.build_writer(job, state.collection, state.folder, state.k, settings, plan=plan)
        items = answering.answer_items(
            writer,
            answerable_contexts(state, writing),
            state.collection,
            without=writing.without,
            oracle=writing.oracle,
        )
        answered = set(given.table.distinct("system")) if given is not None else set()
        items = [item for item in items if item.system not in answered]
        sources = [writer.source(system) for system in sorted({item.system for item in items})]
        key = stage_key(state, job, writing.task, sources) | {"items": items}
        key["oracle"] = state.material.labels_key if writing.oracle or writer.tie_k or writer.tie_length else ""
        if writing.without:
            state.prompts[writer.template_alone.name] = writer.template_alone
        made = run_task_stage(state, "answer", writer, items, job, key)
    if made is None:
        state.planned_answers = len(items)
        return
    frame, notes = made.frames["said"], tuple(made.facts["notes"])
    if given is not None:
        frame, notes = pl.concat([given.frame, frame], how="diagonal"), (*given.notes, *notes)
    state.said["answers"] = frame
    state.answers = AnsweringResult(Answers.trusted(frame, notes), frame, shown_contexts(frame), notes)


def run_answer_with_confidence(state: EvaluationState, writing: AnswerConfig, confidence: TaskConfig) -> None:
    """The answers that `run_answer` would write, and the model's confidence in each, from the same calls.

    ``confidence`` gives the settings of its kind; prompts, lengths and the model are those of the answers.
    """
    plan, kind = state.plan is not None, AnswerConfidence.kind
    with state.models.job(writing.task.model, plan=plan) as job:
        settings = task_settings(writing.task, state.space)
        writer = answering.build_writer(job, state.collection, state.folder, state.k, settings, plan=plan)
        items = answering.answer_items(writer, answerable_contexts(state, writing), state.collection)
        annotator = AnswerConfidence.of(writer, items, confidence.settings)
        key = stage_key(state, job, writing.task, [annotator.source]) | {"items": items}
        key |= {"confidence": dict(confidence.settings)}
        key["oracle"] = state.material.labels_key if writer.tie_k or writer.tie_length else ""
        made = run_task_stage(state, f"answer.{kind}", annotator, annotator.items, job, key)
    if made is None:
        state.planned_answers = len(items)
        return
    add_outcomes(state, kind, made.frames["said"])
    state.answers = written_answers(annotator, made.frames["said"])
    state.said["answers"] = state.answers.frame


def _left_to_answer(state: EvaluationState, given: AnsweringResult, writing: AnswerConfig) -> bool:
    """Whether a system lacks answers in the data, and the workspace wants the model to write them."""
    answered = set(given.table.distinct("system"))
    extra = [NO_CONTEXT_SYSTEM] * writing.without + [ORACLE_SYSTEM] * writing.oracle
    return writing.file is None and not answered.issuperset([*state.contexts.systems, *extra])


def run_grade(state: EvaluationState, kind: str, task: TaskConfig) -> None:
    """One way of grading the answers."""
    chosen, name = GRADERS.get(kind), f"grade.{kind}"
    if state.answers is None or state.planned_answers:
        assert state.plan is not None
        calls = f"{format_count(state.planned_answers, 'answer')} to grade"
        if chosen.single:
            calls += f", with one call{' or more' if chosen.rounds > 1 else ''} for each"
        state.plan.append(StagePlan(name, calls if chosen.asks else "no model is asked"))
        return
    with ExitStack() as stack:
        plan = state.plan is not None
        job = stack.enter_context(state.models.job(task.model, plan=plan)) if chosen.asks else None
        settings = task_settings(task, state.space)
        book = grading.to_answer_book(state.answers, state.shown)
        card = job.card if job is not None else None
        grader = grading.build_grader(kind, card, state.collection, book, state.folder, settings)
        version = [f"version {grader.version}"] if grader.version > 1 else []
        key = stage_key(state, job, task, [grader.source, *version]) | {
            "answers": frame_digest(state.said["answers"]),
            "contexts": contexts_key(state.shown),
            "labels": state.material.labels_key,
        }
        if any(answer.repeat for answer in book.answers):
            key["answers kept"] = "each"  # older versions kept only what repeats come to together
        task_and_items = grading.grading_task(grader, book.answers)
        made = run_task_stage(state, name, *task_and_items, job, key, more=_single_answers)
    if made is not None:
        single = made.frames.get(SINGLE_ANSWERS)
        add_outcomes(state, f"graded-{kind}" if kind in ANNOTATORS else kind, made.frames["said"], single)


def _single_answers(result: grading.GradingResult) -> dict[str, pl.DataFrame]:
    """What was said of every single answer, if some queries have several."""
    return {SINGLE_ANSWERS: result.answers} if result.answers.height > result.frame.height else {}


def add_outcomes(state: EvaluationState, kind: str, frame: pl.DataFrame, single: pl.DataFrame | None = None) -> None:
    """Outcomes of a kind, and where queries have several answers, what was said of every ``single`` one.

    Where another, or a file, came first with the same aspect, this one is called KIND-ASPECT.
    """
    taken = {aspect for table in state.outcomes for aspect in table.frame["aspect"].unique()}
    own = pl.col("aspect")
    renamed = pl.when(own.is_in(list(taken))).then(pl.lit(f"{kind}-") + own).otherwise(own)
    named = frame.with_columns(renamed.alias("aspect"))
    step = "grade" if "grade" in named["aspect"].unique() else kind
    state.said[step] = named
    if single is not None:
        state.said[f"{step}-{SINGLE_ANSWERS}"] = single.with_columns(renamed.alias("aspect"))
    state.outcomes.append(Outcomes.trusted(named))


def run_score(state: EvaluationState) -> None:
    """Every metric for every system and query. Answers and grades can be compared without any."""
    judgments = state.all_judgments = Judgments.concat(state.judgments) if state.judgments else None
    shows = len(state.contexts) > 0
    graded = state.material.has_answers
    metrics = state.space.metrics or (
        default_metrics(known_aspects(state), state.space.k, required=not graded) if shows or not graded else ()
    )
    if not metrics:
        why = "what passages are worth isn't known" if shows else "no system shows any passages"
        state.scores = Scores.trusted(pl.DataFrame(schema=Scores.schema))
        state.did("score", "skipped", notes=[f"no metric is computed: {why}; only grades of answers are compared"])
        return
    key: dict[str, Any] = {
        "contexts": contexts_key(state.contexts),
        "judgments": frame_digest(judgments),
        "ratings": frame_digest(state.ratings),
        "passages": state.material.texts_key[1],
        "metrics": metrics,
        "files": metric_file_digests(list(metrics), state.space.folder),
    }
    if state.material.logged:
        key["complete"] = False

    def make(watching: StageProgress | None) -> StageResult:
        tokens = passage_tokens(state.collection)
        found = score(
            state.contexts,
            judgments,
            list(metrics),
            ratings=state.ratings,
            tokens=tokens,
            folder=state.space.folder,
            complete=not state.material.logged,
        )
        # What came with the contexts was told with them, and so were the queries that a log lacks.
        notes = [note for note in found.notes if note not in state.contexts.notes and not note.endswith(NOT_IN_RUN)]
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
