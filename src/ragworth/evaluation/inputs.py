"""The inputs of an evaluation: texts, labels, queries and systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import polars as pl

from ragworth import formats
from ragworth.core.errors import FormatError, InputError, format_count, format_list, quote_short
from ragworth.data import Answers, Contexts, Judgments, Outcomes
from ragworth.data.collection import Collection, match_questions, merge_collections
from ragworth.data.conversations import conversation_notes, turns_digest
from ragworth.evaluation.given_answers import join_answers, join_outcomes, missing_answer_notes, replaced_notes
from ragworth.evaluation.input_systems import LoadedSystems, load_systems, name_bare_systems
from ragworth.evaluation.scope import EvaluationScope
from ragworth.evaluation.stage_cache import file_digest, frame_digest
from ragworth.formats.contract import LoadedCollection
from ragworth.judging.answers import AnsweringResult
from ragworth.judging.text_lookup import check_positive_count as whole_number
from ragworth.judging.text_lookup import sample_by_hash, sample_queries
from ragworth.retrieval import Pipeline, StepContext
from ragworth.text_match.languages import foreign_languages
from ragworth.workspace.config import TaskConfig, Workspace
from ragworth.workspace.files import CollectionFiles, FileReader
from ragworth.workspace.matching import (
    JudgmentSource,
    check_no_conflicts,
    match_references,
    merge_judgments,
    queries_of,
)
from ragworth.workspace.problems import Problems

if TYPE_CHECKING:
    from ragworth.judging.contribution.hops import Hop, HopTable


@dataclass(frozen=True)
class EvaluationInputs:
    """Everything that was read about the evaluated queries."""

    workspace: Workspace
    collection: Collection
    """Texts of all passages; texts, labels and ratings of the evaluated queries."""
    queries: tuple[str, ...]
    systems: dict[str, Pipeline | Contexts]
    written: Mapping[str, str]
    """The written form of each system, including systems with only answers or grades."""
    judged: Judgments | None
    """Judgments from files, other than the collection's."""
    answers: AnsweringResult | None
    """Answers from logs or a file."""
    outcomes: Outcomes | None
    """Grades from logs or files."""
    files: Mapping[str, str]
    """Hashes of all files that were read, by their path from the workspace."""
    notes: tuple[str, ...]
    expensive: Mapping[str, Judgments] = field(default_factory=dict)
    """Judgments of some queries by an expensive judge, from files, by kind."""
    limited: bool = False
    """Whether a limit leaves out queries."""
    to_judge: frozenset[str] | None = None
    """Queries whose passages a model judges; None for all."""
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
    def step_context(self) -> StepContext:
        """The context of pipelines; the stage adds access to models."""
        space = self.workspace
        whole = StepContext.of(
            self.collection,
            self.queries,
            judgments=self.judged,
            seed=space.seed,
            cache=space.path(space.cache),
            folder=space.folder,
        )
        return replace(whole, model_access=None)

    @cached_property
    def texts_key(self) -> list[str]:
        """A key of the texts."""
        texts = self.collection
        frames = (texts.queries, texts.passages, texts.answers, texts.subquestions)
        turns = [turns_digest(texts.turns), texts.turn_form] if texts.turns.height else []
        return [*map(frame_digest, frames), *turns]

    @cached_property
    def labels_key(self) -> list[str]:
        """A key of labels and ratings."""
        tables = (self.collection.relevance, self.collection.ratings)
        return [frame_digest(table) for table in tables]


def load_inputs(
    space: Workspace,
    problems: Problems,
    limit: int | None = None,
    *,
    every: bool = False,
    sample: int | None = None,
    records: LoadedCollection | None = None,
) -> EvaluationInputs | None:
    """Read all files that a workspace names. An unreadable one is a problem, and the result is None.

    ``limit`` replaces that of the workspace; ``every``: all queries, whatever limit the workspace has; ``sample``: so
    many queries, drawn at random by the workspace's seed. ``records``: data in memory, as ``[collection] from``.
    """
    problems.of(partial(whole_number, "limit", limit))
    problems.of(partial(whole_number, "sample", sample))
    before = len(problems.found)
    reading = FileReader(problems, space.spec, columns=space.columns_of, known=space.known)
    given = reading.collection(space.collection)
    if records is not None and given is not None:
        given = CollectionFiles(records, merge_collections([given.collection, records.collection]))
    systems = load_systems(space, reading, given.whole if given is not None else None)
    if records is None:
        reading.check_columns({name: column for name, column in space.columns.items() if isinstance(column, str)})
    judged = [reading.read("judgments", path, "judgments", "files") for path in space.judged]
    outcomes = [reading.read("outcomes", path, "grades", "files") for path in space.graded]
    better = {kind: _read_expensive(reading, kind, task) for kind, task in space.judgments.items()}
    file = space.answers.file if space.answers is not None else None
    table = reading.read("written", file, "answers", "file") if file else None
    answers = AnsweringResult.of_table(*table) if table is not None else None
    if len(problems.found) > before or given is None:
        return None
    texts = problems.of(
        lambda: merge_collections(
            [
                match_references(given.collection, systems.logs),
                *(log.collection for log in systems.logs if log is not given.whole),
            ]
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
    name_bare_systems(systems, [each for each in (results, _table(answers)) if each is not None])
    queries = problems.of(lambda: _select_queries(texts, systems.logs, results, written), "collection")
    if not systems.names:
        problems.say("there are no systems", "name some under [systems]: pipelines, or files of runs", "systems")
    if not queries or results is None or written is None or not systems.names:
        return None
    found = len(queries)
    queries, limits = _limit_queries(queries, space, limit, sample, every=every)
    to_judge = None if every else _queries_to_judge(queries, space, limits)
    notes = [*texts.notes, *replaced_notes(systems.logs if again else []), *limits]
    scope = EvaluationScope(queries, systems.names, problems, space.folder, notes, len(queries) < found)
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
        to_judge,
        problems.of(partial(_find_hops, space.hops, systems.made, set(queries), notes), "systems") or {},
        systems.made.keys()
        <= {name for log in systems.logs if log.contexts is not None for name in log.contexts.systems},
    )
    notes += missing_answer_notes(material.answers, queries, texts.queries.select("query", "text"))
    notes += _missing_system_notes(material, systems)
    notes += _language_notes(space, texts.queries["text"].drop_nulls())
    notes += [*conversation_notes(material.collection), *material.collection.doubtful_text_notes()]
    return replace(material, notes=tuple(dict.fromkeys(notes)))


def _limit_queries(
    queries: list[str], space: Workspace, limit: int | None, sample: int | None, *, every: bool
) -> tuple[list[str], list[str]]:
    """The queries that a sample and a limit leave, with notes."""
    notes, found = [], len(queries)
    queries = sample_queries(queries, sample=sample, seed=space.seed)
    most = limit or (None if every or sample else space.limit)
    if sample is not None and sample < found:
        notes.append(f"{sample:,} of {format_count(found, 'query', 'queries')}, drawn at random (seed {space.seed})")
    if most is not None and most < len(queries):
        notes.append(f"the first {most:,} of {format_count(len(queries), 'query', 'queries')}")
        queries = queries[:most]
    return queries, notes


def _queries_to_judge(queries: list[str], space: Workspace, notes: list[str]) -> frozenset[str] | None:
    """The queries whose passages a model judges, if not all."""
    most = space.judged_queries
    if most is None or most >= len(queries) or not space.judgments:
        return None
    some = f"{most:,} of {format_count(len(queries), 'query', 'queries')}"
    notes.append(f"a model judges the passages of {some}, drawn at random (seed {space.seed})")
    return frozenset(sample_by_hash(queries, most, space.seed))


def _missing_system_notes(material: EvaluationInputs, systems: LoadedSystems) -> list[str]:
    """Note systems that have no answers although others do, and systems without passages."""
    notes, answers = [], material.workspace.answers
    if material.answers is not None and (answers is None or answers.file is not None):
        answered = material.answers.table.distinct("system")
        if silent := [quote_short(name, 24) for name in systems.names if name not in answered]:
            notes.append(f"no answers of {format_list(silent, 3)}: only the other systems are compared by answers")
    if systems.bare and systems.made:
        few = format_list([quote_short(name, 24) for name in systems.bare], 3)
        notes.append(f"the data doesn't say what {few} showed: metrics of passages leave it out")
    return notes


def _language_notes(space: Workspace, questions: pl.Series) -> list[str]:
    """Note that the embedded reader doesn't know the language of the questions."""
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
        from ragworth.judging.contribution.hops import hops_of

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
    """Judgments by the expensive judge of a kind, if a file has them."""
    file = task.expensive.file if task.expensive is not None else None
    return reading.of(file, _read_random_judgments, "judgments", kind, "expensive", "file") if file else None


def _read_random_judgments(path: str, **options: Any) -> Judgments:
    from ragworth.two_judges.strata import check_random_share

    check_random_share(path)
    return formats.read_judgments(path, **options)


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
