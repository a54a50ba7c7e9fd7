"""Small changes to texts, each by an example."""

from __future__ import annotations

import random

import pytest
from training.reader.texts import holds, keywords, kind_of, replaced, sentences, snippet, styled, without

TEXT = (
    "The mill stands by the river and grinds corn for all the bakers of the valley. Ann Lee built it in 1820. "
    "It burned down twice! Was it rebuilt? (Yes, in 1901.)"
)


def test_sentences() -> None:
    assert sentences(TEXT) == [
        "The mill stands by the river and grinds corn for all the bakers of the valley.",
        "Ann Lee built it in 1820.",
        "It burned down twice!",
        "Was it rebuilt?",
        "(Yes, in 1901.)",
    ]
    assert sentences("It cost 3.5 million, e.g. for stone.") == ["It cost 3.5 million, e.g. for stone."]


def test_an_answer_is_found_as_whole_words_and_as_the_text_spells_it() -> None:
    assert holds(["ann lee"], TEXT) == "Ann Lee"
    assert holds(["Ann Lee", "lee"], TEXT) == "Lee"  # the shortest
    assert holds(["182", "An", "mil"], TEXT) is None
    assert holds([" twice "], TEXT) == "twice"
    assert holds(["", " "], TEXT) is None
    assert holds(["C++ (old)"], "It is in C++ (old) style") == "C++ (old)"


def test_a_text_without_its_answer() -> None:
    left = "The mill stands by the river and grinds corn for all the bakers of the valley. It burned down twice!"
    assert without(["Ann Lee"], TEXT) == f"{left} Was it rebuilt? (Yes, in 1901.)"
    assert without(["Ann Lee", "1901"], TEXT) == f"{left} Was it rebuilt?"
    assert without(
        ["it"], TEXT
    ) == "The mill stands by the river and grinds corn for all the bakers of the valley. " + ("(Yes, in 1901.)")
    assert without(["mill", "it"], TEXT) is None  # three words are too little


def test_pieces_are_parts_of_a_text() -> None:
    words = " ".join(f"w{number}" for number in range(200))
    draw = random.Random(0)
    for around in [None, "w3", "w100", "w198"] * 50:
        piece = snippet(words, around, draw)
        bare = piece.removeprefix("... ").removesuffix(" ...")
        assert f" {bare} " in f" {words} "
        assert 18 <= len(bare.split()) <= 45
    assert snippet("a short text", "short", draw) == "a short text"
    for around in ("w0", "w100 w101 w102", "w199", "w150 " + " ".join(f"w{n}" for n in range(151, 199))):
        pieces = [snippet(words, around, random.Random(seed)) for seed in range(200)]
        assert all(f" {around} " in f" {piece} " for piece in pieces)
        assert len(set(pieces)) >= 4


def test_another_answer_in_the_place_of_the_right_one() -> None:
    assert replaced("Ann Lee came. ann lee went. Ann Leeds stayed.", "Ann Lee", r"\1 Bob") == (
        r"\1 Bob came. \1 Bob went. Ann Leeds stayed."
    )
    assert replaced(TEXT, "Bob", "Ann") is None


@pytest.mark.parametrize(
    ("question", "typed"),
    [
        ("who built the mill of Larkmoor?", "built mill Larkmoor"),
        ("How many people live in Żory", "people live Żory"),
        ("When did it?", "When did it?"),  # too little would be left
    ],
)
def test_key_words(question: str, typed: str) -> None:
    assert keywords(question) == typed


def test_questions_come_in_every_style() -> None:
    draw = random.Random(0)
    found = {styled("who built the old mill ?", draw) for _ in range(300)}
    plain = {"who built the old mill", "Who built the old mill?", "built old mill"}
    assert plain < found
    assert "Can you tell me who built the old mill?" in found
    assert len(found - plain) == 5


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("1820", "year"),
        ("2099", "year"),
        ("12,450", "number"),
        ("May 5, 1901", "date"),
        ("40 km", "measure"),
        ("Ann", "name1"),
        ("Ann van der Lee", "name3"),
        ("the wheel", "words2"),
    ],
)
def test_kinds_of_answers(answer: str, kind: str) -> None:
    assert kind_of(answer) == kind
