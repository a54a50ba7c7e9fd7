"""The contexts: what each system shows the model for each query, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Self

import numpy as np
import polars as pl

from ragworth.core.errors import TableError, format_count, format_names, quote_short
from ragworth.data import coercion
from ragworth.data.coercion import Data
from ragworth.data.ranking import DuplicatePassageError, Ints, Ties, order_contexts, rising_notes
from ragworth.data.tables import Table, constant_column

MAX_RANK = 1_000_000
"""The deepest rank allowed; a larger number is a score or an id in the wrong column."""

HOP_COLUMNS = ("turn", "hop", "search")
"""Columns of contexts of an agent that searches several times."""


MAYBE_SYSTEMS = {
    *("model", "model_name", "method", "retriever", "pipeline", "configuration", "config", "variant", "experiment"),
    *("system_name", "run_name", "tag"),
}
"""Names of columns that may name the systems, in lower case."""


class Contexts(Table):
    """The ordered passages that each system shows the model for each query.

    ``rank`` is the position shown, from 1. Without ranks, the order is trec_eval's: score descending, then passage id
    descending (``ties="float32"`` compares in single precision). A gap in the ranks is a passage that was shown but is
    unknown; it counts as unjudged. ``empty`` lists (system, query) pairs that retrieved nothing and so have no rows.
    In a file, or in data given, such a pair is a row whose passage, rank and score are null. ``hops``, if the data says
    so, has system, query and passage, and in which ``hop`` or ``turn`` an agent found it by which ``search``.
    ``searches`` has system, query and the ``search`` that systems made instead of the query, after they retrieved.
    """

    empty: frozenset[tuple[str, str]] = frozenset()
    starts: Ints | None = None
    """Where each context begins in the frame, plus the end; None if unknown."""
    hops: pl.DataFrame | None = None
    searches: pl.DataFrame | None = None
    name = "contexts"
    schema: ClassVar[dict[str, type[pl.DataType]]] = {
        "system": pl.String,
        "query": pl.String,
        "rank": pl.UInt32,
        "passage": pl.String,
        "score": pl.Float64,
    }
    key = ("system", "query", "rank")

    def __init__(
        self,
        data: Data,
        *,
        system: str = "run",
        ties: Ties = "float64",
        source: str = "",
        notes: tuple[str, ...] = (),
        empty: Iterable[tuple[str, str]] = (),
    ) -> None:
        if not system:
            raise TableError("the system has an empty name", expected="a name", file=source)
        if ties not in ("float64", "float32"):
            raise TableError(f"invalid ties={ties!r}", expected="float64 or float32", file=source)
        frame = coercion.to_frame(data, source=source, nested=("query_id", "passage_id", "score"))
        frame, nothing, searches = _split_empty(frame, system, source)
        named = coercion.find_id_column(frame, "system")
        systems = coercion.id_column(frame, "system", table=self.name, source=source) if named else None
        columns = [
            coercion.id_column(frame, "query", table=self.name, source=source),
            coercion.id_column(frame, "passage", table=self.name, source=source),
            _score_column(frame, source),
        ]
        if "rank" in frame.columns:
            columns.append(_rank_column(frame, systems, source))
        elif "score" not in frame.columns:
            raise TableError(
                f"neither ranks nor scores: the columns are {format_names(frame.columns)}",
                expected="a 'rank' column (position shown, from 1) or a 'score' column",
                file=source,
            )
        if "hop" in frame.columns:
            shown = pl.DataFrame(columns[:2]).with_columns(
                pl.lit(system).alias("system") if systems is None else systems
            )
            found = shown.select("system", "query", "passage").with_columns(
                frame[name] for name in HOP_COLUMNS if name in frame
            )
            self.hops = pl.concat([found, searches], how="diagonal_relaxed")
        columns += [systems] if systems is not None else []
        other = "" if named else _other_systems(frame)
        try:
            rows, self.starts = order_contexts(pl.DataFrame(columns), ties=ties, source=source)
        except DuplicatePassageError as error:
            raise error.copy(remedy="; ".join(filter(None, (error.remedy, other)))) from error
        rows = rows.with_columns(pl.lit(system).alias("system")) if systems is None else rows
        self.frame = rows.select(list(self.schema))
        self.notes = (*notes, f"{source}: {other}" if source else other) if other else notes
        if {"rank", "score"} <= set(frame.columns):
            self.notes += rising_notes(rows["score"], self.starts, "ranks are the order")
        if isinstance(data, Mapping) and any(isinstance(items, Mapping) and not items for items in data.values()):
            bare = [query for query, items in data.items() if not items]
            ids = coercion.to_frame({"query": bare}, source=source)["query"]
            empty = [*empty, *((system, query) for query in coercion.text_ids(ids, source=source))]
        self.empty = frozenset([*empty, *nothing])

    @property
    def file_frame(self) -> pl.DataFrame:
        """The rows, and one without a passage for each empty context."""
        pairs = pl.DataFrame(sorted(self.empty), schema=["system", "query"], orient="row")
        return pl.concat([self.frame, pairs], how="diagonal") if self.empty else self.frame

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and isinstance(other, Contexts) and self.empty == other.empty

    __hash__ = None

    @property
    def systems(self) -> list[str]:
        """Names of the systems in order of appearance; systems that retrieved nothing come last."""
        first = pl.col("system") if self.starts is None else pl.col("system").gather(self.starts[:-1])
        names = self.frame.select(first.unique(maintain_order=True)).to_series()
        return [*names, *sorted({system for system, _ in self.empty} - set(names))]

    def cut(self, k: int) -> Contexts:
        """The first ``k`` passages of every context."""
        return self._like(self.frame.filter(pl.col("rank") <= k), self.empty)

    def only(self, system: str) -> Contexts:
        """The contexts of one system."""
        empty = frozenset(pair for pair in self.empty if pair[0] == system)
        contexts = self._like(self.frame.filter(pl.col("system") == system), empty)
        contexts.hops = self.hops.filter(pl.col("system") == system) if self.hops is not None else None
        return contexts

    def renamed(self, system: str) -> Contexts:
        """Rename the system of a table that has only one."""
        if len(self.systems) > 1:
            raise TableError(
                f"{format_count(len(self.systems), 'system')} cannot all be called {system!r}",
                expected="a table of one system",
                remedy="leave out the name; the table already names its systems",
            )
        frame = self.frame.with_columns(pl.lit(system).alias("system"))
        contexts = self._like(frame, frozenset((system, query) for _, query in self.empty))
        contexts.hops = self.hops.with_columns(pl.lit(system).alias("system")) if self.hops is not None else None
        return contexts

    def _like(self, frame: pl.DataFrame, empty: frozenset[tuple[str, str]]) -> Contexts:
        """Contexts of these rows, which are some or all of the rows here, in the same order."""
        contexts = Contexts.trusted(frame, self.notes)
        contexts.empty = empty
        contexts.starts = self.starts if len(contexts) == len(self) else None
        return contexts

    @classmethod
    def concat(cls, tables: Sequence[Self]) -> Self:
        """Combine tables of different systems into one."""
        seen: set[str] = set()
        for table in tables:
            for system in table.systems:
                if system in seen:
                    raise TableError(
                        f"two runs are called {system!r}",
                        expected="a different name for each run",
                        remedy="name them: NAME=PATH on the command line, system=NAME in Python",
                    )
                seen.add(system)
        contexts = super().concat(tables)
        contexts.empty = frozenset(pair for table in tables for pair in table.empty)
        starts = [table.starts for table in tables if table.starts is not None]
        if tables and len(starts) == len(tables):
            contexts.starts = _concat_starts(starts)
        return contexts


def _split_empty(
    frame: pl.DataFrame, system: str, source: str
) -> tuple[pl.DataFrame, list[tuple[str, str]], pl.DataFrame]:
    """Split off the rows that say that nothing was retrieved: those whose passage, rank and score are null.

    Next to passages, such a row with a hop is a search of an agent that found nothing; these rows come last.
    """
    passage = coercion.find_id_column(frame, "passage")
    if passage is None or not frame[passage].null_count():
        return frame, [], pl.DataFrame()
    blank = pl.all_horizontal(pl.col(n).is_null() for n in (passage, "rank", "score") if n in frame.columns)
    bare, rest = frame.filter(blank), frame.filter(~blank)
    named = coercion.find_id_column(frame, "system")
    queries = coercion.id_column(bare, "query", table="contexts", source=source)
    systems = (
        coercion.id_column(bare, "system", table="contexts", source=source)
        if named
        else constant_column("system", system, bare.height)
    )
    pairs = pl.DataFrame([systems, queries])
    keys = [pl.col(named) if named else pl.lit(system), pl.col(coercion.find_id_column(frame, "query") or "query")]
    others = rest.select(key.cast(pl.String).alias(name) for key, name in zip(keys, pairs.columns, strict=True))
    others = others.unique()
    hops = pairs.with_columns(bare[name] for name in HOP_COLUMNS if name in bare.columns)
    searches = hops.join(others, on=pairs.columns, how="semi", maintain_order="left")
    both = searches.filter(pl.col("hop").is_null()) if "hop" in searches.columns else searches
    if both.height:
        raise TableError(
            f"the context of {quote_short(both['system'][0])} for the query {quote_short(both['query'][0])} has "
            "passages, and a row without one",
            expected="a passage id in every row, or one row without an id if nothing was retrieved",
            file=source,
        )
    return rest, pairs.join(others, on=pairs.columns, how="anti", maintain_order="left").rows(), searches


def _concat_starts(starts: list[Ints]) -> Ints:
    """Concatenate context starts of several tables, plus the end."""
    offsets = np.cumsum([0, *(int(each[-1]) for each in starts)])
    shifted = [each[:-1] + offset for each, offset in zip(starts, offsets[:-1], strict=True)]
    return np.concatenate([*shifted, offsets[-1:]]).astype(np.int64)


def _other_systems(frame: pl.DataFrame) -> str:
    """Advice if a column besides ours may name several systems."""
    likely = [name for name in frame.columns if name.lower() in MAYBE_SYSTEMS and frame[name].dtype == pl.String]
    column = next((name for name in likely if frame[name].n_unique() > 1), None)
    return "" if column is None else f"all rows are one system; call the column {column!r} 'system' if it names systems"


def _score_column(frame: pl.DataFrame, source: str) -> pl.Series:
    if "score" not in frame.columns:
        return pl.Series("score", [None] * frame.height, dtype=pl.Float64)
    scores = coercion.to_numbers(frame["score"], source=source)
    bad = (scores.is_nan() | scores.is_null()) if "rank" not in frame.columns else scores.is_nan()
    where = bad.fill_null(False).arg_true()
    if len(where):
        raise TableError(
            f"row {where[0] + 1}: the score is {'missing' if scores[int(where[0])] is None else 'NaN'}",
            expected="a number in every row, or a 'rank' column",
            file=source,
        )
    return scores


def _rank_column(frame: pl.DataFrame, system: pl.Series | None, source: str) -> pl.Series:
    """Return ranks from 1, shifting systems that count from 0; None stands for a single system."""
    given = frame["rank"]
    if given.dtype == pl.UInt32 and len(given) and not given.null_count():
        values = given.to_numpy()
        if values.min() > 0 and values.max() <= MAX_RANK:
            return given
    ranks = coercion.to_numbers(given, source=source, kind=pl.Int64)
    wrong = (ranks.is_null() | (ranks < 0) | (ranks > MAX_RANK)).arg_true()
    if len(wrong):
        raise TableError(
            f"row {wrong[0] + 1}: the rank is {ranks[int(wrong[0])]}",
            expected=f"1 for the first passage, 2 for the second, … (at most {MAX_RANK:,})",
            file=source,
        )
    if not len(ranks) or ranks.min() != 0:
        return ranks.cast(pl.UInt32).alias("rank")
    if system is None:
        return (ranks + 1).cast(pl.UInt32).alias("rank")
    both = pl.DataFrame([system, ranks.alias("rank")])
    from_zero = (pl.col("rank").min().over("system") == 0).cast(pl.Int64)
    return both.select((pl.col("rank") + from_zero).cast(pl.UInt32)).to_series()
