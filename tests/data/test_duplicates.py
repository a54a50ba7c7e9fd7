"""Duplicate rows found by hash, against the plain way, and tables in files."""

from __future__ import annotations

import errno
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.core.errors import TableError
from ragworth.data import Contexts, Judgments, Scores
from ragworth.data.coercion import duplicate_rows, write_parquet

ROWS = [(s, q, m, 0.5, "ok") for s in ("a", "b") for m in ("P@5", "AP") for q in ("q1", "q2", "q3")]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
def test_a_full_disk_is_an_error_of_the_system() -> None:
    with Path("/dev/full").open("wb", buffering=0) as full, pytest.raises(OSError, match="No space left") as caught:
        write_parquet(pl.DataFrame(ROWS, schema=Scores.schema, orient="row"), full)
    assert caught.value.errno == errno.ENOSPC


def test_rows_with_a_value_and_rows_by_value() -> None:
    frame = pl.DataFrame(ROWS, schema=Scores.schema, orient="row")
    table = Scores(frame)
    assert len(table) == 12
    assert table.distinct("metric") == ["P@5", "AP"]
    assert table.having("metric", ["AP"]).frame.equals(frame.filter(pl.col("metric") == "AP"))
    assert table.having("metric", []).frame.schema == frame.schema
    every = {metric: part.frame for metric, part in table.by("metric").items()}
    assert list(every) == table.distinct("metric")
    assert all(frame.equals(table.having("metric", [metric]).frame) for metric, frame in every.items())


def test_contexts_of_two_systems_in_one_table() -> None:
    rows = [(s, q, r, f"{q}-{r}", -float(r)) for s in ("a", "b") for q in ("q1", "q2") for r in (1, 2, 3)]
    whole = pl.DataFrame(rows, schema=Contexts.schema, orient="row")
    table = Contexts.concat([Contexts(whole.filter(pl.col("system") == s)) for s in ("a", "b")])
    assert table.frame.equals(whole)
    assert table.starts is not None and table.starts.tolist() == [0, 3, 6, 9, 12]
    assert table.systems == ["a", "b"]
    assert table.cut(2).frame.equals(whole.filter(pl.col("rank") <= 2))
    assert table.only("b").frame.equals(whole.filter(pl.col("system") == "b"))
    assert table.only("b").renamed("c").frame["system"].to_list() == ["c"] * 6
    assert table.only("nobody").frame.is_empty()


def test_a_judgment_in_two_tables_is_refused() -> None:
    one = Judgments({"query": ["q1", "q2"], "passage": ["p", "p"], "relevance": [1, 0]})
    other = Judgments({"query": ["q3", "q2"], "passage": ["p", "p"], "relevance": [1, 1]})
    with pytest.raises(TableError, match=r"row 4: second row for query 'q2', passage 'p', aspect 'relevance'"):
        Judgments.concat([one, other])
    assert len(Judgments.concat([one])) == 2


cells = st.one_of(st.none(), st.sampled_from(["", "a", "b", "ab", "é"]))


@given(st.lists(st.tuples(cells, cells, st.integers(0, 2))))
def test_repeated_rows_are_those_that_are_not_the_first(rows: list[tuple[str | None, str | None, int]]) -> None:
    schema = {"x": pl.String, "y": pl.String, "z": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    first = (
        frame.select(pl.struct(pl.all()).is_first_distinct()).to_series() if rows else pl.Series([], dtype=pl.Boolean)
    )
    expected = (~first).arg_true().to_list()
    assert duplicate_rows(frame, ["x", "y", "z"]).tolist() == expected


def test_the_order_of_columns_matters_to_a_row() -> None:
    frame = pl.DataFrame({"x": ["a", "b", "a"], "y": ["b", "a", "b"]})
    assert duplicate_rows(frame, ["x", "y"]).tolist() == [2]


def test_rows_with_equal_hashes_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if all rows hashed alike, only equal ones would count."""
    monkeypatch.setattr(pl.DataFrame, "hash_rows", lambda frame, seed: pl.Series([0] * frame.height, dtype=pl.UInt64))
    frame = pl.DataFrame({"x": ["a", "b", "a", "c"]})
    assert duplicate_rows(frame, ["x"]).tolist() == [2]
