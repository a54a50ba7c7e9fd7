"""TREC files that cannot be read: the error names file, line, what was found and what was expected."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from backports import zstd

from ragworth import Contexts, Judgments, Ratings
from ragworth.core.errors import FormatError
from ragworth.formats import files, read_contexts, read_judgments, read_ratings
from ragworth.formats.trec import read_run

Save = Callable[[str, str | bytes], Path]


class Bad(NamedTuple):
    """A line that is no row of a run, and what the error must say about it."""

    line: bytes
    found: str


BAD_RUN_LINES = {
    "too few fields": Bad(b"q1 Q0 d9 4 1.0", "5 fields where 6 belong"),
    "too many fields": Bad(b"q1 Q0 d9 4 1.0 my tag", "7 fields where 6 belong"),
    "a line of qrels": Bad(b"q1 0 d9 1", "4 fields where 6 belong"),
    "comment after a row": Bad(b"q1 Q0 d9 4 1.0 tag # why", "8 fields where 6 belong"),
    "one field": Bad(b"q1", "1 field where 6 belong"),
    "score is text": Bad(b"q1 Q0 d9 4 high tag", "score is not a number ('high')"),
    "rank is a word": Bad(b"q1 Q0 d9 abc 2 tag", "rank is not a whole number ('abc')"),
    "rank is a fraction": Bad(b"q1 Q0 d9 4.5 2 tag", "rank is not a whole number ('4.5')"),
    "rank is infinite": Bad(b"q1 Q0 d9 inf 2 tag", "rank is not a whole number ('inf')"),
    "score is NaN": Bad(b"q1 Q0 d9 4 nan tag", "score is not a number ('nan')"),
    "score is -NaN": Bad(b"q1 Q0 d9 4 -NaN tag", "score is not a number ('-NaN')"),
    "score has an underscore": Bad(b"q1 Q0 d9 4 1_0 tag", "score is not a number ('1_0')"),
    "score is hexadecimal": Bad(b"q1 Q0 d9 4 0x1p3 tag", "score is not a number ('0x1p3')"),
    "score has a comma": Bad(b"q1 Q0 d9 4 1,5 tag", "score is not a number ('1,5')"),
    "score is an exponent": Bad(b"q1 Q0 d9 4 e5 tag", "score is not a number ('e5')"),
    "query is not UTF-8": Bad(b"q\xff Q0 d9 4 1.0 tag", "query is not UTF-8 text"),
    "passage is not UTF-8": Bad(b"q1 Q0 \xc3( 4 1.0 tag", "passage is not UTF-8 text"),
    "passage is half a character": Bad(b"q1 Q0 d\xe2\x82 4 1.0 tag", "passage is not UTF-8 text"),
}
BEFORE, AFTER = b"\nq1 Q0 d1 1 3.0 tag\nq1\tQ0 d2 2 2.0 tag\r\n", b"\nq2 Q0 d1 1 1.0 tag\n"
LINE = 4
"""Where the bad line stands between BEFORE, which begins with a blank line, and AFTER."""


@pytest.mark.parametrize("kind", BAD_RUN_LINES)
@pytest.mark.parametrize("chunk", [8, 1 << 20])
def test_bad_line_is_named(kind: str, chunk: int, save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", chunk)
    path = save("bm25.run", BEFORE + BAD_RUN_LINES[kind].line + AFTER)
    with pytest.raises(FormatError) as caught:
        read_contexts(path)
    error = caught.value
    assert (error.file, error.line) == (str(path), LINE)
    assert BAD_RUN_LINES[kind].found in error.found
    message = str(error)
    assert message.startswith(f"{path}, line {LINE}: ")
    assert "q1 Q0 d7 1 14.25 bm25" in error.expected
    assert "skip_bad_lines=True" in message


@pytest.mark.parametrize("kind", BAD_RUN_LINES)
@pytest.mark.parametrize("chunk", [8, 1 << 20])
def test_bad_line_is_skipped_and_counted(kind: str, chunk: int, save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", chunk)
    path = save("bm25.run", BEFORE + BAD_RUN_LINES[kind].line + AFTER)
    contexts = read_contexts(path, skip_bad_lines=True)
    kept = read_contexts(save("bm25.run", BEFORE + AFTER))
    assert contexts == kept
    (note,) = contexts.notes
    assert note.startswith(f"{path}: 1 bad line skipped (line {LINE}: ")
    assert BAD_RUN_LINES[kind].found in note


def test_many_bad_lines_are_counted(save: Save) -> None:
    path = save("run", "q Q0 a 1 1 t\n" + "junk\n" * 1500 + "q Q0 b 2 0 t\n")
    with pytest.raises(FormatError) as caught:
        read_contexts(path)
    assert caught.value.line == 2
    assert [more.split(":")[0] for more in caught.value.more[:3]] == ["line 3", "line 4", "line 5"]
    assert "1,496 more bad lines" in caught.value.more[3]
    assert len(str(caught.value).splitlines()) < 12
    contexts = read_contexts(path, skip_bad_lines=True)
    assert contexts.frame["passage"].to_list() == ["a", "b"]
    assert "1,500 bad lines skipped (line 2: " in contexts.notes[0]


@pytest.mark.parametrize("bad", ["q Q0 d 1 high t", "q Q0 d 1", "q Q0 d 1 1 t\n#q Q0 d 1 2 t\n # \njunk"])
def test_line_numbers_go_on_after_a_bad_line(bad: str, save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bad line stands in a chunk of its own, between clean ones."""
    monkeypatch.setattr(files, "CHUNK", 64)
    text = ""
    expected: list[int] = []
    for i in range(40):
        text += "".join(f"q Q0 d{i}.{j} 1 {i}.5 t\n" for j in range(6))
        text += bad.replace("d 1", f"e{i} 1") + "\n"
        expected.append(text.count("\n"))
    path = save("run", text)
    contexts = read_contexts(path, skip_bad_lines=True)
    assert len(contexts) == 240 + 40 * ("junk" in bad)
    assert "40 bad lines skipped" in contexts.notes[0]
    assert len(contexts.notes) == 1
    assert [part.split(":")[0] for part in contexts.notes[0].split("line ")[1:4]] == [str(n) for n in expected[:3]]
    # The last one is only named when the ones before it are mended.
    mended = "\n".join("" if n in expected[:-1] else line for n, line in enumerate(text.split("\n"), 1))
    with pytest.raises(FormatError) as caught:
        read_contexts(save("mended", mended))
    assert caught.value.line == expected[-1]


def test_long_lines_are_quoted_short(save: Save) -> None:
    path = save("run", "q Q0 a 1 1 t\n" + "x" * 100_000 + "\x1b[31m\n")
    with pytest.raises(FormatError) as caught:
        read_contexts(path)
    assert len(str(caught.value)) < 600
    assert "\x1b" not in str(caught.value)


def test_only_bad_lines_are_no_run(save: Save) -> None:
    path = save("run", "junk\njunk\n")
    with pytest.raises(FormatError, match="no rows") as caught:
        read_contexts(path, skip_bad_lines=True)
    assert caught.value.file == str(path)


class Duplicate(NamedTuple):
    text: str
    line: int
    passage: str
    query: str


DUPLICATES = {
    "next line": Duplicate("q Q0 a 1 2 t\nq Q0 a 2 1 t\n", 2, "a", "q"),
    "far apart": Duplicate("\nq Q0 a 1 2 t\np Q0 a 1 9 t\n\n  q  Q0  b 1 3 t\nq Q0 a 1 2 t\n", 6, "a", "q"),
    "unsorted": Duplicate("q Q0 a 1 1 t\nq Q0 b 1 5 t\nq Q0 b 1 7 t\nq Q0 c 1 9 t\n", 3, "b", "q"),
    "after comments": Duplicate("# two\n#\nq Q0 a 1 2 t\n # q\n#q Q0 a 9 9 t\nq Q0 a 2 1 t\n", 6, "a", "q"),
    "second of two queries": Duplicate("p Q0 a 1 1 t\nq Q0 a 1 1 t\np Q0 b 1 1 t\nq Q0 a 1 1 t\n", 4, "a", "q"),
}


@pytest.mark.parametrize("kind", DUPLICATES)
@pytest.mark.parametrize("chunk", [8, 1 << 20])
def test_duplicates_name_their_line(kind: str, chunk: int, save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", chunk)
    text, line, passage, query = DUPLICATES[kind]
    path = save("run", text)
    with pytest.raises(FormatError) as caught:
        read_contexts(path)
    assert (caught.value.file, caught.value.line) == (str(path), line)
    assert caught.value.found == f"passage '{passage}' again for query '{query}'"
    assert caught.value.expected == "each passage once for a query"


def test_skipping_keeps_the_first_of_duplicates(save: Save) -> None:
    text = "q Q0 a 1 2 t\njunk\nq Q0 b 1 3 t\nq Q0 a 1 9 t\nq Q0 b 1 8 t\nq Q0 c 1 1 t\n"
    contexts = read_contexts(save("run", text), skip_bad_lines=True)
    assert contexts.frame.select("passage", "score").rows() == [("b", 3.0), ("a", 2.0), ("c", 1.0)]
    (note,) = contexts.notes
    assert "3 bad lines skipped (line 2: 1 field where 6 belong" in note
    assert "line 4: passage 'a' again" in note
    assert "line 5: passage 'b' again" in note


def test_the_same_passage_for_another_query_is_no_duplicate(save: Save) -> None:
    text = "q Q0 a 1 2 one\np Q0 a 1 2 one\nq Q0 a 1 2 two\n"
    with pytest.raises(FormatError, match="again for query 'q'") as caught:
        read_run(save("run", text))
    assert caught.value.line == 3
    assert "awk '{print > ($6 \".run\")}' FILE" in caught.value.remedy


Reader = Callable[..., Contexts | Judgments | Ratings]
READERS: dict[str, Reader] = {"contexts": read_contexts, "judgments": read_judgments, "ratings": read_ratings}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n  \n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0), zstd.compress(b"")],
    ids=["nothing", "blank lines", "byte-order mark", "gzip", "zstd"],
)
def test_empty_file(reader: str, content: bytes, save: Save) -> None:
    path = save("nothing", content)
    with pytest.raises(FormatError, match="no rows: the file is empty") as caught:
        READERS[reader](path)
    assert caught.value.file == str(path)
    assert caught.value.expected


@pytest.mark.parametrize("reader", READERS)
def test_missing_file(reader: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file") as caught:
        READERS[reader](tmp_path / "absent.run")
    assert caught.value.file == str(tmp_path / "absent.run")


@pytest.mark.parametrize("reader", ["contexts", "ratings"])
def test_folder(reader: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="folder"):
        READERS[reader](tmp_path)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"], ids=["too long", "zero byte"])
@pytest.mark.parametrize("reader", READERS)
def test_impossible_names(reader: str, name: str) -> None:
    with pytest.raises(FormatError):
        READERS[reader](name)


RUN = b"".join(b"q Q0 d%d 1 %d t\n" % (i, i) for i in range(3000))


@pytest.mark.parametrize("compress", [gzip.compress, zstd.compress])
@pytest.mark.parametrize("damage", ["cut", "flipped", "head only"])
def test_damaged_compression(compress: Callable[[bytes], bytes], damage: str, save: Save) -> None:
    whole = compress(RUN)
    middle = len(whole) // 2
    damaged = {
        "cut": whole[:-20],
        "flipped": whole[:middle] + bytes(b ^ 0xFF for b in whole[middle : middle + 40]) + whole[middle + 40 :],
        "head only": whole[:6],
    }[damage]
    path = save("run", damaged)
    with pytest.raises(FormatError, match="damaged or truncated") as caught:
        read_contexts(path, skip_bad_lines=True)
    assert caught.value.file == str(path)
    assert caught.value.remedy


@pytest.mark.parametrize("line", ["q 1 d", "q 1 d yes", "q 1 d nan"])
@pytest.mark.parametrize("reader", [read_judgments, read_ratings])
def test_bad_qrels_line(reader: Reader, line: str, save: Save) -> None:
    path = save("qrels", f"q 1 a 1\nq 1 b 0\n{line}\nq 1 c 1\n")
    with pytest.raises(FormatError) as caught:
        reader(path)
    assert (caught.value.file, caught.value.line) == (str(path), 3)
    table = reader(path, skip_bad_lines=True)
    assert table.frame["passage"].to_list() == ["a", "b", "c"]
    assert "1 bad line skipped (line 3: " in table.notes[0]


@pytest.mark.parametrize("reader", [read_judgments, read_ratings])
def test_infinite_relevance_is_a_bad_line(reader: Reader, save: Save) -> None:
    path = save("qrels", "junk\nq 1 a 1\n\nq 1 a 1\nq 1 b -inf\nq 1 c 1\n")
    with pytest.raises(FormatError) as caught:
        reader(save("alone", "q 1 a 1\n\nq 1 b inf\n"))
    assert caught.value.line == 3
    assert "infinite" in caught.value.found
    table = reader(path, skip_bad_lines=True)
    assert table.frame["passage"].to_list() == ["a", "c"]
    assert "3 bad lines skipped (line 1: " in table.notes[0]
    assert "line 4: " in table.notes[0]
    assert "line 5: " in table.notes[0]


def test_duplicate_judgments_name_their_line(save: Save) -> None:
    path = save("qrels", "q 0 a 1\np 0 a 1\n\nq 0 a 1\n")
    with pytest.raises(FormatError, match="passage 'a' again for query 'q'") as caught:
        read_judgments(path)
    assert caught.value.line == 4
    # As sub-topic qrels the same lines are duplicates too; with another sub-topic they are not.
    with pytest.raises(FormatError, match="passage 'a' again for query 'q'") as caught:
        read_ratings(save("ratings", "q 1 a 1\np 1 a 1\n\nq 1 a 1\n"))
    assert caught.value.line == 4
    assert len(read_ratings(save("subtopics", "q 1 a 1\nq 2 a 1\n"))) == 2
