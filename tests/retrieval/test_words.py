"""Texts as words."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.retrieval.words import STEMMERS, STOPWORDS, WordTokenizer


def words(text: str, way: WordTokenizer | None = None) -> list[str]:
    vocabulary: dict[str, int] = {}
    (numbers,) = (way or WordTokenizer()).split(pl.Series([text]), vocabulary, grow=True)
    names = list(vocabulary)
    return [names[number] for number in numbers]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n,.!? ", []),
        ("The mill, the MILL.", ["the", "mill", "the", "mill"]),
        ("don't pay 1,450 for x_1", ["don", "t", "pay", "1", "450", "for", "x_1"]),
        ("हिन्दी", ["हिन्दी"]),  # vowel signs and the virama are marks, and stay
        ("黒猫", ["黒", "猫", "黒猫"]),
        ("a猫b", ["a", "猫", "b"]),
        ("ดีๆ", ["ดี", "ๆ", "ดีๆ"]),
        ("e\u0301", ["\u00e9"]),
        ("ＡＢ①", ["ab1"]),
        ("Straße STRASSE Stra\u00adße", ["strasse"] * 3),
        ("ΛΟΓΟΣ λογος", ["λογοσ"] * 2),
        ("탑의 높이", ["탑", "의", "탑의", "높", "이", "높이"]),
    ],
)
def test_taken_apart(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.lists(st.text(), max_size=5))
def test_texts_do_not_mix(texts: list[str]) -> None:
    vocabulary: dict[str, int] = {}
    together = list(WordTokenizer().split(pl.Series(texts, dtype=pl.String), vocabulary, grow=True))
    names = list(vocabulary)
    assert [[names[number] for number in numbers] for numbers in together] == [words(text) for text in texts]


@given(st.text())
def test_unknown_words_are_left_out(text: str) -> None:
    vocabulary = {"mill": 0}
    (numbers,) = WordTokenizer().split(pl.Series([f"{text} mill"]), vocabulary, grow=False)
    assert set(numbers) == {0}
    assert vocabulary == {"mill": 0}


def test_stop_words_of_every_language() -> None:
    for language in STOPWORDS:
        assert WordTokenizer(stopwords=language)._stops
    assert words("Who is the miller", WordTokenizer(stopwords="english")) == ["miller"]


def test_stemmers_of_every_language() -> None:
    stemmer = pytest.importorskip("Stemmer")
    assert set(STEMMERS) <= set(stemmer.algorithms())
    assert words("milling mills", WordTokenizer(stemmer="english")) == ["mill", "mill"]
    # Stop words are those of the text, not their stems.
    assert words("being mills", WordTokenizer("english", "english")) == ["mill"]
