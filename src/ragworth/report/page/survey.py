"""Everything that the report counts over all queries, gathered some thousand queries at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.diagnosis import FINDINGS, PASSAGE_KINDS, Examiner
from ragworth.diagnosis.bulk import Rows, Tally, bits, grade_places, hashed_words, kinds_of, number_array, tallies
from ragworth.diagnosis.context_facts import graded_answers, grades_together
from ragworth.diagnosis.worth import worth
from ragworth.metrics.ground_truth import query_numbers
from ragworth.report.page.query_blocks import QueryBlock, QueryBlocks, select_contexts

DEEPEST = 20
"""Ranks drawn at most."""

MAX_POINTS = 1500
"""Passages of the scatter at most; more are drawn at random."""

POINT_SCHEMA = {"query": pl.String, "passage": pl.String, "utility": pl.Float64}


class RankUtilities(NamedTuple):
    """The utility at each rank: queries × (system, rank), NaN where it is not known."""

    columns: list[tuple[str, int]]
    values: npt.NDArray[np.float64]


class UtilityPoints(NamedTuple):
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
    ranks: RankUtilities
    points: UtilityPoints
    passages: int
    """Different passages shown."""
    reader_judged: Counter[str]
    """By system, passages shown whose relevance the reader judged itself."""
    examiner: Examiner
    found: npt.NDArray[np.uint8]
    """Findings of each context as bits, in the order of FINDINGS: systems × queries."""

    def shown(self, system: str) -> int:
        """Passages that a system shows."""
        return sum(size * number for size, number in self.sizes[system].items())

    def judged(self, system: str) -> int:
        """Those whose utility is known."""
        return sum(number for (name, _), number in self.kinds.items() if name == system)


def build_survey(blocks: QueryBlocks, seed: int) -> Survey:
    """Go through all queries once."""
    gatherer = _SurveyBuilder(blocks, seed)
    for block in blocks:
        gatherer.add(block)
    return gatherer.survey()


class _SurveyBuilder:
    def __init__(self, blocks: QueryBlocks, seed: int) -> None:
        self.blocks, self.rng = blocks, np.random.default_rng(seed)
        self.sizes: dict[str, Counter[int]] = {system: Counter() for system in blocks.systems}
        self.kinds: Counter[tuple[str, str]] = Counter()
        self.grades: Counter[tuple[str, str | None]] = Counter()
        self.ranks: dict[tuple[int, int], npt.NDArray[np.float64]] = {}
        """By place of the system and rank, the utility for each query."""
        self.points: list[pl.DataFrame] = []
        self.total = 0
        self.reader_judged: Counter[str] = Counter()
        self.examiner = Examiner()
        self.found = np.zeros((len(blocks.systems), len(blocks.queries)), dtype=np.uint8)
        self.words = hashed_words(blocks.results.collection.passages)

    def add(self, block: QueryBlock) -> None:
        blocks, shape = self.blocks, (len(self.blocks.systems), len(block.queries))
        frame, judged = worth(block.contexts, block.judgments, block.ratings, blocks.rel, blocks.eta)
        system = query_numbers(frame["system"], pl.Series(blocks.systems, dtype=pl.String))
        context = system * shape[1] + query_numbers(frame["query"], block.queries)
        if (context[1:] < context[:-1]).any():
            order = np.argsort(context, kind="stable")
            frame, context = frame[order], context[order]
        utility = frame["utility"].fill_null(np.nan).to_numpy()
        rows = Rows(
            context,
            frame["relevant"].fill_null(False).to_numpy(),
            frame["relevant"].is_null().to_numpy(),
            kinds_of(utility),
            self._words(frame["passage"]),
            frame["own"].to_numpy(),
        )
        asked = self._asked(block, context, shape)
        self._add_sizes(rows, asked)
        self._add_ranks(block, rows, frame["rank"].to_numpy(), utility)
        self._add_points(frame)
        answers = graded_answers(block.outcomes, block.graded).answers
        self.grades.update((system, grade) for (system, _), grades in answers.items() for grade in grades)
        grades = grades_together(answers)
        own = frame.filter("own")
        self.reader_judged.update(dict(own.group_by("system").len().iter_rows()))
        there = {
            "reader-judged": own.height,
            "relevance": len(judged),
            "grades": grades,
            "utility": (rows.kind >= 0).any(),
            "words": len(self.words),
        }
        self.examiner.know({name for name, some in there.items() if some}, blocks.ungraded)
        places = grade_places(grades, blocks.systems, block.queries)
        correct = number_array(blocks.correct, blocks.systems, block.queries)
        known = _among(block, judged) & asked
        self._add_findings(block, tallies(rows, shape, known, places, correct, texts=bool(len(self.words))))

    def _asked(
        self, block: QueryBlock, context: npt.NDArray[np.int64], shape: tuple[int, int]
    ) -> npt.NDArray[np.bool_]:
        """Which contexts there are, with passages or empty: systems × queries."""
        asked = np.zeros(shape, dtype=bool)
        asked.reshape(-1)[context] = True
        empty = pl.DataFrame(sorted(block.contexts.empty), {"system": pl.String, "query": pl.String}, orient="row")
        systems = pl.Series(self.blocks.systems, dtype=pl.String)
        asked[query_numbers(empty["system"], systems), query_numbers(empty["query"], block.queries)] = True
        return asked

    def _words(self, passages: pl.Series) -> npt.NDArray[np.int64]:
        """The hash of each passage's words; 0 without a text."""
        mine = self.words.join(passages.unique().to_frame(), on="passage", how="semi")
        found = passages.to_frame().join(mine, on="passage", how="left", maintain_order="left")
        return found["words"].fill_null(0).to_numpy()

    def _add_sizes(self, rows: Rows, asked: npt.NDArray[np.bool_]) -> None:
        sizes = np.bincount(rows.context, minlength=asked.size).reshape(asked.shape)
        systems = rows.context // max(asked.shape[1], 1)
        for i, system in enumerate(self.blocks.systems):
            values, counts = np.unique(sizes[i][asked[i]], return_counts=True)
            self.sizes[system].update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
            kinds = rows.kind[(systems == i) & (rows.kind >= 0)]
            for kind, count in zip(
                PASSAGE_KINDS, np.bincount(kinds, minlength=len(PASSAGE_KINDS)).tolist(), strict=True
            ):
                if count:
                    self.kinds[system, kind] += count

    def _add_ranks(
        self, block: QueryBlock, rows: Rows, ranks: npt.NDArray[np.uint32], utility: npt.NDArray[np.float64]
    ) -> None:
        system, query = np.divmod(rows.context, max(len(block.queries), 1))
        drawn = (rows.kind >= 0) & (ranks <= DEEPEST)
        for cell in np.unique(system[drawn] * (DEEPEST + 1) + ranks[drawn]).tolist():
            i, rank = divmod(cell, DEEPEST + 1)
            mine = drawn & (system == i) & (ranks == rank)
            if (i, rank) not in self.ranks:
                self.ranks[i, rank] = np.full(len(self.blocks.queries), np.nan)
            self.ranks[i, rank][block.first + query[mine]] = utility[mine]

    def _add_points(self, frame: pl.DataFrame) -> None:
        """Draw among the points of all blocks: those with the smallest random numbers stay."""
        known = frame.select(list(POINT_SCHEMA)).drop_nulls("utility")
        points = known.unique(["query", "passage"], keep="first", maintain_order=True)
        self.total += points.height
        if not self.blocks.several:
            self.points = [points]
            return
        drawn = points.with_columns(pl.Series("draw", self.rng.random(points.height)))
        self.points = [pl.concat([*self.points, drawn]).sort("draw", maintain_order=True).head(MAX_POINTS)]

    def _add_findings(self, block: QueryBlock, found: dict[str, Tally]) -> None:
        """Add the findings of a block; contexts with ratings are examined one by one."""
        systems, low = self.blocks.systems, block.first
        rated = _among(block, block.ratings.frame["query"].unique()) if block.ratings is not None else _none(block)
        found = {name: Tally(each.examined & ~rated, each.holds & ~rated) for name, each in found.items()}
        for name, (examined, holds) in found.items():
            for i, system in enumerate(systems):
                self.examiner.count(system, name, int(holds[i].sum()), int(examined[i].sum()))
        here = self.found[:, low : low + len(block.queries)]
        here |= bits(found, here.shape)
        if not rated.any():
            return
        mine = select_contexts(block.contexts, block.queries.filter(pl.Series(rated)))
        frame = self.examiner.examine(self.blocks.facts(block._replace(contexts=mine)))
        place = {system: i for i, system in enumerate(systems)}
        query = {name: i for i, name in enumerate(block.queries)}
        bit = {finding: 1 << i for i, finding in enumerate(FINDINGS)}
        for system, name, finding in frame.select("system", "query", "finding").iter_rows():
            here[place[system], query[name]] |= bit[finding]

    def survey(self) -> Survey:
        blocks = self.blocks
        return Survey(
            blocks.queries,
            self.sizes,
            self.kinds,
            self.grades,
            blocks.ungraded,
            self._ranks(),
            UtilityPoints(pl.concat(self.points).select(list(POINT_SCHEMA)), self.total),
            pl.concat([part["passage"] for part in blocks.contexts.parts]).n_unique(),
            self.reader_judged,
            self.examiner,
            self.found,
        )

    def _ranks(self) -> RankUtilities:
        columns = sorted(self.ranks)
        values = np.empty((len(self.blocks.queries), len(columns)))
        for i, column in enumerate(columns):
            values[:, i] = self.ranks.pop(column)
        return RankUtilities([(self.blocks.systems[place], rank) for place, rank in columns], values)


def _among(block: QueryBlock, queries: pl.Series) -> npt.NDArray[np.bool_]:
    """Which of the block's queries are among these."""
    return block.queries.is_in(queries.implode()).to_numpy()


def _none(block: QueryBlock) -> npt.NDArray[np.bool_]:
    return np.zeros(len(block.queries), dtype=bool)
