"""Build the ground truth that metrics read from tables of judgments, ratings and lengths of passages.

`PassageLookup` finds the few judged passages among millions of shown ones. Both sides are reduced to 64-bit keys. A
small bit table, indexed by the top of the key, discards nearly all rows at once. The rest is searched in the sorted
keys, and strings are compared before a match counts, so a key collision can't change a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.core.errors import TableError
from ragworth.data import OK, Judgments, Ratings, coercion, ranking
from ragworth.data.coercion import Data, duplicate_rows
from ragworth.data.ranking import run_starts
from ragworth.metrics.blocks import AspectJudgments, Bools, Floats, Ints, SmallInts, Truth

MAX_TABLE_BITS = 25
"""Size of the bit table at most, as a power of two, in bytes."""


class LookupMatches(NamedTuple):
    """Matches: indices of the rows searched for, and the table row of each."""

    asked: Ints
    row: Ints


class PassageLookup:
    """A table of distinct (query number, passage id)."""

    def __init__(self, numbers: npt.NDArray[np.signedinteger], passages: pl.Series) -> None:
        self._numbers = numbers
        self._passages = passages
        keys = np.empty(len(numbers), dtype=np.uint64)
        bits = int(np.clip(np.ceil(np.log2(64 * max(len(keys), 1))), 12, MAX_TABLE_BITS))
        self._shift = np.uint64(64 - bits)
        self._maybe = np.zeros(1 << bits, dtype=bool)
        for low in range(0, len(keys), ranking.BLOCK_ROWS):  # for all at once, it would take several times the memory
            some = slice(low, low + ranking.BLOCK_ROWS)
            keys[some] = ranking.passage_keys(passages[some], numbers[some])
            self._maybe[keys[some] >> self._shift] = True
        self._order = np.argsort(keys).astype(np.uint32)
        self._keys = keys[self._order]
        self._repeats = _longest_run(self._keys)

    def find(self, numbers: Ints, passages: pl.Series, sizes: Ints | None = None) -> LookupMatches:
        """Find which of the given rows are in the table; ``sizes`` says how many rows have each number."""
        keys = ranking.passage_keys(passages, numbers, sizes)
        asked = np.flatnonzero(self._maybe[keys >> self._shift])
        keys = keys[asked]
        mine = numbers[asked if sizes is None else np.searchsorted(np.cumsum(sizes), asked, side="right")]
        order = np.argsort(keys)  # in ascending order, keys are found several times as fast
        at = np.empty(len(keys), dtype=np.int64)
        at[order] = np.searchsorted(self._keys, keys[order])
        found: list[LookupMatches] = []
        for step in range(self._repeats):
            near = at + step
            inside = np.flatnonzero(near < len(self._keys))
            equal = inside[self._keys[near[inside]] == keys[inside]]
            rows, candidates = self._order[near[equal]], asked[equal]
            same = (self._numbers[rows] == mine[equal]) & (
                _gather(self._passages, rows) == passages.gather(candidates)
            ).to_numpy()
            found.append(LookupMatches(candidates[same], rows[same].astype(np.int64)))
        if not found:
            return LookupMatches(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        return LookupMatches(np.concatenate([f.asked for f in found]), np.concatenate([f.row for f in found]))


def _gather(column: pl.Series, rows: npt.NDArray[np.integer]) -> pl.Series:
    """Take rows of a column chunk by chunk; if it has many chunks, Polars would copy all of it."""
    bounds = np.cumsum([0, *column.chunk_lengths()])
    if len(bounds) == 2:
        return column.gather(rows)
    order = np.argsort(rows)
    ordered = rows[order].astype(np.int64)
    pieces = [
        column.slice(low, high - low).gather(ordered[first:last] - low)
        for (low, high), (first, last) in zip(
            pairwise(bounds.tolist()), pairwise(np.searchsorted(ordered, bounds).tolist()), strict=True
        )
    ]
    back = np.empty(len(rows), dtype=np.int64)
    back[order] = np.arange(len(rows))
    return pl.concat(pieces).gather(back)


def _longest_run(keys: ranking.Keys) -> int:
    """How often a key occurs in sorted keys: 1, unless different pairs collide."""
    again = keys[1:] == keys[:-1]
    longest = min(len(keys), 1)
    while again.any():
        longest += 1
        again = again[1:] & again[:-1]
    return longest


SMALL = 1000
"""Fewer ids are looked up faster in a dict than by a join."""


def query_numbers(queries: pl.Series, known: pl.Series) -> Ints:
    """Index of each query in ``known``, or −1.

    Rows of a query are mostly consecutive, so only the first row of each run is looked up.
    """
    if len(queries) + len(known) < SMALL:
        index = {query: at for at, query in enumerate(known)}
        return np.array([index.get(query, -1) for query in queries], dtype=np.int64)
    starts = run_starts(queries)
    table = pl.DataFrame({"query": known}).with_row_index("at")
    heads = pl.DataFrame({"query": queries.gather(starts) if len(starts) < len(queries) else queries})
    joined = heads.join(table, on="query", how="left", maintain_order="left")
    found = joined["at"].cast(pl.Int64).fill_null(-1).to_numpy()
    return np.repeat(found, np.diff(np.append(starts, len(queries)))) if len(starts) < len(queries) else found


@dataclass(frozen=True, eq=False)
class JudgedValues:
    """One value per (query, passage), by query number; NaN if the judgment failed."""

    query: SmallInts
    passage: pl.Series
    value: Floats

    @property
    def lookup(self) -> PassageLookup:
        """Built on each use, because it takes about as much memory as the judgments."""
        return PassageLookup(self.query, self.passage)

    @cached_property
    def failed(self) -> Bools:
        return np.isnan(self.value)


def judged_values(frame: pl.DataFrame, queries: pl.Series) -> JudgedValues:
    """Select the rows of ``queries`` from a table with query, passage and value."""
    numbers = query_numbers(frame["query"], queries)
    mine = numbers >= 0
    if not mine.all():
        frame, numbers = frame.filter(pl.Series(mine)), numbers[mine]
    value = frame["value"].fill_null(float("nan")).to_numpy()
    return JudgedValues(numbers.astype(np.int32), frame["passage"], value)


class AspectScale(NamedTuple):
    """The valid values of an aspect, and the remedy for others."""

    name: str
    low: float
    high: float
    expected: str
    remedy: str


ASPECT_SCALES = {
    "abstention": AspectScale(
        "abstention probability",
        0,
        1,
        "a probability, 0 to 1",
        "give exp(log-probability) where a tool gives log-probabilities",
    ),
    "downstream": AspectScale(
        "downstream score", 0, 1, "a score from 0 to 1", "divide by the highest score there can be (100 for per cent)"
    ),
    # Rounding can raise the logarithm of a certain answer slightly above 0.
    "likelihood": AspectScale(
        "answer likelihood", -np.inf, 1e-6, "a log-probability, 0 or below", "give the logarithm of probabilities"
    ),
}
"""Aspects besides relevance that metrics read."""


def aspect_values(judgments: Judgments, aspect: str, queries: pl.Series) -> JudgedValues:
    """Select judgments of an aspect other than relevance; an invalid value is an error."""
    scale, frame = ASPECT_SCALES[aspect], judgments.of(aspect)
    wrong = frame.filter((pl.col("value") < scale.low) | (pl.col("value") > scale.high))
    if wrong.height:
        row = wrong.row(0, named=True)
        raise TableError(
            f"{scale.name} {row['value']} for query {row['query']!r}, passage {row['passage']!r}",
            expected=scale.expected,
            remedy=scale.remedy,
            file=row["source"] if row["source"] != "given" else "",
        )
    return judged_values(frame, queries)


@dataclass(frozen=True, eq=False)
class RatingMatrices:
    """Ratings of all passages: one row per (query, passage), one column per sub-question."""

    query: Ints
    passage: pl.Series
    value: Floats
    """(rated passages × most sub-questions) −∞ if unrated, NaN if the rating failed."""
    columns: Ints
    """Number of sub-questions of each query."""

    @property
    def lookup(self) -> PassageLookup:
        """Built on each use, because it takes about as much memory as the judgments."""
        return PassageLookup(self.query, self.passage)


def rating_matrices(ratings: Ratings, queries: pl.Series) -> RatingMatrices:
    """Arrange ratings by query, passage and sub-question.

    Queries and passages are numbered in order of appearance. Sub-questions are ordered by id, numbers before text, like
    in ndeval: the order in which floats are summed must not depend on the order of rows.
    """
    frame = ratings.frame.with_columns(pl.Series("number", query_numbers(ratings.frame["query"], queries)))
    frame = frame.filter(pl.col("number") >= 0)
    passages = frame.select("number", "passage").unique(maintain_order=True).sort("number", maintain_order=True)
    name = pl.col("subquestion")
    digits = name.str.contains("^[0-9]+$")
    short = name.str.strip_chars_start("0")
    by_number = (~digits, pl.when(digits).then(short.str.len_bytes()), pl.when(digits).then(short), name)
    questions = frame.select("number", "subquestion").unique(maintain_order=True).sort(by_number)
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
    return RatingMatrices(passages["number"].to_numpy(), passages["passage"].rechunk(), value, columns)


def aspect_judgments(values: JudgedValues, low: int, high: int) -> AspectJudgments:
    """Judgments of queries ``low`` to ``high``, in order."""
    mine = np.flatnonzero((values.query >= low) & (values.query < high))
    query, value, lost = values.query[mine].astype(np.int64) - low, values.value[mine], values.failed[mine]
    failed = np.bincount(query[lost], minlength=high - low)
    query, value = query[~lost], value[~lost]
    order = np.lexsort((-value, query))
    return AspectJudgments(query[order], value[order], failed)


def build_truth(
    low: int,
    high: int,
    judged: JudgedValues | None,
    aspects: Mapping[str, JudgedValues],
    rated: RatingMatrices | None,
    tokens: Floats | None,
) -> Truth:
    """Build the truth of queries ``low`` to ``high``; ``tokens`` are those of the rated passages."""
    facts: dict[str, object] = {"failed": np.zeros(high - low, dtype=np.int64)}
    if judged is not None:
        found = aspect_judgments(judged, low, high)
        facts = {"judged_query": found.query, "judged_value": found.value, "failed": found.failed}
    facts["aspects"] = {name: partial(aspect_judgments, values, low, high) for name, values in aspects.items()}
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


@dataclass(frozen=True, eq=False)
class Tokens:
    """Passage lengths, and what counted them; a column ``counter`` of the lengths says so itself."""

    frame: pl.DataFrame
    counter: str = "given"

    def __post_init__(self) -> None:
        if "counter" in self.frame.columns and self.frame.height:
            object.__setattr__(self, "counter", self.frame["counter"][0])

    @classmethod
    def of(cls, data: Data, counter: str = "given", source: str = "") -> Tokens:
        """Read lengths from a table with passage and tokens."""
        frame = coercion.to_frame(data, source=source)
        passage = coercion.id_column(frame, "passage", table="token counts", source=source)
        if "tokens" not in frame.columns:
            raise TableError("no 'tokens' column", expected="passage, tokens", file=source)
        tokens = coercion.to_numbers(frame["tokens"], source=source)
        checked = pl.DataFrame([passage, tokens, *([frame["counter"]] if "counter" in frame.columns else [])])
        if tokens.null_count() or bool((tokens < 0).any()) or len(duplicate_rows(checked, ["passage"])):
            raise TableError(
                "each passage needs one token count that isn't negative",
                file=source,
                expected="passage, tokens",
            )
        return cls(checked, counter)
