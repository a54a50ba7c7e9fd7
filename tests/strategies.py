"""Random small collections, and random settings of metrics, for tests that look at many of them.

A world is plain dicts, so that an implementation that shares nothing with ours can read it. All numbers
come from short lists: ties, zeros and equal gains are where implementations differ, and drawing from the
whole real line would never meet them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import polars as pl
from hypothesis import Phase, settings
from hypothesis import strategies as st

import ragworth
from ragworth.data import Contexts, Judgments, Ratings, Scores
from ragworth.metrics import METRICS
from ragworth.metrics.declaration import Metric, Parameter, ParameterValue
from tests.tiers import example_count

T = TypeVar("T")

PASSAGES = ("d1", "d10", "d2", "D3", "é4", "d5", "Ω6", "7")
"""Ids whose order as text is neither that of their numbers nor that of the alphabet."""

QUERIES = ("q1", "q2", "q10")
STRANGER = "only-in-runs"
UNJUDGED = "not judged"

SCORES = (2.0, 1.0, 1.0, 0.5, 0.0, -1.0)
RELEVANCE = (UNJUDGED, UNJUDGED, -2.0, -1.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.5, 2.0, 3.0)
RATINGS = (UNJUDGED, 0.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0)
SIXTEENTHS = tuple(i / 16 for i in range(17))
DOWNSTREAM = (0.0, 0.0, 0.25, 0.25, 0.5, 0.75, 1.0)
LIKELIHOODS = (-8.0, -2.5, -1.0, -1.0, -0.25, 0.0)

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
    downstream: dict[str, dict[str, float | None]] = field(default_factory=dict)
    likelihood: dict[str, dict[str, float | None]] = field(default_factory=dict)

    @property
    def aspects(self) -> dict[str, dict[str, dict[str, float | None]]]:
        """All that is known of (query, passage), by aspect."""
        return {
            "relevance": self.relevance,
            "abstention": self.abstention,
            "downstream": self.downstream,
            "likelihood": self.likelihood,
        }

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
            for aspect, values in self.aspects.items()
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


def examples(number: int) -> settings:
    """Run a test on so many random examples with the profile ``deep``, or on fewer with another one.

    Hypothesis doesn't explain failures here: it takes minutes and seldom helps.
    """
    phases = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
    number = example_count(number, settings.get_current_profile_name())
    return settings(max_examples=number, phases=phases, report_multiple_bugs=False)


class Dice:
    """Bytes read as choices, the first option where they run out.

    One draw of bytes for a whole world: a draw for each of its hundreds of numbers would take most of the time.
    """

    def __init__(self, data: bytes) -> None:
        self._data = iter(data)

    def pick(self, options: Sequence[T]) -> T:
        return options[next(self._data, 0) % len(options)]

    def some(self, options: Sequence[T], least: int = 0) -> list[T]:
        """Some of the options, at least so many, in any order."""
        order = sorted(options, key=lambda _: self.pick(range(256)))
        return order[: self.pick(range(least, len(options) + 1))]


def worlds(failures: bool = False) -> st.SearchStrategy[World]:
    """Two or three systems, up to three judged queries; the first query is everywhere, so that all runs overlap.

    ``failures`` adds judgments and ratings without a value; few, so that all they could have been can be tried.
    """
    return st.binary(min_size=520, max_size=520).map(lambda data: _world(Dice(data), failures))


def _world(dice: Dice, failures: bool) -> World:
    judged = QUERIES[: dice.pick((1, 2, 3))]
    systems = ("A", "B", "C")[: dice.pick((2, 3))]
    runs = {
        system: {
            query: {p: dice.pick(SCORES) for p in dice.some(PASSAGES, least=query == QUERIES[0])}
            for query in (*judged, STRANGER)
        }
        for system in systems
    }
    relevance = {query: _known(dice, RELEVANCE) or {PASSAGES[0]: 1.0} for query in judged}
    abstention = {query: _known(dice, SIXTEENTHS) for query in judged}
    downstream = {query: _known(dice, DOWNSTREAM) for query in judged}
    likelihood = {query: _known(dice, LIKELIHOODS) for query in judged}
    ratings = {query: _rated(dice) for query in judged}
    tokens = {p: dice.pick(range(1, 10)) for p in PASSAGES}
    # Unknown probabilities and lengths leave contexts without a value, so they are rare.
    if dice.pick((False, True)):
        tokens.pop(dice.pick(PASSAGES))
        for known in (abstention, downstream, likelihood):
            known[judged[-1]].pop(dice.pick(PASSAGES))
    if failures:
        for query in judged:
            first, last = next(iter(ratings[query])), next(reversed(ratings[query]))
            judgments = (known[query] for known in (relevance, abstention, downstream, likelihood))
            for values in (*judgments, ratings[query][first], ratings[query][last]):
                if dice.pick((False, True)):
                    values[dice.pick(list(values))] = None
    return World(runs, relevance, abstention, ratings, tokens, downstream, likelihood)


def _known(dice: Dice, choices: Sequence[float | str]) -> dict[str, float | None]:
    drawn = {passage: dice.pick(choices) for passage in PASSAGES}
    return {passage: value for passage, value in drawn.items() if isinstance(value, float)}


def _rated(dice: Dice) -> dict[str, dict[str, float | None]]:
    """Ratings of some passages, in any order of appearance; not every passage is rated on every sub-question."""
    questions = ("s0", "s1", "s2", "s3")[: dice.pick((1, 2, 3, 4))]
    rated: dict[str, dict[str, float | None]] = {}
    for passage in dice.some(PASSAGES, least=1):
        drawn = {question: dice.pick(RATINGS) for question in questions}
        rated[passage] = {q: value for q, value in drawn.items() if isinstance(value, float)} or {questions[0]: 0.0}
    return rated


GRID: dict[str, tuple[ParameterValue, ...]] = {
    "rel": (1.0, 0.0, 0.5, 2.0),
    # Powers of 1/2, 3/4 and 1/4 are exact, so that equal gains are equal whatever the order of their sum.
    "alpha": (0.5, 0.0, 0.25, 0.75, 1.0),
    "depth": (10.0, 2.0, 3.5),
    # None for level 0: a passage judged irrelevant never raises a score.
    "gains": ("none", "1=3,2=9", "1=4,2=1", "0.5=0,3=2.5", "1=-1,1.5=-0.25"),
    "gamma": (1 / 3, 0.0, 0.5, 1.0),
    "raw": (False, True),
    "threshold": (0.8, 0.0, 0.5, 1.0),
    "eta": (3.0, 1.0, 2.5, 5.0),
    "w": (0.5, 0.0, 1.0, 2.0),
}
CUTOFFS = (None, 1, 2, 3, 5, 20)


def choices(parameter: Parameter) -> tuple[ParameterValue, ...]:
    """Values to try of a parameter; of one this page does not know, those it takes by its own account."""
    if parameter.name in GRID:
        return GRID[parameter.name]
    return parameter.choices or (parameter.default,)


@st.composite
def settings_of(draw: st.DrawFn, name: str, cutoffs: Sequence[int | None] = CUTOFFS) -> Metric:
    """A metric with random parameters and cutoff."""
    declaration = METRICS.get(name)
    cutoff = draw(st.sampled_from(cutoffs)) if declaration.takes_cutoff else None
    drawn = {p.name: draw(st.sampled_from(choices(p))) for p in declaration.parameters}
    return declaration.bind(cutoff, **drawn)


def all_metrics(
    names: Iterable[str] | None = None, cutoffs: Sequence[int | None] = CUTOFFS
) -> st.SearchStrategy[list[Metric]]:
    """Two random settings of each metric (or of those named), to be scored in one go."""
    drawn = [settings_of(name, cutoffs) for name in (METRICS.names() if names is None else names)]
    return st.tuples(*drawn, *drawn).map(lambda metrics: list(dict.fromkeys(metrics)))
