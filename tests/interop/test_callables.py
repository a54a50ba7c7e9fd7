"""Functions as systems: what may come back, in which order, and what is said of everything else."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth import retrieval
from ragworth.core.errors import InputError
from ragworth.data.collection import text_id
from ragworth.interop.hits import Hit, WrongShapeError, order_hits, parse_hits, rank_hits
from ragworth.retrieval import retrieve
from tests.retrieval.samples import QUERIES, passages, world


def read_hits(returned: Any, identity: str = "", *, by_place: bool = False) -> list[Hit]:
    return order_hits(parse_hits(returned, identity), by_place=by_place)


def search(text: str) -> list[str]:
    return ["p2", "p1"] if "mill" in text else []


@pytest.mark.parametrize(
    ("back", "hits"),
    [
        (["p2", "p1"], [Hit("p2"), Hit("p1")]),
        ((name for name in ("p2", "p1")), [Hit("p2"), Hit("p1")]),
        ([7, np.int64(8)], [Hit("7"), Hit("8")]),
        ([("p1", 1), ("p2", np.float32(2.5))], [Hit("p2", 2.5), Hit("p1", 1.0)]),
        ({"p1": 1.0, "p2": 2.0}, [Hit("p2", 2.0), Hit("p1", 1.0)]),
        ([("a", 1.0), ("c", 1.0), ("b", 1.0)], [Hit("c", 1.0), Hit("b", 1.0), Hit("a", 1.0)]),
        ([{"docno": "p1", "text": "one", "score": 0}], [Hit("p1", 0.0, "one")]),
        ([{"content": "one"}], [Hit(text_id("one"), None, "one")]),
        ([{"id": None, "page_content": "", "score": None}], [Hit(text_id(""), None, "")]),
        (
            pl.DataFrame({"docno": ["p1", "p2"], "score": [1, 2], "text": ["one", None]}),
            [Hit("p2", 2.0), Hit("p1", 1.0, "one")],
        ),
        (pl.DataFrame({"docid": [7], "docno": ["p7"], "rank": [0]}), [Hit("p7")]),
        (pl.DataFrame({"text": ["one"]}), [Hit(text_id("one"), None, "one")]),
        (pl.DataFrame({"id": ["p1"]}).clear(), []),
        ({"p2": 1, "p1": 1}.keys(), [Hit("p2"), Hit("p1")]),
        ([], []),
        ({}, []),
    ],
)
def test_what_may_come_back(back: Any, hits: list[Hit]) -> None:
    assert read_hits(back) == hits


@pytest.mark.parametrize(
    ("back", "words"),
    [
        (None, "a NoneType was returned"),
        ("p1", "a str was returned: 'p1'"),
        (7, "an int was returned"),
        ([None], "hit 1 is a NoneType"),
        (["p1", 1.5], "hit 2 is a float"),
        ([True], "hit 1 is a bool"),
        ([""], "the id of hit 1 is empty"),
        ([("p1", "high")], "the score of hit 1 is 'high', not a finite number"),
        ([("p1", math.nan)], "the score of hit 1 is 'nan', not a finite number"),
        ([("p1", True)], "not a finite number"),
        ([("p1", 1.0, "more")], "hit 1 is a tuple"),
        ([{"score": 1.0}], "hit 1 has neither an id nor a text"),
        ([{"text": 5}], "the text of hit 1 is an int"),
        ([("p1", 1.0), "p2"], "1 hit of 2 have a score, the others don't"),
        ({"p1": None}, "not a finite number"),
        ({"p1", "p2"}, "a set was returned, which has no order"),
        (frozenset({("p1", 1.0)}), "a frozenset was returned, which has no order"),
        (pl.DataFrame({"docno": ["p1"], "score": [math.nan]}), "the score of hit 1 is 'nan', not a finite number"),
        (pl.DataFrame({"docno": ["p1"], "score": [None]}), "the score of hit 1 is missing"),
        (pl.DataFrame({"name": ["p1"]}), "hit 1 has neither an id nor a text"),
        ({"docno": ["p1"], "score": [1.0]}, "not a finite number"),
    ],
)
def test_what_may_not(back: Any, words: str) -> None:
    with pytest.raises(WrongShapeError) as caught:
        read_hits(back)
    assert words in str(caught.value)


def test_data_frames_of_pandas() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pd.DataFrame({"docno": [1, 2], "score": [1.0, 2.0]}, index=["a", "b"])
    assert read_hits(frame) == [Hit("2", 2.0), Hit("1", 1.0)]
    assert read_hits(frame["docno"]) == [Hit("1"), Hit("2")]
    with pytest.raises(WrongShapeError, match="the score of hit 2 is missing"):
        read_hits(frame.assign(score=[1.0, math.nan]))
    with pytest.raises(WrongShapeError, match=r"make a table of this DataFrame"):
        read_hits(frame.set_axis(["docno", "docno"], axis=1))


def test_the_field_of_the_id() -> None:
    item = {"id": "a", "text": "one", "metadata": {"docno": "p1"}}
    assert read_hits([item]) == [Hit("a", None, "one")]
    assert read_hits([item], "docno") == [Hit("p1", None, "one")]
    with pytest.raises(WrongShapeError, match="hit 1 has no field 'nr'; there are 'id', 'text', 'metadata', 'docno'"):
        read_hits([item], "nr")


def test_the_order_shown_goes_before_scores_that_disagree() -> None:
    falling = [{"id": "a", "score": 2.0}, {"id": "b", "score": 1.0}]
    assert read_hits(falling, by_place=True) == [Hit("a", 2.0), Hit("b", 1.0)]
    assert read_hits(falling[::-1], by_place=True) == [Hit("b"), Hit("a")]
    assert read_hits(falling[::-1]) == [Hit("a", 2.0), Hit("b", 1.0)]


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from([0.0, 1.0, 2.0]))), st.integers(1, 6))
def test_each_passage_once_best_first(pairs: list[tuple[str, float]], k: int) -> None:
    made = rank_hits(read_hits(pairs), k)
    best = {name: max(score for other, score in pairs if other == name) for name, _ in pairs}
    expected = sorted(best.items(), key=lambda pair: (pair[1], pair[0]), reverse=True)[:k]
    assert [(hit.passage, hit.score) for hit in made.hits] == expected
    assert made.again == len(pairs) - len(best)


def test_an_empty_query_is_not_passed_on() -> None:
    asked: list[str] = []

    def mine(text: str) -> list[str]:
        asked.append(text)
        return ["p1"]

    made = retrieve({"mine": mine}, world(queries={"a": "", "b": " \t", "c": "mill"}))
    assert asked == ["mill"]
    assert passages(made, "mine") == {"a": [], "b": [], "c": ["p1"]}


def test_how_many_are_wanted() -> None:
    asked: list[int] = []

    def mine(text: str, k: int = 3) -> list[str]:
        asked.append(k)
        return [f"x{n}" for n in range(k + 5)]

    def theirs(text: str, *, top_k: int) -> list[str]:
        return mine(text, top_k)

    context = world({}, {"q": "mill"})
    assert [len(passages(retrieve({"s": mine}, context), "s")["q"]), asked] == [100, [100]]
    made = retrieve({"a": retrieval.called(theirs) % 7, "b": retrieval.called(theirs) % 2}, context)
    assert [len(passages(made, name)["q"]) for name in "ab"] == [7, 2]
    assert asked[1:] == [7], "what systems have in common is asked once"
    few = retrieve({"s": retrieval.called(lambda text: ["p1", "p2"]) % 50}, context)
    assert passages(few, "s")["q"] == ["p1", "p2"]


def test_a_method_is_asked_once_for_several_systems() -> None:
    class Index:
        def __init__(self) -> None:
            self.asked: list[str] = []

        def search(self, text: str) -> list[str]:
            self.asked.append(text)
            return ["p1", "p2"]

        def other(self, text: str) -> list[str]:
            return ["p3"]

    one, two = Index(), Index()
    systems = {"a": one.search, "b": [one.search, "reversed"], "c": one.other, "d": two.search}
    made = retrieve(systems, world())
    assert [each.asked for each in (one, two)] == [[text for text in QUERIES.values() if text]] * 2
    assert [passages(made, name)["q1"] for name in "abcd"] == [["p1", "p2"], ["p2", "p1"], ["p3"], ["p1", "p2"]]
    assert retrieval.called(one.search) == retrieval.called(one.search)
    assert retrieval.called(one.search) not in (retrieval.called(one.other), retrieval.called(two.search))


def test_passages_that_come_again() -> None:
    made = retrieve({"s": lambda text: ["p1", "p2", "p1", "p1"]}, world())
    assert passages(made, "s")["q2"] == ["p1", "p2"]
    (note,) = [note for note in made.notes if "again" in note]
    assert note.endswith("6 repeated hits for the same query left out ('q1', 'q2', 'q3')")


def test_errors_name_the_system_and_the_query() -> None:
    def broken(text: str) -> list[str]:
        raise KeyError("no\nindex")

    async def later(text: str) -> list[str]:
        return []

    with pytest.raises(InputError) as caught:
        retrieve({"fine": search, "mine": broken}, world())
    words = "mine: test_errors_name_the_system_and_the_query.broken fails for the query 'q1' ('Who built the mill?')"
    assert str(caught.value).startswith(f"{words}: KeyError: 'no\\nindex'")
    assert isinstance(caught.value.__cause__, InputError)
    with pytest.raises(InputError, match=r"mine: .*later, query 'q1': a coroutine was returned[^$]*expected: a list"):
        retrieve({"mine": later}, world())
    with pytest.raises(InputError, match=r"mine: .*lambda>, query 'q1': a str was returned: 'p1'"):
        retrieve({"mine": lambda text: "p1"}, world())


@pytest.mark.parametrize("thing", [7, None, SimpleNamespace(), retrieval.bm25, {"a": 1}])
def test_what_is_no_retriever(thing: Any) -> None:
    with pytest.raises(InputError, match=r"s: .* is not a pipeline"):
        retrieve({"s": thing}, world())
    with pytest.raises(InputError, match="is not a retriever"):
        retrieval.called(thing)


@pytest.mark.parametrize(("sign", "noted"), [(1, True), (-1, False)])
def test_scores_that_may_be_distances_are_noted(sign: int, noted: bool) -> None:
    def nearest(text: str) -> list[tuple[str, float]]:
        return [("p1", 0.1 * sign), ("p2", 0.4 * sign), ("p3", 0.4 * sign)]

    made = retrieve({"s": nearest}, world(queries={f"q{number}": "mill" for number in range(4)}))
    assert passages(made, "s")["q0"] == (["p3", "p2", "p1"] if noted else ["p1", "p3", "p2"])
    words = "in 4 queries of 4, it returns hits with rising scores, but the highest score counts as the best"
    assert any(words in note for note in made.notes) == noted


def test_scores_in_any_order_are_no_distances() -> None:
    def some(text: str) -> dict[str, float]:
        return {"p1": 0.1, "p2": 0.4, "p3": 0.2}

    made = retrieve({"s": some}, world(queries={f"q{number}": "mill" for number in range(4)}))
    assert not made.notes
