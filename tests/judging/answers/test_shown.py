"""What was shown for an answer: as recorded, as given, or not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ragworth
from ragworth.core.errors import InputError
from ragworth.judging.runner import to_answer_book

RIGHT = {"q1": "Ann", "q2": "ducks", "q3": "larks"}


def rows(system: str, shown: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"system": system, "query": query, "text": RIGHT[query], "shown": ids} for query, ids in shown.items()]


def test_one_recorded_query_says_nothing_about_the_others() -> None:
    book = to_answer_book(rows("x", {"q1": ["b"], "q2": None, "q3": []}))
    assert [book.shown("x", query) for query in RIGHT] == [("b",), None, ()]


def test_a_run_that_lacks_a_query_does_not_say_that_nothing_was_shown() -> None:
    run = ragworth.Contexts({"q1": {"b": 1.0}}, system="x", empty=[("x", "q3")])
    book = to_answer_book(ragworth.Answers(rows("x", dict.fromkeys(RIGHT))), run)
    assert [book.shown("x", query) for query in RIGHT] == [("b",), None, ()]


def test_what_is_given_fills_in_what_was_not_recorded() -> None:
    answers = [*rows("x", {"q1": ["b"], "q2": None, "q3": []}), *rows("y", {"q1": None})]
    run = ragworth.Contexts(
        {
            "system": ["x", "x", "x", "y"],
            "query": ["q1", "q2", "q3", "q1"],
            "passage": ["a", "c", "d", "a"],
            "rank": [1, 1, 1, 1],
        }
    )
    book = to_answer_book(answers, run)
    # Recorded goes before given, for each system and query.
    assert book.shown("x", "q1") == ("b",)
    assert book.shown("x", "q2") == ("c",)
    assert book.shown("x", "q3") == ()
    assert book.shown("y", "q1") == ("a",)
    assert book.shown("y", "q2") is None


def test_given_emptiness_does_not_undo_what_was_recorded() -> None:
    run = ragworth.Contexts({"q2": {"c": 1.0}}, system="x", empty=[("x", "q1"), ("x", "q3")])
    book = to_answer_book(rows("x", {"q1": ["a"], "q2": [], "q3": None}), run)
    assert [book.shown("x", query) for query in RIGHT] == [("a",), (), ()]


def test_what_shown_may_be() -> None:
    book = to_answer_book([{"system": "x", "query": "q1", "text": "Ann", "shown": '["a", "b"]'}])
    assert book.shown("x", "q1") == ("a", "b")
    with pytest.raises(InputError, match="the column 'shown' holds"):
        to_answer_book([{"system": "x", "query": "q1", "text": "Ann", "shown": 3}])


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_answers_read_in_python_know_what_was_shown(tmp_path: Path, ending: str) -> None:
    import json

    import polars as pl

    path = tmp_path / f"answers.{ending}"
    given = rows("x", {"q1": ["b"], "q2": ["c"], "q3": []})
    if ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in given))
    elif ending == "csv":
        pl.DataFrame([{**row, "shown": json.dumps(row["shown"])} for row in given]).write_csv(path)
    else:
        pl.DataFrame(given).write_parquet(path)
    read = ragworth.read_answers(path)
    assert read.table.frame["text"].to_list() == ["Ann", "ducks", "larks"]
    assert read.frame["shown"].to_list() == [["b"], ["c"], []]
    assert read.contexts.empty == {("x", "q3")}


def test_bad_lines_of_answers(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"system": "x", "query": "q1", "text": "Ann"}\n{"system"\n')
    with pytest.raises(InputError, match="line 2"):
        ragworth.read_answers(path)
    read = ragworth.read_answers(path, skip_bad_lines=True)
    assert (len(read.table), len(read.notes)) == (1, 1)
