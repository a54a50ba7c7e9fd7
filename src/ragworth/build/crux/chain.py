"""The CRUX chain: passages, sub-questions and requests are written, then every sub-question is rated.

Every stage is a task, planned and run by the same code, and all calls go through the store. A chain that was killed
continues where it ended when it runs again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

import polars as pl

from ragworth.build.budget import stop_if_spent
from ragworth.build.crux import drafting
from ragworth.build.crux.consistency import UNRATED, ConsistentRatings, FailedRatings, filter_consistent
from ragworth.build.crux.topics import Topic
from ragworth.build.crux.writing import Sampling, TaggedWriter, TaggedWritingResult, WritingItem
from ragworth.build.drafts import Draft, Drafts
from ragworth.calls.job import Job
from ragworth.calls.programs import Forecast
from ragworth.core.errors import InputError, JobStopped, format_count
from ragworth.data import Ratings
from ragworth.data.collection import Collection
from ragworth.judging import ANNOTATORS
from ragworth.judging.contract import plan_task, run_task
from ragworth.judging.findings import share_budget
from ragworth.judging.judge import AnnotationItem, Annotator, JudgingResult
from ragworth.judging.runner import build_judge
from ragworth.llm.prompts.template import Template
from ragworth.metrics.required_passages import RedundancyRule

PassageSource = Literal["written", "cut"]
NO_TOPIC = "topic-dropped"
PASSAGE_WORDS, QUESTION_WORDS, REQUEST_WORDS = 650, 40, 100
"""Words that the writer may use: for the passages of a piece, for each sub-question, for a request."""


class CruxOptions(NamedTuple):
    """How a collection is built; the defaults are those of the paper, with 15 sub-questions as for DUC."""

    questions: int = 15
    passages: PassageSource = "written"
    eta: float = 3.0
    redundancy: RedundancyRule = "answered"
    failed: FailedRatings = "leave-out"
    overlap: float = 0.5
    sampling: Sampling = Sampling()


@dataclass(frozen=True)
class CruxBuild:
    """What a chain made: all drafts, all ratings, and those that remain."""

    drafts: Drafts
    ratings: Ratings
    """Of every passage and sub-question, failed ones included."""
    rated: pl.DataFrame
    """The same rows, with what the judge said."""
    summary: Ratings
    """Of the summaries."""
    consistent: ConsistentRatings
    notes: tuple[str, ...] = ()


class ChainStage(NamedTuple):
    """The calls of a stage.

    ``expected`` is an estimate where they depend on texts that aren't written yet: three passages for each piece.
    """

    stage: str
    forecast: Forecast | None
    expected: int = 0

    def __str__(self) -> str:
        if self.forecast is not None:
            return f"{self.stage}: {self.forecast}"
        return f"{self.stage}: about {format_count(self.expected, 'call')}, once the texts are written"


@dataclass(frozen=True)
class CruxChain:
    """The chain over some topics; ``writer`` writes and ``judge`` rates. Both may be the same job."""

    topics: Sequence[Topic]
    writer: Job
    judge: Job
    options: CruxOptions = field(default_factory=CruxOptions)
    prompts: str | Path | None = None

    def __post_init__(self) -> None:
        way = self.options
        if way.questions < 1 or not 0 <= way.overlap <= 1 or way.sampling.attempts < 1:
            raise InputError(
                f"{way.questions} sub-questions, overlap {way.overlap:g}, {way.sampling.attempts} attempts",
                expected="at least 1 sub-question and attempt, and an overlap from 0 to 1",
            )

    @property
    def templates(self) -> dict[str, Template]:
        """Every prompt of the chain."""
        writers = [task for task, _ in self._writing().values()]
        judges = self._annotator(Collection()).templates
        return {**{name: each for task in writers for name, each in task.templates.items()}, **judges}

    def plan(self) -> list[ChainStage]:
        """The calls of each stage, without making any. Ratings are known once all texts are written."""
        parts = self._writing()
        plans = [ChainStage(name, plan_task(task, items, self.writer)) for name, (task, items) in parts.items()]
        if any(each.forecast is not None and each.forecast.plan.missing for each in plans):
            number = 3 * sum(len(items) for name, (_, items) in parts.items() if name == "passages")
            number = number or len(drafting.cut_passages(self.topics))
            share = number / len(self.topics) + 1
            return [*plans, ChainStage("ratings", None, round(share * len(self.topics) * self.options.questions))]
        annotator, passages, summaries = self._rating(self._drafts(self._written()))
        return [*plans, ChainStage("ratings", plan_task(annotator, [*passages, *summaries], self.judge))]

    def run(self) -> CruxBuild:
        """Run all stages. If the budget ends a stage, nothing is concluded from half of it."""
        written = self._written()
        drafts = self._drafts(written)
        annotator, passages, summaries = self._rating(drafts)
        if not passages:
            funnel = ", ".join(f"{step.status} {step.drafts:,}" for step in drafts.funnel())
            raise JobStopped(
                "not one topic has a request, a sub-question and a passage"
                f" ({funnel})\n  to do: use a better writer; the drafts say what it wrote"
            )
        if self.judge is not self.writer:
            share_budget(self.writer, self.judge)
        rated = run_task(annotator, passages, self.judge)
        of_summaries = run_task(annotator, summaries, self.judge)
        stop_if_spent(self.judge)
        ratings, summary = _ratings(rated), _ratings(of_summaries)
        consistent = filter_consistent(ratings, self.options.eta, self.options.failed)
        _drop_inconsistent(drafts, consistent)
        notes = [note for result in written.values() for note in result.notes]
        return CruxBuild(drafts, ratings, rated.frame, summary, consistent, (*notes, *rated.notes))

    def written_drafts(self) -> Drafts:
        """The drafts before anything is rated."""
        return self._drafts(self._written())

    def _writing(self) -> dict[str, tuple[TaggedWriter, list[WritingItem]]]:
        way, topics = self.options, self.topics
        questions = drafting.summary_items(topics, count=way.questions)
        parts = {
            "sub-questions": (self._writer("crux-questions", "question", way.questions * QUESTION_WORDS), questions),
            "requests": (self._writer("crux-request", "request", REQUEST_WORDS), drafting.summary_items(topics)),
        }
        if way.passages == "written":
            writer = self._writer("crux-passages", "passage", PASSAGE_WORDS)
            return {"passages": (writer, drafting.passage_items(topics)), **parts}
        return parts

    def _writer(self, prompt: str, tag: str, words: int) -> TaggedWriter:
        return TaggedWriter(self.writer.card, prompt, tag, words, self.prompts, self.options.sampling)

    def _written(self) -> dict[str, TaggedWritingResult]:
        found = {name: run_task(task, items, self.writer) for name, (task, items) in self._writing().items()}
        stop_if_spent(self.writer)
        return found

    def _drafts(self, written: dict[str, TaggedWritingResult]) -> Drafts:
        way, topics = self.options, self.topics
        if "passages" in written:
            items = drafting.passage_items(topics)
            passages = drafting.written_passages(topics, items, written["passages"].frame, way.overlap)
        else:
            passages = drafting.cut_passages(topics)
        questions = drafting.question_drafts(topics, written["sub-questions"].frame, way.questions)
        requests = drafting.request_drafts(topics, written["requests"].frame)
        drafts = Drafts([*requests, *questions, *passages])
        _drop_incomplete(drafts, topics)
        return drafts

    def _annotator(self, collection: Collection) -> Annotator:
        return build_judge(ANNOTATORS, "ratings", self.judge.card, collection, self.prompts, {})

    def _rating(self, drafts: Drafts) -> tuple[Annotator, list[AnnotationItem], list[AnnotationItem]]:
        """The annotator, and what it rates: passages, and summaries as the passages ``TOPIC:summary``."""
        collection = draft_collection(drafts)
        kept = set(collection.queries["query"])
        summaries = {f"{topic.id}:summary": topic.summary for topic in self.topics if topic.id in kept}
        texts = pl.DataFrame({"passage": list(summaries), "text": list(summaries.values())})
        texts = texts.cast({"passage": pl.String, "text": pl.String})
        annotator = self._annotator(replace(collection, passages=pl.concat([collection.passages, texts])))
        questions: dict[str, list[str]] = {}
        for query, name in collection.subquestions.select("query", "subquestion").iter_rows():
            questions.setdefault(query, []).append(name)
        passages = [draft for draft in drafts.kept if draft.kind == drafting.PASSAGE_KIND]
        rated = [AnnotationItem(each.stratum, each.id, name) for each in passages for name in questions[each.stratum]]
        own = [AnnotationItem(query, f"{query}:summary", name) for query, names in questions.items() for name in names]
        return annotator, rated, own


def draft_collection(drafts: Drafts) -> Collection:
    """The texts of the drafts that are kept."""
    kept: dict[str, list[Draft]] = {}
    for draft in drafts.kept:
        kept.setdefault(draft.kind, []).append(draft)
    requests, questions = kept.get(drafting.REQUEST_KIND, []), kept.get(drafting.QUESTION_KIND, [])
    passages = kept.get(drafting.PASSAGE_KIND, [])
    return Collection(
        queries=_frame(query=[d.stratum for d in requests], text=[d.fields["text"] for d in requests]),
        passages=_frame(passage=[d.id for d in passages], text=[d.fields["text"] for d in passages]),
        subquestions=_frame(
            query=[d.stratum for d in questions],
            subquestion=[d.fields["subquestion"] for d in questions],
            text=[d.fields["text"] for d in questions],
        ),
    )


def _frame(**columns: list[str]) -> pl.DataFrame:
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def _ratings(result: JudgingResult) -> Ratings:
    assert isinstance(result.table, Ratings)
    return Ratings.trusted(result.frame.select(list(Ratings.schema)))


def _drop_incomplete(drafts: Drafts, topics: Sequence[Topic]) -> None:
    """Drop what is left of topics that lack a request, a sub-question or a passage."""
    kinds: dict[str, set[str]] = {}
    for draft in drafts.kept:
        kinds.setdefault(draft.stratum, set()).add(draft.kind)
    wanted = (drafting.REQUEST_KIND, drafting.QUESTION_KIND, drafting.PASSAGE_KIND)
    lacking = {topic.id: [kind for kind in wanted if kind not in kinds.get(topic.id, set())] for topic in topics}
    for draft in drafts.kept:
        if lacking[draft.stratum]:
            drafts.drop(draft.id, NO_TOPIC, f"its topic has no usable {' and no '.join(lacking[draft.stratum])}")


def _drop_inconsistent(drafts: Drafts, consistent: ConsistentRatings) -> None:
    """Give drafts that the consistency filter dropped their status, and those of topics without a sub-question."""
    left = set(consistent.ratings.frame["query"])
    for draft in drafts.kept:
        if draft.kind == drafting.QUESTION_KIND:
            found = consistent.subquestions.get((draft.stratum, draft.fields["subquestion"]))
            if found is not None:
                drafts.drop(draft.id, *found)
        elif (reason := consistent.passages.get((draft.stratum, draft.id))) is not None:
            drafts.drop(draft.id, UNRATED, reason)
    for draft in drafts.kept:
        if draft.stratum not in left:
            drafts.drop(draft.id, NO_TOPIC, "its topic has no answerable sub-question")
