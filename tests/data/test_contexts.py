"""Contexts: ranks and scores, ties and gaps, several systems."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

from ragworth import Contexts, Judgments
from ragworth.core.errors import TableError
from ragworth.workspace.arguments import to_contexts


def shown(contexts: Contexts) -> list[tuple[str, str, int, str]]:
    return contexts.frame.select("system", "query", "rank", "passage").rows()


def ranked(ranks: list[Any], **columns: Any) -> Contexts:
    """One query's passages a, b, c, … with these ranks."""
    passages = [chr(ord("a") + i) for i in range(len(ranks))]
    return Contexts({"query": ["q"] * len(ranks), "passage": passages, "rank": ranks} | columns)


def test_order_by_score() -> None:
    contexts = Contexts({"q1": {"a": 1, "b": 3.5, "c": 2}, "q2": {"a": -1.0, "b": 0}}, system="bm25")
    assert shown(contexts) == [
        ("bm25", "q1", 1, "b"),
        ("bm25", "q1", 2, "c"),
        ("bm25", "q1", 3, "a"),
        ("bm25", "q2", 1, "b"),
        ("bm25", "q2", 2, "a"),
    ]
    assert contexts.frame["score"].to_list() == [3.5, 2.0, 1.0, 0.0, -1.0]


def test_equal_scores_go_by_id_descending() -> None:
    assert [row[3] for row in shown(Contexts({"q": {"a": 1, "c": 1, "b": 1}}))] == ["c", "b", "a"]


def test_precision_of_ties() -> None:
    scores = {"q": {"a": 1 + 2**-30, "b": 1.0}}
    assert [row[3] for row in shown(Contexts(scores))] == ["a", "b"]
    assert [row[3] for row in shown(Contexts(scores, ties="float32"))] == ["b", "a"]


def test_rows_of_a_query_come_together() -> None:
    rows = {"system": ["s", "t", "s", "t"], "query": ["q", "q", "p", "q"], "passage": ["a", "a", "a", "b"]}
    contexts = Contexts(rows | {"score": [1, 1, 1, 2]})
    assert shown(contexts) == [("s", "q", 1, "a"), ("t", "q", 1, "b"), ("t", "q", 2, "a"), ("s", "p", 1, "a")]
    assert contexts.systems == ["s", "t"]


def test_ranks_count_more_than_scores() -> None:
    contexts = ranked([2, 1, 3], score=[9.0, 5.0, None])
    assert contexts.frame.select("rank", "passage", "score").rows() == [(1, "b", 5.0), (2, "a", 9.0), (3, "c", None)]


def test_ranks_from_zero_are_moved_up() -> None:
    assert [row[2] for row in shown(ranked([0, 2, 1]))] == [1, 2, 3]


def test_each_system_counts_in_its_own_way() -> None:
    rows = {"system": ["s", "s", "t", "t"], "query": ["q"] * 4, "passage": ["a", "b"] * 2, "rank": [0, 1, 1, 2]}
    assert [row[2] for row in shown(Contexts(rows))] == [1, 2, 1, 2]


def test_gaps_stay() -> None:
    """A rank nobody listed is a passage that was shown but is unknown."""
    assert [row[2:] for row in shown(ranked([5, 1, 3]))] == [(1, "b"), (3, "c"), (5, "a")]


@pytest.mark.parametrize(
    ("ranks", "found"),
    [
        ([1, 1], "two passages have rank 1 for query 'q'"),
        ([3, 1, 3], "two passages have rank 3 for query 'q'"),
        ([1, -1], "row 2: the rank is -1"),
        ([1, None], "row 2: the rank is None"),
        ([1, 1.5], "row 2: 'rank' is 1.5"),
        ([1, math.nan], "row 2: 'rank' is (nan|NaN)"),
        ([1, math.inf], "row 2: 'rank' is inf"),
        ([1, 2**40], "row 2: the rank is 1099511627776"),
        ([1, 2**64 - 1], "rank"),
        (["1", "2"], "column 'rank' holds String values"),
    ],
)
def test_ranks_that_are_none(ranks: list[Any], found: str) -> None:
    with pytest.raises(TableError, match=found) as caught:
        ranked(ranks)
    assert caught.value.expected


def test_whole_ranks_may_be_written_as_floats() -> None:
    """pandas turns whole numbers into floats as soon as one is missing somewhere."""
    assert [row[2] for row in shown(ranked([2.0, 1.0]))] == [1, 2]


@pytest.mark.parametrize(
    ("scores", "found"),
    [
        ([1, None], "row 2: the score is missing"),
        ([1, math.nan], "row 2: the score is NaN"),
        (["1", "2"], "column 'score' holds String values where numbers belong, such as '1'"),
        ([1, "high"], "column 'score' holds String values"),
        ([[1], [2]], "column 'score' holds List"),
    ],
)
def test_scores_that_are_none(scores: list[Any], found: str) -> None:
    with pytest.raises(TableError, match=found):
        Contexts({"query": ["q", "q"], "passage": ["a", "b"], "score": scores})


def test_a_score_beside_a_rank_may_be_missing_but_not_nan() -> None:
    assert ranked([1, 2], score=[1.0, None]).frame["score"].to_list() == [1.0, None]
    with pytest.raises(TableError, match="row 2: the score is NaN"):
        ranked([1, 2], score=[1.0, math.nan])


def test_infinite_scores_have_an_order() -> None:
    assert [row[3] for row in shown(Contexts({"q": {"a": -math.inf, "b": 0, "c": math.inf}}))] == ["c", "b", "a"]


@pytest.mark.parametrize("rank", [None, [1, 2, 3]])
def test_duplicate_passages(rank: list[int] | None) -> None:
    rows: dict[str, Any] = {"query": ["q", "p", "q"], "passage": ["a", "a", "a"], "score": [1, 2, 3]}
    with pytest.raises(TableError, match="passage 'a' occurs twice for query 'q'") as caught:
        Contexts(rows | ({"rank": rank} if rank else {}), source="run.csv")
    assert caught.value.file == "run.csv"
    assert "chunks of one document" in caught.value.remedy


def test_duplicates_are_counted() -> None:
    with pytest.raises(TableError, match="3 duplicates in all"):
        Contexts({"query": ["q"] * 5, "passage": ["a", "a", "b", "a", "b"], "score": [1, 2, 3, 4, 5]})


def test_neither_ranks_nor_scores() -> None:
    with pytest.raises(TableError, match="neither ranks nor scores: the columns are query, passage"):
        Contexts({"query": ["q"], "passage": ["a"]})


def test_a_system_has_a_name() -> None:
    assert Contexts({"q": {"a": 1}}).systems == ["run"]
    assert Contexts({"q": {"a": 1}}, system="bm25").systems == ["bm25"]
    with pytest.raises(TableError, match="system"):
        Contexts({"q": {"a": 1}}, system="")


def test_cut() -> None:
    contexts = Contexts({"q1": {"a": 3, "b": 2, "c": 1}, "q2": {"a": 1}}, notes=("a note",))
    assert [row[1:] for row in shown(contexts.cut(2))] == [("q1", 1, "a"), ("q1", 2, "b"), ("q2", 1, "a")]
    assert contexts.cut(2).notes == ("a note",)
    assert contexts.cut(9) == contexts
    assert len(contexts) == 4
    # A cut is by rank, so that a gap counts as a passage.
    assert [row[2:] for row in shown(ranked([1, 3, 4]).cut(3))] == [(1, "a"), (3, "b")]


def test_the_same_rows_keep_their_starts() -> None:
    contexts = Contexts({"q": {"a": 2.0, "b": 1.0}, "r": {"a": 1.0}}, system="bm25")
    for same in (contexts.only("bm25"), contexts.cut(2), contexts.renamed("other")):
        assert same.starts is not None and same.starts.tolist() == [0, 2, 3]
    both = Contexts.concat([contexts, contexts.renamed("other")])
    assert [fewer.starts for fewer in (contexts.cut(1), both.only("other"))] == [None, None]


def test_concat() -> None:
    one, two = (Contexts({"q": {"a": 1}}, system=name, notes=(name,)) for name in ("one", "two"))
    both = Contexts.concat([one, two])
    assert both.systems == ["one", "two"]
    assert both.notes == ("one", "two")
    assert both.frame.equals(pl.concat([one.frame, two.frame]))
    assert len(Contexts.concat([])) == 0
    assert dict(Contexts.concat([]).frame.schema) == Contexts.schema


def test_two_runs_of_one_name() -> None:
    run = Contexts({"q": {"a": 1}}, system="bm25")
    with pytest.raises(TableError, match="two runs are called 'bm25'") as caught:
        Contexts.concat([run, Contexts({"p": {"a": 1}}, system="bm25")])
    assert "NAME=PATH" in caught.value.remedy


def test_ranks_are_the_order_and_scores_that_say_otherwise_are_noted() -> None:
    stale = {"query": ["a", "a", "b", "b"], "passage": ["x", "y", "x", "y"], "rank": [1, 2, 1, 2]}
    found = Contexts({**stale, "score": [1, 2, 9, 8]})
    assert found.frame["passage"].to_list() == ["x", "y", "x", "y"]
    assert len(found.notes) == 1 and found.notes[0].startswith(
        "in 1 context, a passage scores higher than one before it"
    )
    assert not Contexts({**stale, "score": [2, 2, 1, 0.5]}).notes


def test_a_column_that_may_name_systems_is_noted() -> None:
    rows = {"model": ["a", "b"], "query": ["q1", "q2"], "passage": ["d1", "d1"], "score": [1.0, 2.0]}
    assert Contexts(rows).notes == ("all rows are one system; call the column 'model' 'system' if it names systems",)
    assert not Contexts(rows | {"model": ["a", "a"]}).notes
    with pytest.raises(TableError) as caught:
        Contexts(rows | {"query": ["q1", "q1"]})
    assert caught.value.remedy.endswith("call the column 'model' 'system' if it names systems")


def test_systems_of_a_dict_keep_queries_that_retrieved_nothing() -> None:
    contexts = to_contexts({"a": {"q1": {"d1": 1}, "q2": {}}, "b": {"q1": {}}})
    assert contexts.systems == ["a", "b"] and contexts.empty == {("a", "q2"), ("b", "q1")}
    with pytest.raises(TableError):
        to_contexts({"a": {}, "b": {"q1": {"d1": 1}}})


def test_labels_of_beir_in_a_frame() -> None:
    found = Judgments({"query-id": ["q1"], "corpus-id": ["d1"], "score": [2]})
    assert found.frame["value"].to_list() == [2.0]
