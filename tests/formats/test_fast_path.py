"""The fast way of reading columns agrees with the careful one, which defines what a line means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from ragworth.formats import columns
from ragworth.formats.columns import (
    ColumnRows,
    LineLayout,
    _parse_by_line,
    _parse_chunk,
    read_columns,
)
from ragworth.formats.files import split_lines
from ragworth.formats.trec import QRELS, RUN, SUBTOPICS
from tests.strategies import examples

Save = Callable[[str, str | bytes], Path]
LAYOUTS = {"run": RUN, "qrels": QRELS, "sub-topics": SUBTOPICS}

SIGNS = [b"0", b"1", b"7", b"a", b"q", b"Z", b'"', b"'", b"#", b",", b";", b"_", b"e", b"E", b"+", b"-", b"."]
STRANGE = [b"\x00", b"\x1c", b"\x1f", b"\x85", b"\xa0", b"\xff", b"\xc3", b"\xc3\xa9", b"\xe2\x80\xa8", b"\xef\xbb\xbf"]
WORDS = [
    b"nan",
    b"NaN",
    b"inf",
    b"-inf",
    b"Infinity",
    b"1e5",
    b"1e999",
    b"1_0",
    b"0x1p3",
    b"NULL",
    b"true",
    b"",
    b"1d5",
]
GAPS = [b" ", b"  ", b"\t", b"\x0b", b"\x0c", b" \t "]
ENDS = [b"\n", b"\n\n", b"\r\n", b"\r", b" \n", b"\n "]

soup = st.lists(st.sampled_from(SIGNS + STRANGE + WORDS + GAPS + ENDS), max_size=40).map(b"".join)
"""Anything at all; hardly ever a row."""

field = st.lists(st.sampled_from(SIGNS), min_size=1, max_size=4).map(b"".join)
strange_field = st.lists(st.sampled_from(SIGNS + STRANGE), min_size=1, max_size=3).map(b"".join)
digits = st.text("0123456789", min_size=1, max_size=25)
number = (
    st.floats(allow_nan=False).map(repr)
    | st.integers(-(10**25), 10**25).map(str)
    | st.tuples(st.sampled_from("+-"), digits, st.just("."), digits, st.sampled_from(["", "e-5", "E+3", "e400"])).map(
        "".join
    )
    | st.sampled_from(["1.", ".5", "-.5e1", "+7", "00", "-0", "inf", "-Infinity", "1e-400", "1e999"])
).map(str.encode)
strange_number = st.sampled_from(WORDS) | field

REMARKS = [b"#", b"##", b"# q 0 d", b"#q 0 d 1", b"# 0 d 1", b"#q Q0 d 1 2.5 t", b"#\xff", b"# \x00 #", b"#\xc3\xa9"]
"""Comments, some of which would be rows."""


@st.composite
def rows(draw: st.DrawFn, *, neat: bool) -> tuple[str, bytes]:
    """Lines that are rows of a layout, but for one that may have an odd sign, number or count of fields."""
    name = draw(st.sampled_from(sorted(LAYOUTS)))
    layout = LAYOUTS[name]
    gap = st.just(draw(st.sampled_from([b" ", b"\t"]))) if neat else st.sampled_from(GAPS)
    end = st.just(draw(st.sampled_from([b"\n", b"\r\n"]))) if neat else st.sampled_from(ENDS)
    height = draw(st.integers(1, 6))
    odd = draw(st.sampled_from(["none", "none", "sign", "number", "fewer", "more", "both"]))
    at = draw(st.integers(0, height - 1))
    comments = st.lists(st.sampled_from(REMARKS), max_size=2) if draw(st.booleans()) else st.just([])
    text = b""
    for row in range(height):
        text += b"".join(remark + draw(end) for remark in draw(comments))
        kind = odd if row == at else "none"
        text_field = strange_field if kind == "sign" else field
        number_field = strange_number if kind == "number" else number
        parts = [draw(number_field if column.kind == "number" else text_field) for column in layout.columns]
        if kind == "fewer" or (odd == "both" and row == 0):
            parts = parts[:-1]
        if kind in ("more", "both"):
            parts += draw(st.lists(field, min_size=1, max_size=3))
        text += b"".join(part + draw(gap) for part in parts[:-1]) + parts[-1] + draw(end)
    return name, text if draw(st.booleans()) else text.removesuffix(b"\n")


def check(layout: LineLayout, chunk: bytes) -> None:
    quick = _parse_chunk(chunk, layout).frame
    event("fast" if quick is not None else "careful")
    if quick is None:
        return
    slow = _parse_by_line(chunk, layout, 0)
    assert slow.bad == []
    assert quick.schema == slow.frame.schema
    assert quick.rows() == slow.frame.rows()


@examples(600)
@given(case=rows(neat=True))
@example(case=("qrels", b"q 0 d 1\nq 0 d 1 1\nq 0 d\n"))
@example(case=("qrels", b"q 0 d 1\nq"))
@example(case=("qrels", b"q\t0\td\t1\r\nq\t0\te f\t1\r\n"))
@example(case=("qrels", b"q 0 d\n1 q 0 d 1\n"))
@example(case=("qrels", b"\xef\xbb\xbfq 0 d 1\n"))
@example(case=("qrels", b'"q 0 d" 1\n'))
@example(case=("qrels", b"# 0 d 1\n"))
@example(case=("qrels", b"#q 0 d 1\nq 0 d 1\n"))
@example(case=("qrels", b"q 0 d 1\n#\n# 0 d 1\nq 0 #e 1\n#"))
@example(case=("qrels", b"q 0 \xff 1\n"))
@example(case=("run", b"q \xff d 1 1 t\n"))
@example(case=("run", b"q Q0 d 1 nan t\n"))
@example(case=("run", b"q Q0 d 1 1e999 t\n"))
def test_neat_rows(case: tuple[str, bytes]) -> None:
    check(LAYOUTS[case[0]], case[1])


@examples(500)
@given(case=rows(neat=False))
@example(case=("qrels", b"q 0 d 1\r\r\nq 0 e 1\r"))
@example(case=("qrels", b" q 0 d 1 \n \n"))
@example(case=("qrels", b"q 0 d 1 more\nq 0 e\n"))
@example(case=("qrels", b"\t #q 0 d 1\r#q 0 d 1\r\n # \nq\t0 d 1\n  "))
@example(case=("run", b"q # d 1 1 #\n\n#\n q Q0 #d 1 1 t"))
def test_untidy_rows(case: tuple[str, bytes]) -> None:
    check(LAYOUTS[case[0]], case[1])


@examples(400)
@given(name=st.sampled_from(sorted(LAYOUTS)), chunk=soup | st.binary(max_size=60))
def test_soup(name: str, chunk: bytes) -> None:
    check(LAYOUTS[name], chunk)


@examples(200)
@given(case=rows(neat=False) | rows(neat=True), piece=st.integers(1, 9))
def test_where_pieces_end_does_not_matter(case: tuple[str, bytes], piece: int) -> None:
    """A piece is only how much of a chunk is looked at together."""
    name, chunk = case
    whole = _parse_chunk(chunk, LAYOUTS[name]).frame
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "BLOCK_BYTES", piece)
        pieces = _parse_chunk(chunk, LAYOUTS[name]).frame
    assert (whole is None) == (pieces is None)
    if whole is not None and pieces is not None:
        assert whole.equals(pieces)


CLEAN = {
    "single spaces": b"q 0 d 1\nq 0 e 0.5\n",
    "tabs": b"q\t0\td\t1\nq\t0\te\t0.5\n",
    "padded": b" q   0 d  1\nq 0  e 0.5  \n",
    "CRLF": b"q 0 d 1\r\nq 0 e 0.5\r\n",
    "CR": b"q 0 d 1\rq 0 e 0.5",
    "blank lines": b"\n\nq 0 d 1\n\n \nq 0 e 0.5",
    "a comment first": b"# from the pool of 2009\nq 0 d 1\nq 0 e 0.5\n",
    "comments anywhere": b"q 0 d 1\n#q 0 f 1\n  # 0 f 1\nq 0 e 0.5\n#",
    "comments with tabs and CRLF": b"# made\tby hand\r\nq\t0\td\t1\r\n\t#\r\nq\t0\te\t0.5\r\n",
    "only one more line": b"#\nq 0 d 1\nq 0 e 0.5",
}


@pytest.mark.parametrize("layout", CLEAN)
def test_usual_layouts_go_the_fast_way(layout: str) -> None:
    """Otherwise the tests above would compare nothing."""
    frame = _parse_chunk(CLEAN[layout], QRELS).frame
    assert frame is not None
    assert frame.rows() == [("q", "d", 1.0), ("q", "e", 0.5)]


def test_reading_needs_no_careful_way_for_a_clean_file(save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(chunk: bytes, layout: LineLayout, before: int) -> ColumnRows:
        raise AssertionError("a clean chunk was read line by line")

    monkeypatch.setattr(columns, "_parse_by_line", refuse)
    read = read_columns(save("qrels", CLEAN["padded"]), QRELS, other=RUN)
    assert read.frame.equals(pl.DataFrame({"query": ["q", "q"], "passage": ["d", "e"], "relevance": [1.0, 0.5]}))


@given(chunk=soup)
def test_lines_are_what_text_editors_count(chunk: bytes) -> None:
    """``splitlines`` of bytes knows the same three line ends, and no others."""
    assert split_lines(chunk) == chunk.splitlines()
