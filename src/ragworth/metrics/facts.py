"""From tables of judgments and ratings to the truth that metrics read, for numbered queries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import polars as pl

from ragworth.errors import TableError
from ragworth.metrics.blocks import Bools, Floats, Ints, Truth
from ragworth.metrics.lookup import Lookup
from ragworth.tables import OK, Judgments, Ratings


def number(queries: pl.Series, known: pl.Series) -> Ints:
    """The place of each query in ``known``; −1 where it is not there."""
    table = pl.DataFrame({"query": known}).with_row_index("at")
    joined = pl.DataFrame({"query": queries}).join(table, on="query", how="left", maintain_order="left")
    return joined["at"].cast(pl.Int64).fill_null(-1).to_numpy()


@dataclass(frozen=True, eq=False)
class Values:
    """One value for each of many (query, passage), by query number; NaN where judging failed."""

    query: Ints
    passage: pl.Series
    value: Floats

    @cached_property
    def lookup(self) -> Lookup:
        return Lookup(self.query, self.passage)

    @cached_property
    def failed(self) -> Bools:
        return np.isnan(self.value)


def values_of(frame: pl.DataFrame, queries: pl.Series) -> Values:
    """The rows of a table with query, passage and value that belong to ``queries``."""
    numbers = number(frame["query"], queries)
    mine = numbers >= 0
    if not mine.all():
        frame = frame.filter(pl.Series(mine))
    value = frame["value"].fill_null(float("nan")).to_numpy()
    return Values(numbers[mine], frame["passage"].rechunk(), value)


def probabilities(judgments: Judgments, queries: pl.Series) -> Values:
    """Abstention probabilities; anything outside 0 to 1 is an error."""
    frame = judgments.of("abstention")
    wrong = frame.filter((pl.col("value") < 0) | (pl.col("value") > 1))
    if wrong.height:
        row = wrong.row(0, named=True)
        raise TableError(
            f"abstention probability {row['value']} for query {row['query']!r}, passage {row['passage']!r}",
            expected="a probability, 0 to 1",
            remedy="give exp(log-probability) where a tool gives log-probabilities",
            file=row["source"] if row["source"] != "given" else "",
        )
    return values_of(frame, queries)


@dataclass(frozen=True, eq=False)
class Matrices:
    """Ratings of all passages of all queries: one row for each (query, passage), a column a sub-question."""

    query: Ints
    passage: pl.Series
    value: Floats
    """(rated passages × most sub-questions) −∞ where unrated, NaN where rating failed."""
    columns: Ints
    """How many sub-questions each query has."""

    @cached_property
    def lookup(self) -> Lookup:
        return Lookup(self.query, self.passage)


def matrices_of(ratings: Ratings, queries: pl.Series) -> Matrices:
    """All ratings by query, passage and sub-question, each numbered in the order of appearance."""
    frame = ratings.frame.with_columns(pl.Series("number", number(ratings.frame["query"], queries)))
    frame = frame.filter(pl.col("number") >= 0)
    passages = frame.select("number", "passage").unique(maintain_order=True).sort("number", maintain_order=True)
    questions = frame.select("number", "subquestion").unique(maintain_order=True)
    questions = questions.with_columns(pl.int_range(pl.len()).over("number").alias("column"))
    placed = frame.join(passages.with_row_index("row"), on=["number", "passage"], maintain_order="left").join(
        questions, on=["number", "subquestion"], maintain_order="left"
    )
    columns = np.bincount(questions["number"].to_numpy(), minlength=len(queries))
    value = np.full((passages.height, int(columns.max(initial=0))), -np.inf)
    value[placed["row"].to_numpy(), placed["column"].to_numpy()] = (
        placed.select(pl.when(pl.col("status") == OK).then(pl.col("value")).otherwise(float("nan")))
        .to_series()
        .to_numpy()
    )
    return Matrices(passages["number"].to_numpy(), passages["passage"].rechunk(), value, columns)


def truth_of(low: int, high: int, judged: Values | None, rated: Matrices | None, tokens: Floats | None) -> Truth:
    """The truth about the queries ``low`` to ``high``; ``tokens`` are those of the rated passages."""
    facts: dict[str, object] = {"failed": np.zeros(high - low, dtype=np.int64)}
    if judged is not None:
        mine = (judged.query >= low) & (judged.query < high)
        failed = np.bincount(judged.query[mine & judged.failed] - low, minlength=high - low)
        query, value = judged.query[mine & ~judged.failed] - low, judged.value[mine & ~judged.failed]
        order = np.lexsort((-value, query))
        facts = {"judged_query": query[order], "judged_value": value[order], "failed": failed}
    if rated is not None:
        bounds = np.searchsorted(rated.query, np.arange(low, high + 1))
        spans = [slice(int(a), int(b)) for a, b in pairwise(bounds)]
        facts["rated"] = tuple(rated.value[s, : rated.columns[low + i]] for i, s in enumerate(spans))
        facts["rated_by_id"] = tuple(
            rated.passage[s].arg_sort(descending=True).to_numpy().astype(np.int64) for s in spans
        )
        if tokens is not None:
            facts["rated_tokens"] = tuple(tokens[s] for s in spans)
    return Truth(high - low, **facts)  # type: ignore[arg-type]
