"""Runs, qrels and sub-topic qrels are told apart, and their comments are skipped as in trec_eval 10."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from backports import zstd
from click.testing import CliRunner

import ragworth
from ragworth.cli import main
from ragworth.core.errors import FormatError, QrelsGivenError, RunGivenError, TableError
from ragworth.data import Ratings
from ragworth.formats import files, read_contexts, read_judgments, read_ratings
from ragworth.formats.trec import read_run, write_ratings

Save = Callable[[str, str | bytes], Path]
Reader = Callable[..., Any]

RUN = "q1 Q0 d1 1 3.5 bm25\nq1 Q0 d2 2 2 bm25\nq2 Q0 d1 1 -0.5 bm25\n"
QRELS = "q1 0 d1 1\nq1 0 d2 0\nq2 0 d9 2\n"
LAYOUTS: dict[str, Callable[[str], bytes]] = {
    "spaces": str.encode,
    "tabs": lambda text: text.replace(" ", "\t").encode(),
    "padded": lambda text: text.replace(" ", "   ").encode(),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "gzip": lambda text: gzip.compress(text.encode()),
    "zstd": lambda text: zstd.compress(text.encode()),
    "comments": lambda text: ("# a file\n\n" + text).encode(),
}


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("read", [read_judgments, read_ratings])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_run_is_no_qrels(layout: str, read: Reader, skip: bool, save: Save) -> None:
    """Its ranks would be read as relevance."""
    path = save("bm25.txt", LAYOUTS[layout](RUN))
    with pytest.raises(
        RunGivenError, match=r"6 fields where 4 belong: this looks like a TREC run, not a TREC .*qrels file"
    ) as caught:
        read(path, skip_bad_lines=skip)
    assert (caught.value.file, caught.value.line) == (str(path), 3 if layout == "comments" else 1)
    assert "read_contexts" in caught.value.remedy


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_qrels_are_no_run(layout: str, skip: bool, save: Save) -> None:
    path = save("qrels.txt", LAYOUTS[layout](QRELS))
    with pytest.raises(
        QrelsGivenError, match="4 fields where 6 belong: this looks like a TREC qrels file, not a TREC run"
    ) as caught:
        read_contexts(path, skip_bad_lines=skip)
    assert (caught.value.file, caught.value.line) == (str(path), 3 if layout == "comments" else 1)
    assert "read_judgments" in caught.value.remedy
    with pytest.raises(QrelsGivenError):
        read_run(path, skip_bad_lines=skip)


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("iteration", ["0", "Q0"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_qrels_are_no_ratings(layout: str, iteration: str, skip: bool, save: Save) -> None:
    """Their relevance would be read as ratings of a single sub-question."""
    path = save("qrels.txt", LAYOUTS[layout](QRELS.replace(" 0 ", f" {iteration} ")))
    with pytest.raises(
        FormatError,
        match=f"second column is '{iteration}' in every row: this looks like a TREC qrels file, not a TREC sub-topic",
    ) as caught:
        read_ratings(path, skip_bad_lines=skip)
    assert (caught.value.file, caught.value.line) == (str(path), 3 if layout == "comments" else 1)
    assert caught.value.expected == "query subtopic passage rating, such as: q1 3 d7 1"
    assert "--qrels" in caught.value.remedy
    assert "another name" in caught.value.remedy


def test_a_subtopic_0_among_others_is_one(save: Save) -> None:
    assert len(read_ratings(save("ratings.txt", "q1 0 d1 1\nq1 1 d1 0\n"))) == 2
    assert len(read_ratings(save("ratings.txt", "q1 1 d1 1\nq2 1 d1 0\n"))) == 2


def test_the_command_refuses_qrels_as_ratings(save: Save) -> None:
    qrels, run = save("qrels.txt", QRELS), save("bm25.txt", RUN)
    found = CliRunner().invoke(main, ["score", "-r", str(qrels), "-m", "Cov(eta=1)@5", str(run)])
    assert found.exit_code == 2
    assert f"{qrels}, line 1: " in found.stderr


def test_ratings_that_would_look_like_qrels_are_not_written(tmp_path: Path) -> None:
    ratings = Ratings({"query": ["q"], "passage": ["d"], "subquestion": ["0"], "value": [3.0]})
    with pytest.raises(FormatError, match="every sub-question is called '0'"):
        write_ratings(ratings, tmp_path / "ratings.txt")
    assert not (tmp_path / "ratings.txt").exists()


@pytest.mark.parametrize("chunk", [8, 1 << 20])
def test_one_line_of_another_kind_is_a_bad_line(chunk: int, save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", chunk)
    for read, text, kind in (
        (read_judgments, QRELS + RUN, RunGivenError),
        (read_contexts, RUN + QRELS, QrelsGivenError),
    ):
        with pytest.raises(FormatError, match=r"(6 fields where 4|4 fields where 6) belong") as caught:
            read(save("file.txt", text))
        assert not isinstance(caught.value, kind)
        assert caught.value.line == 4


@pytest.mark.parametrize(
    "line", ["q1 0 d1", "q1 0 d1 1 x", "q1 0 s d1 1", "q1 0 d1 1 # sure", "q1 Q0 d1 1 high t", "q1 0 d1 1 t t"]
)
@pytest.mark.parametrize("read", [read_judgments, read_ratings])
def test_qrels_have_four_fields(line: str, read: Reader, save: Save) -> None:
    fields = len(line.split())
    with pytest.raises(FormatError, match=f"{fields} fields where 4 belong") as caught:
        read(save("qrels", f"q0 0 d0 1\n{line}\n"))
    assert caught.value.line == 2


@pytest.mark.parametrize("spec", ["run.tsv", "beir:qrels/run.tsv"])
def test_a_table_with_ranks_is_no_qrels(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The column names are those of BEIR's qrels, where "score" is the relevance."""
    monkeypatch.chdir(tmp_path)
    path = Path(spec.removeprefix("beir:"))
    path.parent.mkdir(exist_ok=True)
    path.write_text("query-id\tcorpus-id\trank\tscore\nq1\td1\t1\t2.5\n")
    with pytest.raises(TableError):
        read_judgments(spec)


def test_sub_topic_qrels_given_as_qrels_are_told_where_they_belong(save: Save) -> None:
    with pytest.raises(FormatError, match="passage 'd1' again for query 'q1'") as caught:
        read_judgments(save("qrels", "q1 1 d1 1\nq1 2 d1 0\n"))
    assert "--ratings" in caught.value.remedy


COMMENTED = """# written by hand
# one two 1
#
q1 0 d1 1
  # indented
#q1 0 d3 1
q1 0 d2 0
# end"""


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("chunk", [8, 1 << 20])
def test_comments_in_qrels_are_skipped(ends: str, chunk: int, save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", chunk)
    path = save("qrels", COMMENTED.replace("\n", ends))
    judgments = read_judgments(path)
    assert judgments.frame.select("query", "passage", "value").rows() == [("q1", "d1", 1.0), ("q1", "d2", 0.0)]
    ratings = read_ratings(save("ratings", COMMENTED.replace(" 0 ", " 1 ").replace("\n", ends)))
    assert ratings.frame.select("subquestion", "passage", "value").rows() == [("1", "d1", 1.0), ("1", "d2", 0.0)]


def test_a_comment_of_four_words_changes_no_score(save: Save) -> None:
    # d1 is found first, and it is the only relevant passage: AP is 1/1. A row "# two words 1" would make it 1/2.
    plain, commented = save("a", "q1 0 d1 1\n"), save("b", "# two words 1\nq1 0 d1 1\n#q1 two words 1\n")
    run = save("run.txt", "# bm25\nq1 Q0 d1 1 2 t\n# six words in all and 1\n#q1 Q0 d0 1 9 t\nq1 Q0 d2 2 1 t\n")
    for qrels in (plain, commented):
        scores = ragworth.score(read_contexts(run), read_judgments(qrels), ["AP", "R"])
        assert scores.frame.select("query", "value").rows() == [("q1", 1.0), ("q1", 1.0)]


def test_nothing_but_comments_is_no_run(save: Save) -> None:
    """Such as a run whose queries are called #1, #2, …"""
    with pytest.raises(FormatError, match=r"no rows: the file is empty except for empty lines and comments \(#\)"):
        read_contexts(save("run", "#1 Q0 d1 1 2 t\n#2 Q0 d1 1 2 t\n"))


@contextmanager
def piped(text: str, fd: int) -> Iterator[None]:
    """What a shell does with ``echo TEXT | ragworth score -``."""
    before, (reader, writer) = os.dup(fd), os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    os.dup2(reader, fd)
    os.close(reader)
    yield
    os.dup2(before, fd)
    os.close(before)


@pytest.mark.skipif(os.name == "nt", reason="this system has no /dev/fd")
@pytest.mark.parametrize("path", ["-", "/dev/fd/0"])
def test_what_is_piped_in_can_be_read_again(path: str) -> None:
    with piped("q1 Q0 d1 1 2.5 t\n\nq1 Q0 d1 2 1.5 t\n", 0):
        with pytest.raises(FormatError, match="line 3: passage 'd1' again for query 'q1'"):
            read_contexts(path)
        contexts = read_contexts(path, skip_bad_lines=True)
    assert contexts.frame.height == 1 and "1 bad line skipped" in contexts.notes[0]
    with piped("q2 Q0 d7 1 2.5 t\n", 0):
        assert read_contexts(path).frame["passage"].to_list() == ["d7"]
        assert read_contexts(path).systems == ["stdin" if path == "-" else "0"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_can_be_read_only_once(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "pipe")
    with pytest.raises(FormatError, match="this is a named pipe"):
        read_contexts(path)


def test_tsv_without_a_header_is_trec(save: Save) -> None:
    """Such as qrels.dev.tsv of MS MARCO."""
    assert read_judgments(save("qrels.dev.tsv", QRELS.replace(" ", "\t"))).frame["value"].to_list() == [1, 0, 2]
    assert read_contexts(save("bm25.tsv", RUN.replace(" ", "\t"))).frame.height == 3
    with pytest.raises(QrelsGivenError):
        read_contexts(save("q.tsv", QRELS.replace(" ", "\t")))
    table = save("t.tsv", "query\tpassage\tsystem\tscore\nq1\td1\ta\t2\n")
    assert read_contexts(table).systems == ["a"]
