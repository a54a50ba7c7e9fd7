"""Random small collections, and random settings of metrics, for tests that look at many of them.

A world is plain dicts, so that an implementation that shares nothing with ours can read it. All numbers
come from short lists: ties, zeros and equal gains are where implementations differ, and drawing from the
whole real line would never meet them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl
from hypothesis import strategies as st

import ragworth
from ragworth.metrics import METRICS
from ragworth.metrics.declare import Metric, Parameter, Value
from ragworth.tables import Contexts, Judgments, Ratings, Scores

PASSAGES = ("d1", "d10", "d2", "D3", "é4", "d5", "Ω6", "7")
"""Ids whose order as text is neither that of their numbers nor that of the alphabet."""

QUERIES = ("q1", "q2", "q10")
STRANGER = "only-in-runs"
UNJUDGED = "not judged"

SCORES = (2.0, 1.0, 1.0, 0.5, 0.0, -1.0)
RELEVANCE = (UNJUDGED, UNJUDGED, -2.0, -1.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.5, 2.0, 3.0)
RATINGS = (UNJUDGED, 0.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0)
SIXTEENTHS = tuple(i / 16 for i in range(17))

Known = Mapping[str, float | None]
"""Passage → value; None where judging was tried and failed."""


@dataclass(frozen=True)
class World:
    """One collection and the runs of several systems over it."""

    runs: dict[str, dict[str, dict[str, float]]]
    relevance: dict[str, dict[str, float | None]]
    abstention: dict[str, dict[str, float | None]]
    ratings: dict[str, dict[str, dict[str, float | None]]]
    tokens: dict[str, int] = field(default_factory=dict)

    def contexts(self, rows: Sequence[int] | None = None) -> Contexts:
        """The runs as a table; ``rows`` says in which order its rows are handed over."""
        table = [
            (system, query, passage, score)
            for system, queries in self.runs.items()
            for query, shown in queries.items()
            for passage, score in shown.items()
        ]
        return Contexts(_frame(table, ("system", "query", "passage", "score"), rows))

    def judgments(self, rows: Sequence[int] | None = None) -> Judgments:
        table = [
            (query, passage, aspect, value, "ok" if value is not None else "unparsable")
            for aspect, values in (("relevance", self.relevance), ("abstention", self.abstention))
            for query, known in values.items()
            for passage, value in known.items()
        ]
        return Judgments(_frame(table, ("query", "passage", "aspect", "value", "status"), rows))

    def rating_rows(self) -> list[tuple[str, str, str, float | None, str]]:
        return [
            (query, passage, question, value, "ok" if value is not None else "unparsable")
            for query, passages in self.ratings.items()
            for passage, questions in passages.items()
            for question, value in questions.items()
        ]

    def rated(self, rows: Sequence[int] | None = None) -> Ratings:
        return Ratings(_frame(self.rating_rows(), ("query", "passage", "subquestion", "value", "status"), rows))

    def lengths(self) -> dict[str, list[str] | list[int]]:
        return {"passage": list(self.tokens), "tokens": list(self.tokens.values())}

    def score(self, metrics: Metric | Sequence[Metric], complete: bool = True) -> Scores:
        """What ragworth says."""
        return ragworth.score(
            self.contexts(), self.judgments(), metrics, ratings=self.rated(), tokens=self.lengths(), complete=complete
        )

    def with_runs(self, runs: dict[str, dict[str, dict[str, float]]]) -> World:
        return replace(self, runs=runs)


def _frame(table: Sequence[tuple[object, ...]], names: Sequence[str], rows: Sequence[int] | None) -> pl.DataFrame:
    kinds = {"score": pl.Float64, "value": pl.Float64}
    frame = pl.DataFrame(table, schema={name: kinds.get(name, pl.String) for name in names}, orient="row")
    return frame if rows is None else frame[list(rows)]


def values(scores: Scores) -> dict[tuple[str, str, str], tuple[float | None, str]]:
    """Scores as a dict: (system, query, metric) → (value, status)."""
    rows = scores.frame.select("system", "query", "metric", "value", "status").rows()
    return {(system, query, metric): (value, status) for system, query, metric, value, status in rows}


@st.composite
def worlds(draw: st.DrawFn, failures: bool = False) -> World:
    """Two or three systems, up to three judged queries; the first query is everywhere, so that all runs overlap.

    ``failures`` adds judgments and ratings without a value; few, so that all they could have been can be tried.
    """
    judged = QUERIES[: draw(st.integers(1, 3))]
    systems = ("A", "B", "C")[: draw(st.integers(2, 3))]
    context = st.dictionaries(st.sampled_from(PASSAGES), st.sampled_from(SCORES), max_size=len(PASSAGES))
    first = st.dictionaries(st.sampled_from(PASSAGES), st.sampled_from(SCORES), min_size=1, max_size=len(PASSAGES))
    runs = {
        system: {QUERIES[0]: draw(first)} | {query: draw(context) for query in (*judged[1:], STRANGER)}
        for system in systems
    }
    relevance = {query: _known(draw, RELEVANCE) or {PASSAGES[0]: 1.0} for query in judged}
    sure = st.lists(st.sampled_from(SIXTEENTHS), min_size=len(PASSAGES), max_size=len(PASSAGES))
    abstention = {query: dict(zip(PASSAGES, draw(sure), strict=True)) for query in judged}
    ratings = {query: _rated(draw) for query in judged}
    lengths = draw(st.lists(st.integers(1, 9), min_size=len(PASSAGES), max_size=len(PASSAGES)))
    tokens = dict(zip(PASSAGES, lengths, strict=True))
    # Unknown probabilities and lengths leave contexts without a value, so they are rare.
    for unknown in draw(st.lists(st.sampled_from(PASSAGES), max_size=1)):
        tokens.pop(unknown)
        abstention[judged[-1]].pop(unknown)
    if failures:
        for query in judged:
            _fail(draw, relevance[query])
            _fail(draw, abstention[query])
            _fail(draw, ratings[query][next(iter(ratings[query]))])
            _fail(draw, ratings[query][next(reversed(ratings[query]))])
    return World(runs, relevance, {q: dict(v) for q, v in abstention.items()}, ratings, tokens)


def _known(draw: st.DrawFn, choices: Sequence[float | str]) -> dict[str, float | None]:
    drawn = draw(st.lists(st.sampled_from(choices), min_size=len(PASSAGES), max_size=len(PASSAGES)))
    return {p: value for p, value in zip(PASSAGES, drawn, strict=True) if isinstance(value, float)}


def _rated(draw: st.DrawFn) -> dict[str, dict[str, float | None]]:
    """Ratings of some passages, in any order of appearance; not every passage is rated on every sub-question."""
    passages = draw(st.permutations(PASSAGES))[: draw(st.integers(1, len(PASSAGES)))]
    questions = [f"s{i}" for i in range(draw(st.integers(1, 4)))]
    row = st.lists(st.sampled_from(RATINGS), min_size=len(questions), max_size=len(questions))
    rated: dict[str, dict[str, float | None]] = {}
    for passage in passages:
        found = {s: v for s, v in zip(questions, draw(row), strict=True) if isinstance(v, float)}
        rated[passage] = dict(found) or {questions[0]: 0.0}
    return rated


def _fail(draw: st.DrawFn, known: dict[str, float | None]) -> None:
    """Take the value out of at most one judgment."""
    for lost in draw(st.lists(st.sampled_from(sorted(known)), max_size=1)):
        known[lost] = None


GRID: dict[str, tuple[Value, ...]] = {
    "rel": (1.0, 0.0, 0.5, 2.0),
    # Powers of 1/2, 3/4 and 1/4 are exact, so that equal gains are equal whatever the order of their sum.
    "alpha": (0.5, 0.0, 0.25, 0.75, 1.0),
    "depth": (10.0, 2.0, 3.5),
    "gamma": (1 / 3, 0.0, 0.5, 1.0),
    "raw": (False, True),
    "threshold": (0.8, 0.0, 0.5, 1.0),
    "eta": (3.0, 1.0, 2.5, 5.0),
    "w": (0.5, 0.0, 1.0, 2.0),
}
CUTOFFS = (None, 1, 2, 3, 5, 20)


def choices(parameter: Parameter) -> tuple[Value, ...]:
    """Values to try of a parameter; of one this page does not know, those it takes by its own account."""
    if parameter.name in GRID:
        return GRID[parameter.name]
    return parameter.choices or (parameter.default,)


@st.composite
def settings_of(draw: st.DrawFn, name: str) -> Metric:
    """A metric with random parameters and cutoff."""
    declaration = METRICS.get(name)
    cutoff = draw(st.sampled_from(CUTOFFS)) if declaration.takes_cutoff else None
    drawn = {p.name: draw(st.sampled_from(choices(p))) for p in declaration.parameters}
    return declaration.bind(cutoff, **drawn)


def some_settings(name: str) -> st.SearchStrategy[list[Metric]]:
    """The metric as it comes and up to four random settings of it, to be scored in one go."""
    plain = METRICS.get(name).bind()
    return st.lists(settings_of(name), max_size=4).map(lambda more: list(dict.fromkeys([plain, *more])))
