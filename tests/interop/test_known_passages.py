"""What retrievers bring and what the collection has: ids, texts, and either without the other."""

from __future__ import annotations

from typing import Any

import pytest

from ragworth.core.errors import InputError
from ragworth.data.collection import text_id
from ragworth.retrieval import retrieve
from tests.retrieval.samples import PASSAGES, QUERIES, passages, world


def test_ids_that_the_collection_does_not_have() -> None:
    made = retrieve({"s": lambda text: ["p1", "px"]}, world())
    assert any(note.endswith("1 passage not in the collection ('px')") for note in made.notes)
    with pytest.raises(InputError, match=r"none of 2 passages from .* is in the collection, such as 'the text'"):
        retrieve({"s": lambda text: ["the text", "another"]}, world())
    bare = retrieve({"s": lambda text: ["px"]}, world({}))
    assert not [note for note in bare.notes if "collection" in note]


def test_texts_of_the_collection_under_other_ids() -> None:
    def uuids(text: str) -> list[dict[str, str]]:
        return [{"id": f"3f2a-{key}", "text": PASSAGES[key]} for key in ("p2", "p1")]

    context = world()
    with pytest.raises(InputError) as caught:
        retrieve({"s": uuids}, context)
    assert caught.value.found.endswith(
        "is in the collection, such as '3f2a-p2' ('The mill was sold twice.'); the collection has its text as 'p2'"
    )
    assert caught.value.expected == "ids as the collection has them, such as 'p1'"
    assert 'or return texts without ids from a function, {"text": …}' in caught.value.remedy
    assert not context.returned_texts
    known = retrieve({"s": lambda text: ["p3", *uuids(text)]}, context)
    assert any(
        note.endswith("2 passages with a text that the collection has under another id ('3f2a-p2', '3f2a-p1')")
        for note in known.notes
    )
    nameless = retrieve({"s": lambda text: [{"text": each["text"]} for each in uuids(text)]}, world())
    assert passages(nameless, "s")["q1"] == ["p2", "p1"]
    assert not [note for note in nameless.notes if "collection" in note]


def test_texts_that_the_collection_does_not_have() -> None:
    def web(text: str) -> list[dict[str, str]]:
        return [{"id": "w1", "text": "From the web."}]

    with pytest.raises(InputError, match=r"such as 'w1' \('From the web.'\)"):
        retrieve({"s": web}, world())
    assert passages(retrieve({"s": web}, world({})), "s")["q1"] == ["w1"]
    context = world()
    mixed = retrieve({"s": lambda text: [{"id": "p1"}, *web(text)]}, context)
    assert passages(mixed, "s")["q1"] == ["p1", "w1"]
    assert any(note.endswith("1 passage not in the collection ('w1')") for note in mixed.notes)
    assert context.returned_texts == {"w1": "From the web."}


def test_a_text_without_an_id_is_the_passage_that_has_it() -> None:
    texts = {"p1": "one", "p2": "two", "p3": "two", "p4": "four"}
    hits = [("p4", "four"), ("", "one"), ("", "four"), ("", "two")]

    def mine(text: str) -> list[dict[str, Any]]:
        return [{"id": key or None, "text": words, "score": 1} for key, words in hits]

    made = retrieve({"s": mine}, world(texts, {"q": "x"}))
    # Equal scores go by the ids of the collection; a text that two passages have is neither of them.
    assert passages(made, "s")["q"] == [text_id("two"), "p4", "p1"]
    assert [note.partition(": ")[2] for note in made.notes] == [
        f"1 passage not in the collection ('{text_id('two')}')",
        "1 repeated hit for the same query left out ('q')",
    ]


def test_texts_that_come_along_become_passages() -> None:
    context = world({}, QUERIES, None)
    made = retrieve({"s": lambda text: [{"text": "Ann Lee built it."}, {"id": "n1", "text": "磨坊 🏭"}]}, context)
    assert dict(context.texts.passages.iter_rows()) == {
        text_id("Ann Lee built it."): "Ann Lee built it.",
        "n1": "磨坊 🏭",
    }
    assert not context.texts.unknown(made)
    with pytest.raises(InputError, match=r"b: .*: it or another system returned a second text for the passage 'n1'"):
        retrieve({"b": lambda text: [{"id": "n1", "text": "other"}]}, context)


def test_the_text_of_the_collection_counts() -> None:
    context = world()
    made = retrieve({"s": lambda text: [{"id": "p1", "text": "cut sho"}, {"id": "new", "text": "new"}]}, context)
    assert any("1 passage with another text than the collection's, which counts ('p1')" in note for note in made.notes)
    assert context.texts.passages.height == 6
    with pytest.raises(InputError, match=r"for the query 'q2' it returned a second text for the passage 'x'"):
        retrieve({"s": lambda text: [{"id": "x", "text": f"about {text}"}]}, context)
    with pytest.raises(InputError, match="two texts have the same id, 'p1'"):
        retrieve({"s": lambda text: [{"id": "p1", "text": "a"}, {"id": "p1", "text": "b"}]}, context)
