"""Everything that the report counts over all queries, gathered some thousand queries at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.diagnosis import FINDINGS, Examiner, Facts, kind_of
from ragworth.report.page.query_blocks import QueryBlocks

DEEPEST = 20
"""Ranks drawn at most."""

POINTS = 1500
"""Passages of the scatter at most; more are drawn at random."""

POINT = {"query": pl.String, "passage": pl.String, "utility": pl.Float64}


class Ranks(NamedTuple):
    """The utility at each rank: queries × (system, rank), NaN where it is not known."""

    columns: list[tuple[str, int]]
    values: npt.NDArray[np.float64]


class Points(NamedTuple):
    """Passages with a utility (query, passage, utility), and how many there are.

    All of them where the queries fit into one block, else POINTS that were drawn at random.
    """

    frame: pl.DataFrame
    total: int


@dataclass(frozen=True)
class Survey:
    """What the report says of all queries together."""

    queries: pl.Series
    sizes: Mapping[str, Counter[int]]
    """By system, how many contexts have how many passages."""
    kinds: Counter[tuple[str, str]]
    """By system and kind, passages whose utility is known."""
    grades: Counter[tuple[str, str | None]]
    """By system and grade, answers; None where an answer could not be graded."""
    ungraded: str
    ranks: Ranks
    points: Points
    passages: int
    """Different passages shown."""
    examiner: Examiner
    found: npt.NDArray[np.uint8]
    """Findings of each context as bits, in the order of FINDINGS: systems × queries."""
    facts: Facts | None
    """Of all queries, where they fit into one block."""
    findings: pl.DataFrame | None
    """Their findings."""

    def shown(self, system: str) -> int:
        """Passages that a system shows."""
        return sum(size * number for size, number in self.sizes[system].items())

    def judged(self, system: str) -> int:
        """Those whose utility is known."""
        return sum(number for (name, _), number in self.kinds.items() if name == system)


def survey(blocks: QueryBlocks, seed: int) -> Survey:
    """Go through all queries once."""
    gatherer = _Gatherer(blocks, seed)
    for known in blocks:
        gatherer.add(known)
    return gatherer.survey()


class _Gatherer:
    def __init__(self, blocks: QueryBlocks, seed: int) -> None:
        self.blocks, self.rng = blocks, np.random.default_rng(seed)
        self.sizes: dict[str, Counter[int]] = {system: Counter() for system in blocks.systems}
        self.kinds: Counter[tuple[str, str]] = Counter()
        self.grades: Counter[tuple[str, str | None]] = Counter()
        self.ranks: list[tuple[int, dict[tuple[str, int], npt.NDArray[np.float64]]]] = []
        self.points: list[pl.DataFrame] = []
        self.total = 0
        self.examiner = Examiner()
        self.found = np.zeros((len(blocks.systems), len(blocks.queries)), dtype=np.uint8)
        self.done = 0
        self.last: tuple[Facts, pl.DataFrame] | None = None

    def add(self, known: Facts) -> None:
        queries = {query: i for i, query in enumerate(dict.fromkeys(query for _, query in known.shown))}
        ranks: dict[tuple[str, int], npt.NDArray[np.float64]] = {}
        points: dict[tuple[str, str], float] = {}
        for (system, query), passages in known.shown.items():
            self.sizes[system][len(passages)] += 1
            for each in passages:
                if each.utility is None:
                    continue
                self.kinds[system, kind_of(each.utility)] += 1
                points[query, each.passage] = each.utility
                if each.rank <= DEEPEST:
                    if (system, each.rank) not in ranks:
                        ranks[system, each.rank] = np.full(len(queries), np.nan)
                    ranks[system, each.rank][queries[query]] = each.utility
        for (system, _), grades in known.answers.items():
            self.grades.update((system, grade) for grade in grades)
        self.ranks.append((len(queries), ranks))
        self._add_points(known, points)
        self._add_findings(known, queries)
        self.done += len(queries)

    def _add_points(self, known: Facts, points: Mapping[tuple[str, str], float]) -> None:
        """Draw among the points of all blocks: those with the smallest random numbers stay."""
        self.total += len(points)
        if not points:
            return
        rows = [(query, passage, utility) for (query, passage), utility in points.items()]
        frame = pl.DataFrame(rows, schema=POINT, orient="row")
        if not self.blocks.several:
            self.points = [frame]
            return
        drawn = frame.with_columns(pl.Series("draw", self.rng.random(frame.height)))
        self.points = [pl.concat([*self.points, drawn]).sort("draw", maintain_order=True).head(POINTS)]

    def _add_findings(self, known: Facts, queries: Mapping[str, int]) -> None:
        frame = self.examiner.examine(known)
        bit = {finding: 1 << i for i, finding in enumerate(FINDINGS)}
        place = {system: i for i, system in enumerate(self.blocks.systems)}
        for system, query, finding in frame.select("system", "query", "finding").iter_rows():
            self.found[place[system], self.done + queries[query]] |= bit[finding]
        self.last = known, frame

    def survey(self) -> Survey:
        blocks = self.blocks
        facts, findings = self.last if self.last is not None and not blocks.several else (None, None)
        return Survey(
            blocks.queries,
            self.sizes,
            self.kinds,
            self.grades,
            blocks.ungraded,
            self._ranks(),
            self._points(),
            pl.concat([part["passage"] for part in blocks.contexts.parts]).n_unique(),
            self.examiner,
            self.found,
            facts,
            findings,
        )

    def _ranks(self) -> Ranks:
        there = {column for _, ranks in self.ranks for column in ranks}
        order = {system: i for i, system in enumerate(self.blocks.systems)}
        columns = sorted(there, key=lambda column: (order[column[0]], column[1]))
        values = np.full((self.done, len(columns)), np.nan)
        low = 0
        for height, ranks in self.ranks:
            for i, column in enumerate(columns):
                if column in ranks:
                    values[low : low + height, i] = ranks[column]
            low += height
        return Ranks(columns, values)

    def _points(self) -> Points:
        frame = pl.concat(self.points) if self.points else pl.DataFrame(schema=POINT)
        return Points(frame.select(list(POINT)), self.total)
