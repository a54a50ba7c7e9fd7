"""BEIR folders."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from ragworth.core.errors import FormatError, InputError
from ragworth.formats import load, read_judgments

Save = Callable[[str, str | bytes], Path]

CORPUS = (
    '{"_id": "d1", "title": "One", "text": "first"}\n{"_id": "d2", "title": "", "text": "second", "metadata": {}}\n'
)
QUERIES = (
    '{"_id": "q1", "text": "why?", "metadata": {}}\n{"_id": "q2", "text": "who?"}\n{"_id": "q3", "text": "when?"}\n'
)
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td2\t2\n"


@pytest.fixture
def folder(save: Save) -> Path:
    save("corpus.jsonl", CORPUS)
    save("queries.jsonl", QUERIES)
    return save("qrels/test.tsv", QRELS).parent.parent


def test_whole_folder(folder: Path) -> None:
    loaded = load(folder)
    assert loaded.contexts is None
    assert loaded.collection.passages.rows() == [("d1", "One\nfirst"), ("d2", "second")]
    # Only the queries of the split: the file holds those of all splits.
    assert loaded.collection.queries.rows() == [("q1", "why?"), ("q2", "who?")]
    assert loaded.collection.relevance is not None
    assert loaded.collection.relevance.frame.select("query", "passage", "aspect", "value").rows() == [
        ("q1", "d1", "relevance", 1.0),
        ("q1", "d2", "relevance", 0.0),
        ("q2", "d2", "relevance", 2.0),
    ]
    assert loaded.collection.notes == ()


def test_compressed_files(folder: Path) -> None:
    whole = load(folder).collection
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        path = folder / name
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed = load(folder).collection
    assert packed.passages.equals(whole.passages)
    assert packed.queries.equals(whole.queries)
    assert packed.relevance is not None and whole.relevance is not None
    assert packed.relevance.frame.drop("source").equals(whole.relevance.frame.drop("source"))


def test_test_is_the_split_unless_named(folder: Path, save: Save) -> None:
    dev = save("qrels/dev.tsv", "query-id\tcorpus-id\tscore\nq3\td1\t1\n")
    assert read_judgments(folder).frame["query"].unique(maintain_order=True).to_list() == ["q1", "q2"]
    loaded = load(f"beir:{dev}")
    assert loaded.collection.queries.rows() == [("q3", "when?")]


def test_several_splits_and_no_test(folder: Path, save: Save) -> None:
    (folder / "qrels/test.tsv").rename(folder / "qrels/train.tsv")
    save("qrels/dev.tsv", QRELS)
    with pytest.raises(FormatError, match="splits: dev, train") as caught:
        read_judgments(folder)
    assert "beir:FOLDER/qrels/SPLIT.tsv" in caught.value.remedy


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
def test_missing_part(name: str, folder: Path) -> None:
    (folder / name).unlink()
    with pytest.raises(FormatError, match=f"no {name}") as caught:
        load(folder)
    assert caught.value.file == str(folder)
    assert "corpus.jsonl" in caught.value.expected


def test_missing_qrels(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no qrels"):
        load(tmp_path)
    with pytest.raises(FormatError, match="no such folder"):
        load(f"beir:{tmp_path / 'absent'}")


@pytest.mark.parametrize(
    ("name", "bad", "line"),
    [
        ("corpus.jsonl", '{"_id": "d1", "title": "One", "text": "first"}\nnonsense\n', 2),
        ("queries.jsonl", '{"_id": "q1", "text": "why?"}\n{"_id": "q2"}\n', 2),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\tx\n", 3),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\n", 3),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\tmuch\n", 3),
    ],
)
def test_bad_line(name: str, bad: str, line: int, folder: Path, save: Save) -> None:
    path = save(name, bad)
    with pytest.raises(InputError) as caught:
        load(folder)
    assert (caught.value.file, caught.value.line) == (str(path), line)
    notes = load(folder, skip_bad_lines=True).collection.notes
    assert any(note.startswith(f"{path}: 1 bad line skipped (line {line}: ") for note in notes)


def test_ids_without_text_are_noted(folder: Path, save: Save) -> None:
    save("qrels/test.tsv", QRELS + "q4\td1\t1\nq1\td9\t1\n")
    notes = load(folder).collection.notes
    assert "1 query judged but without text ('q4')" in notes
    assert "1 passage judged but without text ('d9')" in notes


def test_duplicate_judgment_is_refused(folder: Path, save: Save) -> None:
    path = save("qrels/test.tsv", QRELS + "q1\td1\t0\n")
    with pytest.raises(InputError, match="second row for query 'q1', passage 'd1'") as caught:
        read_judgments(folder)
    assert caught.value.file == str(path)
