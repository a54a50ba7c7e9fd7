"""Parquet, CSV and TSV: reading under the usual names, bad rows, and round trips."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth import Contexts, Judgments, Ratings
from ragworth.core.errors import FormatError, InputError, RagworthError
from ragworth.data import Table
from ragworth.formats import load, read_contexts, read_judgments, read_ratings, write
from tests.strategies import examples

Save = Callable[[str, str | bytes], Path]
Row = tuple[str, int, str, float | None]

RUN = "query,passage,score\nq1,d1,1\nq1,d2,2.5\nq2,d1,-1e3\n"
ROWS: list[Row] = [("q1", 1, "d2", 2.5), ("q1", 2, "d1", 1.0), ("q2", 1, "d1", -1000.0)]

LAYOUTS = {
    "commas": RUN,
    "semicolons": RUN.replace(",", ";"),
    "tabs": RUN.replace(",", "\t"),
    "CRLF": RUN.replace("\n", "\r\n"),
    "byte-order mark": "\ufeff" + RUN,
    "no final newline": RUN.removesuffix("\n"),
    "quotes": RUN.replace("q1", '"q1"').replace("passage", '"passage"'),
    "other names": RUN.replace("query", "qid").replace("passage", "docno"),
    "PyTerrier's text column": "qid,query,docno,score\nq1,why,d1,1\nq1,why,d2,2.5\nq2,who,d1,-1000\n",
    "columns in another order": "score,note,passage,query\n1,,d1,q1\n2.5,x,d2,q1\n-1000,,d1,q2\n",
    "ranks": "query,passage,rank,score\nq1,d1,2,1\nq1,d2,1,2.5\nq2,d1,1,-1000\n",
    "ranks from zero": "query,passage,rank,score\nq1,d1,1,1\nq1,d2,0,2.5\nq2,d1,0,-1000\n",
}


def rows(contexts: Contexts) -> list[Row]:
    return contexts.frame.select("query", "rank", "passage", "score").rows()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_layouts_are_the_same_run(layout: str, ending: str, save: Save) -> None:
    """The header tells the separator, not the ending."""
    contexts = read_contexts(save(f"bm25.{ending}", LAYOUTS[layout]))
    assert rows(contexts) == ROWS
    assert contexts.systems == ["bm25"]


def test_judgments_in_several_forms(save: Save) -> None:
    long = read_judgments(save("a.csv", "query,passage,aspect,value\nq,a,relevance,1\nq,a,abstention,0.25\n"))
    wide = read_judgments(save("a.csv", "qid,docno,label,p_abstain\nq,a,1,0.25\n"))
    assert long == wide.__class__(wide.frame.with_columns(source=pl.lit("given")))
    assert long.frame.select("aspect", "value").rows() == [("relevance", 1.0), ("abstention", 0.25)]


def test_a_value_without_reason_is_refused(save: Save) -> None:
    with pytest.raises(InputError, match="missing without a reason"):
        read_judgments(save("a.csv", "query,passage,value\nq,a,1\nq,b,\n"))
    judgments = read_judgments(save("a.csv", "query,passage,value,status\nq,a,1,ok\nq,b,,refused\n"))
    assert judgments.frame.select("value", "status").rows() == [(1.0, "ok"), (None, "refused")]


def test_passages(save: Save) -> None:
    text = 'doc_id,text\nd1,"several\nlines, and ""quotes"""\nd2,12\n'
    assert load(save("a.csv", text)).collection.passages.rows() == [
        ("d1", 'several\nlines, and "quotes"'),
        ("d2", "12"),
    ]


BAD_LINES = {
    "too many fields": b"q1,d3,3,x",
    "too few fields": b"q1,d3",
    "score is text": b"q1,d3,much",
    "score is NaN": b"q1,d3,nan",
    "score is missing": b"q1,d3,",
    "query is missing": b",d3,1",
    "passage is not UTF-8": b"q1,d\xff,1",
}


@pytest.mark.parametrize("kind", BAD_LINES)
def test_bad_line_is_named(kind: str, save: Save) -> None:
    path = save("a.csv", b"query,passage,score\nq1,d1,1\nq1,d2,2.5\n" + BAD_LINES[kind] + b"\nq2,d1,-1000\n")
    with pytest.raises(InputError) as caught:
        read_contexts(path)
    assert (caught.value.file, caught.value.line) == (str(path), 4)
    assert caught.value.expected


@pytest.mark.parametrize("kind", BAD_LINES)
def test_bad_line_is_skipped_and_counted(kind: str, save: Save) -> None:
    path = save("a.csv", b"query,passage,score\nq1,d1,1\nq1,d2,2.5\n" + BAD_LINES[kind] + b"\nq2,d1,-1000\n")
    contexts = read_contexts(path, skip_bad_lines=True)
    assert rows(contexts) == ROWS
    assert "1 bad line skipped (line 4: " in contexts.notes[0]


Reader = Callable[..., Table]
READERS: dict[str, Reader] = {"contexts": read_contexts, "judgments": read_judgments, "ratings": read_ratings}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("content", ["", "\n\n", "query,passage,subquestion,score,value\n"])
def test_empty_file(reader: str, content: str, save: Save) -> None:
    with pytest.raises(FormatError, match="no rows: the file is empty"):
        READERS[reader](save("a.csv", content))


def test_bad_headers(save: Save) -> None:
    with pytest.raises(FormatError, match="twice") as caught:
        read_contexts(save("a.csv", "query,passage,score,score\nq,d,1,2\n"))
    assert caught.value.line == 1
    with pytest.raises(FormatError, match="header is not UTF-8") as caught:
        read_contexts(save("a.csv", b"query,\xff\nq,d\n"))
    assert caught.value.line == 1
    with pytest.raises(InputError, match="needs a 'query' column; this one has topic, passage, score"):
        read_contexts(save("a.csv", RUN.replace("query", "topic")))
    with pytest.raises(InputError, match="neither ranks nor scores"):
        read_contexts(save("a.csv", RUN.replace("score", "number")))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"query,passage\n", b"PAR1" + b"\0" * 40 + b"PAR1"])
def test_no_parquet(content: bytes, save: Save) -> None:
    path = save("a.parquet", content)
    with pytest.raises(FormatError, match="can't be read as Parquet") as caught:
        read_contexts(path)
    assert caught.value.file == str(path)
    assert len(str(caught.value).splitlines()) <= 4
    with pytest.raises(RagworthError, match="can't be read as Parquet"):
        Contexts.read(path)


IDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4) | st.sampled_from(
    ["1", "007", "1e5", "nan", "null", "true", '"', "a,b", "a\tb", "a;b", "a\nb", " a ", "#", "'", "\r", "a\r"]
)
SCORES = st.none() | st.floats(allow_nan=False)
ENDINGS = st.sampled_from(["parquet", "csv", "tsv", "csv.gz", "tsv.zst"])


@examples(150)
@given(
    rows=st.lists(st.tuples(IDS, IDS, IDS, SCORES), min_size=1, max_size=6, unique_by=(lambda row: row[:3])),
    ending=ENDINGS,
)
def test_contexts_read_back_equal(rows: list[tuple[str, str, str, float | None]], ending: str, scratch: Path) -> None:
    counts: dict[tuple[str, str], int] = {}
    shown: list[tuple[str, str, int, str, float | None]] = []
    for system, query, passage, score in rows:
        rank = counts[system, query] = counts.get((system, query), 0) + 1
        shown.append((system, query, rank, passage, score))
    schema = {"system": pl.String, "query": pl.String, "rank": pl.Int64, "passage": pl.String, "score": pl.Float64}
    made = Contexts(pl.DataFrame(shown, schema=schema, orient="row"))
    write(made, scratch / f"run.{ending}")
    assert read_contexts(scratch / f"run.{ending}") == made


VALUES = st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.just("ok")) | st.tuples(
    st.none(), st.sampled_from(["refused", "timed-out", "3"])
)


def _on_scale(values: object) -> pl.Series:
    """Any numbers as ratings from 0 to 5."""
    assert isinstance(values, pl.Series)
    return pl.Series([None if value is None else abs(value) % 6 // 1 for value in values], dtype=pl.Float64)


@examples(150)
@given(
    rows=st.lists(st.tuples(IDS, IDS, IDS, VALUES), min_size=1, max_size=6, unique_by=(lambda row: row[:3])),
    ending=ENDINGS,
)
def test_judgments_and_ratings_read_back_equal(
    rows: list[tuple[str, str, str, tuple[float | None, str]]], ending: str, scratch: Path
) -> None:
    columns = {
        "query": [row[0] for row in rows],
        "passage": [row[1] for row in rows],
        "value": pl.Series([row[3][0] for row in rows], dtype=pl.Float64),
        "status": [row[3][1] for row in rows],
        "source": ["a model, 7 b"] * len(rows),
    }
    for made in (
        Judgments(columns | {"aspect": [row[2] for row in rows]}),
        Ratings(columns | {"subquestion": [row[2] for row in rows], "value": _on_scale(columns["value"])}),
    ):
        write(made, scratch / f"table.{ending}")
        assert READERS[made.name](scratch / f"table.{ending}") == made
