"""Grouping, order, ties and duplicates, against sorting in plain Python."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth import Contexts
from ragworth.core.errors import TableError
from ragworth.data import ranking
from ragworth.data.ranking import RowGroups, Ties
from tests.strategies import examples

Row = tuple[str, str, float]

IDS = st.sampled_from(["1", "10", "2", "9", "a", "B", "é", "文", "😀", "", "ab"]) | st.text(
    st.characters(codec="utf-8"), max_size=3
)
NAMES = IDS.filter(bool)
SCORES = st.sampled_from(
    [0.0, -0.0, 1.0, 1 + 2**-30, 1 + 2**-20, 0.1, 0.1 + 1e-17, 1e300, 2e300, -1e300, 1e-320]
) | st.floats(allow_nan=False)


def single(score: float) -> float:
    """``score`` in single precision, as the C language rounds it."""
    try:
        return float(struct.unpack("f", struct.pack("f", score))[0])
    except OverflowError:
        return float("inf") if score > 0 else float("-inf")


def by_hand(rows: list[Row], ties: Ties) -> list[tuple[str, int, str, float]]:
    """Queries by first appearance; score descending, then the bytes of the id descending."""
    shown: list[tuple[str, int, str, float]] = []
    for query in dict.fromkeys(row[0] for row in rows):
        mine = [(passage, score) for q, passage, score in rows if q == query]
        # Two stable sorts: the second one decides, the first one breaks its ties.
        mine.sort(key=lambda row: row[0].encode(), reverse=True)
        mine.sort(key=lambda row: single(row[1]) if ties == "float32" else row[1], reverse=True)
        shown += [(query, rank, passage, score) for rank, (passage, score) in enumerate(mine, 1)]
    return shown


def row_key(row: Row) -> tuple[str, str]:
    return row[0], row[1]


@st.composite
def runs(draw: st.DrawFn) -> list[Row]:
    """Rows of a few queries, each passage once: grouped or mixed, in order or not."""
    queries = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    rows = draw(st.lists(st.tuples(st.sampled_from(queries), NAMES, SCORES), max_size=25, unique_by=row_key))
    match draw(st.sampled_from(["mixed", "grouped", "ordered", "nearly"])):
        case "grouped":
            rows.sort(key=lambda row: queries.index(row[0]))
        case "ordered":
            rows = [(q, p, s) for q, _, p, s in by_hand(rows, "float64")]
        case "nearly" if rows:
            rows = [(q, p, s) for q, _, p, s in by_hand(rows, "float64")]
            rows.append(rows.pop(draw(st.integers(0, len(rows) - 1))))
    return rows


def frame_of(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"query": pl.String, "passage": pl.String, "score": pl.Float64}, orient="row")


@examples(250)
@given(rows=runs(), ties=st.sampled_from(["float64", "float32"]), block=st.sampled_from([1, 2, 3, 7, 1 << 19]))
def test_order_is_trec_evals(rows: list[Row], ties: Ties, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "BLOCK_ROWS", block)
        contexts = Contexts(frame_of(rows), ties=ties)
    shown = contexts.frame.select("query", "rank", "passage", "score").rows()
    assert shown == by_hand(rows, ties)


@examples(150)
@given(rows=runs(), cuts=st.lists(st.integers(0, 25), max_size=4))
def test_pieces_of_a_column_do_not_matter(rows: list[Row], cuts: list[int]) -> None:
    """A file read in chunks makes columns of many pieces."""
    whole = frame_of(rows)
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [whole.slice(low, high - low) for low, high in itertools.pairwise(edges)]
    assert Contexts(pl.concat(parts, rechunk=False)) == Contexts(whole)


@examples(150)
@given(rows=runs(), seed=st.integers(0, 99))
def test_order_does_not_depend_on_the_order_of_rows(rows: list[Row], seed: int) -> None:
    mixed = frame_of(rows).sample(fraction=1.0, shuffle=True, seed=seed)
    sort = ["query", "rank"]
    assert Contexts(mixed).frame.sort(sort).equals(Contexts(frame_of(rows)).frame.sort(sort))


@examples(150)
@given(
    rows=st.lists(st.tuples(st.sampled_from("pq"), st.sampled_from("abcd"), st.just(1.0)), max_size=12),
    block=st.sampled_from([1, 2, 5, 1 << 19]),
)
def test_duplicates_are_found(rows: list[Row], block: int) -> None:
    distinct = {row_key(row) for row in rows}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "BLOCK_ROWS", block)
        if len(distinct) == len(rows):
            assert len(Contexts(frame_of(rows))) == len(rows)
            return
        with pytest.raises(TableError, match="occurs twice") as caught:
            Contexts(frame_of(rows))
    many = len(rows) - len(distinct)
    assert (f"{many} duplicates in all" in caught.value.found) == (many > 1)


@examples(150)
@given(
    rows=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy")), max_size=20),
    block=st.sampled_from([1, 2, 3, 1 << 19]),
)
def test_group(rows: list[tuple[str, str]], block: int) -> None:
    frame = pl.DataFrame(rows, schema={"one": pl.String, "two": pl.String}, orient="row")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "BLOCK_ROWS", block)
        groups = ranking.group_rows(frame, ["one", "two"])
    order = np.arange(len(rows)) if groups.order is None else groups.order
    wanted = {key: [i for i, row in enumerate(rows) if row == key] for key in dict.fromkeys(rows)}
    found = [order[low:high].tolist() for low, high in zip(groups.starts[:-1], groups.starts[1:], strict=True)]
    assert found == list(wanted.values())
    assert groups.sizes.tolist() == [len(rows_) for rows_ in wanted.values()]
    assert groups.row_groups().tolist() == [i for i, rows_ in enumerate(wanted.values()) for _ in rows_]
    # Nothing is moved that stands in its place already.
    assert (groups.order is None) == (list(itertools.chain(*wanted.values())) == list(range(len(rows))))


@given(sizes=st.lists(st.integers(1, 9), max_size=12), block=st.integers(1, 20))
def test_blocks_are_whole_groups(sizes: list[int], block: int) -> None:
    starts = np.concatenate([[0], np.cumsum(np.array(sizes, dtype=np.int64))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "BLOCK_ROWS", block)
        found = list(ranking.group_ranges(starts))
    # Each begins where the last one ended, and all groups are there.
    assert [low for low, _ in found] + [len(sizes)] == [0] + [high for _, high in found]
    for low, high in found:
        assert high == low + 1 or starts[high] - starts[low] <= block


def test_positions() -> None:
    groups = RowGroups(None, np.array([0, 3, 4, 6]))
    assert ranking.positions_in_groups(groups).tolist() == [1, 2, 3, 1, 1, 2]
    assert ranking.positions_in_groups(RowGroups(None, np.zeros(1, dtype=np.int64))).tolist() == []


@given(st.lists(st.tuples(st.integers(0, 5), IDS), unique=True, max_size=30))
def test_keys_of_unequal_pairs_differ(pairs: list[tuple[int, str]]) -> None:
    passages = pl.Series([name for _, name in pairs], dtype=pl.String)
    keys = ranking.passage_keys(passages, np.array([number for number, _ in pairs], dtype=np.int64))
    assert len(set(keys.tolist())) == len(pairs)


@pytest.mark.parametrize("ties", ["float64", "float32"])
def test_large_run_in_blocks(ties: Ties, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many groups, many ties, many blocks; equal to one sort of everything."""
    generator = np.random.default_rng(7)
    n = 20_000
    frame = pl.DataFrame(
        {
            "query": [f"q{i}" for i in generator.integers(0, 97, n)],
            "passage": [f"d{i}" for i in range(n)],
            "score": generator.integers(0, 50, n) / 8 + generator.choice([0.0, 2.0**-40], n),
        }
    )
    monkeypatch.setattr(ranking, "BLOCK_ROWS", 1000)
    contexts = Contexts(frame, ties=ties)
    kind = pl.Float32 if ties == "float32" else pl.Float64
    first = {query: i for i, query in enumerate(frame["query"].unique(maintain_order=True))}
    wanted = frame.sort(
        pl.col("query").replace_strict(first),
        pl.col("score").cast(kind),
        "passage",
        descending=[False, True, True],
    )
    assert contexts.frame.select("query", "passage", "score").equals(wanted)
