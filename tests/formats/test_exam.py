"""The EXAM++ workbench's file."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragworth.core.errors import FormatError, InputError
from ragworth.formats import load, read_contexts, read_judgments, read_ratings

Save = Callable[[str, str | bytes], Path]


def passage(name: Any, relevance: Any = 1, rank: Any = 1, **fields: Any) -> dict[str, Any]:
    """A passage judged once, found by one run and rated for one sub-question."""
    return {
        "paragraph_id": name,
        "text": f"text of {name}",
        "paragraph_data": {
            "judgments": [{"query": "q", "relevance": relevance}],
            "rankings": [{"method": "bm25", "rank": rank, "score": 2.5}],
        },
        "exam_grades": [{"self_ratings": [{"question_id": "q/1", "self_rating": 4}]}],
    } | fields


def line(query: Any, *passages: Any) -> str:
    return json.dumps([query, list(passages)])


def test_everything_in_the_file(save: Save) -> None:
    text = "\n".join([line("q1", passage("a"), passage("b", 0, 3)), "", line(2, passage("a", 3))])
    loaded = load(f"exam:{save('file.jsonl.gz', gzip.compress(text.encode()))}")
    collection, contexts, *_ = loaded
    assert collection.passages.rows() == [("a", "text of a"), ("b", "text of b")]
    assert collection.relevance is not None and collection.ratings is not None and contexts is not None
    assert collection.relevance.frame.select("query", "passage", "value").rows() == [
        ("q1", "a", 1.0),
        ("q1", "b", 0.0),
        ("2", "a", 3.0),
    ]
    assert collection.ratings.frame.select("query", "passage", "subquestion", "value").rows() == [
        ("q1", "a", "q/1", 4.0),
        ("q1", "b", "q/1", 4.0),
        ("2", "a", "q/1", 4.0),
    ]
    # The passage at rank 2 is not listed, and its place stays empty.
    assert contexts.frame.rows() == [
        ("bm25", "q1", 1, "a", 2.5),
        ("bm25", "q1", 3, "b", 2.5),
        ("bm25", "2", 1, "a", 2.5),
    ]


def test_runs_are_put_together(save: Save) -> None:
    """The file goes passage by passage, so that runs alternate in it."""
    rankings = [{"method": name, "rank": 1} for name in ("two", "one")]
    both = passage("a", paragraph_data={"rankings": rankings})
    contexts = read_contexts(f"exam:{save('file', line('q1', both) + chr(10) + line('q2', both))}")
    assert contexts.frame.select("system", "query").rows() == [
        ("one", "q1"),
        ("one", "q2"),
        ("two", "q1"),
        ("two", "q2"),
    ]
    assert contexts.frame["score"].null_count() == 4


def test_parts_that_are_not_there(save: Save) -> None:
    path = f"exam:{save('file', line('q1', {'paragraph_id': 'a', 'text': 'x'}))}"
    assert load(path).contexts is None
    assert load(path).collection.passages.rows() == [("a", "x")]
    for reader, what in ((read_contexts, "runs"), (read_judgments, "relevance"), (read_ratings, "ratings")):
        with pytest.raises(FormatError, match=f"the file has no {what}"):
            reader(path)


def test_the_first_grades_count(save: Save) -> None:
    grades = [{"self_ratings": [{"question_id": "1", "self_rating": rating}]} for rating in (5, 0)]
    ratings = read_ratings(f"exam:{save('file', line('q1', passage('a', exam_grades=grades)))}")
    assert ratings.frame["value"].to_list() == [5.0]


BAD = {
    "no JSON": "nonsense",
    "an object": "{}",
    "one element": '["q1"]',
    "three elements": '["q1", [], 3]',
    "passages are a number": '["q1", 3]',
    "passage is text": line("q1", "a"),
    "no passage id": line("q1", {"text": "x"}),
    "passage id is null": line("q1", passage(None)),
    "passage id is half a character": line("q1", passage("\ud800")),
    "relevance is text": line("q1", passage("a", "high")),
    "relevance is missing": line("q1", passage("a", paragraph_data={"judgments": [{}]})),
    "relevance is beyond all": line("q1", passage("a", 10**400)),
    "rank is text": line("q1", passage("a", rank="first")),
    "rank is infinite": line("q1", passage("a", rank=math.inf)),
    "rank is beyond all": line("q1", passage("a", rank=2**70)),
    "rating is missing": line("q1", passage("a", exam_grades=[{"self_ratings": [{"question_id": "1"}]}])),
    "grades are text": line("q1", passage("a", exam_grades="none")),
    "nested too deep": "[" * 100_000,
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_line(kind: str, save: Save) -> None:
    path = save("file", f"{line('q0', passage('a'))}\n{BAD[kind]}\n{line('q9', passage('a'))}\n")
    with pytest.raises(FormatError) as caught:
        load(f"exam:{path}")
    assert (caught.value.file, caught.value.line) == (str(path), 2)
    assert "paragraph_id" in caught.value.expected
    loaded = load(f"exam:{path}", skip_bad_lines=True)
    assert loaded.collection.relevance is not None
    assert loaded.collection.relevance.frame["query"].to_list() == ["q0", "q9"]
    assert "1 bad line skipped (line 2: " in loaded.collection.notes[0]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (line("q1", passage("a"), passage("a", rank=2)), "second row"),
        (line("q1", passage("a"), passage("b")), "rank 1"),
        (line("q1", passage("a", rank=-1)), "rank"),
        (line("q1", passage("a", rank=2**40)), "rank"),
        (line("q1", passage("a", math.nan)), "line 1: the relevance is missing"),
        (line("q1", passage("")), "empty"),
        (line("q1", passage("a")) + chr(10) + line("q2", passage("a", text="another")), "row 2"),
    ],
)
def test_tables_are_checked(text: str, found: str, save: Save) -> None:
    path = save("file", text)
    with pytest.raises(InputError, match=found) as caught:
        load(f"exam:{path}")
    assert caught.value.file == str(path)
