"""The stages of an evaluation, each from what it needs to what it gives; what was made before is taken as it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ragworth.annotate import annotating
from ragworth.annotate.contract import Annotator, Item
from ragworth.answers import generating, grading
from ragworth.answers.generating import Answered, shown_contexts
from ragworth.answers.grading import GRADERS
from ragworth.answers.writing import Writer
from ragworth.calls.job import Job
from ragworth.calls.records import model_digest
from ragworth.collection import Collection
from ragworth.config import Task
from ragworth.errors import InputError
from ragworth.evaluation.asking import Models, spending
from ragworth.evaluation.kept import Kept, Made, frame_digest
from ragworth.evaluation.material import Material
from ragworth.metrics.engine import Tokens
from ragworth.prompts.template import Template
from ragworth.retrieval import retrieve
from ragworth.scoring import score
from ragworth.tables import OK, Answers, Contexts, Judgments, Outcomes, Ratings, Scores

STAGES = ("retrieve", "annotate", "answer", "grade", "score", "report")
"""In their order; reading the files comes before all of them."""


@dataclass
class State:
    """What an evaluation has come to so far."""

    material: Material
    models: Models
    kept: Kept
    contexts: Contexts = field(init=False)
    judgments: list[Judgments] = field(default_factory=list)
    ratings: Ratings | None = None
    answers: Answered | None = None
    outcomes: list[Outcomes] = field(default_factory=list)
    scores: Scores | None = None
    said: dict[str, pl.DataFrame] = field(default_factory=dict)
    prompts: dict[str, Template] = field(default_factory=dict)
    stages: list[dict[str, Any]] = field(default_factory=list)
    """Name, status, calls, tokens and time of each."""

    def __post_init__(self) -> None:
        given = (self.material.relevance, self.material.judged)
        self.judgments = [table for table in given if table is not None]
        self.ratings = self.material.ratings
        self.outcomes = [self.material.outcomes] if self.material.outcomes is not None else []

    @property
    def collection(self) -> Collection:
        return self.material.collection

    @property
    def shown(self) -> Contexts:
        """What the model reads: the first k passages."""
        return self.contexts.cut(self.material.workspace.k)

    def did(self, name: str, made: Made) -> None:
        """Remember how a stage went."""
        status = "done" if made.fresh else "kept"
        self.stages.append({"name": name, "status": status, **made.facts})


def of_systems(state: State) -> None:
    """What each system shows."""
    material, setting = state.material, state.material.setting
    systems = {
        name: frame_digest(system.frame) if isinstance(system, Contexts) else str(system)
        for name, system in material.systems.items()
    }
    key = {
        "systems": systems,
        "files": dict(material.files),
        "queries": [setting.ids, frame_digest(setting.queries)],
        "passages": frame_digest(material.collection.passages),
        "seed": setting.seed,
        "depth": setting.depth,
    }

    def make() -> Made:
        found = retrieve(material.systems, setting)
        return Made({"contexts": found.frame}, {"empty": sorted(found.empty), "notes": list(found.notes)})

    made = state.kept.of("retrieve", key, make)
    state.contexts = Contexts.trusted(made.frames["contexts"], tuple(made.facts["notes"]))
    state.contexts.empty = frozenset((system, query) for system, query in made.facts["empty"])
    state.did("retrieve", Made({}, {"notes": made.facts["notes"]}, fresh=made.fresh))


def texts_key(state: State) -> list[str]:
    """What the texts are, in short."""
    texts = state.collection
    return [frame_digest(frame) for frame in (texts.queries, texts.passages, texts.answers, texts.subquestions)]


def contexts_key(contexts: Contexts) -> list[Any]:
    return [frame_digest(contexts.frame), sorted(contexts.empty)]


def annotator_of(state: State, kind: str, job: Job) -> Annotator:
    task, space = state.material.workspace.judgments[kind], state.material.workspace
    prompts = space.path(space.prompts) if space.prompts else None
    return annotating.made(kind, job.card, state.collection, prompts, dict(task.settings))


def judged_items(state: State, annotator: Annotator) -> list[Item]:
    """What is to be judged: what is shown; relevance only where nobody has labelled it."""
    things = annotating.items(annotator, state.shown, state.collection)
    if annotator.kind != "relevance" or state.material.relevance is None:
        return things
    known = set(state.material.relevance.of("relevance").select("query", "passage").iter_rows())
    return [item for item in things if (item.query, item.passage) not in known]


def judge(state: State, kind: str) -> None:
    """One kind of judgment."""
    name, task = f"annotate.{kind}", state.material.workspace.judgments[kind]
    with state.models.job(task.model, name) as job:
        annotator = annotator_of(state, kind, job)
        things = judged_items(state, annotator)
        state.prompts |= {each: annotator.prompt(each) for each in annotator.asked}
        key = _key(state, job, task, annotator.source) | {"contexts": contexts_key(state.shown)}
        if kind == "relevance":
            key["labels"] = frame_digest(state.material.relevance.frame if state.material.relevance else None)

        def make() -> Made:
            with spending(job, name) as spent:
                found = annotating.finished(annotator, things, job)
            facts = {**spent.facts(), "notes": list(found.notes)}
            return Made({"said": found.frame}, facts, lasting=not spent.failed)

        made = state.kept.of(name, key, make) if things else Made({}, {"notes": ["nothing was left to judge"]})
    state.did(name, made)
    if "said" not in made.frames:
        return
    frame = state.said[kind] = made.frames["said"]
    if annotator.judged == "rating":
        _check_once(state.ratings, kind)
        state.ratings = Ratings.trusted(frame)
    elif annotator.judged == "context":
        state.outcomes.append(Outcomes.trusted(frame))
    else:
        state.judgments.append(Judgments.trusted(frame))


def _check_once(ratings: Ratings | None, kind: str) -> None:
    if ratings is not None:
        raise InputError(
            f"there are ratings already, and {kind} would be made as well",
            remedy=f"take ratings = … out of [collection], or {kind} out of [judgments]",
        )


def answerable(state: State) -> Contexts:
    """The contexts that are answered from: where some queries have accepted answers, only theirs."""
    writing, answers = state.material.workspace.answers, state.collection.answers
    if writing is None or writing.everything or not answers.height:
        return state.shown
    known = set(answers["query"].unique())
    made = Contexts.trusted(state.shown.frame.filter(pl.col("query").is_in(list(known))))
    made.empty = frozenset(pair for pair in state.shown.empty if pair[1] in known)
    return made


def writer_of(state: State, job: Job, *, plan: bool = False) -> Writer:
    space = state.material.workspace
    settings = dict(space.answers.task.settings) if space.answers is not None else {}
    prompts = space.path(space.prompts) if space.prompts else None
    return generating.made(job, state.collection, prompts, space.k, settings, plan=plan)


def write(state: State) -> None:
    """What the model answers from each context."""
    writing = state.material.workspace.answers
    if writing is None:
        return
    if writing.file is not None:
        state.answers = state.material.answers
        state.said["answers"] = state.answers.frame if state.answers is not None else pl.DataFrame()
        return
    contexts = answerable(state)
    with state.models.job(writing.task.model, "answer") as job:
        writer = writer_of(state, job)
        things = generating.items(writer, contexts, state.collection, without=writing.without, oracle=writing.oracle)
        state.prompts[writer.template.name] = writer.template
        if writing.without:
            state.prompts[writer.template_alone.name] = writer.template_alone
        systems = sorted({item.system for item in things})
        key = _key(state, job, writing.task, *map(writer.source, systems)) | {"contexts": contexts_key(contexts)}
        key["oracle"] = _labels_key(state) if writing.oracle or writer.tie_k or writer.tie_length else ""

        def make() -> Made:
            with spending(job, "answer") as spent:
                found = generating.finished(writer, things, job)
            facts = {**spent.facts(), "notes": list(found.notes)}
            return Made({"said": found.frame}, facts, lasting=not spent.failed)

        made = state.kept.of("answer", key, make)
    frame = state.said["answers"] = made.frames["said"]
    state.did("answer", made)
    state.answers = Answered(Answers.trusted(frame), frame, shown_contexts(frame), tuple(made.facts["notes"]))


def grade(state: State, kind: str) -> None:
    """One way of grading the answers."""
    space = state.material.workspace
    name, task = f"grade.{kind}", space.grades[kind]
    if state.answers is None:
        raise InputError(
            f"{kind} grades answers, and there are none", file=str(space.file), remedy="add [answers], or its file"
        )
    book = grading.book_of(state.answers, state.shown)
    folder = space.path(space.prompts) if space.prompts else None
    chosen = GRADERS.get(kind)

    def graded(job: Job | None) -> Made:
        grader = grading.made(kind, job.card if job else None, state.collection, book, folder, dict(task.settings))
        if grader.asks:
            state.prompts[grader.prompt.name] = grader.prompt
        key = _key(state, job, task, grader.source) | {
            "answers": frame_digest(state.said["answers"]),
            "contexts": contexts_key(state.shown),
            "labels": _labels_key(state),
        }

        def make() -> Made:
            if job is None:
                found = grading.finished(grader, book.answers, None)
                return Made({"said": found.frame}, {"notes": list(found.notes)})
            with spending(job, name) as spent:
                found = grading.finished(grader, book.answers, job)
            return Made({"said": found.frame}, {**spent.facts(), "notes": list(found.notes)}, lasting=not spent.failed)

        return state.kept.of(name, key, make)

    if chosen.asks:
        with state.models.job(task.model, name) as job:
            made = graded(job)
    else:
        made = graded(None)
    state.did(name, made)
    frame = made.frames["said"]
    state.said["grade" if "grade" in frame["aspect"].unique() and "grade" not in state.said else kind] = frame
    state.outcomes.append(Outcomes.trusted(frame))


def compute(state: State, metrics: tuple[str, ...]) -> None:
    """Every metric for every system and query."""
    judgments = Judgments.concat(state.judgments) if state.judgments else None
    key = {
        "contexts": contexts_key(state.contexts),
        "judgments": frame_digest(judgments.frame if judgments is not None else None),
        "ratings": frame_digest(state.ratings.frame if state.ratings is not None else None),
        "passages": frame_digest(state.collection.passages),
        "metrics": metrics,
    }

    def make() -> Made:
        lengths = state.collection.tokens() if state.collection.passages.height else None
        tokens = Tokens.of(lengths) if lengths is not None else None
        found = score(state.contexts, judgments, list(metrics), ratings=state.ratings, tokens=tokens)
        return Made({"scores": found.frame}, {"notes": list(found.notes)})

    made = state.kept.of("score", key, make)
    state.scores = Scores.trusted(made.frames["scores"], tuple(made.facts["notes"]))
    state.did("score", made)


def default_metrics(state: State) -> tuple[str, ...]:
    """The metrics that what is known allows, at the depth that the model reads."""
    k = state.material.workspace.k
    known = {
        aspect for table in state.judgments for aspect in table.frame.filter(pl.col("status") == OK)["aspect"].unique()
    }
    made: list[str] = []
    if {"relevance", "abstention"} <= known:
        made += [f"UDCG@{k}", f"Distraction@{k}"]
    if "relevance" in known:
        made += [f"nDCG@{k}", f"P@{k}", f"R@{k}", f"RR@{k}"]
    made += [f"eRAG@{k}"] if "downstream" in known else []
    made += [f"Likelihood@{k}"] if "likelihood" in known else []
    if state.ratings is not None and state.ratings.frame.height:
        made += [f"Cov@{k}", f"alpha_nDCG@{k}"] + ([f"Den@{k}"] if state.collection.passages.height else [])
    if not made:
        raise InputError(
            "no metric can be computed: there are no relevance labels, judgments or ratings",
            file=str(state.material.workspace.file),
            remedy="name qrels or ratings under [collection], or kinds of judgment under [judgments]",
        )
    return tuple(made)


def _key(state: State, job: Job | None, task: Task, *sources: str) -> dict[str, Any]:
    """What everything depends on that a model is asked for."""
    return {
        "model": model_digest(job.card).hex() if job is not None else "",
        "declining": job.card.declining if job is not None else None,
        "settings": dict(task.settings),
        "sources": sources,
        "texts": texts_key(state),
    }


def _labels_key(state: State) -> list[str]:
    relevance, ratings = state.material.relevance, state.material.ratings
    return [frame_digest(table.frame if table is not None else None) for table in (relevance, ratings)]
