"""What can be compared, as scores: tables, results, evaluations, or several of them by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import polars as pl

from ragworth.answer_outcomes import outcome_scores
from ragworth.core.errors import InputError, quote_short
from ragworth.data import Answers, Outcomes, Scores


@runtime_checkable
class HasScores(Protocol):
    """Results of an evaluation: scores of metrics, and outcomes of answers."""

    @property
    def scores(self) -> Scores: ...

    @property
    def outcomes(self) -> Outcomes | None: ...

    @property
    def answers(self) -> Answers | None: ...

    @property
    def said(self) -> Mapping[str, pl.DataFrame]: ...


@runtime_checkable
class HasConversations(Protocol):
    """Results that know which queries are turns of one conversation."""

    @property
    def conversations(self) -> Mapping[str, str]: ...


@runtime_checkable
class HasResults(Protocol):
    """An evaluation."""

    @property
    def results(self) -> HasScores | None: ...


Comparable = Scores | Outcomes | HasScores | HasResults
"""What can be compared: scores, outcomes of answers, results, or an evaluation."""


def to_scores(data: Comparable) -> Scores:
    """Everything that can be compared as scores: outcomes of answers first, then metrics."""
    if isinstance(data, Scores):
        return data
    if isinstance(data, Outcomes):
        return outcome_scores(data)
    if isinstance(data, HasScores):
        if data.outcomes is None:
            return data.scores
        graded = outcome_scores(data.outcomes, data.said, data.answers)
        return Scores.concat([graded, data.scores])
    if isinstance(data, HasResults):
        if data.results is None:
            raise InputError(
                "the evaluation has no results: it ended before its last stage", remedy="evaluate all of it"
            )
        return to_scores(data.results)
    raise InputError(
        f"{quote_short(type(data).__name__)} can't be compared",
        expected="scores (ragworth.score), outcomes (ragworth.grade(…).table), results or an evaluation",
    )


def conversations_of(data: Comparable | Mapping[str, Comparable]) -> dict[str, str]:
    """The conversation of each turn, as far as the data know it: results do, tables of scores don't."""
    if isinstance(data, Mapping):
        return {query: name for each in data.values() for query, name in conversations_of(each).items()}
    known = data.results if isinstance(data, HasResults) else data
    return dict(known.conversations) if isinstance(known, HasConversations) else {}


class JoinedScores(NamedTuple):
    """Scores from several places, and which systems to compare: None compares all with the first.

    ``lost``: PLACE/SYSTEM of the systems of the first place that another one lacks, if nothing there is compared with
    them.
    """

    scores: Scores
    pairs: list[tuple[str, str]] | None = None
    lost: tuple[str, ...] = ()


def join_scores(named: Mapping[str, Comparable]) -> JoinedScores:
    """Scores from several places, such as results of two versions.

    If a system has scores of the same metric in two places, systems are called PLACE/SYSTEM, and each is compared with
    the one of the same name in the first place.
    """
    tables = {name: to_scores(data) for name, data in named.items()}
    notes = tuple(note for table in tables.values() for note in table.notes)
    several = [table.distinct("system") for table in tables.values()]
    if len(tables) < 2 or not _collide(list(tables.values())):
        return JoinedScores(Scores.concat(list(tables.values())))
    frames = [
        table.frame.with_columns(pl.format("{}/{}", pl.lit(name), "system").alias("system"))
        for name, table in tables.items()
    ]
    first, *others = tables
    base = several[0]
    pairs: list[tuple[str, str]] = []
    unmatched: list[str] = []
    lost: list[str] = []
    for name, systems in zip(others, several[1:], strict=True):
        counterparts = {each: each if each in base else base[0] for each in systems}
        pairs += [(f"{first}/{old}", f"{name}/{each}") for each, old in counterparts.items()]
        unmatched += [
            f"{first} has no {each}, so {name}/{each} is compared with {first}/{old}"
            for each, old in counterparts.items()
            if each != old
        ]
        gone = [each for each in base if each not in counterparts.values()]
        unmatched += [f"{name} has no {each}, so nothing there is compared with {first}/{each}" for each in gone]
        lost += [f"{name}/{each}" for each in gone]
    return JoinedScores(Scores.trusted(pl.concat(frames), (*notes, *unmatched)), pairs, tuple(lost))


def _collide(tables: Sequence[Scores]) -> bool:
    """Whether two tables have scores of the same metric for the same system."""
    seen: set[tuple[str, str]] = set()
    for table in tables:
        mine = set(table.frame.select("system", "metric").unique().iter_rows())
        if mine & seen:
            return True
        seen |= mine
    return False
