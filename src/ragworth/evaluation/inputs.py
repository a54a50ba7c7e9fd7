"""What an evaluation starts from: texts, labels, the queries to run for, and what the systems are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import polars as pl

from ragworth import formats
from ragworth.collection import Collection, match_questions, merge_collections
from ragworth.config import TaskConfig, Workspace, names_every_system
from ragworth.contribution.hops import Hop, HopTable, hops_of
from ragworth.conversations import conversation_notes
from ragworth.errors import FormatError, InputError, UnknownNameError, format_count, format_list, quote_short
from ragworth.evaluation.given_answers import join_answers, join_outcomes, missing_answer_notes, replaced_notes
from ragworth.evaluation.stage_cache import file_digest, frame_digest
from ragworth.formats import outcomes as outcome_tables
from ragworth.formats.contract import LoadedCollection
from ragworth.generation.answer_files import read_answers
from ragworth.generation.writer import NO_CONTEXT_SYSTEM, ORACLE_SYSTEM, AnsweringResult, shown_contexts
from ragworth.inputs.conflicts import JudgmentSource, check_no_conflicts, merge_judgments
from ragworth.inputs.problems import Problems
from ragworth.inputs.reader import CollectionFiles, FileReader
from ragworth.inputs.runs import queries_of, rename_system, systems_of
from ragworth.metrics.id_spelling import spelling_hint
from ragworth.retrieval import Pipeline, StepContext
from ragworth.retrieval.steps.given_run import Run
from ragworth.tables import Answers, Contexts, Judgments, Outcomes, Ratings
from ragworth.tables.parts import with_constant_text
from ragworth.tables.turns import turns_digest
from ragworth.tasks.query_sample import check_positive_count as whole_number
from ragworth.tasks.query_sample import sample_queries
from ragworth.text_match.languages import foreign_languages
from ragworth.two_judges.strata import check_random_share


@dataclass(frozen=True)
class EvaluationInputs:
    """Everything that was read, for the queries that are evaluated."""

    workspace: Workspace
    collection: Collection
    """Texts of all passages; texts, labels and ratings of the queries that are evaluated."""
    queries: tuple[str, ...]
    systems: dict[str, Pipeline | Contexts]
    written: Mapping[str, str]
    """What each system is, in its written form; also of those that the data has answers or grades of only."""
    judged: Judgments | None
    """Judgments out of files, other than the collection's."""
    answers: AnsweringResult | None
    """Answers in the data: in logs, or in a file of their own."""
    outcomes: Outcomes | None
    """Grades in the data."""
    files: Mapping[str, str]
    """Hashes of all files that were read, by their path from the workspace."""
    notes: tuple[str, ...]
    expensive: Mapping[str, Judgments] = field(default_factory=dict)
    """By kind, what a better judge says of some queries, out of files."""
    limited: bool = False
    """Whether there are more queries, which a limit leaves out."""
    hops: HopTable = field(default_factory=dict)
    """The searches of agents that searched more than once."""
    logged: bool = False
    """Whether all contexts come from logs: a query that a log lacks was not asked. A run found nothing for it."""

    @property
    def given(self) -> list[Judgments]:
        """All judgments that were read."""
        return [table for table in (self.collection.relevance, self.judged) if table is not None]

    @property
    def has_answers(self) -> bool:
        """Whether the data has answers or grades, which can be compared without any metric of passages."""
        return self.answers is not None or self.outcomes is not None

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
        frames = (texts.queries, texts.passages, texts.answers, texts.subquestions)
        turns = [turns_digest(texts.turns), texts.turn_form] if texts.turns.height else []
        return [*map(frame_digest, frames), *turns]

    @cached_property
    def labels_key(self) -> list[str]:
        """What labels and ratings are, in short."""
        tables = (self.collection.relevance, self.collection.ratings)
        return [frame_digest(table) for table in tables]


@dataclass(frozen=True)
class LoadedSystems:
    """The systems by name, in their written form, and everything that came in the same files."""

    made: dict[str, Pipeline | Contexts] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    bare: dict[str, None] = field(default_factory=dict)
    """Systems that are known by their answers or grades only: nobody says what they showed."""
    logs: list[LoadedCollection] = field(default_factory=list)

    def add(self, log: LoadedCollection, written: str) -> None:
        """Add all systems of a log under their own names."""
        shown = log.contexts.systems if log.contexts is not None else []
        bare = [name for name in systems_of(log) if name not in shown]
        self.logs.append(log)
        self.made.update({name: log.contexts.only(name) for name in shown if log.contexts is not None})
        self.bare.update(dict.fromkeys(bare))
        self.written.update(dict.fromkeys([*shown, *bare], written))

    @property
    def names(self) -> list[str]:
        return [*self.made, *self.bare]


def load_inputs(
    space: Workspace,
    problems: Problems,
    limit: int | None = None,
    *,
    every: bool = False,
    sample: int | None = None,
    records: LoadedCollection | None = None,
) -> EvaluationInputs | None:
    """Read everything that a workspace names. What can't be read is a problem, and the result is None.

    ``limit`` replaces that of the workspace; ``every``: all queries, whatever limit the workspace has; ``sample``: so
    many queries, drawn at random by the workspace's seed. ``records``: data in memory, as ``[collection] from``.
    """
    problems.of(partial(whole_number, "limit", limit))
    problems.of(partial(whole_number, "sample", sample))
    before = len(problems.found)
    reading = FileReader(problems, space.spec, columns=space.columns_of)
    given = reading.collection(space.collection)
    if records is not None and given is not None:
        given = CollectionFiles(records, merge_collections([given.collection, records.collection]))
    systems = _load_systems(space, reading, given.whole if given is not None else None)
    if records is None:
        reading.check_columns({name: column for name, column in space.columns.items() if isinstance(column, str)})
    judged = [reading.of(path, formats.read_judgments, "judgments", "files") for path in space.judged]
    outcomes = [reading.of(path, outcome_tables.read, "grades", "files") for path in space.graded]
    better = {kind: _read_expensive(reading, kind, task) for kind, task in space.judgments.items()}
    file = space.answers.file if space.answers is not None else None
    answers = reading.of(file, read_answers, "answers", "file") if file else None
    if len(problems.found) > before or given is None:
        return None
    texts = problems.of(
        lambda: merge_collections(
            [given.collection, *(log.collection for log in systems.logs if log is not given.whole)]
        ),
        "systems",
    )
    sources = [JudgmentSource(path, each) for path, each in zip(space.judged, judged, strict=True) if each is not None]
    others = problems.of(partial(merge_judgments, sources), "judgments", "files")
    texts = problems.of(partial(texts.counting, space.tokens), "collection", "tokens") if texts is not None else None
    texts = replace(texts, turn_form=space.collection.turns) if texts is not None else None
    if texts is None or others is None:
        return None
    if texts.relevance is not None:
        labels = JudgmentSource(
            format_list(list(space.collection.qrels)) or space.collection.whole or "the files of [systems]",
            texts.relevance,
        )
        problems.of(partial(check_no_conflicts, [labels, *sources]), "judgments", "files")
    again = space.answers is not None and space.answers.replace
    graded = [
        Outcomes.trusted(match_questions(each.frame, texts.queries), each.notes)
        for each in outcomes
        if each is not None
    ]
    results = problems.of(partial(join_outcomes, graded, [] if again else systems.logs), "grades", "files")
    written = problems.of(partial(join_answers, answers, [] if again else systems.logs), "answers", "file")
    _name_bare_systems(systems, [each for each in (results, _table(answers)) if each is not None])
    queries = problems.of(lambda: _select_queries(texts, systems.logs, results, written), "collection")
    if not systems.names:
        problems.say("there are no systems", "name some under [systems]: pipelines, or files of runs", "systems")
    if not queries or results is None or written is None or not systems.names:
        return None
    notes = [*texts.notes, *replaced_notes(systems.logs if again else [])]
    found = len(queries)
    queries = sample_queries(queries, sample=sample, seed=space.seed)
    most = limit or (None if every or sample else space.limit)
    if sample is not None and sample < found:
        notes.append(f"{sample:,} of {format_count(found, 'query', 'queries')}, drawn at random (seed {space.seed})")
    if most is not None and most < len(queries):
        notes.append(f"the first {most:,} of {format_count(len(queries), 'query', 'queries')}")
        queries = queries[:most]
    scope = EvaluationScope(queries, systems.names, problems, space.folder, notes)
    material = EvaluationInputs(
        space,
        scope.collection(texts),
        tuple(queries),
        systems.made,
        systems.written,
        scope.judgments(others) if judged else None,
        scope.answers(written),
        scope.outcomes(results),
        {text: file_digest(path) for text, path in reading.files.items()},
        (),
        {kind: scope.judgments(each) for kind, each in better.items() if each is not None},
        len(queries) < found,
        problems.of(partial(_find_hops, space.hops, systems.made, set(queries), notes), "systems") or {},
        systems.made.keys()
        <= {name for log in systems.logs if log.contexts is not None for name in log.contexts.systems},
    )
    notes += missing_answer_notes(material.answers, queries, texts.queries.select("query", "text"))
    if material.answers is not None and (space.answers is None or file is not None):
        answered = material.answers.table.distinct("system")
        if silent := [quote_short(name, 24) for name in systems.names if name not in answered]:
            notes.append(f"no answers of {format_list(silent, 3)}: only the other systems are compared by answers")
    if systems.bare and systems.made:
        few = format_list([quote_short(name, 24) for name in systems.bare], 3)
        notes.append(f"the data doesn't say what {few} showed: metrics of passages leave it out")
    notes += _language_notes(space, texts.queries["text"].drop_nulls())
    notes += [*conversation_notes(material.collection), *material.collection.doubtful_text_notes()]
    return replace(material, notes=tuple(dict.fromkeys(notes)))


def _language_notes(space: Workspace, questions: pl.Series) -> list[str]:
    """That the embedded reader, if it is asked, doesn't know the language of the questions."""
    tasks = [task for kind, task in space.judgment_tasks.items() if kind != "containment"]
    if space.answers is not None and space.answers.file is None:
        tasks.append(space.answers.task)
    if not any((task.model or space.model).use == "embedded" for task in tasks):
        return []
    foreign = foreign_languages(questions)
    words = "the embedded reader was made for English, so don't trust what it says of these questions"
    return [f"{words} ({foreign}): name another model"] if foreign else []


def _find_hops(
    wanted: object, systems: Mapping[str, Pipeline | Contexts], queries: Set[str], notes: list[str]
) -> HopTable:
    """What each search of an agent found, of those that searched more than once.

    A column of that name may mean something else: unless hops are asked for, it is left alone then, with a note.
    """
    found: dict[tuple[str, str], Sequence[Hop]] = {}
    for contexts in systems.values():
        if wanted is None or not isinstance(contexts, Contexts) or contexts.hops is None:
            continue
        try:
            found |= hops_of(contexts.hops.drop_nulls("hop"), ", ".join(contexts.systems))
        except FormatError as error:
            if wanted != "auto":
                raise
            notes.append(
                f"{', '.join(contexts.systems)}: the column 'hop' isn't read as an agent's hops: {error.found}"
            )
    return {key: hops for key, hops in found.items() if len(hops) > 1 and key[1] in queries}


def _read_expensive(reading: FileReader, kind: str, task: TaskConfig) -> Judgments | None:
    """What a better judge says of a kind, where it is in a file."""
    file = task.expensive.file if task.expensive is not None else None
    return reading.of(file, _read_random_judgments, "judgments", kind, "expensive", "file") if file else None


def _read_random_judgments(path: str, **options: Any) -> Judgments:
    check_random_share(path)
    return formats.read_judgments(path, **options)


def _load_systems(space: Workspace, reading: FileReader, whole: LoadedCollection | None) -> LoadedSystems:
    """Pipelines, and what was retrieved or answered elsewhere."""
    problems, systems = reading.problems, LoadedSystems()
    for name, text in space.systems.items():
        pipeline = problems.of(partial(_parse_pipeline, text, space.systems), "systems", name)
        if pipeline is None:
            continue
        log = _read_log(name, pipeline, reading)
        fresh = LoadedSystems()
        if log is not None and (names_every_system(name) or len(pipeline.steps) == 1):
            fresh.add(log if names_every_system(name) else rename_system(log, name), str(pipeline))
        elif log is not None:
            fresh.logs.append(log._replace(answers=None, outcomes=None))  # another step follows: other contexts
        if not fresh.names and not names_every_system(name):
            fresh.made[name], fresh.written[name] = pipeline, str(pipeline)
        for each in set(fresh.names) & set(systems.names):
            problems.say(
                f"two systems are called {quote_short(each)}", "give one of them another name", "systems", name
            )
        for part in ("made", "written", "bare"):
            getattr(systems, part).update(getattr(fresh, part))
        systems.logs.extend(fresh.logs)
    if not space.systems and whole is not None:
        systems.add(whole, space.collection.whole or "records")
    return systems


def _read_log(name: str, pipeline: Pipeline, reading: FileReader) -> LoadedCollection | None:
    """What the file holds that a system begins with; None where it begins with no file, or it can't be read."""
    first = pipeline.steps[0]
    log = reading.run(first.path, "systems", name) if isinstance(first, Run) else None
    if log is None:
        return None
    if names_every_system(name) and len(pipeline.steps) > 1:
        remedy = 'write "*" = {run = "FILE"}'
        reading.problems.say(f"the system {name!r} is more than a file of runs", remedy, "systems", name)
    number = len(systems_of(log))
    if not names_every_system(name) and number > 1:
        found = f"the file of {name!r} holds {format_count(number, 'system')}"
        remedy = 'take all of them, each under its own name: "*" = {run = "FILE"}'
        reading.problems.say(found, remedy, "systems", name)
        return None
    return log


def _parse_pipeline(text: object, names: Iterable[str]) -> Pipeline:
    """A pipeline from its written form; where a system is named in it, that is said."""
    try:
        return Pipeline.of(text)
    except InputError as error:
        if not isinstance(error.__cause__, UnknownNameError) or error.__cause__.name not in names:
            raise
        remedy = "names in a pipeline are kinds of steps, never systems: write the steps of that system"
        raise error.copy(remedy=remedy) from error


def _name_bare_systems(systems: LoadedSystems, tables: Sequence[Answers | Outcomes]) -> None:
    """Where no file says what systems showed, those with answers or grades are the systems."""
    if not systems.names:
        for table in tables:
            systems.bare.update(dict.fromkeys(table.distinct("system")))
            systems.written.update(dict.fromkeys(systems.bare, table.name))


def _table(answers: AnsweringResult | None) -> Answers | None:
    return answers.table if answers is not None else None


def _select_queries(
    collection: Collection, logs: Sequence[LoadedCollection], outcomes: Outcomes | None, answers: AnsweringResult | None
) -> list[str]:
    """The queries to evaluate: those with a text; else with labels or ratings; else all that systems have."""
    frames = [collection.queries]
    frames += [table.frame for table in (collection.relevance, collection.ratings) if table is not None]
    found = next((frame["query"].unique(maintain_order=True).to_list() for frame in frames if frame.height), [])
    if not found:
        tables = [table for table in (_table(answers), outcomes) if table is not None]
        every = [*map(queries_of, logs), *(table.distinct("query") for table in tables)]
        found = list(dict.fromkeys(query for queries in every for query in queries))
    if not found:
        raise InputError("there are no queries", remedy="name a file: queries = … under [collection]")
    return found


@dataclass(frozen=True)
class EvaluationScope:
    """What of the tables belongs to the queries and systems that are evaluated; what does not is noted."""

    queries: Sequence[str]
    systems: Sequence[str]
    problems: Problems
    folder: Path
    notes: list[str]

    def queried(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of these queries; a source that is a file is named from the workspace on, as its file has it."""
        known = frame.select(pl.col("query").is_in(self._ids)).to_series()
        mine = frame if known.all() else frame.filter(known)
        if "source" not in mine.columns:
            return mine
        folder = str(self.folder / "_").removesuffix("_")
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
        self._note_spelling(whole.answers, "accepted answers")
        self._note_spelling(whole.subquestions, "sub-questions")
        if relevance is not None:
            self._note_spelling(relevance.frame, "relevance labels")
        return replace(
            whole,
            queries=self.queried(whole.queries),
            answers=self.queried(whole.answers),
            subquestions=self.queried(whole.subquestions),
            turns=self.queried(whole.turns),
            relevance=None if relevance is None else self.judgments(relevance),
            ratings=None if ratings is None else Ratings.trusted(self.queried(ratings.frame), ratings.notes),
        )

    def answers(self, given: AnsweringResult) -> AnsweringResult | None:
        if not given.frame.height:
            return None
        frame = self._compared(given.frame, "answers", "answers", "file")
        return AnsweringResult(Answers.trusted(frame, given.notes), frame, shown_contexts(frame), given.notes)

    def outcomes(self, given: Outcomes) -> Outcomes | None:
        if not len(given):
            return None
        return Outcomes.trusted(self._compared(given.frame, "outcomes", "grades", "files"), given.notes)

    def _compared(self, frame: pl.DataFrame, what: str, *path: str) -> pl.DataFrame:
        """The rows of systems that are compared; all of them strangers is a problem."""
        known = [*self.systems, NO_CONTEXT_SYSTEM, ORACLE_SYSTEM]
        strange = frame.filter(~pl.col("system").is_in(known))["system"].unique(maintain_order=True).to_list()
        few = format_list([quote_short(name, 24) for name in strange], 3)
        mine = self.queried(frame.filter(pl.col("system").is_in(known)))
        if len(mine) + frame.filter(~pl.col("system").is_in(known)).height < frame.height:
            pairs = frame.filter(pl.col("system").is_in(known)).select("system", "query").unique(maintain_order=True)
            for part in pairs.partition_by("system", maintain_order=True):
                self._note_spelling(part, f"{what} of {part['system'][0]}")
        if strange and mine.height:
            has = set(mine["system"].unique())
            lacking = pl.Series([name for name in known if name not in has], dtype=pl.String)
            if hint := spelling_hint(pl.Series(strange), lacking, "evaluated", ("system", "systems")):
                self.problems.say(f"{what}: {hint}", "name systems alike in all files", *path)
            self.notes.append(
                f"{what} of {format_count(len(strange), 'system')} are left out, not being evaluated ({few})"
            )
        if not mine.height:
            names = format_list([quote_short(name, 24) for name in self.systems], 5)
            found = f"no {what} are of a system and a query that are evaluated"
            self.problems.say(found, f"name systems alike: there {few or 'as here'}, here {names}", *path)
        return mine

    def _note_spelling(self, frame: pl.DataFrame, what: str) -> None:
        """Note rows that are left out because their queries are spelt otherwise than those evaluated."""
        theirs, mine = frame["query"].unique(maintain_order=True), pl.Series(list(self.queries), dtype=pl.String)
        unknown, lacking = theirs.filter(~theirs.is_in(self._ids)), mine.filter(~mine.is_in(theirs.implode()))
        if len(unknown) and (hint := spelling_hint(unknown, lacking, "evaluated")):
            self.notes.append(f"{what}: {hint}")
