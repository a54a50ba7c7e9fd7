"""Build a collection of questions: documents → passages → plan → drafts → checks → kept questions and a card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from ragworth.build.budget import stop_if_spent
from ragworth.build.card import CollectionCard, funnel_facts, model_facts, prompt_versions
from ragworth.build.checks.reader import Reader, reader_flags
from ragworth.build.checks.run import CheckResult, CheckSettings, plan_checks, run_checks
from ragworth.build.checks.summary import apply_checks, check_facts, summarise_checks, unknown_note
from ragworth.build.drafts import Draft, Drafts
from ragworth.build.question_set import from_drafts
from ragworth.build.questions.contract import QuestionSlot, QuestionWriter, SourceText
from ragworth.build.questions.model_writer import ModelWriter
from ragworth.build.questions.plan import QuestionPlan, allocate, plan_slots
from ragworth.build.questions.rules import RuleWriter
from ragworth.build.roles import shared_role_warnings
from ragworth.calls.job import Job
from ragworth.calls.programs import Forecast
from ragworth.retrieval.chunks import chunk
from ragworth.retrieval.documents import Documents, corpus_hash
from ragworth.text_match.languages import foreign_languages

SURPLUS = "surplus"
"""Status of a draft that passes all checks and that the plan has no room for."""

PASSAGE_WORDS = 200
COLUMNS = ("passage", "document", "document_title", "text")


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents, their passages, and the questions to write."""

    documents: Documents
    passages: pl.DataFrame
    """passage, text (with the title of the document in front), document."""
    sources: Mapping[str, SourceText]
    copies: Mapping[str, tuple[str, ...]]
    """Passages whose text occurs again: the others."""
    slots: list[QuestionSlot]


@dataclass(frozen=True)
class BuildJobs:
    """The jobs of the roles; None where rules write, nobody reads, or texts are compared instead of judged."""

    writer: Job | None = None
    reader: Job | None = None
    judge: Job | None = None


@dataclass(frozen=True)
class BuildSettings:
    plan: QuestionPlan = field(default_factory=QuestionPlan)
    checks: CheckSettings = field(default_factory=CheckSettings)
    title: str = "Questions"
    license: str = "not stated"
    drop_unknown: bool = False


@dataclass(frozen=True, eq=False)
class BuiltQuestions:
    corpus: Corpus
    drafts: Drafts
    checks: CheckResult
    card: CollectionCard
    flags: Mapping[str, str]
    """Checks that only flagged in this build, with the reason."""


def prepare_corpus(documents: Documents, plan: QuestionPlan, words: int = PASSAGE_WORDS) -> Corpus:
    """Split documents into passages and plan the questions.

    A blank in the id of a document becomes ``%20``, since ids with blanks can't be written to TREC files.
    """
    documents = documents._replace(frame=documents.frame.with_columns(pl.col("document").str.replace_all(r"\s", "%20")))
    pieces = chunk(documents.frame, "words", words, titles="front")
    passages = pieces.frame
    slots = plan_slots(plan, passages["passage"].to_list())
    shown = passages.select("passage", "text", "document")
    return Corpus(documents, shown, passage_sources(passages), repeated_passages(passages), slots)


def passage_sources(passages: pl.DataFrame) -> dict[str, SourceText]:
    """Passages by their ids. ``passages`` has the columns above; a text has the title of its document in front."""
    return {
        id: SourceText(id, document, title, text.removeprefix(f"{title}\n") if title else text)
        for id, document, title, text in passages.select(COLUMNS).iter_rows()
    }


def repeated_passages(passages: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """Passages whose text occurs again, whatever the titles of their documents, each with the others."""
    bodies = passages.select("passage", body=pl.col("text").str.strip_prefix(pl.col("document_title") + "\n"))
    groups = bodies.filter(pl.col("body").is_duplicated()).group_by("body", maintain_order=True).agg("passage")
    return {id: tuple(each for each in same if each != id) for same in groups["passage"].to_list() for id in same}


def choose_writer(jobs: BuildJobs, settings: BuildSettings) -> QuestionWriter:
    return ModelWriter(settings.checks.prompts) if jobs.writer is not None else RuleWriter()


def plan_build(corpus: Corpus, settings: BuildSettings, jobs: BuildJobs) -> dict[str, Forecast | None]:
    """The calls of each stage. What a model would write isn't known, so its questions can't be checked in a plan."""
    writer = choose_writer(jobs, settings)
    if jobs.writer is not None:
        return {"write": writer.plan(corpus.slots, corpus.sources, jobs.writer), "check": None}
    drafts = writer.write(corpus.slots, corpus.sources, None)
    return {"write": None, "check": plan_checks(from_drafts(drafts, corpus.passages), settings.checks, jobs.reader)}


def build_questions(corpus: Corpus, settings: BuildSettings, jobs: BuildJobs) -> BuiltQuestions:
    """Write, check and select. Every slot of the plan ends as a draft with a status.

    `JobStopped` if a budget ends a stage: questions that nobody could check must not look checked.
    """
    writer = choose_writer(jobs, settings)
    written = writer.write(corpus.slots, corpus.sources, jobs.writer)
    drafts = Drafts(_with_copies(draft, corpus.copies) for draft in written)
    stop_if_spent(jobs.writer)
    result = run_checks(from_drafts(drafts, corpus.passages), settings.checks, jobs.reader, jobs.judge)
    stop_if_spent(jobs.reader, jobs.judge)
    flags = lenient_checks(jobs)
    result = apply_checks(drafts, result, flags, drop_unknown=settings.drop_unknown)
    select_planned(drafts, settings.plan)
    card = _card(corpus, drafts, result, settings, jobs, writer, flags)
    return BuiltQuestions(corpus, drafts, result, card, flags)


def _with_copies(draft: Draft, copies: Mapping[str, tuple[str, ...]]) -> Draft:
    """The draft with the passages that have the same text as its own: they answer its question as well."""
    given = draft.fields.get("passages") or ()
    same = {id for passage in given for id in copies.get(passage, ())}.difference(given)
    return replace(draft, fields={**draft.fields, "copies": sorted(same)}) if same else draft


def lenient_checks(jobs: BuildJobs) -> dict[str, str]:
    """Checks that only flag here, with the reason: they would drop good questions."""
    found: dict[str, str] = {}
    if jobs.writer is None:
        found["copied"] = (
            "rules wrote the questions: they repeat the words of their passages, which favours retrieval by words; "
            "the check copied is a flag here"
        )
    return found | reader_flags(jobs.reader.card if jobs.reader is not None else None)


def select_planned(drafts: Drafts, plan: QuestionPlan) -> None:
    """Keep the planned number; the others are surplus.

    A stratum keeps its share of the plan, so types that pass more checks don't crowd out the others. Places that a
    stratum can't fill go to the others, in order.
    """
    kept = drafts.kept
    if len(kept) <= plan.questions:
        return
    sizes = Counter(draft.stratum for draft in drafts)
    quota = allocate(plan.questions, {name: float(size) for name, size in sizes.items()})
    places: Counter[str] = Counter()
    first: list[str] = []
    rest: list[str] = []
    for draft in kept:
        places[draft.stratum] += 1
        (first if places[draft.stratum] <= quota.get(draft.stratum, 0) else rest).append(draft.id)
    chosen = {*first, *rest[: plan.questions - len(first)]}
    for draft in kept:
        if draft.id not in chosen:
            drafts.drop(draft.id, SURPLUS, f"the plan has {plan.questions:,} questions")


def _card(
    corpus: Corpus,
    drafts: Drafts,
    result: CheckResult,
    settings: BuildSettings,
    jobs: BuildJobs,
    writer: QuestionWriter,
    flags: Mapping[str, str],
) -> CollectionCard:
    roles = {"writer": jobs.writer, "reader": jobs.reader, "judge": jobs.judge}
    cards = {name: job.card for name, job in roles.items() if job is not None}
    empty = {"writer": "rules", "reader": "none", "judge": "none (answers are compared as texts)"}
    templates = dict(writer.templates) if isinstance(writer, ModelWriter) else {}
    if jobs.reader is not None:
        templates |= Reader(jobs.reader.card, result.questions, settings.checks.prompts).templates
    notes = [*corpus.documents.notes, *result.notes, *shared_role_warnings(cards), *flags.values()]
    foreign = foreign_languages(corpus.documents.frame["text"]) if jobs.writer is None else ""
    if foreign:
        notes.append(f"the rules know English sentences, and the documents aren't ({foreign}): name a model with -M")
    note = unknown_note(drafts, result)
    models: dict[str, Any] = {name: model_facts(cards[name]) if name in cards else empty[name] for name in roles}
    return CollectionCard(
        title=settings.title,
        command="build questions",
        corpus={
            "documents": corpus.documents.frame.height,
            "passages": corpus.passages.height,
            "sha256": corpus_hash(corpus.documents.frame),
        },
        models=models,
        prompts=prompt_versions(templates),
        seeds={"plan": settings.plan.seed},
        settings=settings.plan.describe(),
        **funnel_facts(drafts, ["no-fact", "unparsable", *result.frame["check"].unique(maintain_order=True)]),
        checks=check_facts(summarise_checks(result, flags)),
        license=settings.license,
        notes=[*notes, *([note] if note else [])],
    )
