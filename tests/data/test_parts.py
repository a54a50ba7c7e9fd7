"""Large tables in parts, and duplicates found by hash, against the plain ways."""

from __future__ import annotations

import errno
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.core.errors import TableError
from ragworth.data import Contexts, Judgments, Scores, parts
from ragworth.data.parts import duplicate_rows


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of four rows count as large."""
    monkeypatch.setattr(parts, "MIN_ROWS_TO_SPLIT", 4)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
@pytest.mark.parametrize("number", [1, 2])
def test_a_full_disk_is_an_error_of_the_system(number: int) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full, pytest.raises(OSError, match="No space left") as caught:
        parts.write_parquet([scores()] * number, full)
    assert caught.value.errno == errno.ENOSPC


def scores() -> pl.DataFrame:
    return pl.DataFrame(
        [
            (system, query, metric, 0.5 if query != "q3" else None, "ok" if query != "q3" else "unjudged")
            for system in ("a", "b")
            for metric in ("P@5", "AP")
            for query in ("q1", "q2", "q3")
        ],
        schema=Scores.schema,
        orient="row",
    )


@pytest.mark.usefixtures("small_parts")
def test_a_large_table_is_cut_where_system_and_metric_change() -> None:
    table = Scores(scores())
    assert [part.height for part in table.parts] == [3, 3, 3, 3]
    assert table.frame.equals(scores())
    assert len(table) == 12
    assert table.distinct("metric") == ["P@5", "AP"]
    assert table.having("metric", ["AP"]).frame.equals(scores().filter(pl.col("metric") == "AP"))
    assert Scores.of_parts(table.parts).frame.equals(scores())
    assert table.having("metric", []).frame.schema == table.frame.schema
    every = {metric: part.frame for metric, part in table.by("metric").items()}
    assert list(every) == table.distinct("metric")
    assert all(frame.equals(table.having("metric", [metric]).frame) for metric, frame in every.items())


@pytest.mark.usefixtures("small_parts")
def test_rows_in_turn_stay_in_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MAX_PARTS", 5)
    rows = [(f"q{i}", "p", ("relevance", "abstention")[i % 2], 1.0, "ok", "given") for i in range(20)]
    table = Judgments(pl.DataFrame(rows, schema=Judgments.schema, orient="row"))
    assert len(table.parts) == 1
    assert table.of("abstention")["query"].to_list() == [f"q{i}" for i in range(1, 20, 2)]


@pytest.mark.usefixtures("small_parts")
def test_contexts_in_parts_do_what_contexts_do() -> None:
    rows = [(s, q, r, f"{q}-{r}", -float(r)) for s in ("a", "b") for q in ("q1", "q2") for r in (1, 2, 3)]
    whole = pl.DataFrame(rows, schema=Contexts.schema, orient="row")
    table = Contexts.concat([Contexts(whole.filter(pl.col("system") == s)) for s in ("a", "b")])
    assert len(table.parts) == 2
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
    for cut in range(frame.height + 1):  # rows count through all parts
        assert duplicate_rows([frame[:cut], frame[cut:]], ["x", "y", "z"]).tolist() == expected


def test_the_order_of_columns_matters_to_a_row() -> None:
    frame = pl.DataFrame({"x": ["a", "b", "a"], "y": ["b", "a", "b"]})
    assert duplicate_rows(frame, ["x", "y"]).tolist() == [2]


def test_rows_with_equal_hashes_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if all rows hashed alike, only equal ones would count."""
    monkeypatch.setattr("ragworth.data.parts._hashes", lambda frame, columns: frame["x"].hash(1).to_numpy() * 0)
    frame = pl.DataFrame({"x": ["a", "b", "a", "c"]})
    assert duplicate_rows(frame, ["x"]).tolist() == [2]


@pytest.mark.usefixtures("small_parts")
def test_parts_are_written_as_one_table(tmp_path: Path) -> None:
    table = Scores(scores())
    with (tmp_path / "scores.parquet").open("wb") as stream:
        parts.write_parquet(table.parts, stream)
    assert len(table.parts) == 4
    assert pl.read_parquet(tmp_path / "scores.parquet").equals(scores())
