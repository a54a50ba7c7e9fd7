"""Turn scored rows into ranked contexts: grouping, order, ties and duplicates, fast on millions of rows.

Most files are already grouped by query and sorted by score, so each step first checks whether there is anything to do
and then touches only the rows concerned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.core.errors import TableError, format_count, quote_short
from ragworth.core.resources import map_threads

Ties = Literal["float64", "float32"]
Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]

HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""2⁶⁴ divided by the golden ratio: spreads small integers over all 64 bits."""

HASH_SEED = 2026
"""Seed for hashing passage ids; any number works."""

BLOCK_ROWS = 1 << 19
"""Rows per block where temporary arrays would otherwise be as long as the table."""

MIN_DISTANCES = 3
"""Contexts with rising scores from which on these may be distances."""

LONG_GROUPS = 50
"""Rows in a group from which on groups are sorted one by one, instead of all together."""


class DuplicatePassageError(TableError):
    """A context contains a passage twice."""


class RowGroups(NamedTuple):
    """Rows collected by group.

    ``order`` lists row numbers in grouped order, or is None if the rows were already grouped. Group g is the rows
    ``starts[g]:starts[g + 1]`` of that order.
    """

    order: Ints | None
    starts: Ints

    @property
    def sizes(self) -> Ints:
        return np.diff(self.starts)

    def row_groups(self) -> Ints:
        """The group number of every row, in grouped order."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int64), self.sizes)


def group_rows(frame: pl.DataFrame, by: list[str]) -> RowGroups:
    """Group rows by ``by``. Groups are numbered by first appearance; rows keep their order within a group."""
    n = frame.height
    if n == 0:
        return RowGroups(None, np.zeros(1, dtype=np.int64))
    starts = _changes(frame.select(by))
    scattered = len(starts) > n / 2  # then taking all rows is faster than gathering the first of each run
    heads = frame.select(by) if scattered else frame.select(by)[starts]
    groups = heads.with_row_index("run").group_by(by, maintain_order=True).agg("run")["run"]
    if len(groups) == len(starts):
        return RowGroups(None, np.append(starts, n))
    runs = groups.explode().to_numpy().astype(np.int64)
    bounds = np.concatenate([[0], np.cumsum(groups.list.len().to_numpy(), dtype=np.int64)])
    if scattered:
        return RowGroups(runs, bounds)
    starts = np.append(starts, n)
    ends = np.concatenate([[0], np.cumsum((starts[1:] - starts[:-1])[runs])])
    return RowGroups(rows_of_groups(starts, runs), ends[bounds])


def _changes(frame: pl.DataFrame) -> Ints:
    """The first row, and every row that differs from the one before it."""
    new = np.zeros(frame.height, dtype=bool)
    new[:1] = True

    def compare(low: int) -> None:
        # Slice one row more than the block, then take columns: comparing shifted slices of a chunked column would copy
        # it, and taking a whole constant column would materialize it.
        for column in frame.slice(low - 1, BLOCK_ROWS + 1).rechunk():
            new[low : low + BLOCK_ROWS] |= (column.slice(1) != column.slice(0, len(column) - 1)).to_numpy()

    for _ in map_threads(compare, range(1, frame.height, BLOCK_ROWS)):
        pass
    return np.flatnonzero(new)


def run_starts(column: pl.Series) -> Ints:
    """Start of each run of equal values."""
    return _changes(column.to_frame())


def sort_by_score(groups: RowGroups, passages: pl.Series, scores: npt.NDArray[np.float64], ties: Ties) -> Ints | None:
    """Sort each group like trec_eval: score descending, then passage id descending; None if all rows stay.

    The scores and the result are in grouped order, the passages are not. ``ties="float32"`` compares scores in single
    precision, like trec_eval 9 and earlier, so scores that differ only beyond its 24 bits are tied.
    """
    n, starts = len(passages), groups.starts
    if n == 0:
        return None
    with np.errstate(over="ignore"):  # scores too large for single precision become infinite
        ranked = scores.astype(np.float32).astype(np.float64) if ties == "float32" else scores
    inside = np.ones(n, dtype=bool)  # the previous row is in the same group
    inside[starts[:-1]] = False
    rising = np.flatnonzero((ranked[1:] > ranked[:-1]) & inside[1:]) + 1
    order: Ints | None = None
    if len(rising):
        order = _sort_groups(starts, np.unique(np.searchsorted(starts, rising, side="right") - 1), ranked)
        ranked = ranked[order]
    tied = np.flatnonzero((ranked[1:] == ranked[:-1]) & inside[1:]) + 1
    return _break_ties(groups, order, tied, passages) if len(tied) else order


def _sort_groups(starts: Ints, which: Ints, scores: npt.NDArray[np.float64]) -> Ints:
    """All rows, with those of the groups ``which`` by score descending; equal scores keep their order."""
    order = np.arange(len(scores), dtype=np.int64)
    rows = rows_of_groups(starts, which)
    if len(rows) < LONG_GROUPS * len(which):
        group = np.repeat(which, starts[which + 1] - starts[which])
        order[rows] = rows[np.lexsort((-scores[rows], group))]
        return order
    for low, high in zip(starts[which].tolist(), starts[which + 1].tolist(), strict=True):
        order[low:high] = low + np.argsort(-scores[low:high], kind="stable")
    return order


def _break_ties(groups: RowGroups, order: Ints | None, tied: Ints, passages: pl.Series) -> Ints | None:
    """Order each run of equal scores by passage id descending; ``tied`` rows tie with the one before."""
    heads = tied[np.append(True, np.diff(tied) > 1)] - 1
    rows = np.union1d(tied, heads)
    run = np.cumsum(np.isin(rows, heads, assume_unique=True))
    at = rows if order is None else order[rows]
    ids = passages.gather(at if groups.order is None else groups.order[at])
    frame = pl.DataFrame({"run": run, "id": ids}).with_row_index("at")
    sequence = frame.sort("run", "id", descending=[False, True], maintain_order=True)["at"].to_numpy()
    if order is None and (sequence == np.arange(len(rows))).all():
        return None
    order = np.arange(len(passages), dtype=np.int64) if order is None else order
    order[rows] = at[sequence]
    return order


def rows_of_groups(starts: Ints, which: Ints) -> Ints:
    """All row numbers of the groups ``which``, in order."""
    sizes = starts[which + 1] - starts[which]
    offsets = np.repeat(starts[which] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return np.asarray(np.arange(int(sizes.sum()), dtype=np.int64) + offsets)


def positions_in_groups(groups: RowGroups) -> npt.NDArray[np.uint32]:
    """1, 2, 3, … within each group, in grouped order."""
    before = np.repeat(groups.starts[:-1].astype(np.uint32), groups.sizes)
    return np.arange(1, int(groups.starts[-1]) + 1, dtype=np.uint32) - before


def passage_keys(passages: pl.Series, numbers: npt.NDArray[np.integer], sizes: Ints | None = None) -> Keys:
    """A 64-bit key for each (number, passage id); unequal pairs share one with odds of 2⁻⁶⁴.

    ``sizes`` says how many passages in a row have each number; by default one.
    """
    hashed: Keys = passages.hash(HASH_SEED).to_numpy()
    spread = (numbers.astype(np.uint64) + np.uint64(1)) * HASH_FACTOR
    return hashed ^ (spread if sizes is None else np.repeat(spread, sizes))


def group_ranges(starts: Ints) -> Iterator[tuple[int, int]]:
    """Yield ranges of whole groups (first, last + 1) of about :data:`BLOCK_ROWS` rows each."""
    low = 0
    while low < len(starts) - 1:
        high = int(np.searchsorted(starts, starts[low] + BLOCK_ROWS, side="right")) - 1
        high = max(high, low + 1)
        yield low, high
        low = high


def duplicate_passages(passages: pl.Series, starts: Ints) -> Ints:
    """Rows, in grouped order, whose passage id occurred in an earlier row of the same group."""

    def find(groups: tuple[int, int]) -> Ints:
        low, high = groups
        begin, end = int(starts[low]), int(starts[high])
        sizes = np.diff(starts[low : high + 1])
        ids = passages.slice(begin, end - begin)
        key = passage_keys(ids, np.arange(low, high), sizes)
        # Contexts of equal size are sorted one by one, which takes half as long as all together.
        ordered = np.sort(key.reshape(len(sizes), -1) if (sizes == sizes[0]).all() else key[None], axis=1)
        twice = ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]]
        if not len(twice):
            return np.empty(0, dtype=np.int64)
        rows = np.flatnonzero(np.isin(key, twice))
        numbers = np.repeat(np.arange(low, high), sizes)[rows]
        pairs = pl.DataFrame({"number": numbers, "passage": ids.gather(rows)})
        first = pairs.select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
        return np.asarray(rows[~first] + begin)

    return np.concatenate([np.empty(0, dtype=np.int64), *map_threads(find, group_ranges(starts))])


class OrderedContexts(NamedTuple):
    """Contexts in order: context c is the rows ``starts[c]:starts[c + 1]``."""

    frame: pl.DataFrame
    starts: Ints


def order_contexts(frame: pl.DataFrame, *, ties: Ties, source: str = "") -> OrderedContexts:
    """Bring the rows of each context together in the order shown, with ranks. Duplicates are errors.

    ``frame`` has query, passage, score, and optionally system and rank, all already checked.
    """
    groups = group_rows(frame, [name for name in ("system", "query") if name in frame.columns])
    by_rank, order = "rank" in frame.columns, None
    place = _gather(frame["rank" if by_rank else "score"], groups.order)
    sort = not by_rank or not _ranks_ascend(place, groups.starts)
    if sort:
        scores = -place.cast(pl.Float64).to_numpy() if by_rank else place.to_numpy()
        order = sort_by_score(groups, frame["passage"], scores, ties)
    frame = _order_rows(frame, groups, order)
    if by_rank and sort:
        _check_ranks(frame, groups, source)
    duplicates = duplicate_passages(frame["passage"], groups.starts)
    if len(duplicates):
        row = frame.row(int(duplicates[0]), named=True)
        raise DuplicatePassageError(
            f"passage {quote_short(row['passage'])} occurs twice for query {quote_short(row['query'])}"
            + (f" ({format_count(len(duplicates), 'duplicate')} in all)" if len(duplicates) > 1 else ""),
            expected="each passage once in a context",
            remedy="remove the duplicates; if chunks of one document share its id, give each chunk its own id",
            file=source,
        )
    if not by_rank:
        frame = frame.with_columns(pl.Series("rank", positions_in_groups(groups), dtype=pl.UInt32))
    return OrderedContexts(frame, groups.starts)


def _gather(column: pl.Series, rows: Ints | None) -> pl.Series:
    """Rows of a column, or all of it. In one piece, it is gathered several times as fast."""
    return column if rows is None else column.rechunk().gather(rows)


def _order_rows(frame: pl.DataFrame, groups: RowGroups, order: Ints | None) -> pl.DataFrame:
    """Bring the rows of each group together, in an order within the group, which has one system and query."""
    if groups.order is None:
        within = [name for name in frame.columns if order is not None and name not in ("system", "query")]
        return frame.with_columns(map_threads(lambda name: _gather(frame[name], order), within))
    rows = groups.order if order is None else groups.order[order]
    heads = groups.order[groups.starts[:-1]]

    def gather(column: pl.Series) -> pl.Series:
        shared = column.name in ("system", "query")
        return column.gather(np.repeat(heads, groups.sizes)) if shared else _gather(column, rows)

    return pl.DataFrame(list(map_threads(gather, frame.get_columns())))


def rising_notes(scores: pl.Series, starts: Ints, order: str, *, min_share: float = 0.0) -> tuple[str, ...]:
    """A note if scores rise within at least this share of the contexts; ``order`` says what counts instead."""
    rising = _count_rising(scores, starts)
    if not rising or rising < min_share * (len(starts) - 1):
        return ()
    may_be_distances = rising >= MIN_DISTANCES and not _count_rising(-scores, starts)
    distances = "; these scores may be distances" if may_be_distances else ""
    contexts = format_count(rising, "context")
    return (f"in {contexts}, a passage scores higher than one before it: {order}{distances}",)


def _count_rising(scores: pl.Series, starts: Ints) -> int:
    """Number of contexts in which a score is higher than the one before it."""
    values = scores.to_numpy()
    rising = np.flatnonzero(values[1:] > values[:-1]) + 1
    groups = np.searchsorted(starts, rising, side="right") - 1
    return len(np.unique(groups[starts[groups] != rising]))


def _ranks_ascend(ranks: pl.Series, starts: Ints) -> bool:
    """Return whether the ranks of every context are ascending and unique."""
    values = ranks.to_numpy()
    first = np.zeros(len(values), dtype=bool)
    first[starts[:-1]] = True
    return bool(((values[1:] > values[:-1]) | first[1:]).all())


def _check_ranks(frame: pl.DataFrame, groups: RowGroups, source: str) -> None:
    ranks, number = frame["rank"].to_numpy(), groups.row_groups()
    same = np.flatnonzero((ranks[1:] == ranks[:-1]) & (number[1:] == number[:-1])) + 1
    if len(same):
        row = frame.row(int(same[0]), named=True)
        raise TableError(
            f"two passages have rank {row['rank']} for query {quote_short(row['query'])}",
            expected="each rank once in a context",
            remedy="leave the ranks out and give scores, or number the passages 1, 2, 3, …",
            file=source,
        )
