"""What an evaluation starts from: texts, labels, the queries to run for, and what the systems are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from ragworth import formats
from ragworth.answers.generating import Answered
from ragworth.answers.reading import read_answers
from ragworth.collection import Collection, merged
from ragworth.config import Workspace
from ragworth.doors import to_frame
from ragworth.errors import InputError, MissingExtraError, RagworthError, counted, quoted
from ragworth.evaluation.kept import file_digest
from ragworth.formats import texts
from ragworth.formats.contract import Loaded
from ragworth.formats.frames import read_table
from ragworth.retrieval import Pipeline, Setting, check
from ragworth.retrieval.steps.given import Run
from ragworth.tables import Contexts, Judgments, Outcomes, Ratings

T = TypeVar("T")

EVERY = "*"
"""Name of a system that stands for all that a file has, each under its own name."""


@dataclass(frozen=True)
class Material:
    """Everything that was read, for the queries that are evaluated."""

    workspace: Workspace
    collection: Collection
    """Texts of all passages; labels and ratings of the queries that are evaluated."""
    queries: tuple[str, ...]
    systems: Mapping[str, Pipeline | Contexts]
    judged: Judgments | None
    """Judgments out of files, other than the collection's."""
    answers: Answered | None
    """Answers out of a file."""
    outcomes: Outcomes | None
    files: Mapping[str, str]
    """Hashes of all files that were read, by their path from the workspace."""
    notes: tuple[str, ...]

    @property
    def relevance(self) -> Judgments | None:
        return self.collection.relevance

    @property
    def ratings(self) -> Ratings | None:
        return self.collection.ratings

    @cached_property
    def setting(self) -> Setting:
        """What pipelines run on."""
        space = self.workspace
        return Setting.of(
            self.collection,
            self.queries,
            judgments=self.judged,
            seed=space.seed,
            cache=space.path(space.cache),
            folder=space.folder,
        )


class Together:
    """Does one thing after the other, and reports what went wrong in all of them at once."""

    def __init__(self) -> None:
        self.wrong: list[RagworthError] = []

    def of(self, make: Callable[[], T]) -> T | None:
        try:
            return make()
        except (InputError, MissingExtraError) as error:
            self.wrong.append(error)
            return None

    def done(self) -> None:
        if len(self.wrong) == 1:
            raise self.wrong[0]
        if self.wrong:
            number = counted(len(self.wrong), "problem")
            raise InputError(f"{number}:\n" + "\n".join(str(error) for error in self.wrong))


def load(space: Workspace, limit: int | None = None, *, every: bool = False) -> Material:
    """Read everything that a workspace names; what cannot be read is reported together.

    ``every``: all queries, whatever limit the workspace has.
    """
    together, given = Together(), space.collection
    files: dict[str, str] = {}

    def noted(text: str, read: Callable[[str], T]) -> T | None:
        spec = space.spec(text)
        found = together.of(partial(read, spec))
        path = Path(spec.partition(":")[2] if not Path(spec).exists() else spec)
        if path.exists():
            files[text] = file_digest(path)
        return found

    whole = noted(given.whole, formats.load) if given.whole else None
    parts = [
        noted(path, partial(_texts, kind))
        for kind in ("queries", "passages", "answers", "subquestions")
        if (path := getattr(given, kind))
    ]
    labels = [noted(path, formats.read_judgments) for path in given.qrels]
    ratings = noted(given.ratings, formats.read_ratings) if given.ratings else None
    judged = [noted(path, formats.read_judgments) for path in space.judged]
    written = space.answers.file if space.answers is not None else None
    answers = noted(written, read_answers) if written else None
    outcomes = [noted(path, _outcomes) for path in space.graded]
    pipelines = {name: together.of(partial(Pipeline.of, text)) for name, text in space.systems.items()}
    logs = _logs(space, pipelines, noted)
    together.done()
    collection = merged([*_known(whole, labels, ratings), *filter(None, parts), *logs, *_labels(labels, ratings)])
    systems: dict[str, Pipeline | Contexts] = {}
    for name, found in pipelines.items():
        if found is not None:
            systems |= _several(found, space) if name == EVERY else {name: found}
    if not systems and whole is not None and whole.contexts is not None:
        systems = {name: whole.contexts.only(name) for name in whole.contexts.systems}
    if not systems:
        raise InputError(
            "there are no systems",
            file=str(space.file),
            remedy="name some under [systems]: pipelines, or files of runs",
        )
    others = Judgments.concat([each for each in judged if each is not None]) if judged else None
    queries, notes = _queries(space, collection, systems, limit or (None if every else space.limit))
    return Material(
        space,
        _only(collection, queries),
        queries,
        systems,
        Judgments.trusted(_of(others.frame, queries)) if others is not None else None,
        answers,
        _joined([each for each in outcomes if each is not None], queries) if outcomes else None,
        files,
        tuple(dict.fromkeys((*collection.notes, *notes))),
    )


def verified(material: Material) -> None:
    """Refuse systems that cannot run."""
    try:
        check(material.systems, material.setting)
    except InputError as error:
        if error.file:
            raise
        raise InputError(
            error.found,
            expected=error.expected,
            remedy=error.remedy,
            file=str(material.workspace.file),
            more=error.more,
        ) from error


def _texts(kind: Any, spec: str) -> Collection:
    return texts.read(spec, kind)


def _outcomes(spec: str) -> Outcomes:
    """Outcomes out of a table, long or with one column for each aspect."""
    frame, _ = read_table(spec)
    if "aspect" not in frame.columns:
        keys = [name for name in frame.columns if name in ("system", "query", "system_id", "query_id", "run", "qid")]
        numbers = [name for name, kind in frame.schema.items() if kind.is_numeric() and name not in keys]
        frame = frame.unpivot(numbers, index=keys, variable_name="aspect", value_name="value").drop_nulls("value")
    return Outcomes(to_frame(frame), source=spec)


def _logs(space: Workspace, pipelines: Mapping[str, Pipeline | None], noted: Any) -> list[Collection]:
    """Texts that come in the files of runs."""
    made: list[Collection] = []
    for pipeline in pipelines.values():
        first = pipeline.steps[0] if pipeline is not None and pipeline.steps else None
        if isinstance(first, Run):
            loaded = noted(first.path, _with_texts)
            made += [loaded] if loaded is not None else []
    return made


def _with_texts(spec: str) -> Collection | None:
    """The texts of a run's file, if it is of a kind that has them."""
    chosen, _ = formats.resolve(spec, "contexts")
    return formats.load(spec).collection if chosen.name == "jsonl" else None


def _known(whole: Loaded | None, labels: list[Any], ratings: Any) -> list[Collection]:
    """The collection without what other files replace."""
    if whole is None:
        return []
    theirs = whole.collection
    return [
        replace(
            theirs,
            relevance=None if labels else theirs.relevance,
            ratings=None if ratings is not None else theirs.ratings,
        )
    ]


def _labels(labels: list[Any], ratings: Any) -> list[Collection]:
    made = [Collection(relevance=Judgments.concat([each for each in labels if each is not None]))] if labels else []
    return made + ([Collection(ratings=ratings)] if ratings is not None else [])


def _queries(
    space: Workspace, collection: Collection, systems: Mapping[str, Pipeline | Contexts], limit: int | None
) -> tuple[tuple[str, ...], list[str]]:
    """The queries to run for: those with a text; else those with labels; else all that the runs have."""
    if collection.queries.height:
        found = collection.queries["query"].to_list()
    elif collection.relevance is not None:
        found = collection.relevance.frame["query"].unique(maintain_order=True).to_list()
    elif collection.ratings is not None:
        found = collection.ratings.frame["query"].unique(maintain_order=True).to_list()
    else:
        tables = [system if isinstance(system, Contexts) else _first_run(system, space) for system in systems.values()]
        found = list(dict.fromkeys(query for table in tables if table is not None for query in table.frame["query"]))
    if not found:
        raise InputError(
            "there are no queries", file=str(space.file), remedy="name a file: queries = … under [collection]"
        )
    notes = [f"the first {limit:,} of {len(found):,} queries"] if limit is not None and limit < len(found) else []
    return tuple(found[:limit] if limit else found), notes


def _several(pipeline: Pipeline, space: Workspace) -> dict[str, Pipeline | Contexts]:
    """All systems of a run's file."""
    found = _first_run(pipeline, space) if len(pipeline.steps) == 1 else None
    if found is None:
        raise InputError(
            f"the system {EVERY!r} is no file of runs", file=str(space.file), expected='"*" = {run = "FILE"}'
        )
    return {name: found.only(name) for name in found.systems}


def _first_run(pipeline: Pipeline, space: Workspace) -> Contexts | None:
    first = pipeline.steps[0]
    return formats.read_contexts(space.spec(first.path)) if isinstance(first, Run) else None


def _of(frame: pl.DataFrame, queries: tuple[str, ...]) -> pl.DataFrame:
    return frame.filter(pl.col("query").is_in(list(queries)))


def _only(collection: Collection, queries: tuple[str, ...]) -> Collection:
    """The collection with the queries that are evaluated, and with all passages."""
    relevance, ratings = collection.relevance, collection.ratings
    return replace(
        collection,
        queries=_of(collection.queries, queries),
        answers=_of(collection.answers, queries),
        subquestions=_of(collection.subquestions, queries),
        relevance=None if relevance is None else Judgments.trusted(_of(relevance.frame, queries), relevance.notes),
        ratings=None if ratings is None else Ratings.trusted(_of(ratings.frame, queries), ratings.notes),
    )


def _joined(tables: list[Outcomes], queries: tuple[str, ...]) -> Outcomes:
    frame = pl.concat([table.frame for table in tables])
    again = frame.filter(frame.select(pl.struct("system", "query", "aspect").is_duplicated()).to_series())
    if again.height:
        row = again.row(0, named=True)
        raise InputError(
            f"two outcomes {quoted(row['aspect'])} of {quoted(row['system'])} for the query {quoted(row['query'])}",
            expected="one in all files of outcomes",
        )
    return Outcomes.trusted(_of(frame, queries))
