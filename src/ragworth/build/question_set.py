"""Questions to check, with the passages that they rest on: the drafts of a build, or any collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from ragworth.build.drafts import Draft, Drafts
from ragworth.build.questions.contract import QUESTION, SourceSpan
from ragworth.core.errors import InputError
from ragworth.data import OK
from ragworth.data.collection import Collection

DRAFTS_FILE = "drafts.jsonl"


@dataclass(frozen=True)
class Question:
    """A question with all that checks look at."""

    id: str
    text: str
    answers: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    """Ids of the passages that answer it, best first."""
    spans: tuple[SourceSpan, ...] = ()
    answerable: bool | None = None
    """False: declared unanswerable. None: nothing says so."""
    copies: tuple[str, ...] = ()
    """Other passages with the same text as one of ``passages``."""

    @property
    def relevant(self) -> tuple[str, ...]:
        """Passages that answer it, and copies of them."""
        return tuple(dict.fromkeys((*self.passages, *self.copies)))


@dataclass(frozen=True, eq=False)
class QuestionSet:
    """Questions and the texts of all passages."""

    questions: tuple[Question, ...]
    passages: pl.DataFrame
    """passage, text."""
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def texts(self) -> Mapping[str, str]:
        return dict(self.passages.select("passage", "text").iter_rows())

    def known_texts(self, question: Question) -> list[str]:
        """Texts of the question's passages, as far as they are known."""
        return [self.texts[id] for id in question.passages if self.texts.get(id, "").strip()]

    @cached_property
    def collection(self) -> Collection:
        """The set as a collection, for retrieval and readers."""
        queries = [(each.id, each.text) for each in self.questions]
        answers = [(each.id, text) for each in self.questions for text in each.answers]
        labels = [(each.id, passage, 1.0) for each in self.questions for passage in each.relevant]
        relevance = {"query": pl.String, "passage": pl.String, "value": pl.Float64}
        return Collection.of(
            queries=pl.DataFrame(queries, schema={"query": pl.String, "text": pl.String}, orient="row"),
            passages=self.passages.select("passage", "text"),
            answers=pl.DataFrame(answers, schema={"query": pl.String, "text": pl.String}, orient="row"),
            relevance=pl.DataFrame(labels, schema=relevance, orient="row") if labels else None,
        )


def question_of(draft: Draft) -> Question:
    """The question of a draft that has one."""
    fields: Mapping[str, Any] = draft.fields
    answerable = bool(fields.get("answerable", True))
    return Question(
        draft.id,
        str(fields["question"]),
        tuple(fields.get("answers", ())),
        tuple(fields.get("passages", ())) if answerable else (),
        tuple(SourceSpan(each["passage"], each["text"]) for each in fields.get("spans", ()) if each["text"]),
        answerable,
        tuple(fields.get("copies", ())) if answerable else (),
    )


def from_drafts(drafts: Iterable[Draft], passages: pl.DataFrame) -> QuestionSet:
    """The questions of drafts that were written; drafts without a text are left to their status."""
    return QuestionSet(tuple(question_of(draft) for draft in drafts if draft.fields.get("question")), passages)


def from_collection(collection: Collection, level: float = 1.0) -> QuestionSet:
    """The questions of any collection. Its relevant passages are those that the questions rest on."""
    if not collection.queries.height:
        raise InputError("there are no texts of queries to check", expected="a collection with questions")
    answers: dict[str, list[str]] = {}
    for query, text in collection.answers.iter_rows():
        if text.strip():
            answers.setdefault(query, []).append(text)
    labels: dict[str, list[tuple[float, str]]] = {}
    if collection.relevance is not None:
        judged = collection.relevance.of("relevance").filter((pl.col("status") == OK) & (pl.col("value") >= level))
        for query, passage, value in judged.select("query", "passage", "value").iter_rows():
            labels.setdefault(query, []).append((-value, passage))
    questions = tuple(
        Question(query, text, tuple(answers.get(query, ())), tuple(id for _, id in sorted(labels.get(query, ()))))
        for query, text in collection.queries.select("query", "text").iter_rows()
    )
    return QuestionSet(questions, collection.passages.select("passage", "text"), collection.notes)


def read_question_set(paths: Iterable[str], *, level: float = 1.0) -> QuestionSet:
    """Read what was named: a built collection, a workspace, a BEIR folder, or files such as those of ragas."""
    from ragworth.formats import load
    from ragworth.formats.texts import read_texts

    named = list(paths)
    folder = Path(named[0])
    drafts = Drafts.read(folder / DRAFTS_FILE) if len(named) == 1 and (folder / DRAFTS_FILE).is_file() else Drafts()
    if any(draft.kind == QUESTION for draft in drafts):
        passages, notes = read_texts(folder / "passages.jsonl", kind="passages", skip_bad_lines=False)
        if not drafts.kept:
            raise InputError("no question of this collection was kept", file=str(folder), expected="at least one")
        kept = from_drafts(drafts.kept, passages.select("passage", "text"))
        return QuestionSet(kept.questions, kept.passages, tuple(notes))
    if len(named) == 1 and (":" in named[0] or (folder.is_file() and folder.suffix != ".toml")):
        return from_collection(load(named[0]).collection, level)
    return from_collection(_workspace_collection(named), level)


def _workspace_collection(paths: list[str]) -> Collection:
    """The collection of a workspace, a BEIR folder or several files."""
    from ragworth.data.collection import merge_collections
    from ragworth.formats import load
    from ragworth.workspace.files import FileReader
    from ragworth.workspace.problems import Problems
    from ragworth.workspace.read import read

    if len(paths) == 1 and (Path(paths[0]) / "corpus.jsonl").is_file() and (Path(paths[0]) / "qrels").is_dir():
        return load(f"beir:{paths[0]}").collection
    space = read(paths).workspace
    problems = Problems()
    reading = FileReader(problems, space.spec, columns=space.columns_of, known=space.known)
    given = reading.collection(space.collection)
    logs = [
        reading.read("run", str(system["run"]), "systems", name)
        for name, system in space.systems.items()
        if isinstance(system, Mapping) and "run" in system
    ]
    problems.done()
    parts = [each.collection for each in (given, *logs) if each is not None]
    return merge_collections([each for each in parts if each.queries.height or each.passages.height])
