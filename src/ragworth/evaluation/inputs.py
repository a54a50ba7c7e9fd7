"""What an evaluation starts from: texts, labels, the queries to run for, and what the systems are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import polars as pl

from ragworth import formats
from ragworth.collection import Collection, merge_collections
from ragworth.config import EVERY_SYSTEM, Workspace
from ragworth.errors import InputError, UnknownNameError, format_count, format_list, quote_short
from ragworth.inputs.conflicts import JudgmentSource, check_no_conflicts, merge_judgments
from ragworth.evaluation.input_files import InputReader
from ragworth.inputs.problems import Problems
from ragworth.evaluation.stage_cache import frame_digest
from ragworth.formats import outcomes as outcome_tables
from ragworth.formats.contract import LoadedCollection
from ragworth.generation.answer_files import read_answers
from ragworth.generation.writer import NO_CONTEXT_SYSTEM, ORACLE_SYSTEM, AnsweringResult, shown_contexts
from ragworth.retrieval import Pipeline, StepContext
from ragworth.tables import Answers, Contexts, Judgments, Outcomes, Ratings
from ragworth.tables.duplicates import duplicate_rows
from ragworth.tables.parts import with_constant_text
from ragworth.tasks.query_sample import check_positive_count as whole_number


@dataclass(frozen=True)
class EvaluationInputs:
    """Everything that was read, for the queries that are evaluated."""

    workspace: Workspace
    collection: Collection
    """Texts of all passages; texts, labels and ratings of the queries that are evaluated."""
    queries: tuple[str, ...]
    systems: dict[str, Pipeline | Contexts]
    written: Mapping[str, str]
    """What each system is, in its written form."""
    judged: Judgments | None
    """Judgments out of files, other than the collection's."""
    answers: AnsweringResult | None
    """Answers out of a file."""
    outcomes: Outcomes | None
    """Outcomes out of files."""
    files: Mapping[str, str]
    """Hashes of all files that were read, by their path from the workspace."""
    notes: tuple[str, ...]
    expensive: Mapping[str, Judgments] = field(default_factory=dict)
    """By kind, what a better judge says of some queries, out of files."""
    limited: bool = False
    """Whether there are more queries, which a limit leaves out."""

    @property
    def given(self) -> list[Judgments]:
        """All judgments that were read."""
        return [table for table in (self.collection.relevance, self.judged) if table is not None]

    @cached_property
    def setting(self) -> StepContext:
        """What pipelines run on; who is asked is for the stage to say."""
        space = self.workspace
        whole = StepContext.of(
            self.collection,
            self.queries,
            judgments=self.judged,
            seed=space.seed,
            cache=space.path(space.cache),
            folder=space.folder,
        )
        return replace(whole, asking=None)

    @cached_property
    def texts_key(self) -> list[str]:
        """What the texts are, in short."""
        texts = self.collection
        return [frame_digest(frame) for frame in (texts.queries, texts.passages, texts.answers, texts.subquestions)]

    @cached_property
    def labels_key(self) -> list[str]:
        """What labels and ratings are, in short."""
        tables = (self.collection.relevance, self.collection.ratings)
        return [frame_digest(table) for table in tables]


@dataclass(frozen=True)
class LoadedSystems:
    """What is compared: each by its name, in its written form, and what came in the same files."""

    made: dict[str, Pipeline | Contexts]
    written: dict[str, str]
    logs: list[Collection]
    runs: list[Contexts]


def load_inputs(
    space: Workspace, problems: Problems, limit: int | None = None, *, every: bool = False
) -> EvaluationInputs | None:
    """Read everything that a workspace names; what cannot be read is a problem, and leaves nothing.

    ``limit`` goes before that of the workspace; ``every``: all queries, whatever limit the workspace has.
    """
    problems.of(partial(whole_number, "limit", limit))
    reading, before = InputReader(space, problems), len(problems.found)
    source = space.collection.whole
    whole = reading.of(source, formats.load, "collection", "from") if source else None
    collection = _load_collection(reading, whole)
    systems = _load_systems(reading, whole)
    judged = [reading.of(path, formats.read_judgments, "judgments", "files") for path in space.judged]
    outcomes = [reading.of(path, outcome_tables.read, "grades", "files") for path in space.graded]
    better = {kind: reading.expensive(kind, task) for kind, task in space.judgments.items()}
    file = space.answers.file if space.answers is not None else None
    answers = reading.of(file, read_answers, "answers", "file") if file else None
    if len(problems.found) > before or collection is None:
        return None
    texts = problems.of(lambda: merge_collections([collection, *systems.logs]), "systems")
    sources = [JudgmentSource(path, each) for path, each in zip(space.judged, judged, strict=True) if each is not None]
    others = problems.of(partial(merge_judgments, sources), "judgments", "files")
    if texts is None or others is None:
        return None
    if texts.relevance is not None:
        labels = JudgmentSource(
            format_list(list(space.collection.qrels)) or source or "the files of [systems]", texts.relevance
        )
        problems.of(partial(check_no_conflicts, [labels, *sources]), "judgments", "files")
    queries = problems.of(lambda: _select_queries(texts, systems.runs), "collection")
    results = problems.of(lambda: _join_outcomes([each for each in outcomes if each is not None]), "grades", "files")
    if not queries or results is None or not systems.made:
        return None
    most = limit or (None if every else space.limit)
    notes, limited = list(texts.notes), False
    if most is not None and most < len(queries):
        notes.append(f"the first {most:,} of {format_count(len(queries), 'query', 'queries')}")
        queries, limited = queries[:most], True
    scope = EvaluationScope(queries, systems.made, problems, notes)
    material = EvaluationInputs(
        space,
        scope.collection(texts),
        tuple(queries),
        systems.made,
        systems.written,
        scope.judgments(others) if judged else None,
        scope.answers(answers),
        scope.outcomes(results) if outcomes else None,
        reading.files,
        (),
        {kind: scope.judgments(each) for kind, each in better.items() if each is not None},
        limited,
    )
    return replace(material, notes=tuple(dict.fromkeys(notes)))


def _load_collection(reading: InputReader, whole: LoadedCollection | None) -> Collection | None:
    """Texts and labels; what has a file of its own replaces that of the whole."""
    given = reading.space.collection
    parts = reading.parts()
    labels = [reading.of(path, formats.read_judgments, "collection", "qrels") for path in given.qrels]
    ratings = reading.of(given.ratings, formats.read_ratings, "collection", "ratings") if given.ratings else None
    base = whole.collection if whole is not None else Collection()
    own = {kind: getattr(part, kind) for kind, part in parts.items()}
    notes = [note for part in (base, *parts.values()) for note in part.notes]
    read = [JudgmentSource(path, each) for path, each in zip(given.qrels, labels, strict=True) if each is not None]
    relevance = reading.problems.of(partial(merge_judgments, read), "collection", "qrels")
    if relevance is None:
        return None
    return replace(
        base,
        **own,
        relevance=relevance if given.qrels else base.relevance,
        ratings=ratings if given.ratings else base.ratings,
        notes=(*notes, *relevance.notes, *(ratings.notes if ratings is not None else ())),
    )


def _load_systems(reading: InputReader, whole: LoadedCollection | None) -> LoadedSystems:
    """Pipelines, and what was retrieved elsewhere."""
    space, problems = reading.space, reading.problems
    systems = LoadedSystems({}, {}, [], [])
    for name, text in space.systems.items():
        pipeline = problems.of(partial(_parse_pipeline, text, space.systems), "systems", name)
        if pipeline is None:
            continue
        found = reading.run(name, pipeline)
        made: dict[str, Pipeline | Contexts] = {} if name == EVERY_SYSTEM else {name: pipeline}
        if found is not None and found.contexts is not None:
            systems.logs.append(found.collection)
            systems.runs.append(found.contexts)
            if name == EVERY_SYSTEM:
                made = {each: found.contexts.only(each) for each in found.contexts.systems}
            elif len(pipeline.steps) == 1:
                made = {name: found.contexts}
        for each in made.keys() & systems.made.keys():
            problems.say(
                f"two systems are called {quote_short(each)}", "give one of them another name", "systems", name
            )
        systems.made.update(made)
        systems.written.update(dict.fromkeys(made, str(pipeline)))
    if not space.systems and whole is not None and whole.contexts is not None:
        systems.runs.append(whole.contexts)
        systems.made.update({name: whole.contexts.only(name) for name in whole.contexts.systems})
        systems.written.update(dict.fromkeys(systems.made, str(space.collection.whole)))
    if not space.systems and not systems.made:
        problems.say("there are no systems", "name some under [systems]: pipelines, or files of runs", "systems")
    return systems


def _parse_pipeline(text: object, names: Iterable[str]) -> Pipeline:
    """A pipeline from its written form; where a system is named in it, that is said."""
    try:
        return Pipeline.of(text)
    except InputError as error:
        if not isinstance(error.__cause__, UnknownNameError) or error.__cause__.name not in names:
            raise
        remedy = "names in a pipeline are kinds of steps, never systems: write the steps of that system"
        raise error.copy(remedy=remedy) from error


def _select_queries(collection: Collection, runs: Sequence[Contexts]) -> list[str]:
    """The queries to run for: those with a text; else those with labels or ratings; else all that the runs have."""
    frames = [collection.queries]
    frames += [table.frame for table in (collection.relevance, collection.ratings) if table is not None]
    found = next((frame["query"].unique(maintain_order=True).to_list() for frame in frames if frame.height), [])
    if not found:
        pairs = [(run.frame["query"].to_list(), sorted(query for _, query in run.empty)) for run in runs]
        found = list(dict.fromkeys(query for shown, empty in pairs for query in (*shown, *empty)))
    if not found:
        raise InputError("there are no queries", remedy="name a file: queries = … under [collection]")
    return found


def _join_outcomes(tables: Sequence[Outcomes]) -> Outcomes:
    """Outcomes from several files in one table; each may come from one of them only."""
    frame = pl.concat([table.frame for table in tables]) if tables else pl.DataFrame(schema=Outcomes.schema)
    again = duplicate_rows(frame, Outcomes.key)
    if len(again):
        row = frame.row(int(again[0]), named=True)
        raise InputError(
            f"two outcomes {quote_short(row['aspect'])} of {quote_short(row['system'])} for the query "
            f"{quote_short(row['query'])}",
            expected="one in all files of outcomes",
        )
    return Outcomes.trusted(frame, tuple(note for table in tables for note in table.notes))


@dataclass(frozen=True)
class EvaluationScope:
    """What of the tables belongs to the queries and systems that are evaluated; what does not is noted."""

    queries: Sequence[str]
    systems: Mapping[str, Pipeline | Contexts]
    problems: Problems
    notes: list[str]

    def queried(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of these queries; a source that is a file is named from the workspace on, as its file has it."""
        known = frame.select(pl.col("query").is_in(self._ids)).to_series()
        mine = frame if known.all() else frame.filter(known)
        if "source" not in mine.columns:
            return mine
        folder = str(self.problems.space.folder / "_").removesuffix("_")
        sources = mine.select(pl.col("source").unique()).to_series()
        if not sources.str.starts_with(folder).any():
            return mine
        if len(sources) == 1:
            return with_constant_text(mine, "source", sources[0].removeprefix(folder))
        return mine.with_columns(pl.col("source").str.strip_prefix(folder))

    def judgments(self, table: Judgments) -> Judgments:
        return Judgments.of_parts([self.queried(part) for part in table.parts], table.notes)

    @cached_property
    def _ids(self) -> pl.Series:
        """The queries as a list, for a look-up."""
        return pl.Series(list(self.queries), dtype=pl.String).implode()

    def collection(self, whole: Collection) -> Collection:
        """The collection with these queries, and with all passages."""
        relevance, ratings = whole.relevance, whole.ratings
        return replace(
            whole,
            queries=self.queried(whole.queries),
            answers=self.queried(whole.answers),
            subquestions=self.queried(whole.subquestions),
            relevance=None if relevance is None else self.judgments(relevance),
            ratings=None if ratings is None else Ratings.trusted(self.queried(ratings.frame), ratings.notes),
        )

    def answers(self, given: AnsweringResult | None) -> AnsweringResult | None:
        if given is None:
            return None
        frame = self._compared(given.frame, "answers", "answers", "file")
        return AnsweringResult(Answers.trusted(frame, given.notes), frame, shown_contexts(frame), given.notes)

    def outcomes(self, given: Outcomes) -> Outcomes:
        return Outcomes.trusted(self._compared(given.frame, "outcomes", "grades", "files"), given.notes)

    def _compared(self, frame: pl.DataFrame, what: str, *path: str) -> pl.DataFrame:
        """The rows of systems that are compared; all of them strangers is a problem."""
        known = [*self.systems, NO_CONTEXT_SYSTEM, ORACLE_SYSTEM]
        strange = frame.filter(~pl.col("system").is_in(known))["system"].unique(maintain_order=True).to_list()
        few = format_list([quote_short(name, 24) for name in strange], 3)
        mine = self.queried(frame.filter(pl.col("system").is_in(known)))
        if strange and mine.height:
            self.notes.append(
                f"{what} of {format_count(len(strange), 'system')} are left out, not being evaluated ({few})"
            )
        if not mine.height:
            names = format_list([quote_short(name, 24) for name in self.systems], 5)
            found = f"no {what} are of a system and a query that are evaluated"
            self.problems.say(found, f"name systems alike: there {few or 'as here'}, here {names}", *path)
        return mine
