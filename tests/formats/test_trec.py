"""TREC runs, qrels and sub-topic qrels: everything that is a row, however it is laid out."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from ragworth import Contexts
from ragworth.core.errors import FormatError, InputError
from ragworth.formats import files, read_contexts, read_judgments, read_ratings
from ragworth.formats.trec import read_run

Save = Callable[[str, str | bytes], Path]
Row = tuple[str, int, str, float]

PLAIN = "q1 Q0 d1 1 3.5 tag\nq1 Q0 d2 2 2 tag\nq2 Q0 d1 1 -0.5 tag\n"
ROWS: list[Row] = [("q1", 1, "d1", 3.5), ("q1", 2, "d2", 2.0), ("q2", 1, "d1", -0.5)]

LAYOUTS = {
    "plain": PLAIN,
    "tabs": PLAIN.replace(" ", "\t"),
    "tabs and spaces": PLAIN.replace(" Q0 ", "\tQ0 \t"),
    "padded columns": PLAIN.replace(" ", "     "),
    "leading spaces": "  " + PLAIN.replace("\n", "\n   ").rstrip(" "),
    "trailing spaces": PLAIN.replace("\n", "  \t\n"),
    "vertical tabs and form feeds": PLAIN.replace(" Q0 ", "\x0bQ0\x0c"),
    "CRLF": PLAIN.replace("\n", "\r\n"),
    "CR": PLAIN.replace("\n", "\r"),
    "blank lines": "\n\n" + PLAIN.replace("\n", "\n \t \n\n"),
    "byte-order mark": "\ufeff" + PLAIN,
    "byte-order mark and CRLF": "\ufeff" + PLAIN.replace("\n", "\r\n"),
    "no final newline": PLAIN.removesuffix("\n"),
    "comments": "# bm25, k1=0.9\n#\n" + PLAIN.replace("tag\n", "tag\n  # six words that are no row\n", 1) + "# end",
    "unsorted": "q1 Q0 d2 1 2 tag\nq1 Q0 d1 2 3.5 tag\nq2 Q0 d1 1 -0.5 tag\n",
    "queries interleaved": "q1 Q0 d2 9 2 tag\nq2 Q0 d1 9 -0.5 tag\nq1 Q0 d1 9 3.5 tag\n",
    "ranks with a decimal point": PLAIN.replace("d1 1", "d1 1.0").replace("d2 2", "d2 +2e0"),
    "scientific notation": "q1 Q0 d1 1 35E-1 tag\nq1 Q0 d2 2 +2.0e+0 tag\nq2 Q0 d1 1 -.05e1 tag\n",
    "zeros around": "q1 Q0 d1 1 003.500 tag\nq1 Q0 d2 2 2. tag\nq2 Q0 d1 1 -00.5 tag\n",
    "invalid UTF-8 where nobody looks": PLAIN.encode().replace(b"Q0", b"\xff\xfe").decode("latin-1"),
}


def rows(contexts: Contexts) -> list[Row]:
    return contexts.frame.select("query", "rank", "passage", "score").rows()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_the_same_run(layout: str, save: Save) -> None:
    encoding = "latin-1" if "invalid" in layout else "utf-8"
    contexts = read_contexts(save("bm25.run", LAYOUTS[layout].encode(encoding)))
    assert rows(contexts) == ROWS
    assert contexts.systems == ["bm25"]
    assert contexts.notes == ()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [1, 7, 40])
def test_small_chunks_change_nothing(layout: str, size: int, save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", size)
    encoding = "latin-1" if "invalid" in layout else "utf-8"
    assert rows(read_run(save("run", LAYOUTS[layout].encode(encoding)))) == ROWS


@pytest.mark.parametrize("name", ["run.gz", "run", "run.txt"])
def test_gzip_is_known_by_its_bytes(name: str, save: Save) -> None:
    assert rows(read_contexts(save(name, gzip.compress(PLAIN.encode())))) == ROWS


def test_many_chunks_of_many_lines(save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clean chunks and untidy ones take different ways; together they give the run as a whole."""
    lines = [f"q{i % 7}{' ' * (1 + i % 5 // 4)}Q0 d{i} {i} {(i * 37) % 101}.25 t" for i in range(2000)]
    path = save("run", "\n".join(lines))
    whole = read_run(path)
    monkeypatch.setattr(files, "CHUNK", 256)
    assert read_run(path) == whole
    assert len(whole) == 2000


@pytest.mark.parametrize(
    "name",
    ["d#7", '"d"', '"', "'", '"a', "a,b", "naïve", "文書", "d\u00a0e", "😀", "NULL", "nan", "1e5", "0x1", "-"],
)
def test_ids_are_taken_as_they_are(name: str, save: Save) -> None:
    contexts = read_run(save("run", f"{name} Q0 x 1 2 t\n{name} Q0 {name} 2 1 t\nz Q0 y 1 1 t\n"))
    assert rows(contexts) == [(name, 1, "x", 2.0), (name, 2, name, 1.0), ("z", 1, "y", 1.0)]


def test_infinite_scores_have_their_place(save: Save) -> None:
    text = "q Q0 a 1 -inf t\nq Q0 b 2 1e308 t\nq Q0 c 3 inf t\nq Q0 d 4 -Infinity t\nq Q0 e 5 +INF t\n"
    assert [row[2:] for row in rows(read_run(save("run", text)))] == [
        ("e", math.inf),
        ("c", math.inf),
        ("b", 1e308),
        ("d", -math.inf),
        ("a", -math.inf),
    ]


def test_ties_go_by_id_descending_in_bytes(save: Save) -> None:
    text = "".join(f"q Q0 {name} 1 1.0 t\n" for name in ("10", "9", "B", "a", "é", "z", "文", "😀"))
    # UTF-8 keeps the order of code points: digits, capitals, small letters, é, 文, 😀.
    assert [row[2] for row in rows(read_run(save("run", text)))] == ["😀", "文", "é", "z", "a", "B", "9", "10"]


def test_ties_depend_on_precision(save: Save) -> None:
    """1 and 1 + 2⁻³⁰ differ in double precision and are equal in single (24 bits)."""
    path = save("run", f"q Q0 a 1 {1 + 2**-30!r} t\nq Q0 b 2 1.0 t\n")
    assert [row[2] for row in rows(read_contexts(path))] == ["a", "b"]
    assert [row[2] for row in rows(read_contexts(path, ties="float32"))] == ["b", "a"]
    # The scores themselves are kept in full.
    assert read_contexts(path, ties="float32").frame["score"].to_list() == [1.0, 1 + 2**-30]


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("bm25.run", "bm25"),
        ("bm25.run.gz", "bm25"),
        ("bm25.txt", "bm25"),
        ("bm25", "bm25"),
        ("v1.2.res", "v1.2"),
        ("input.bm25", "input.bm25"),
        (".run", ".run"),
    ],
)
def test_a_run_is_called_after_its_file(name: str, system: str, save: Save) -> None:
    assert read_contexts(save(name, PLAIN)).systems == [system]


def test_qrels(save: Save) -> None:
    path = save("qrels", "q1\t0  d1 1\nq1 Q0 d2 0.25\nq2 0 d1 -2\t\n\nq1 0 d3 3e0")
    judgments = read_judgments(path)
    assert judgments.frame.select("query", "passage", "aspect", "value", "status").rows() == [
        ("q1", "d1", "relevance", 1.0, "ok"),
        ("q1", "d2", "relevance", 0.25, "ok"),
        ("q2", "d1", "relevance", -2.0, "ok"),
        ("q1", "d3", "relevance", 3.0, "ok"),
    ]
    assert judgments.frame["source"].unique().to_list() == [str(path)]


def test_subtopic_qrels(save: Save) -> None:
    ratings = read_ratings(save("qrels", "q1 1 d1 1\nq1 2 d1 0\r\nq1 s-3 d1 4\nq2 1 d1 1\n"))
    assert ratings.frame.select("query", "passage", "subquestion", "value", "status").rows() == [
        ("q1", "d1", "1", 1.0, "ok"),
        ("q1", "d1", "2", 0.0, "ok"),
        ("q1", "d1", "s-3", 4.0, "ok"),
        ("q2", "d1", "1", 1.0, "ok"),
    ]


@pytest.mark.parametrize(
    ("scores", "found"),
    [
        ((0.9, 0.5, 0.1), ""),
        ((0.9, 0.9, 0.1), ""),
        ((1, 1, 1), "are all equal"),
        ((0.9, 0.1, 0.5), "contradict the ranks in 2 of 2 queries"),
    ],
)
def test_scores_that_contradict_the_ranks_are_noted(scores: tuple[float, ...], found: str, save: Save) -> None:
    rows = [(query, rank, score) for query in ("q1", "q2") for rank, score in enumerate(scores)]
    run = read_run(save("a.run", "".join(f"{query} Q0 d{rank} {rank} {score} x\n" for query, rank, score in rows)))
    assert len(run.notes) == bool(found)
    assert all(found in note and "awk '{$5 = -$4; print}' FILE" in note for note in run.notes)


@pytest.mark.parametrize("ranks", [(1, 2, 3, 4), (1, 2, 2, 3), (1, 2, 3, 3), (0, 7, 8, 9)])
@pytest.mark.parametrize("queries", [1, 40])
def test_ranks_that_say_the_opposite_of_the_scores(ranks: tuple[int, ...], queries: int, save: Save) -> None:
    def text(sign: int) -> str:
        rows = ((n, place, rank) for n in range(queries) for place, rank in enumerate(ranks))
        return "".join(f"q{n} Q0 d{place} {rank} {sign * place / 2} x\n" for n, place, rank in rows)

    one_other = "" if queries == 1 else "q Q0 a 1 2.5 x\nq Q0 b 2 2 x\nq Q0 c 3 1 x\n"
    with pytest.raises(FormatError, match="the first ranks have the lowest scores") as caught:
        read_run(save("a.run", text(1) + one_other))
    assert "awk '{$5 = -$4; print}' FILE" in caught.value.remedy and "$4 = 0" in caught.value.remedy
    assert read_run(save("b.run", text(-1) + one_other)).notes == ()


def test_ranks_and_scores_that_are_swapped(save: Save) -> None:
    rows = [(query, score, rank) for query in "ab" for rank, score in enumerate((310, 205, 50), 1)]
    swapped = "".join(f"{query} Q0 d{rank} {score} {rank} x\n" for query, score, rank in rows)
    with pytest.raises(FormatError, match="the scores are 1, 2, 3, …, as ranks are, in 2 of 2 queries") as caught:
        read_run(save("a.run", swapped))
    assert "awk '{t = $4; $4 = $5; $5 = t; print}' FILE" in caught.value.remedy
    for text in (
        "".join(f"{query} Q0 d{rank} {rank} {score} x\n" for query, score, rank in rows),
        "".join(f"{query} Q0 d{rank} {rank} {4 - rank} x\n" for query, score, rank in rows),
        "".join(f"{query} Q0 d{rank} 0 {rank} x\n" for query, score, rank in rows),
    ):
        assert read_run(save("b.run", text)).notes == ()
    with pytest.raises(FormatError, match=r"line 1: the rank is not a whole number \('31.5'\)"):
        read_run(save("c.run", swapped.replace("310", "31.5")))


@pytest.mark.parametrize("name", ["run.tsv", "run.txt"])
@pytest.mark.parametrize("query", ["1", "1083"])  # a column that occurs twice, and one that doesn't
def test_runs_of_ms_marco_need_a_header_that_the_error_tells(name: str, query: str, save: Save) -> None:
    lines = f"{query}\tD7\t1\n{query}\tD9\t2\n"
    with pytest.raises(InputError, match=r"put a header in front: \(printf 'query\\tpassage\\trank\\n'"):
        read_contexts(save(name, lines))
    rows = read_contexts(save("new.tsv", f"query\tpassage\trank\n{lines}")).frame
    assert rows["passage"].to_list() == ["D7", "D9"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark(encoding: str, save: Save) -> None:
    with pytest.raises(FormatError, match=f"(?i)this is UTF-16 text(.|\n)*iconv -f {encoding.replace('-', '-?')}"):
        read_contexts(save("run.txt", PLAIN.encode(encoding)))


def test_tags_of_several_systems_are_noted(save: Save) -> None:
    notes = read_contexts(save("two.run", "q1 Q0 d1 1 9.0 a\nq1 Q0 d2 1 8.5 b\n")).notes
    assert len(notes) == 1 and "the tags differ ('a', 'b')" in notes[0] and "awk" in notes[0]
    assert not read_contexts(save("one.run", PLAIN)).notes
