"""Turns of conversations as part of a collection."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from ragworth.core.errors import InputError, TableError
from ragworth.data.collection import Collection, merge_collections
from ragworth.data.conversations import Message, Turn, turns_of

QUERIES = {"query": ["c1-1", "c1-2"], "text": ["What do otters eat?", "And in winter?"]}
HISTORY = [{"role": "user", "text": "What do otters eat?"}, {"role": "assistant", "text": "Fish."}]
ROWS: list[dict[str, Any]] = [
    {"query": "c1-1", "conversation": "c1", "number": 1, "history": []},
    {
        "query": "c1-2",
        "conversation": "c1",
        "number": 2,
        "history": HISTORY,
        "rewrite": "Do otters fish in winter?",
    },
]


def two_turns() -> Collection:
    return Collection.of(queries=QUERIES, turns=ROWS)


def test_turns_have_question_history_and_rewrite() -> None:
    first, second = turns_of(two_turns())
    assert first == Turn("c1-1", "c1", 1, "What do otters eat?")
    assert second.history == (Message("user", "What do otters eat?"), Message("assistant", "Fish."))
    assert second.rewrite == "Do otters fish in winter?"
    assert second.user_messages == ("What do otters eat?", "And in winter?")


def test_turns_of_some_queries_keep_their_order() -> None:
    assert [turn.number for turn in turns_of(two_turns(), ["c1-2", "c1-1"])] == [2, 1]
    with pytest.raises(InputError, match="1 query not in a conversation"):
        turns_of(two_turns(), ["other"])


def test_a_frame_of_turns_is_accepted_as_it_is() -> None:
    collection = two_turns()
    assert Collection.of(queries=QUERIES, turns=collection.turns).equals(collection)


def test_messages_of_openai_are_histories() -> None:
    parts = [{"type": "text", "text": "Fish."}]
    setup = {"role": "system", "content": "You know otters."}
    history = [setup, {"role": "user", "content": "What do otters eat?"}, {"role": "assistant", "content": parts}]
    collection = Collection.of(queries=QUERIES, turns=[ROWS[0], ROWS[1] | {"history": history}])
    assert collection.turns.equals(two_turns().turns)


def test_histories_may_all_be_empty() -> None:
    collection = Collection.of(queries=QUERIES, turns=[ROWS[0]])
    assert collection.turns["history"].dtype == pl.List(pl.Struct({"role": pl.String, "text": pl.String}))
    assert turns_of(collection)[0].history == ()


def test_equality_includes_turns() -> None:
    assert not two_turns().equals(Collection.of(queries=QUERIES))


def test_merging_keeps_turns() -> None:
    passages = Collection.of(passages={"passage": ["p"], "text": ["Otters eat fish."]})
    assert merge_collections([two_turns(), passages, two_turns()]).turns.equals(two_turns().turns)


def test_merging_refuses_two_histories_of_one_turn() -> None:
    other = Collection.of(queries=QUERIES, turns=[ROWS[0], ROWS[1] | {"history": HISTORY[:1]}])
    with pytest.raises(TableError, match="two turns for query 'c1-2'"):
        merge_collections([two_turns(), other])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"number": 0}, "row 2: the turn's number is 0"),
        ({"number": None}, "row 2: the turn's number is None"),
        ({"number": 1}, "row 2: second turn for conversation 'c1', number '1'"),
        ({"query": "c1-1"}, "row 2: second turn for query 'c1-1'"),
        ({"query": "c1-9"}, "1 turn without a text"),
        ({"history": None}, "row 2: the history is missing"),
        ({"history": [{"role": "tool", "text": "Hi"}]}, "row 2: the history has the message .*'tool'"),
        ({"history": [{"role": "user", "text": None}]}, "row 2: the history has the message"),
        ({"history": [{"role": "user"}]}, "row 2: the history has the message"),
        ({"history": "What?"}, "row 2: the history is 'What.'"),
        ({"rewrite": " "}, "row 2: the rewrite is empty"),
    ],
)
def test_bad_turns_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TableError, match=message):
        Collection.of(queries=QUERIES, turns=[ROWS[0], ROWS[1] | changes])


def test_missing_columns_are_named() -> None:
    with pytest.raises(TableError, match="a table of turns needs"):
        Collection.of(queries=QUERIES, turns={"query": ["c1-1"], "conversation": ["c1"], "history": [[]]})


def test_a_frame_with_a_missing_message_is_refused() -> None:
    turns = two_turns().turns.with_columns(history=pl.lit([None], dtype=two_turns().turns["history"].dtype))
    with pytest.raises(TableError, match="row 1: the history has the message 'None'"):
        Collection.of(queries=QUERIES, turns=turns)
