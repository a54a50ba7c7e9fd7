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
from ragworth.retrieval.pipeline import Pipeline, Step, StepContext, StepLike, Top, all_problems
from ragworth.retrieval.steps.combined import Fused, Within

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
    planning = context.model_access is not None and context.model_access.plan
    tables = []
    for name, system in systems.items():
        if context.model_access is not None:
            context.model_access.begin_system(name)
        try:
            table = _fill_queries(system, context) if isinstance(system, Contexts) else runner.of(pipelines[name])
        except InputError as error:
            facts = {"expected": error.expected, "remedy": error.remedy, "file": error.file, "line": error.line}
            raise type(error)(f"{name}: {error.found}", more=error.more, **facts) from error  # type: ignore[arg-type]
        if logged and isinstance(system, Contexts):
            table = _without_unasked(table, system, name)
        table = table.renamed(name)
        if not (planning and name in pipelines and pipelines[name].asks_model):  # a plan doesn't know the rewrites
            table.notes = (*table.notes, *_empty_notes(table, name))
        tables.append(table)
    contexts = Contexts.concat(tables)
    contexts.notes = tuple(dict.fromkeys(contexts.notes))
    contexts.searches = pl.DataFrame(
        [(name, *each) for name, pipeline in pipelines.items() for each in runner.searches_of(pipeline)],
        schema=SEARCH_COLUMNS,
        orient="row",
    )
    return contexts


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
            reasons = all_problems(pipelines[name].steps, context)
        except InputError as error:
            reasons = [str(error)]
        problems += [line for each in reasons for line in f"{name}: {each}".splitlines()]
    if problems:
        raise InputError(problems[0], more=tuple(problems[1:]))
    return pipelines


class _Searches(NamedTuple):
    """The search texts of a step that rewrites, with a runner for each of its rewrites, and its notes."""

    texts: Sequence[Mapping[str, str]]
    runners: list[PipelineRunner]
    notes: tuple[str, ...]


class PipelineRunner:
    """Runs these pipelines and caches the results of shared beginnings."""

    def __init__(self, context: StepContext, pipelines: list[Pipeline]) -> None:
        self.context = context
        self._results: dict[str, Contexts] = {}
        self._searches: dict[str, _Searches] = {}
        self._deepest: dict[str, int] = {}
        self._behind: dict[str, list[Pipeline]] = {}
        """Pipelines behind each step that rewrites."""
        within: dict[str, list[Pipeline]] = {}
        for pipeline in _walk_pipelines(pipelines):
            first = pipeline.steps[0]
            if first.rewrites:
                self._behind.setdefault(str(first), []).append(Pipeline(pipeline.steps[1:]))
            elif isinstance(first, Within):
                within.setdefault(first.chunks, []).append(first.inner(pipeline.steps))
            else:
                self._deepest[str(first)] = max(self._depth(pipeline.steps), self._deepest.get(str(first), 0))
        self._within = {
            chunks: PipelineRunner(Within.restrict(context, chunks), inner) for chunks, inner in within.items()
        }

    def of(self, pipeline: Pipeline) -> Contexts:
        """Return the results of one of the pipelines, under any name."""
        steps = pipeline.steps
        if steps[0].rewrites:
            return self._search_rewrites(steps[0], Pipeline(steps[1:]))
        results = self._first(steps)
        for end in range(2, len(steps) + 1):
            key = str(Pipeline(steps[:end]))
            if key not in self._results:
                self._results[key] = self._run(steps[end - 1], results, self.context)
            results = self._results[key]
        return results

    def searches_of(self, pipeline: Pipeline) -> Iterator[tuple[str, str]]:
        """The queries of a pipeline that has run, with all that was searched for each; nothing if no step rewrites."""
        first = pipeline.steps[0]
        if first.rewrites:
            for texts in self._searches[str(first)].texts:
                yield from texts.items()
        elif isinstance(first, Within):
            yield from self._within[first.chunks].searches_of(first.inner(pipeline.steps))
        else:
            inner = [list(self.searches_of(each)) for step in pipeline.steps for each in step.inner_pipelines]
            plain = list(self.context.queries.select("query", pl.col("text").fill_null("")).iter_rows())
            for each in inner if any(inner) else ():
                yield from each or plain

    def _search_rewrites(self, step: Step, behind: Pipeline) -> Contexts:
        """Return the results of the steps behind one that rewrites; those of several rewrites are fused."""
        key = str(step)
        if key not in self._searches:
            texts, notes = step.search_texts(self.context)
            runners = [PipelineRunner(self.context.searching(each), self._behind[key]) for each in texts]
            self._searches[key] = _Searches(texts, runners, tuple(Note(note, step=key) for note in notes))
        searches = self._searches[key]
        lists = [runner.of(behind) for runner in searches.runners]
        results, last = lists[0], behind.steps[-1]
        if len(lists) > 1:
            results = _fill_queries(Fused(*([behind] * len(lists))).join(lists, self.context), self.context)
            results = results.cut(last.k) if isinstance(last, Top) else results
        results = results.renamed(UNNAMED_SYSTEM)
        results.notes = tuple(dict.fromkeys((*searches.notes, *(note for each in lists for note in each.notes))))
        return results

    def _depth(self, steps: tuple[Step, ...]) -> int:
        """Return how many passages of its first stage a pipeline uses."""
        return steps[1].k if len(steps) > 1 and isinstance(steps[1], Top) else self.context.depth

    def _first(self, steps: tuple[Step, ...]) -> Contexts:
        first, key = steps[0], str(steps[0])
        if isinstance(first, Within):
            return self._within[first.chunks].of(first.inner(steps))
        if key not in self._results:
            self._results[key] = self._run(first, None, replace(self.context, depth=self._deepest[key]))
        return self._results[key].cut(self._depth(steps)) if first.bounded else self._results[key]

    def _run(self, step: Step, before: Contexts | None, context: StepContext) -> Contexts:
        earlier = [self.of(pipeline) for pipeline in step.inner_pipelines] if before is None else [before]
        results = step.join(earlier, context) if step.inner_pipelines else step.apply(before, context)
        contexts = _fill_queries(results, context)
        own = [note if isinstance(note, Note) else Note(note, step=str(step)) for note in contexts.notes]
        contexts.notes = tuple(dict.fromkeys((*(note for each in earlier for note in each.notes), *own)))
        return contexts


def _walk_pipelines(pipelines: Iterable[Pipeline]) -> Iterator[Pipeline]:
    """Iterate over pipelines, and those inside their steps, except behind a step that rewrites."""
    for pipeline in pipelines:
        yield pipeline
        for step in () if pipeline.steps[0].rewrites else pipeline.steps:
            yield from _walk_pipelines(step.inner_pipelines)


def _fill_queries(contexts: Contexts, context: StepContext) -> Contexts:
    """Return the contexts of the requested queries, in order; those without passages are listed in ``empty``."""
    if len(contexts.systems) > 1:
        raise TableError(f"contexts of {format_count(len(contexts.systems), 'system')}", expected="those of one")
    numbers = context.queries.select("query").with_row_index("number")
    frame = contexts.frame.with_columns(system=pl.lit(UNNAMED_SYSTEM)).join(numbers, on="query").sort("number", "rank")
    completed = Contexts.trusted(frame, contexts.notes)
    without = context.queries.join(frame, on="query", how="anti", maintain_order="left")["query"]
    completed.empty = frozenset((UNNAMED_SYSTEM, query) for query in without)
    return completed


def _without_unasked(contexts: Contexts, log: Contexts, name: str) -> Contexts:
    """Keep only empty contexts that the log has, with a note on the queries that it lacks."""
    recorded = {query for _, query in log.empty}
    lacking = sorted(query for _, query in contexts.empty if query not in recorded)
    if lacking:
        contexts.empty = frozenset((system, query) for system, query in contexts.empty if query in recorded)
        note = f"{name}: its log lacks {_few_queries(lacking)}; metrics leave them out"
        contexts.notes = (*contexts.notes, Note(note, system=name))
    return contexts


def _empty_notes(contexts: Contexts, name: str) -> list[Note]:
    without = [query for _, query in sorted(contexts.empty)]
    return [Note(f"{name}: nothing was retrieved for {_few_queries(without)}", system=name)] if without else []


def _few_queries(queries: Sequence[str]) -> str:
    few = format_list([quote_short(query, 24) for query in queries], 3)
    return f"{format_count(len(queries), 'query', 'queries')} ({few})"
