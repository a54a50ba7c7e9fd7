"""Several collections as one: what agrees is kept once, what does not is an error."""

from __future__ import annotations

from typing import Any

import pytest

from ragworth import Collection
from ragworth.core.errors import TableError
from ragworth.data.collection import merge_collections


def queries(**texts: str) -> Collection:
    return Collection.of(queries={"query": list(texts), "text": list(texts.values())})


def passages(**texts: str) -> Collection:
    return Collection.of(passages={"passage": list(texts), "text": list(texts.values())})


def answers(*pairs: tuple[str, str]) -> Collection:
    return Collection.of(answers={"query": [q for q, _ in pairs], "text": [text for _, text in pairs]})


def subquestions(*rows: tuple[str, str, str]) -> Collection:
    names = ("query", "subquestion", "text")
    return Collection.of(subquestions={name: [row[n] for row in rows] for n, name in enumerate(names)})


def relevance(**values: int) -> Collection:
    return Collection.of(
        relevance={"query": ["q1"] * len(values), "passage": list(values), "value": list(values.values())}
    )


RATED: dict[str, Any] = {"query": ["q1"], "passage": ["p1"], "subquestion": ["a"], "value": [3]}


def test_nothing_and_one() -> None:
    assert merge_collections([]).equals(Collection())
    one = queries(q1="Who?")
    assert merge_collections([one]).equals(one)
    assert merge_collections([Collection(), one, Collection()]).equals(one)


def test_parts_come_together_in_their_order() -> None:
    found = merge_collections(
        [
            queries(q2="Who?"),
            passages(p1="x"),
            answers(("q1", "Ann")),
            queries(q1="When?"),
            subquestions(("q1", "a", "Who?")),
            relevance(p1=1),
            Collection.of(ratings=RATED),
            passages(p0="y"),
        ]
    )
    assert found.queries.rows() == [("q2", "Who?"), ("q1", "When?")]
    assert found.passages.rows() == [("p1", "x"), ("p0", "y")]
    assert found.answers.rows() == [("q1", "Ann")]
    assert found.subquestions.rows() == [("q1", "a", "Who?")]
    assert found.relevance is not None
    assert len(found.relevance) == 1
    assert found.ratings is not None
    assert len(found.ratings) == 1


def test_the_same_text_may_come_twice() -> None:
    found = merge_collections([queries(q1="Who?", q2="When?"), queries(q2="When?", q3="Why?"), queries(q1="Who?")])
    assert found.queries.rows() == [("q1", "Who?"), ("q2", "When?"), ("q3", "Why?")]
    parts = [subquestions(("q1", "a", "Who?")), subquestions(("q1", "a", "Who?"), ("q2", "a", "Which?"))]
    assert merge_collections(parts).subquestions.rows() == [("q1", "a", "Who?"), ("q2", "a", "Which?")]


def test_accepted_answers_add_up() -> None:
    found = merge_collections(
        [answers(("q1", "Ann"), ("q1", "Lee")), answers(("q1", "Ann"), ("q1", "A. Lee"), ("q2", "Ann"))]
    )
    assert found.answers.rows() == [("q1", "Ann"), ("q1", "Lee"), ("q1", "A. Lee"), ("q2", "Ann")]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([queries(q1="Who?"), queries(q1="Who is it?")], "query 'q1'"),
        ([passages(p1="x", p2="y"), Collection(), passages(p2="z")], "passage 'p2'"),
        ([subquestions(("q1", "a", "Who?")), subquestions(("q1", "a", "When?"))], "subquestion 'a'"),
    ],
    ids=["queries", "passages", "subquestions"],
)
def test_two_texts_for_one_id_are_an_error(parts: list[Collection], words: str) -> None:
    with pytest.raises(TableError, match="two texts") as caught:
        merge_collections(parts)
    assert words in str(caught.value)
    assert caught.value.remedy


def test_relevance_adds_up_unless_a_passage_is_judged_twice() -> None:
    found = merge_collections([relevance(p1=1), relevance(p2=0)]).relevance
    assert found is not None
    assert found.frame["passage"].to_list() == ["p1", "p2"]
    with pytest.raises(TableError, match="second row"):
        merge_collections([relevance(p1=1), relevance(p1=0)])


def test_ratings_come_from_one_place() -> None:
    with pytest.raises(TableError, match="more than one place"):
        merge_collections([Collection.of(ratings=RATED), Collection.of(ratings=RATED)])


def test_notes_are_kept_once() -> None:
    one, two = Collection(notes=("a", "b")), Collection(notes=("b", "c"))
    assert merge_collections([one, two]).notes == ("a", "b", "c")


def test_different_accepted_answers_are_noted() -> None:
    parts = [
        queries(q1="Who?", q2="When?"),
        answers(("q1", "Ann"), ("q2", "1958")),
        answers(("q1", "Bob"), ("q2", "1958")),
    ]
    (note,) = merge_collections(parts).notes
    assert "different accepted answers to 1 query ('Who?')" in note
    assert not merge_collections([parts[1], answers(("q3", "Ines"))]).notes
