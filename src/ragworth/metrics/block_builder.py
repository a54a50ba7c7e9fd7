"""Build the blocks that metrics read from tables of contexts and judgments.

The work is sparse: of millions of passages shown, a few percent are judged. Those are located once for all systems,
and the dense blocks are filled from them, a few queries at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.core.errors import format_count, format_list
from ragworth.core.resources import map_threads
from ragworth.data import Contexts, ranking
from ragworth.metrics.blocks import Block, Bools, Floats, Ints, RelevantPool, SmallInts, Truth
from ragworth.metrics.ground_truth import JudgedValues, PassageLookup, RatingMatrices, build_truth, query_numbers

MAX_CELLS = 1 << 20
"""Cells (queries × depth) per block: large enough to amortise calls, small enough for the cache."""


class ShownContexts(NamedTuple):
    """All contexts of all systems: context c is the rows ``starts[c]:starts[c + 1]``.

    Attributes
    ----------
    passage, rank: of each row.
    systems: names of the systems.
    system: number of each context's system.
    query: query id of each context.
    size: number of passages in each context, i.e. its last rank.
    ended: whether each context ended before the system's longest one, so nothing was cut off.
    """

    passage: pl.Series
    rank: pl.Series
    starts: Ints
    systems: list[str]
    system: Ints
    query: pl.Series
    size: Ints
    ended: Bools

    @classmethod
    def of(cls, contexts: Contexts) -> ShownContexts:
        frame, starts = contexts.frame, contexts.starts
        if starts is None:
            groups = ranking.group_rows(frame, ["system", "query"])
            frame, starts = frame if groups.order is None else frame[groups.order], groups.starts
        heads = frame.select(pl.col("system", "query").gather(starts[:-1]))
        size = frame["rank"].gather(starts[1:] - 1).to_numpy().astype(np.int64)
        query = heads["query"]
        names = pl.Series(contexts.systems, dtype=pl.String)
        system = query_numbers(heads["system"], names)
        if contexts.empty:
            empty = pl.DataFrame(sorted(contexts.empty), schema={"system": pl.String, "query": pl.String}, orient="row")
            starts = np.append(starts, np.full(empty.height, starts[-1]))
            query = pl.concat([query, empty["query"]])
            system = np.append(system, query_numbers(empty["system"], names))
            size = np.append(size, np.zeros(empty.height, dtype=np.int64))
        longest = np.zeros(len(names), dtype=np.int64)
        np.maximum.at(longest, system, size)
        ended = size < longest[system]
        return cls(frame["passage"], frame["rank"], starts, names.to_list(), system, query, size, ended)

    def first(self, n: int) -> ShownContexts:
        """The first n passages of every context."""
        kept = self._select_rows(np.flatnonzero(self.rank.to_numpy() <= n))
        return kept._replace(size=np.minimum(self.size, n), ended=self.ended & (self.size <= n))

    def only(self, pairs: pl.DataFrame) -> ShownContexts:
        """Keep only the passages in ``pairs`` of query and passage, closing the gaps.

        A context without any of them becomes empty.
        """
        rows = self.rows().select("query", "passage").with_row_index("at")
        left = rows.join(pairs, on=["query", "passage"], how="semi")["at"].sort().to_numpy().astype(np.int64)
        kept = self._select_rows(left)
        size = np.diff(kept.starts)
        rank = np.arange(1, len(left) + 1) - np.repeat(kept.starts[:-1], size)
        return kept._replace(rank=pl.Series("rank", rank, dtype=pl.UInt32), size=size)

    def rows(self) -> pl.DataFrame:
        """System number, query, passage and rank of each row."""
        context = np.repeat(np.arange(len(self.size)), np.diff(self.starts))
        return pl.DataFrame(
            {
                "system": self.system[context],
                "query": self.query.gather(context),
                "passage": self.passage,
                "rank": self.rank,
            }
        )

    def top(self, system: int, rows: int) -> pl.DataFrame:
        """Query and passage of the first ranks of one system's contexts, in at most ``rows`` rows."""
        contexts = np.flatnonzero(self.system == system)[:rows]
        sizes = np.diff(self.starts)[contexts]
        sizes = np.minimum(sizes, rows // max(len(contexts), 1))
        ends = np.cumsum(sizes)
        at = np.arange(sizes.sum()) + np.repeat(self.starts[contexts] - (ends - sizes), sizes)
        return pl.DataFrame(
            {"query": self.query.gather(np.repeat(contexts, sizes)), "passage": self.passage.gather(at)}
        )

    def _select_rows(self, rows: Ints) -> ShownContexts:
        """Keep some rows, given in order, of the same contexts."""
        starts = np.searchsorted(rows, self.starts).astype(np.int64)
        if len(rows) == len(self.passage):
            return self._replace(starts=starts)
        return self._replace(passage=self.passage.gather(rows), rank=self.rank.gather(rows), starts=starts)

    def notes(self) -> list[str]:
        """Note contexts with gaps in their ranks."""
        gaps = np.bincount(self.system[self.size > np.diff(self.starts)], minlength=len(self.systems))
        if not gaps.any():
            return []
        with_gaps = [name for name, count in zip(self.systems, gaps, strict=True) if count]
        return [
            f"{format_list(with_gaps, 3)}: {format_count(int(gaps.sum()), 'context')} with gaps in the ranks; "
            "the missing passages count as shown but unjudged"
        ]


class JudgedCells(NamedTuple):
    """Judged passages among those shown: the context, the rank, and the row of the judgment.

    Those of system s are ``bounds[s]:bounds[s + 1]``.
    """

    context: SmallInts
    rank: SmallInts
    row: SmallInts
    bounds: Ints


@dataclass(frozen=True, eq=False)
class KnownTruth:
    """Judgments of the evaluated queries; None for kinds that no metric needs."""

    queries: pl.Series
    judged: JudgedValues | None = None
    aspects: Mapping[str, JudgedValues] = field(default_factory=dict)
    rated: RatingMatrices | None = None
    lengths: pl.DataFrame | None = None

    def of(self, universe: str) -> JudgedValues | RatingMatrices | None:
        """The judgments that determine which queries are evaluated."""
        if universe == "relevance":
            return self.judged
        return self.rated if universe == "ratings" else self.aspects.get(universe)


class BlockBuilder:
    """Builds the blocks of each system.

    Parameters
    ----------
    depth: the deepest rank that any metric reads.
    levels: relevance levels for which the passages found by several runs are pooled.
    """

    def __init__(self, shown: ShownContexts, known: KnownTruth, depth: int, levels: set[float]) -> None:
        self.shown, self.known, self.depth = shown, known, depth
        self.query = query_numbers(shown.query, known.queries)
        self.relevance = self._find(known.judged.lookup) if known.judged else None
        self.aspects = {name: self._find(values.lookup) for name, values in known.aspects.items()}
        self.rated = self._find(known.rated.lookup) if known.rated else None
        self.tokens: JudgedCells | None = None
        self.rated_tokens: Floats | None = None
        if known.lengths is not None and known.rated is not None:
            lengths = PassageLookup(np.zeros(known.lengths.height, dtype=np.int64), known.lengths["passage"].rechunk())
            self.tokens = self._find(lengths, by_query=False)
            there = lengths.find(np.zeros(len(known.rated.query), dtype=np.int64), known.rated.passage)
            self.rated_tokens = np.full(len(known.rated.query), np.nan)
            self.rated_tokens[there.asked] = known.lengths["tokens"].to_numpy()[there.row]
        self.finds = {rel: self._found_by_system(rel) for rel in levels}
        # Context number of (system, query), −1 if the system has none.
        self.context = np.full((len(shown.systems), len(known.queries)), -1, dtype=np.int64)
        mine = np.flatnonzero(self.query >= 0)
        self.context[shown.system[mine], self.query[mine]] = mine
        self.row_of = np.full(len(shown.size), -1, dtype=np.int64)
        columns = known.rated.value.shape[1] if known.rated else 1
        self.span = max(1, MAX_CELLS // max(depth, 1) // max(columns, 1))
        self.truths: dict[int, Truth] = {}

    def of(self, system: int) -> Iterator[tuple[int, int, Block]]:
        """Yield one system's contexts as blocks of consecutive queries: first, last + 1, block."""
        total = len(self.known.queries)
        for low in range(0, total, self.span):
            high = min(low + self.span, total)
            if low not in self.truths:
                known = self.known
                self.truths[low] = build_truth(low, high, known.judged, known.aspects, known.rated, self.rated_tokens)
            yield low, high, self._block(system, low, high)

    def cells(self, universe: str) -> JudgedCells | None:
        """Positions of the passages with judgments that determine which queries are evaluated."""
        if universe == "relevance":
            return self.relevance
        return self.rated if universe == "ratings" else self.aspects.get(universe)

    def any_known(self, system: int, universe: str) -> bool:
        """Whether any passage a system shows, at any depth, is judged or rated."""
        known = self.known.of(universe)
        assert known is not None
        mine = np.flatnonzero((self.shown.system == system) & (self.query >= 0))
        rows = ranking.rows_of_groups(self.shown.starts, mine)
        query = np.repeat(self.query[mine], np.diff(self.shown.starts)[mine])
        return len(known.lookup.find(query, self.shown.passage.gather(rows)).row) > 0

    def _find(self, lookup: PassageLookup, by_query: bool = True) -> JudgedCells:
        """Find the shown passages, down to the depth needed, that are in the lookup."""
        shown = self.shown

        def find(contexts: tuple[int, int]) -> SmallInts:
            low, high = contexts
            begin, end = int(shown.starts[low]), int(shown.starts[high])
            rank = shown.rank.slice(begin, end - begin).to_numpy()
            passage = shown.passage.slice(begin, end - begin)
            sizes = np.diff(shown.starts[low : high + 1])
            if (self.query[low:high] < 0).any() or (shown.size[low:high] > self.depth).any():
                context = np.repeat(np.arange(high - low), sizes)
                use = (rank <= self.depth) & (self.query[low:high] >= 0)[context]
                rank, passage = rank[use], passage.filter(pl.Series(use))
                sizes = np.bincount(context[use], minlength=high - low)
            numbers = self.query[low:high] if by_query else np.zeros(high - low, dtype=np.int64)
            there = lookup.find(numbers, passage, sizes)
            context = np.searchsorted(np.cumsum(sizes), there.asked, side="right") + low
            return np.array([context, rank[there.asked], there.row], dtype=np.int32)

        found = list(map_threads(find, ranking.group_ranges(shown.starts)))
        cells = np.concatenate([np.empty((3, 0), dtype=np.int32), *found], axis=1)
        numbers = np.arange(len(shown.systems) + 1)
        if not _ascends(shown.system) or not _ascends(cells[0]):
            system = shown.system[cells[0]]
            order = np.argsort(system, kind="stable")
            cells = cells[:, order]
            return JudgedCells(cells[0], cells[1], cells[2], np.searchsorted(system[order], numbers))
        firsts = np.searchsorted(shown.system, numbers).astype(np.int32)  # the first context of each system
        return JudgedCells(cells[0], cells[1], cells[2], np.searchsorted(cells[0], firsts))

    def _found_by_system(self, rel: float) -> Bools:
        """Which relevant judgments each system found: systems × judgments."""
        assert self.known.judged is not None and self.relevance is not None
        found = np.zeros((len(self.shown.systems), len(self.known.judged.value)), dtype=bool)
        found[self.shown.system[self.relevance.context], self.relevance.row] = True
        return np.asarray(found & (self.known.judged.value >= rel))

    def _pool(self, rel: float, system: int, low: int, high: int) -> RelevantPool:
        """Relevant passages that this system and the others found for queries ``low`` to ``high``."""
        assert self.known.judged is not None
        query, found = self.known.judged.query, self.finds[rel]
        mine, others = found[system], np.asarray(np.delete(found, system, axis=0).any(axis=0))

        def count(which: Bools) -> Floats:
            here = which & (query >= low) & (query < high)
            return np.bincount(query[here] - low, minlength=high - low).astype(np.float64)

        return RelevantPool(count(mine | others), count(mine), count(others), count(mine & others))

    def _block(self, system: int, low: int, high: int) -> Block:
        n, context = high - low, self.context[system, low:high]
        size = np.where(context >= 0, self.shown.size[context], 0)
        there = context >= 0
        self.row_of[context[there]] = np.flatnonzero(there)
        span = (int(context[there].min()), int(context[there].max()) + 1) if there.any() else (0, 0)
        place = _BlockLayout(n, max(1, min(self.depth, int(size.max(initial=0)))), system, self.row_of, span)
        known = self.known
        relevance, failed, ratings, tokens = place.empty(np.nan), None, None, None
        if known.judged is not None and self.relevance is not None:
            at, row = place.of(self.relevance)
            relevance[at] = known.judged.value[row]
            if known.judged.failed.any():
                failed = place.empty(0.0).astype(bool)
                failed[at] = known.judged.failed[row]
        aspects: dict[str, Floats] = {}
        for name, cells in self.aspects.items():
            at, row = place.of(cells)
            aspects[name] = place.empty(np.nan)
            aspects[name][at] = known.aspects[name].value[row]
        if known.rated is not None and self.rated is not None:
            at, row = place.of(self.rated)
            ratings = np.full((*relevance.shape, known.rated.value.shape[1]), -np.inf)
            ratings[at] = known.rated.value[row]
        if known.lengths is not None and self.tokens is not None:
            at, row = place.of(self.tokens)
            tokens = place.empty(np.nan)
            tokens[at] = known.lengths["tokens"].to_numpy()[row]
        self.row_of[context[there]] = -1
        pools = {rel: self._pool(rel, system, low, high) for rel in self.finds}
        ended = there & self.shown.ended[context]
        return Block(self.truths[low], size, relevance, failed, aspects, ratings, tokens, pools, ended)


def _ascends(numbers: npt.NDArray[np.signedinteger]) -> bool:
    return not (numbers[1:] < numbers[:-1]).any()


class _BlockLayout(NamedTuple):
    """Positions of cells in a block of ``size`` rows: ``row_of`` maps contexts to rows, −1 for none.

    ``span`` is the first of the block's contexts and one past the last; other contexts may lie between.
    """

    size: int
    width: int
    system: int
    row_of: Ints
    span: tuple[int, int]

    def empty(self, value: float) -> Floats:
        return np.full((self.size, self.width), value)

    def of(self, cells: JudgedCells) -> tuple[tuple[Ints, SmallInts], SmallInts]:
        """Row and column of each cell in this block, and the row of its judgment."""
        first, last = (int(bound) for bound in cells.bounds[self.system : self.system + 2])
        low, high = (first + int(place) for place in np.searchsorted(cells.context[first:last], self.span))
        mine = slice(low, high)
        row, rank = self.row_of[cells.context[mine]], cells.rank[mine]
        here = (row >= 0) & (rank <= self.width)
        return (row[here], rank[here] - 1), cells.row[mine][here]
