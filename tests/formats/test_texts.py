"""Texts by id out of JSONL and tables, and errors that say where."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ragworth.core.errors import FormatError, RagworthError
from ragworth.formats.texts import CollectionPart, read

Save = Callable[[str, str | bytes], Path]

KINDS: tuple[CollectionPart, ...] = ("queries", "passages", "answers", "subquestions")


def lines(*items: Any) -> str:
    return "".join((item if isinstance(item, str) else json.dumps(item)) + "\n" for item in items)


JSONL: dict[CollectionPart, tuple[list[Any], list[tuple[str, ...]]]] = {
    "queries": (
        [{"_id": "q1", "text": "Who?"}, {"id": 7, "text": "Wo?"}, {"query_id": "007", "text": ""}],
        [("q1", "Who?"), ("7", "Wo?"), ("007", "")],
    ),
    "passages": (
        [
            {"_id": "p1", "title": "T", "text": "x"},
            {"doc_id": "p2", "text": "y", "title": ""},
            {"docno": 3, "text": "z"},
        ],
        [("p1", "T\nx"), ("p2", "y"), ("3", "z")],
    ),
    "answers": (
        [
            {"query_id": "q1", "answers": ["Ann", "Ann Lee"]},
            {"qid": 2, "answer": "Bob"},
            {"_id": "q3", "answers": []},
            {"query_id": "q1", "answers": ["A. Lee"]},
        ],
        [("q1", "Ann"), ("q1", "Ann Lee"), ("2", "Bob"), ("q1", "A. Lee")],
    ),
    "subquestions": (
        [
            {"query_id": "q1", "subquestions": ["Who?", "When?"]},
            {"query_id": "q2", "questions": [{"id": "b", "text": "Why?"}, {"text": "How?"}]},
        ],
        [("q1", "1", "Who?"), ("q1", "2", "When?"), ("q2", "b", "Why?"), ("q2", "2", "How?")],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_jsonl(kind: CollectionPart, save: Save) -> None:
    items, rows = JSONL[kind]
    for name in (f"{kind}.jsonl", f"{kind}.NDJSON"):
        assert getattr(read(save(name, lines(*items, "")), kind), kind).rows() == rows
    packed = save("x.jsonl.gz", gzip.compress(lines(*items).encode()))
    assert getattr(read(packed, kind), kind).rows() == rows


TABLES: dict[CollectionPart, pl.DataFrame] = {
    "queries": pl.DataFrame({"query": ["q1", "007"], "text": ["Who, or what?", 'said "so"']}),
    "passages": pl.DataFrame({"passage": ["p1", "2"], "text": ["two\nlines", "ü"]}),
    "answers": pl.DataFrame({"query": ["q1", "q1"], "text": ["Ann", "Ann Lee"]}),
    "subquestions": pl.DataFrame({"query": ["q1", "q1"], "subquestion": ["a", "b"], "text": ["Who?", "When?"]}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_tables(kind: CollectionPart, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"{kind}.{ending}"
    frame = TABLES[kind]
    if ending == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="\t" if ending == "tsv" else ",")
    found = read(path, kind)
    assert getattr(found, kind).rows() == frame.rows()
    for other in set(KINDS) - {kind}:
        assert getattr(found, other).height == 0


BAD: list[tuple[CollectionPart, Any, str]] = [
    ("queries", {"_id": "q1"}, "text"),
    ("queries", {"text": "x"}, "_id"),
    ("queries", {"_id": "", "text": "x"}, "empty"),
    ("queries", [1], "list"),
    ("queries", "{", "not JSON"),
    ("passages", {"_id": "p1", "text": 5}, "text"),
    ("passages", {"_id": "p1", "text": "\ud800"}, "lone surrogate"),
    ("answers", {"answers": ["x"]}, "query_id"),
    ("answers", {"query_id": "q1"}, "answers"),
    ("answers", {"query_id": "q1", "answers": {"a": 1}}, "answers"),
    ("answers", {"query_id": "q1", "answers": ["x", 5]}, "text 2"),
    ("answers", {"query_id": "q1", "answers": [{"text": "x"}]}, "text 1"),
    ("answers", {"query_id": True, "answers": ["x"]}, "query_id"),
    ("subquestions", {"query_id": "q1", "subquestions": None}, "subquestions"),
    ("subquestions", {"query_id": "q1", "subquestions": [{"id": "a"}]}, "text"),
    ("subquestions", {"query_id": "q1", "subquestions": [{"id": None, "text": "x"}]}, "id"),
]
GOOD: dict[CollectionPart, Any] = {kind: items[0] for kind, (items, _) in JSONL.items()}


@pytest.mark.parametrize(("kind", "item", "words"), BAD, ids=str)
def test_a_bad_line_is_named_or_left_out_and_counted(kind: CollectionPart, item: Any, words: str, save: Save) -> None:
    path = save("bad.jsonl", lines(GOOD[kind], "", item))
    with pytest.raises(FormatError, match=words) as caught:
        read(path, kind)
    assert (caught.value.file, caught.value.line) == (str(path), 3)
    found = read(path, kind, skip_bad_lines=True)
    assert getattr(found, kind).height == len(JSONL[kind][1][:2]) - (kind in ("queries", "passages"))
    assert any("1 bad line skipped" in note and "line 3" in note for note in found.notes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.tsv"])
@pytest.mark.parametrize("content", ["", "\n\n", "query,passage,subquestion,text\n"])
def test_a_file_without_rows_is_an_error(kind: CollectionPart, name: str, content: str, save: Save) -> None:
    with pytest.raises(FormatError, match=r"x\.") as caught:
        read(save(name, content), kind)
    assert caught.value.expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_not_there_or_tells_no_format(kind: CollectionPart, save: Save, tmp_path: Path) -> None:
    for name in ("none.jsonl", "none.csv", "none.parquet"):
        with pytest.raises(FormatError, match="none"):
            read(tmp_path / name, kind)
    with pytest.raises(FormatError, match="unknown file extension") as caught:
        read(save("texts.txt", "q1 Who?"), kind)
    assert ".jsonl" in caught.value.expected
    with pytest.raises(FormatError, match=r"x\.parquet"):
        read(save("x.parquet", "no such thing"), kind)


@pytest.mark.parametrize(
    ("kind", "content", "words"),
    [
        ("queries", "query,words\nq1,Who?\n", "text"),
        ("queries", "name,text\nq1,Who?\n", "query"),
        ("queries", "query,text\nq1,Who?\nq2\n", "line 3"),
        ("queries", "query,text\nq1,Who?\nq2,\n", "row 2: column 'text' has no text"),
        ("queries", "query,text\nq1,Who?\nq1,When?\n", "second text"),
        ("passages", "passage,text\np1,x\np1,x\n", "second text"),
        ("subquestions", "query,text\nq1,Who?\n", "subquestion"),
        ("subquestions", "query,subquestion,text\nq1,a,Who?\nq1,a,When?\n", "a"),
    ],
)
def test_tables_that_are_not_right(kind: CollectionPart, content: str, words: str, save: Save) -> None:
    with pytest.raises(RagworthError, match=words) as caught:
        read(save("bad.csv", content), kind)
    assert "bad.csv" in str(caught.value)


def test_a_tsv_file_needs_no_header(save: Save) -> None:
    found = read(save("topics.tsv", 'q1\tWho said "no?\n\nq2\tWhen?\n'), "queries")
    assert found.queries.select("query", "text").rows() == [("q1", 'Who said "no?'), ("q2", "When?")]
    named = read(save("named.tsv", "docid\ttext\nd1\tx\n"), "passages")
    assert named.passages.select("passage", "text").rows() == [("d1", "x")]


@pytest.mark.parametrize(
    ("content", "words"),
    [("q1\tWho?\nq2\n", "line 2: 1 fields"), (b"q1\tWho?\nq2\t\xff\n", "UTF-8"), ("q1\ta\nq1\tb\n", "second text")],
)
def test_tsv_lines_that_are_not_right(content: str | bytes, words: str, save: Save) -> None:
    with pytest.raises(RagworthError) as caught:
        read(save("bad.tsv", content), "queries")
    assert words in str(caught.value) and "bad.tsv" in str(caught.value)


@pytest.mark.parametrize(
    "items",
    [
        [{"query_id": "q1", "subquestions": [{"id": "a", "text": "Who?"}, {"id": "a", "text": "When?"}]}],
        [{"query_id": "q1", "subquestions": ["Who?"]}, {"query_id": "q1", "subquestions": ["When?"]}],
        [{"query_id": "q1", "subquestions": [{"id": "2", "text": "Who?"}, {"text": "When?"}]}],
    ],
    ids=["named", "two lines", "number and name"],
)
def test_a_subquestion_that_is_there_twice_in_jsonl(items: list[Any], save: Save) -> None:
    """Ratings go by the sub-question's id: with two questions of one id, one of them would be lost."""
    with pytest.raises(RagworthError) as caught:
        read(save("bad.jsonl", lines(*items)), "subquestions")
    assert "bad.jsonl" in str(caught.value)


@pytest.mark.parametrize("header", ["id\tquestion", "_id\tcontents", "topic\ttitle", "docno\tbody", "query_id\ttext"])
def test_names_of_columns_are_no_text(tmp_path: Path, header: str) -> None:
    path = tmp_path / "queries.tsv"
    path.write_text(f"{header}\nq1\tWho built the mill?\n", encoding="utf-8")
    try:
        found = read(path, "queries").queries
    except RagworthError as error:
        assert "column" in str(error)
    else:
        assert found["query"].to_list() == ["q1"]
