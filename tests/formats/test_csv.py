"""CSV in two ways: the fast one agrees with the careful one, and line numbers are those of an editor."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from ragworth.core.errors import FormatError
from ragworth.formats import csv as ours
from ragworth.formats import load, read_contexts
from ragworth.formats.csv import rows_end
from ragworth.formats.tables import read_table
from tests.strategies import examples

Save = Callable[[str, str | bytes], Path]

PIECES = b"a|7|q1|1.5|-|'|#| |\t|,|,|;|\n|\n||nan|NULL".split(b"|")
STRANGE = b'"|""|\r|\r\n|\0|\xff|\xc3\xa9|\xe2\x80\xa8|\xef\xbb\xbf|\x1c|\x85|\x0b'.split(b"|")
field = st.lists(
    st.sampled_from([piece for piece in PIECES if piece not in (b",", b"\n", b"")]), min_size=1, max_size=3
)
soup = st.lists(st.sampled_from(PIECES), max_size=25) | st.lists(st.sampled_from(PIECES + STRANGE), max_size=25)


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    """Rows of three fields, but for one that may be odd."""
    rows = draw(st.lists(st.tuples(field, field, field), min_size=1, max_size=5))
    lines = [b",".join(b"".join(cell) for cell in row) for row in rows]
    if draw(st.booleans()):
        odd = draw(
            st.sampled_from(
                [b"", b"a", b"a,b", b"a,b,", b",,", b"a,b,c,d", b'"a,b",c,d', b"a,\xff,c", b'a,"b\nc",d', b"a,b\r,c"]
            )
        )
        lines.insert(draw(st.integers(0, len(lines))), odd)
    return b"\n".join(lines) + draw(st.sampled_from([b"\n", b"\n", b""]))


NAMES = ["x", "y", "z"]


@examples(400)
@given(body=tables() | soup.map(b"".join))
@example(body=b"a,b\nc,d,e,f\n")
@example(body=b"a,b,c\n\nd,e,f\n")
@example(body=b" a , b , c \n")
@example(body=b"\n")
@example(body=b"")
def test_both_ways_agree(body: bytes) -> None:
    data = b"x,y,z\n" + body
    quick = ours._parse_fast(data, NAMES, ",")
    event("fast" if quick is not None else "careful")
    if quick is None:
        return
    slow = ours._parse_by_row("file.csv", data, NAMES, ",")
    assert slow.bad == quick.bad == []
    assert slow.frame.equals(quick.frame)
    assert slow.line.tolist() == quick.line.tolist()


@pytest.mark.parametrize("body", [b"a,b,c\n", b"a,b,c\nd,e,f\n", b"'a,#b,1.5\n", b"\xc3\xa9,b,c\n"])
def test_plain_files_go_the_fast_way(body: bytes) -> None:
    """Otherwise the test above would compare nothing."""
    assert ours._parse_fast(b"x,y,z\n" + body, NAMES, ",") is not None


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@examples(150)
@given(rows=st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=5), separator=st.sampled_from(",;\t"))
def test_what_pythons_writer_writes(rows: list[tuple[str, str, str]], separator: str, scratch: Path) -> None:
    """Texts with separators, quotes and line ends of all kinds, written by another program."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=separator)
    writer.writerow(NAMES)
    writer.writerows(rows)
    (scratch / "python.csv").write_bytes(stream.getvalue().encode())
    # An empty field says nothing, and a row of nothing but empty fields is still a row.
    frame, notes = read_table(scratch / "python.csv")
    assert frame.rows() == [tuple(cell or None for cell in row) for row in rows]
    assert notes == ()


# The csv module writes a cell with nothing but \r without quotes, and can't read it.
CELL = st.text('ab"\r\n ,;é', min_size=1).filter(lambda cell: "\r" not in cell or "\n" in cell)


@given(rows=st.lists(st.lists(CELL, min_size=2, max_size=2), max_size=5), cut=st.floats(0, 1))
@example(rows=[['5" nails', "a\nb"], ["c", "d"]], cut=0.9)
def test_the_end_of_the_last_whole_row(rows: list[list[str]], cut: float) -> None:
    text, ends = io.StringIO(), []
    writer = csv.writer(text, lineterminator="\n")
    for row in [["name", "text"], *rows]:
        writer.writerow(row)
        ends.append(len(text.getvalue().encode()))
    data = text.getvalue().encode()
    data = data[: round(cut * len(data))]
    assert rows_end(data) == max((end for end in ends[1:] if end <= len(data)), default=0)


def test_line_numbers_count_lines_within_quotes(save: Save) -> None:
    path = save("a.csv", 'passage,text\nd1,"one\ntwo\nthree"\n\nd2,four,five\nd3,"six\nseven"\nd4\n')
    with pytest.raises(FormatError) as caught:
        load(path)
    assert caught.value.line == 6
    assert "3 fields instead of 2" in caught.value.found
    assert [more.split(":")[0] for more in caught.value.more] == ["line 9"]
    loaded = load(path, skip_bad_lines=True)
    assert loaded.collection.passages.rows() == [("d1", "one\ntwo\nthree"), ("d3", "six\nseven")]
    assert "2 bad lines skipped (line 6: " in loaded.collection.notes[0]


@pytest.mark.parametrize("number", ["1_0", "0x10", "1,5", "１", "true", "--1", "1e", "1 2"])
def test_numbers_that_are_none(number: str, save: Save) -> None:
    """Python and Polars disagree about some of them; TREC files and CSV do not."""
    path = save("a.csv", f'query;passage;score\nq;a;1\nq;b;"{number}"\n')
    with pytest.raises(FormatError, match="the score is not a number") as caught:
        read_contexts(path)
    assert caught.value.line == 3
    with pytest.raises(FormatError):
        read_contexts(save("run", f"q Q0 a 1 1 t\nq Q0 b 2 {number.replace(' ', '_')} t\n"))


@pytest.mark.parametrize("number", ["1", "-1.5", "+2", ".5", "3.", "1e-3", "1E5", "inf", "-Infinity", "007"])
def test_numbers_that_are_some(number: str, save: Save) -> None:
    table = read_contexts(save("a.csv", f"query,passage,score\nq,a,{number}\n"))
    run = read_contexts(save("a.run", f"q Q0 a 1 {number} t\n"))
    assert table.frame["score"].to_list() == run.frame["score"].to_list() == [float(number)]


def test_all_problems_of_a_line_are_one_bad_line(save: Save) -> None:
    path = save("a.csv", "query,passage,score\nq,a,1\n,,much\nq,b,2\n")
    contexts = read_contexts(path, skip_bad_lines=True)
    assert contexts.frame["passage"].to_list() == ["b", "a"]
    assert "1 bad line skipped (line 3: " in contexts.notes[0]
