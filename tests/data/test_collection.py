"""Collections: texts and ground truth, and what is noticed about them."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from ragworth import Collection, Judgments, Ratings
from ragworth.core.errors import TableError
from ragworth.data.collection import merge_collections, text_id

QUERIES = {"query": ["q1", "q2"], "text": ["why?", "who?"]}
PASSAGES = {"doc_id": ["d1", "d2"], "text": ["one", "two, three."]}


def test_everything() -> None:
    collection = Collection.of(
        queries=QUERIES,
        passages=PASSAGES,
        answers={"query": ["q1", "q1"], "text": ["so", "that is why"]},
        subquestions={"query": ["q1", "q2"], "subquestion": ["1", "1"], "text": ["since when?", "who else?"]},
        relevance={"q1": {"d1": 1}},
        ratings={"query": ["q1"], "passage": ["d2"], "subquestion": ["1"], "value": [4]},
        notes=("a note",),
    )
    assert collection.queries.rows() == [("q1", "why?"), ("q2", "who?")]
    assert collection.passages.rows() == [("d1", "one"), ("d2", "two, three.")]
    assert collection.passages.columns == ["passage", "text"]
    assert collection.answers.rows() == [("q1", "so"), ("q1", "that is why")]
    assert collection.subquestions.rows() == [("q1", "1", "since when?"), ("q2", "1", "who else?")]
    assert isinstance(collection.relevance, Judgments)
    assert isinstance(collection.ratings, Ratings)
    assert collection.notes == ("a note",)


def test_any_part_may_be_absent() -> None:
    empty = Collection()
    assert empty.equals(Collection.of())
    assert empty.queries.columns == ["query", "text"]
    assert empty.passages.columns == ["passage", "text"]
    assert empty.answers.columns == ["query", "text"]
    assert empty.subquestions.columns == ["query", "subquestion", "text"]
    assert empty.relevance is None
    assert empty.tokens().height == 0


def test_tables_are_taken_as_they_are() -> None:
    relevance = Judgments({"q1": {"d1": 1}})
    assert Collection.of(relevance=relevance).relevance is relevance


@pytest.mark.parametrize("part", ["queries", "passages"])
@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"id": ["a", "a"], "text": ["x", "y"]}, "row 2: second text for .* 'a'"),
        ({"id": ["a", "b"], "text": ["x", None]}, "row 2: column 'text' has no text"),
        ({"id": ["a", "b"], "text": [None, None]}, "row 1: column 'text' has no text"),
        ({"id": ["a", "b"]}, "need a 'text' column"),
        ({"id": ["a", "b"], "text": [1, 2]}, "text"),
        ({"id": ["a", None], "text": ["x", "y"]}, "row 2: the .* id is missing"),
        ({"id": ["a", ""], "text": ["x", "y"]}, "row 2: the .* id is empty"),
        ({"other": ["a"], "text": ["x"]}, "needs a '(query|passage)' column"),
    ],
)
def test_texts_that_are_none(part: str, columns: dict[str, Any], found: str) -> None:
    key = "query" if part == "queries" else "passage"
    given: Any = {key if name == "id" else name: values for name, values in columns.items()}
    with pytest.raises(TableError, match=found) as caught:
        Collection.of(**{part: given}, source="corpus.jsonl")
    assert caught.value.file == "corpus.jsonl"


def test_empty_texts_are_texts() -> None:
    empty = Collection.of(passages={"passage": ["d"], "text": [""]})
    assert empty.tokens().select("passage", "tokens").rows() == [("d", 0)]


def test_ids_nobody_knows_are_noted() -> None:
    collection = Collection.of(
        queries=QUERIES,
        passages=PASSAGES,
        answers={"query": ["q9"], "text": ["so"]},
        relevance={"q1": {f"x{i}": 1 for i in range(5)}, "q8": {"d1": 0}},
        ratings={"query": ["q1"], "passage": ["y"], "subquestion": ["1"], "value": [4]},
    )
    assert list(collection.notes) == [
        "1 query judged but without text ('q8')",
        "1 query answered but without text ('q9')",
        "5 passages judged but without text ('x0', 'x1', 'x2')",
        "1 passage rated but without text ('y')",
    ]


def test_nothing_is_strange_where_no_texts_were_given() -> None:
    assert Collection.of(relevance={"q1": {"d1": 1}}).notes == ()


def test_tokens() -> None:
    texts = {"one two": 2, "two, three.": 4, "": 0, "naïve 文書 42": 3, "it's": 3, "a\nb\tc": 3, "😀!": 2}
    collection = Collection.of(passages={"passage": [str(i) for i in range(len(texts))], "text": list(texts)})
    assert collection.tokens()["tokens"].to_list() == list(texts.values())


def test_equals() -> None:
    def made(**changes: Any) -> Collection:
        parts: dict[str, Any] = {"queries": QUERIES, "passages": PASSAGES, "relevance": {"q1": {"d1": 1}}}
        return Collection.of(**(parts | changes))

    assert made().equals(made())
    # Notes are about the way here, not about what is in it.
    assert made().equals(made(notes=("x",)))
    for other in (
        made(queries={"query": ["q1"], "text": ["why?"]}),
        made(relevance={"q1": {"d1": 0}}),
        made(relevance=None),
        made(answers={"query": ["q1"], "text": ["so"]}),
        made(ratings={"query": ["q1"], "passage": ["d1"], "subquestion": ["1"], "value": [4]}),
    ):
        assert not made().equals(other)


def test_pandas_and_polars_are_welcome() -> None:
    pandas = pytest.importorskip("pandas")
    from_pandas = Collection.of(queries=pandas.DataFrame({"qid": ["q1"], "text": ["why?"]}))
    from_polars = Collection.of(queries=pl.DataFrame({"qid": ["q1"], "text": ["why?"]}))
    assert from_pandas.equals(from_polars)
    assert from_polars.queries.rows() == [("q1", "why?")]


def test_text_ids() -> None:
    """Equal texts are one passage, now and in later versions: the ids stand in people's files."""
    assert text_id("one") == text_id("one") == "text:7692c3ad3540bb80"
    assert text_id("one") != text_id("one ")
    assert text_id("")
    assert text_id("\ud800")  # half a character has no place in a file, but must not stop the reader


def test_empty_texts_and_questions_that_differ_in_case_or_spaces_are_noted() -> None:
    texts = ["Who was it?", "who  was it? ", "Who was she?", "Who was she?", "What is 5²?", "What is 52?"]
    collection = Collection.of(
        queries=[{"query": f"q{at}", "text": text} for at, text in enumerate(texts)],
        passages=[{"passage": f"p{at}", "text": "  " if at else "text"} for at in range(6)],
    )
    assert collection.doubtful_text_notes() == [
        "5 of 6 passages have an empty text ('p1', 'p2', 'p3' and 2 more)",
        "1 question differs from another only in case, spaces, quotes or dashes, and counts as different "
        "('who  was it? ')",
    ]
    texts = ["Is “Für” – ‘so’?", "is \"Fu\u0308r\" -\u00a0'so'?"]
    notes = Collection.of(queries={"query": ["q1", "q2"], "text": texts}).doubtful_text_notes()
    assert len(notes) == 1 and notes[0].startswith("1 question differs")


def test_forms_of_unicode_do_not_make_another_question() -> None:
    parts = [Collection.of(queries={"query": ["q"], "text": [text]}) for text in ("Für wen?", "Fu\u0308r  wen?")]
    assert merge_collections(parts).queries["text"].to_list() == ["Für wen?"]
