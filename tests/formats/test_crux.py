"""CRUX's released files: a folder, a log, and exports of its labelling app."""

from __future__ import annotations

import pytest

from ragworth.core.errors import FormatError
from ragworth.formats import load, read_ratings
from tests.conftest import Save

RUN = "q1 Q0 d2 1 2.0 x\nq1 Q0 d1 2 1.0 x\n"


def test_a_folder(save: Save) -> None:
    save("c/duc.request.jsonl", '{"id": "q1", "request": "Report it."}\n')
    save("c/subquestions.oracle.json", '{"q1": ["Who?", "When?"]}')
    save("c/bm25-duc.run", RUN)
    save("c/bm25-duc=other.run", RUN)
    folder = save("c/ratings.oracle.bm25.json", '{"q1": [[5, 0], [1, 3]]}').parent
    found = load(f"crux:{folder}")
    assert found.contexts is not None and found.collection.ratings is not None
    assert found.contexts.systems == ["bm25-duc", "bm25-duc=other"]
    assert found.collection.queries.rows() == [("q1", "Report it.")]
    assert found.collection.subquestions.rows() == [("q1", "0", "Who?"), ("q1", "1", "When?")]
    assert found.collection.ratings.frame.select("passage", "subquestion", "value").rows() == [
        ("d2", "0", 5.0),
        ("d2", "1", 0.0),
        ("d1", "0", 1.0),
        ("d1", "1", 3.0),
    ]
    assert read_ratings(f"crux:{folder}") == found.collection.ratings
    for bad, words in (
        ('{"q1": [[5, 0]]}', "1 rows of ratings for 2 passages"),
        ('{"q1": [[5, 0], [7, 0]]}', "the rating of 'q1' is 7"),
    ):
        save("c/ratings.oracle.bm25.json", bad)
        with pytest.raises(FormatError, match=words):
            load(f"crux:{folder}")


def test_a_log(save: Save) -> None:
    first = "t-1\n[ True\n  True]\n[5 5]\n['a', 'b']\n[[5, 0], [0, 4]]\n[5 4]\n oracle | 1.0\n"
    found = read_ratings("crux:" + str(save("case.log", first + "t-2\n[ True]\n[1]\n['c']\n[[3]]\n")))
    assert found.frame.select("query", "passage", "subquestion", "value").rows() == [
        ("t-1", "a", "0", 5.0),
        ("t-1", "a", "1", 0.0),
        ("t-1", "b", "0", 0.0),
        ("t-1", "b", "1", 4.0),
        ("t-2", "c", "0", 3.0),
    ]
    for bad, words in (
        ("t-1\n['a']\n[[9]]\n", "line 3: topic 't-1': the rating of 't-1' is 9"),
        ("t-1\n['a']\n[[9]\n", "line 3: topic 't-1'"),
        ("t-1\n['a']\n", "ratings of the last topic, 't-1', are missing"),
        ("nothing\n", "no topics"),
    ):
        with pytest.raises(FormatError, match=words):
            read_ratings(f"crux:{save('bad.log', bad)}")
