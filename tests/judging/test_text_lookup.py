"""Texts by id: what is there is given as it is, what is not has a reason of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

from ragworth.calls.programs import NoValue
from ragworth.core.errors import InputError
from ragworth.data.collection import Collection
from ragworth.judging.text_lookup import (
    EMPTY_PASSAGE,
    NO_ANSWERS,
    NO_PASSAGE,
    NO_QUERY,
    NO_RELEVANT,
    NO_SUBQUESTIONS,
    Subquestion,
    TextLookup,
    check_positive_count,
    sample_by_query,
    sample_queries,
)

WORLD = TextLookup(
    Collection.of(
        queries={"query": ["q1", "q2", "q3"], "text": [" Who? ", "", " \n\t"]},
        passages={"passage": ["p1", "p2", "p3"], "text": ["It was Ann.\n", "", "\u3000 \n"]},
        answers={"query": ["q1", "q1", "q1", "q2"], "text": ["Ann", "  ", "Anne", ""]},
        subquestions={"query": ["q1", "q2", "q1"], "subquestion": ["b", "a", "a"], "text": ["why?", "what?", "when?"]},
        relevance={
            "query": ["q1", "q1", "q1", "q1", "q2"],
            "passage": ["p1", "p2", "p3", "p4", "p1"],
            "value": [1, 3, None, 1, 0],
            "status": ["ok", "ok", "unparsable", "ok", "ok"],
            "aspect": ["relevance"] * 5,
        },
    )
)


def why(find: Callable[[], object]) -> str:
    with pytest.raises(NoValue) as caught:
        find()
    assert caught.value.detail
    return caught.value.status


def test_texts_are_given_as_they_are() -> None:
    assert WORLD.query("q1") == " Who? "
    assert WORLD.passage("p1") == "It was Ann.\n"


def test_texts_that_are_not_there() -> None:
    assert why(lambda: WORLD.query("q9")) == NO_QUERY
    assert why(lambda: WORLD.query("q2")) == NO_QUERY
    assert why(lambda: WORLD.query("q3")) == NO_QUERY
    assert why(lambda: WORLD.passage("p9")) == NO_PASSAGE
    assert why(lambda: WORLD.passage("p2")) == EMPTY_PASSAGE
    assert why(lambda: WORLD.passage("p3")) == EMPTY_PASSAGE


def test_accepted_answers_without_blank_ones() -> None:
    assert WORLD.answers("q1") == WORLD.known_answers("q1") == ("Ann", "Anne")
    assert why(lambda: WORLD.answers("q2")) == NO_ANSWERS
    assert why(lambda: WORLD.answers("q9")) == NO_ANSWERS
    assert WORLD.known_answers("q2") == ()


def test_subquestions_in_their_order() -> None:
    assert WORLD.subquestions("q1") == (Subquestion("b", "why?"), Subquestion("a", "when?"))
    assert why(lambda: WORLD.subquestions("q3")) == NO_SUBQUESTIONS


def test_relevant_passages_best_first_and_failed_judgments_are_none() -> None:
    assert WORLD.relevant("q1") == ("p2", "p1", "p4")
    assert WORLD.relevant("q1", 2) == ("p2",)
    assert why(lambda: WORLD.relevant("q2")) == NO_RELEVANT
    assert why(lambda: TextLookup(Collection()).relevant("q1")) == NO_RELEVANT


def test_an_empty_collection_has_a_reason_for_everything() -> None:
    nothing = TextLookup(Collection())
    finds = (nothing.query, nothing.passage, nothing.answers, nothing.subquestions, nothing.relevant)
    assert [why(partial(find, "x")) for find in finds] == [
        NO_QUERY,
        NO_PASSAGE,
        NO_ANSWERS,
        NO_SUBQUESTIONS,
        NO_RELEVANT,
    ]


# Some of the queries


class Item(NamedTuple):
    query: str
    number: int


ITEMS = [Item(f"q{number % 3}", number) for number in range(7)]


def test_the_first_queries_with_all_items_of_theirs() -> None:
    assert sample_by_query(ITEMS, None, None) == sample_by_query(ITEMS, 9, 9) == ITEMS
    assert [item.number for item in sample_by_query(ITEMS, 1, None)] == [0, 3, 6]


def test_queries_drawn_at_random_keep_their_order() -> None:
    drawn = {tuple(sample_queries("abc", sample=2, seed=seed)) for seed in range(20)}
    assert drawn == {("a", "b"), ("a", "c"), ("b", "c")}
    assert len(sample_queries("abc", limit=1, sample=2)) == 1


@pytest.mark.parametrize("value", [0, -1, 1.0, "3", True])
def test_a_number_of_things_is_a_whole_number_of_1_or_more(value: Any) -> None:
    check_positive_count("k", None)
    check_positive_count("k", 1)
    with pytest.raises(InputError, match=r"k is .*\n.*a whole number, 1 or more"):
        check_positive_count("k", value)
    for more in ({"limit": value}, {"sample": value}):
        with pytest.raises(InputError):
            sample_queries("abc", **more)
