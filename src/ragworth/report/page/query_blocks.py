"""The tables of an evaluation some thousand queries at a time, so that what is known of them fits into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.diagnosis import ContextFacts, all_queries, correct_answers, gather_facts, ungraded_reason
from ragworth.metrics.ground_truth import query_numbers
from ragworth.results import Results
from ragworth.tables import Contexts, Judgments, Outcomes, Ratings

BLOCK = 20_000
"""Queries that are looked at together."""


class NumberedFrame(NamedTuple):
    """A frame, and the number of each row's query."""

    frame: pl.DataFrame
    numbers: npt.NDArray[np.int32]
    ascending: bool

    def of(self, low: int, high: int) -> pl.DataFrame:
        """The rows of the queries ``low`` to ``high``, in their order; the first have those of unknown queries too."""
        low = low or -1
        if self.ascending:
            begin, end = np.searchsorted(self.numbers, [low, high])
            return self.frame.slice(int(begin), int(end - begin))
        return self.frame.filter(pl.Series((self.numbers >= low) & (self.numbers < high)))


class QueryBlock(NamedTuple):
    """The tables of some queries; ``first`` is the number of the first one."""

    queries: pl.Series
    first: int
    contexts: Contexts
    judgments: Judgments | None
    ratings: Ratings | None
    outcomes: Outcomes | None
    graded: pl.DataFrame | None


class QueryBlocks:
    """What is known of the contexts, block by block.

    ``contexts`` are those that the model was shown; ``rel`` and ``eta`` are the thresholds of relevance and ratings.
    """

    def __init__(self, results: Results, contexts: Contexts, rel: float, eta: float) -> None:
        self.results, self.contexts, self.rel, self.eta = results, contexts, rel, eta
        self.queries = pl.Series("query", all_queries(contexts), dtype=pl.String)
        self.systems = contexts.systems
        self.ungraded = ungraded_reason(results.outcomes)
        self.correct = correct_answers(results.outcomes)
        self._outcomes = None if self.ungraded else results.outcomes
        self._graded = None if self.ungraded else results.said.get("grade")

    @property
    def several(self) -> bool:
        """Whether there are more queries than one block holds."""
        return len(self.queries) > BLOCK

    def __iter__(self) -> Iterator[QueryBlock]:
        """The tables of all queries, some queries at a time."""
        results, total = self.results, len(self.queries)
        if not self.several:
            yield QueryBlock(
                self.queries, 0, self.contexts, results.judgments, results.ratings, self._outcomes, self._graded
            )
            return
        contexts = self._numbered(self.contexts.parts)
        judgments = self._numbered(results.judgments.parts) if results.judgments is not None else []
        ratings = self._numbered(results.ratings.parts) if results.ratings is not None else []
        outcomes = self._numbered(self._outcomes.parts) if self._outcomes is not None else []
        graded = self._numbered([self._graded]) if self._graded is not None else []
        empty = pl.DataFrame(
            sorted(self.contexts.empty), schema=dict.fromkeys(("system", "query"), pl.String), orient="row"
        )
        without = self._numbered([empty])
        for low in range(0, total, BLOCK):
            high = min(low + BLOCK, total)
            shown = Contexts.of_parts([each.of(low, high) for each in contexts])
            shown.empty = frozenset(_rows(without, low, high).iter_rows())
            yield QueryBlock(
                self.queries.slice(low, high - low),
                low,
                shown,
                Judgments.of_parts([each.of(low, high) for each in judgments]) if judgments else None,
                Ratings.of_parts([each.of(low, high) for each in ratings]) if ratings else None,
                Outcomes.of_parts([each.of(low, high) for each in outcomes]) if outcomes else None,
                _rows(graded, low, high) if graded else None,
            )

    def of(self, queries: pl.Series) -> ContextFacts:
        """The facts of some queries."""
        every = len(queries) == len(self.queries)
        part = self.results if every else select_queries(self.results, queries)
        outcomes = part.outcomes if self._outcomes is not None else None
        graded = part.said.get("grade") if self._graded is not None else None
        shown = self.contexts if every else select_contexts(self.contexts, queries)
        block = QueryBlock(queries, 0, shown, part.judgments, part.ratings, outcomes, graded)
        return self.facts(block, part.collection.passages)

    def facts(self, block: QueryBlock, passages: pl.DataFrame | None = None) -> ContextFacts:
        """The facts of a block; ``passages`` has the texts."""
        made = gather_facts(
            block.contexts,
            judgments=block.judgments,
            ratings=block.ratings,
            outcomes=block.outcomes,
            graded=block.graded,
            passages=passages,
            subquestions=self.results.collection.subquestions,
            rel=self.rel,
            eta=self.eta,
            systems=self.systems,
        )
        return replace(made, ungraded=self.ungraded, correct=self.correct)

    def _numbered(self, frames: Sequence[pl.DataFrame]) -> list[NumberedFrame]:
        made = []
        for frame in frames:
            numbers = query_numbers(frame["query"], self.queries).astype(np.int32)
            made.append(NumberedFrame(frame, numbers, not (numbers[1:] < numbers[:-1]).any()))
        return made


def _rows(frames: Sequence[NumberedFrame], low: int, high: int) -> pl.DataFrame:
    return pl.concat([each.of(low, high) for each in frames])


def select_contexts(contexts: Contexts, queries: pl.Series) -> Contexts:
    """The contexts of some queries."""
    wanted = set(queries)
    made = Contexts.of_parts([_select_rows(part, queries) for part in contexts.parts], contexts.notes)
    made.empty = frozenset(pair for pair in contexts.empty if pair[1] in wanted)
    return made


def select_queries(results: Results, queries: pl.Series) -> Results:
    """Results with the rows of some queries alone, and the passages that they show."""
    contexts = select_contexts(results.contexts, queries)
    texts = results.collection
    collection = replace(
        texts,
        queries=_select_rows(texts.queries, queries),
        answers=_select_rows(texts.answers, queries),
        subquestions=_select_rows(texts.subquestions, queries),
        turns=_select_rows(texts.turns, queries),
        passages=texts.passages.join(
            contexts.frame.select("passage").unique(), on="passage", how="semi", maintain_order="left"
        ),
    )
    tables = {name: getattr(results, name) for name in ("judgments", "ratings", "answers", "outcomes", "scores")}
    fewer = {
        name: type(table).of_parts([_select_rows(part, queries) for part in table.parts], table.notes)
        for name, table in tables.items()
        if table is not None
    }
    said = {name: _select_rows(frame, queries) for name, frame in results.said.items()}
    return replace(results, collection=collection, contexts=contexts, said=said, **fewer)


def _select_rows(frame: pl.DataFrame, queries: pl.Series) -> pl.DataFrame:
    """The rows of some queries; all of a frame that has none."""
    if "query" not in frame.columns:
        return frame
    return frame.join(queries.rename("query").to_frame(), on="query", how="semi", maintain_order="left")
