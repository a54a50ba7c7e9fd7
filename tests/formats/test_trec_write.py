"""Writing TREC files: what is written reads back equal, and what could not is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth import Contexts, Judgments, Ratings
from ragworth.core.errors import FormatError
from ragworth.formats import read_contexts, read_judgments, read_ratings, write
from tests.strategies import examples

IDS = st.text(
    st.characters(codec="utf-8", exclude_characters=" \t\n\r\x0b\x0c\ufeff"), min_size=1, max_size=4
) | st.sampled_from(["1", "2", "a", "b", '"', "#", "NULL", "nan"])
QUERIES = IDS.filter(lambda query: not query.startswith("#"))
SCORES = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, 0.1, 1e-320, 1 / 3])
VALUES = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5).map(float)


def keyed(
    *keys: st.SearchStrategy[str], value: st.SearchStrategy[float]
) -> st.SearchStrategy[list[tuple[object, ...]]]:
    """Rows of a few ids and a value, no two with equal ids."""
    return st.lists(st.tuples(*keys, value), min_size=1, max_size=12, unique_by=ids_of)


def ids_of(row: tuple[object, ...]) -> tuple[object, ...]:
    return row[:-1]


@examples(150)
@given(rows=keyed(QUERIES, IDS, value=SCORES), ending=st.sampled_from(["run", "run.gz", "run.zst"]))
def test_run_reads_back_equal(rows: list[tuple[object, ...]], ending: str, scratch: Path) -> None:
    made = Contexts(pl.DataFrame(rows, schema=["query", "passage", "score"], orient="row"), system="sys")
    write(made, scratch / f"sys.{ending}")
    assert read_contexts(scratch / f"sys.{ending}") == made


@examples(80)
@given(rows=keyed(QUERIES, IDS, value=SCORES), scored=st.booleans())
def test_order_survives_where_scores_do_not_give_it(
    rows: list[tuple[object, ...]], scored: bool, scratch: Path
) -> None:
    """Ranks from elsewhere, with ties, contradicting scores, or none at all."""
    rank: dict[object, int] = {}
    shown: list[tuple[object, object, int, object]] = []
    for query, passage, score in rows:
        rank[query] = rank.get(query, 0) + 1
        shown.append((query, passage, rank[query], score if scored else None))
    schema = {"query": pl.String, "passage": pl.String, "rank": pl.Int64, "score": pl.Float64}
    made = Contexts(pl.DataFrame(shown, schema=schema, orient="row"), system="sys")
    write(made, scratch / "ranked.run")
    order = ["system", "query", "rank", "passage"]
    back = read_contexts(scratch / "ranked.run", system="sys")
    assert back.frame.select(order).equals(made.frame.select(order))


@examples(100)
@given(rows=keyed(QUERIES, IDS, value=VALUES.map(lambda value: min(value, 100.0))))
def test_qrels_read_back_equal(rows: list[tuple[object, ...]], scratch: Path) -> None:
    made = Judgments(pl.DataFrame(rows, schema=["query", "passage", "value"], orient="row"))
    write(made, scratch / "qrels")
    back = read_judgments(scratch / "qrels")
    assert back.frame.drop("source").equals(made.frame.drop("source"))


@examples(100)
@given(rows=keyed(QUERIES, IDS, IDS.map("s{}".format), value=st.integers(0, 5).map(float)))
def test_ratings_read_back_equal(rows: list[tuple[object, ...]], scratch: Path) -> None:
    made = Ratings(pl.DataFrame(rows, schema=["query", "passage", "subquestion", "value"], orient="row"))
    write(made, scratch / "ratings")
    back = read_ratings(scratch / "ratings")
    assert back.frame.drop("source").equals(made.frame.drop("source"))


def test_how_a_run_is_written(tmp_path: Path) -> None:
    write(Contexts({"q1": {"d1": 0.5, "d2": 2}, "q2": {"d1": 1e-7}}, system="bm25"), tmp_path / "run")
    assert (tmp_path / "run").read_text() == "q1 Q0 d2 1 2.0 bm25\nq1 Q0 d1 2 0.5 bm25\nq2 Q0 d1 1 1e-7 bm25\n"


def test_how_qrels_are_written(tmp_path: Path) -> None:
    """Whole numbers without a point: other programs read relevance as integers."""
    write(Judgments({"q1": {"d1": 1, "d2": 0.5, "d3": -2.0}}), tmp_path / "qrels")
    assert (tmp_path / "qrels").read_text() == "q1 0 d1 1\nq1 0 d2 0.5\nq1 0 d3 -2\n"


def test_equal_content_gives_equal_gzip_files(tmp_path: Path) -> None:
    made = Contexts({"q": {"d": 1.0}}, system="s")
    write(made, tmp_path / "a.gz")
    write(made, tmp_path / "b.gz")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"q Q0 d 1 1.0 s\n"


def test_a_byte_order_mark_at_the_start_is_no_part_of_an_id(tmp_path: Path) -> None:
    """Such an id would lose its first character on the way back, so it must be refused or survive."""
    made = Contexts({"\ufeffq": {"d": 1.0}}, system="run")
    try:
        write(made, tmp_path / "run")
    except FormatError:
        return
    assert read_contexts(tmp_path / "run") == made


@pytest.mark.parametrize("space", [" ", "\t", "\n", "\r", "\x0b", "\x0c"])
@pytest.mark.parametrize("column", ["system", "query", "passage"])
def test_white_space_in_ids_is_refused(space: str, column: str, tmp_path: Path) -> None:
    ids = {"system": "s", "query": "q", "passage": "d"} | {column: f"a{space}b"}
    made = Contexts({name: [value] for name, value in ids.items()} | {"score": [1.0]})
    with pytest.raises(FormatError, match=f"TREC files can't have the {column} ") as caught:
        write(made, tmp_path / "run")
    assert caught.value.file == str(tmp_path / "run")
    assert caught.value.remedy
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "made",
    [
        Contexts({"#7": {"d": 1.0}}),
        Judgments({"#7": {"d": 1.0}}),
        Ratings({"query": ["#7"], "passage": ["d"], "subquestion": ["s"], "value": [3]}),
    ],
)
def test_a_query_whose_lines_would_be_comments_is_refused(made: Contexts | Judgments | Ratings, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="TREC files can't have the query '#7'"):
        write(made, tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_several_systems_are_refused(tmp_path: Path) -> None:
    made = Contexts.concat([Contexts({"q": {"d": 1}}, system=name) for name in ("one", "two")])
    with pytest.raises(FormatError, match="2 systems cannot go into one TREC run"):
        write(made, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_missing_values_are_refused(tmp_path: Path) -> None:
    rows = {"query": ["q", "q"], "passage": ["d", "e"], "value": [1.0, None], "status": ["ok", "unparsable"]}
    with pytest.raises(FormatError, match="unparsable"):
        write(Judgments(rows), tmp_path / "qrels")
    with pytest.raises(FormatError, match="unparsable"):
        write(Ratings(rows | {"subquestion": ["s", "s"]}), tmp_path / "ratings")
    assert not list(tmp_path.iterdir())


def test_ranks_with_gaps_are_refused(tmp_path: Path) -> None:
    """A run has no word for a rank that nobody listed: the passages below it would move up."""
    made = Contexts({"query": ["q", "q"], "passage": ["a", "b"], "rank": [1, 3]}, system="run")
    with pytest.raises(FormatError, match="gap"):
        write(made, tmp_path / "run")


def test_judgments_without_relevance_are_refused(tmp_path: Path) -> None:
    made = Judgments({"query": ["q"], "passage": ["d"], "abstention": [0.25]})
    with pytest.raises(FormatError, match="relevance"):
        write(made, tmp_path / "qrels")
