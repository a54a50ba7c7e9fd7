"""The contexts: what each system shows the model for each query, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import numpy as np
import polars as pl

from ragworth.core.errors import TableError, format_count, format_names, quote_short
from ragworth.data import coercion
from ragworth.data.coercion import Data
from ragworth.data.ranking import DuplicatePassageError, Ints, Ties, order_contexts, rising_notes
from ragworth.data.tables import Table, columns

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
    schema = columns("system", "query", "rank", "passage", "score")
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
        frame, self.empty, searches = _split_empty(frame, system, source)
        ids = _context_ids(frame, system, source)
        values = [coercion.id_column(frame, "passage", table=self.name, source=source), _score_column(frame, source)]
        if "rank" in frame.columns:
            values.append(_rank_column(frame, ids["system"], source))
        elif "score" not in frame.columns:
            raise TableError(
                f"neither ranks nor scores: the columns are {format_names(frame.columns)}",
                expected="a 'rank' column (position shown, from 1) or a 'score' column",
                file=source,
            )
        if "hop" in frame.columns:
            self.hops = pl.concat([ids.insert_column(2, values[0]), searches], how="diagonal_relaxed")
        other = "" if coercion.find_id_column(frame, "system") else _other_systems(frame)
        try:
            rows, self.starts = order_contexts(
                ids.select("system", "query").with_columns(values), ties=ties, source=source
            )
        except DuplicatePassageError as error:
            raise error.copy(remedy="; ".join(filter(None, (error.remedy, other)))) from error
        self.frame = rows.select(list(self.schema))
        self.notes = (*notes, f"{source}: {other}" if source else other) if other else notes
        if {"rank", "score"} <= set(frame.columns):
            self.notes += rising_notes(rows["score"], self.starts, "ranks are the order")
        if isinstance(data, Mapping) and any(isinstance(items, Mapping) and not items for items in data.values()):
            without = [query for query, items in data.items() if not items]
            queries = coercion.id_column(coercion.to_frame({"query": without}), "query", table=self.name, source=source)
            empty = [*empty, *((system, query) for query in queries)]
        self.empty |= frozenset(empty)

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


def _context_ids(frame: pl.DataFrame, system: str, source: str) -> pl.DataFrame:
    """System and query of each row, and where an agent found its passage, as far as the data says so."""
    named = coercion.find_id_column(frame, "system")
    query = coercion.id_column(frame, "query", table="contexts", source=source)
    systems = coercion.id_column(frame, "system", table="contexts", source=source) if named else pl.lit(system)
    hops = [frame[name] for name in HOP_COLUMNS if name in frame.columns]
    return query.to_frame().select(systems.alias("system"), "query", *hops)


def _split_empty(
    frame: pl.DataFrame, system: str, source: str
) -> tuple[pl.DataFrame, frozenset[tuple[str, str]], pl.DataFrame]:
    """Split off the rows that say that nothing was retrieved: those whose passage, rank and score are null.

    Next to passages, such a row with a hop is a search of an agent that found nothing; these rows come last.
    """
    passage = coercion.find_id_column(frame, "passage")
    if passage is None or not frame[passage].null_count():
        return frame, frozenset(), pl.DataFrame()
    blank = pl.all_horizontal(pl.col(n).is_null() for n in (passage, "rank", "score") if n in frame.columns)
    empty_rows, others = (_context_ids(frame.filter(rows), system, source) for rows in (blank, ~blank))
    keys = ["system", "query"]
    searches = empty_rows.join(others, on=keys, how="semi", maintain_order="left")
    both = searches.filter(pl.col("hop").is_null()) if "hop" in searches.columns else searches
    if both.height:
        raise TableError(
            f"the context of {quote_short(both['system'][0])} for the query {quote_short(both['query'][0])} has "
            "passages, and a row without one",
            expected="a passage id in every row, or one row without an id if nothing was retrieved",
            file=source,
        )
    empty = frozenset(empty_rows.join(others, on=keys, how="anti").select(keys).iter_rows())
    return frame.filter(~blank), empty, searches


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
    coercion.refuse_rows(
        bad,
        lambda row: f"the score is {'missing' if scores[row] is None else 'NaN'}",
        expected="a number in every row, or a 'rank' column",
        source=source,
    )
    return scores


def _rank_column(frame: pl.DataFrame, systems: pl.Series, source: str) -> pl.Series:
    """Return ranks from 1, shifting systems that count from 0."""
    ranks = coercion.to_numbers(frame["rank"], source=source, kind=pl.Int64).alias("rank")
    coercion.refuse_rows(
        ranks.is_null() | (ranks < 0) | (ranks > MAX_RANK),
        lambda row: f"the rank is {ranks[row]}",
        expected=f"1 for the first passage, 2 for the second, … (at most {MAX_RANK:,})",
        source=source,
    )
    if len(ranks) and ranks.min() == 0:
        from_zero = (pl.col("rank").min().over("system") == 0).cast(pl.Int64)
        ranks = pl.DataFrame([systems, ranks]).select(pl.col("rank") + from_zero).to_series()
    return ranks.cast(pl.UInt32)
