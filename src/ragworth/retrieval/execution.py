"""Run pipelines of several systems, computing shared parts once.

Everything is checked as far as possible before anything runs. Systems that begin with the same steps share the
results; a first stage runs once, as deep as the deepest of them needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from ragworth.core.errors import InputError, TableError, format_count, format_list, quote_short
from ragworth.data import Contexts
from ragworth.data.tables import Note
from ragworth.retrieval.contract import Step, StepContext, problems_error
from ragworth.retrieval.pipeline import Pipeline, StepLike
from ragworth.retrieval.steps.fused import Fused
from ragworth.retrieval.steps.reorder import Top
from ragworth.retrieval.steps.within import Within, restrict_to_chunking

System: TypeAlias = StepLike | Contexts | Any
"""What can be compared: a pipeline in any form, existing contexts, or a third-party retriever."""

SEARCH_COLUMNS = {"system": pl.String, "query": pl.String, "search": pl.String}

UNNAMED_SYSTEM = "run"
"""Placeholder name of a system."""


def retrieve(systems: Mapping[str, System], context: StepContext, *, logged: bool = False) -> Contexts:
    """Retrieve the contexts of all systems into one table, under their names.

    A query for which a system retrieves nothing is in ``empty`` and in a note. Existing contexts are taken as they are,
    for the requested queries. ``logged``: they come from logs, so a query that they lack was not asked.
    """
    pipelines = check(systems, context)
    runner = PipelineRunner(context, list(pipelines.values()))
    tables = []
    for name, system in systems.items():
        if context.model_access is not None:
            context.model_access.begin_system(name)
        try:
            found = _fill_queries(system, context) if isinstance(system, Contexts) else runner.of(pipelines[name])
        except InputError as error:
            raise _name_system_in_error(name, error) from error
        guessed = (
            name in pipelines
            and context.model_access is not None
            and context.model_access.plan
            and _asks(pipelines[name])
        )
        if logged and isinstance(system, Contexts):
            found = _without_unasked(found, system, name)
        tables.append(found.renamed(name) if guessed else _rename_system(found, name))
    contexts = Contexts.concat(tables)
    contexts.notes = tuple(dict.fromkeys(contexts.notes))
    contexts.searches = pl.DataFrame(
        [(name, *each) for name, pipeline in pipelines.items() for each in runner.searches_of(pipeline)],
        schema=SEARCH_COLUMNS,
        orient="row",
    )
    return contexts


def _name_system_in_error(name: str, error: InputError) -> InputError:
    """Add the system to an error."""
    facts = {"expected": error.expected, "remedy": error.remedy, "file": error.file, "line": error.line}
    return type(error)(f"{name}: {error.found}", more=error.more, **facts)  # type: ignore[arg-type]


def check(systems: Mapping[str, System], context: StepContext) -> dict[str, Pipeline]:
    """Return the pipelines by name, or reject all systems that can't run at once."""
    problems: list[str] = []
    pipelines: dict[str, Pipeline] = {}
    if not systems:
        problems.append("there are no systems")
    if not context.queries.height:
        problems.append("there are no queries to retrieve for")
    if context.depth < 1:
        problems.append(f"the depth is {context.depth}; it may be 1 or more")
    for name, system in systems.items():
        try:
            if not name:
                raise InputError("the name of a system is empty")
            if isinstance(system, Contexts):
                system.renamed(name)
                continue
            pipelines[name] = Pipeline.of(system).complete()
            problems += [f"{name}: {each}" for step in pipelines[name].steps for each in step.problems(context)]
        except InputError as error:
            problems += [line if n else f"{name}: {line}" for n, line in enumerate(str(error).splitlines())]
    if problems:
        raise problems_error(problems)
    return pipelines


class PipelineRunner:
    """Runs these pipelines and caches the results of shared beginnings."""

    def __init__(self, context: StepContext, pipelines: list[Pipeline]) -> None:
        self.context = context
        self._deepest: dict[str, int] = {}
        self._behind: dict[str, list[Pipeline]] = {}
        self._searches: dict[str, _Searches] = {}
        within: dict[str, list[Pipeline]] = {}
        for pipeline in _walk_pipelines(pipelines):
            first = pipeline.steps[0]
            if first.rewrites:
                self._behind.setdefault(str(first), []).append(Pipeline(pipeline.steps[1:]))
            elif isinstance(first, Within):
                within.setdefault(first.chunks, []).append(_inner_pipeline(first, pipeline.steps))
            else:
                self._deepest[str(first)] = max(self._depth(pipeline.steps), self._deepest.get(str(first), 0))
        self._within = {
            chunks: PipelineRunner(restrict_to_chunking(context, chunks), inner) for chunks, inner in within.items()
        }
        self._done: dict[str, Contexts] = {}

    def of(self, pipeline: Pipeline) -> Contexts:
        """Results of one of the pipelines, under any name."""
        if pipeline.steps[0].rewrites:
            return self._search_with_rewrites(pipeline.steps[0], Pipeline(pipeline.steps[1:]))
        found = self._first(pipeline.steps)
        for end in range(2, len(pipeline.steps) + 1):
            key = str(Pipeline(pipeline.steps[:end]))
            if key not in self._done:
                self._done[key] = self._run(pipeline.steps[end - 1], found, self.context)
            found = self._done[key]
        return found

    def _search_with_rewrites(self, step: Step, behind: Pipeline) -> Contexts:
        """Results of the steps behind one that rewrites; those of several rewrites are fused."""
        key = str(step)
        if key not in self._searches:
            texts, notes = step.search_texts(self.context)
            runners = [PipelineRunner(self.context.searching(each), self._behind[key]) for each in texts]
            self._searches[key] = _Searches(runners, tuple(Note(note, step=key) for note in notes), texts)
        searches = self._searches[key]
        lists = [runner.of(behind) for runner in searches.runners]
        found = lists[0]
        if len(lists) > 1:
            found = _fill_queries(Fused(*([behind] * len(lists))).join(lists, self.context), self.context)
            last = behind.steps[-1]
            found = found.cut(last.k) if isinstance(last, Top) else found
        found = found.renamed(UNNAMED_SYSTEM)
        found.notes = tuple(dict.fromkeys((*searches.notes, *(note for each in lists for note in each.notes))))
        return found

    def searches_of(self, pipeline: Pipeline) -> Iterator[tuple[str, str]]:
        """The queries of a pipeline that has run, with all that was searched for each; nothing if no step rewrites."""
        first = pipeline.steps[0]
        if first.rewrites:
            for texts in self._searches[str(first)].texts:
                yield from texts.items()
        elif isinstance(first, Within):
            yield from self._within[first.chunks].searches_of(_inner_pipeline(first, pipeline.steps))
        else:
            inner = [list(self.searches_of(each)) for step in pipeline.steps for each in step.inner_pipelines]
            plain = list(self.context.queries.select("query", pl.col("text").fill_null("")).iter_rows())
            for each in inner if any(inner) else ():
                yield from each or plain

    def _depth(self, steps: tuple[Step, ...]) -> int:
        """How many passages of its first stage a pipeline uses."""
        return steps[1].k if len(steps) > 1 and isinstance(steps[1], Top) else self.context.depth

    def _first(self, steps: tuple[Step, ...]) -> Contexts:
        first, key = steps[0], str(steps[0])
        if isinstance(first, Within):
            return self._within[first.chunks].of(_inner_pipeline(first, steps))
        if key not in self._done:
            self._done[key] = self._run(first, None, replace(self.context, depth=self._deepest[key]))
        return self._done[key].cut(self._depth(steps)) if first.bounded else self._done[key]

    def _run(self, step: Step, before: Contexts | None, context: StepContext) -> Contexts:
        earlier = [self.of(pipeline) for pipeline in step.inner_pipelines] if before is None else [before]
        contexts = _fill_queries(
            step.join(earlier, context) if step.inner_pipelines else step.apply(before, context), context
        )
        own = [note if isinstance(note, Note) else Note(note, step=str(step)) for note in contexts.notes]
        contexts.notes = tuple(dict.fromkeys((*(note for each in earlier for note in each.notes), *own)))
        return contexts


class _Searches(NamedTuple):
    """Runners with the search texts of a step that rewrites, one for each rewrite, its notes, and the texts."""

    runners: list[PipelineRunner]
    notes: tuple[str, ...]
    texts: Sequence[Mapping[str, str]]


def _inner_pipeline(first: Within, steps: tuple[Step, ...]) -> Pipeline:
    """The pipeline inside a `within`, with the following cut, which limits the depth of its first stage."""
    return Pipeline((*first.parts[0].steps, *(step for step in steps[1:2] if isinstance(step, Top))))


def _walk_pipelines(pipelines: Iterable[Pipeline]) -> Iterator[Pipeline]:
    """Iterate over pipelines, and those inside their steps, except behind a step that rewrites."""
    for pipeline in pipelines:
        yield pipeline
        for step in () if pipeline.steps[0].rewrites else pipeline.steps:
            yield from _walk_pipelines(step.inner_pipelines)


def _asks(pipeline: Pipeline) -> bool:
    """Whether a model rewrites what it searches for: in a plan the rewrites may be unknown."""
    return any((step.rewrites and step.models()) or any(map(_asks, step.all_pipelines)) for step in pipeline.steps)


def _fill_queries(made: Contexts, context: StepContext) -> Contexts:
    """Contexts of the requested queries, in order; those without passages are listed in ``empty``."""
    if len(made.systems) > 1:
        raise TableError(f"contexts of {format_count(len(made.systems), 'system')}", expected="those of one")
    if not _in_order(made, context):
        numbers = context.queries.select("query").with_row_index("number")
        frame = (
            made.frame.with_columns(pl.lit(UNNAMED_SYSTEM).alias("system"))
            .join(numbers, on="query")
            .sort("number", "rank")
        )
        made = Contexts.trusted(frame, made.notes)
    completed = made.renamed(UNNAMED_SYSTEM)
    without = context.queries.join(completed.frame, on="query", how="anti", maintain_order="left")["query"]
    completed.empty = frozenset((UNNAMED_SYSTEM, query) for query in without)
    return completed


def _without_unasked(found: Contexts, log: Contexts, name: str) -> Contexts:
    """Keep only empty contexts that the log has, with a note on the queries that it lacks."""
    recorded = {query for _, query in log.empty}
    lacking = sorted(query for _, query in found.empty if query not in recorded)
    if lacking:
        found.empty = frozenset((system, query) for system, query in found.empty if query in recorded)
        number = format_count(len(lacking), "query", "queries")
        few = format_list([quote_short(query, 24) for query in lacking], 3)
        found.notes = (
            *found.notes,
            Note(f"{name}: its log lacks {number} ({few}); metrics leave them out", system=name),
        )
    return found


def _in_order(made: Contexts, context: StepContext) -> bool:
    """Whether contexts contain only requested queries, in order, as those of files mostly do."""
    queries, ranks = made.frame["query"], made.frame["rank"]
    again = (queries == queries.shift()).fill_null(False)
    if not ((ranks > ranks.shift()) | ~again).fill_null(True).all():
        return False
    heads = queries.filter(~again)
    numbers = context.queries.select("query").with_row_index("number")
    found = heads.to_frame().join(numbers, on="query", how="left", maintain_order="left")["number"]
    return not found.null_count() and bool((found.slice(1) > found.slice(0, max(len(found) - 1, 0))).all())


def _rename_system(found: Contexts, name: str) -> Contexts:
    """Name the system, with a note on queries without passages."""
    named = found.renamed(name)
    without = [query for _, query in sorted(found.empty)]
    notes = found.notes
    if without:
        few = format_list([quote_short(query, 24) for query in without], 3)
        number = format_count(len(without), "query", "queries")
        notes = (*notes, Note(f"{name}: nothing was retrieved for {number} ({few})", system=name))
    named.notes = notes
    return named
