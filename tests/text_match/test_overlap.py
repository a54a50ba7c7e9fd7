"""Comparisons of a text with accepted answers: hand-worked values, properties, and scripts without blanks."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.core.errors import InputError
from ragworth.text_match.overlap import (
    COMPARISONS,
    containment,
    exact_match,
    longest_common_subsequence,
    rouge_l,
    split_words,
    squad_normalise,
    token_f1,
)

TEXTS = st.text(alphabet=st.sampled_from(list("abT the.,!12é中の한👍🏽ا؟ｗ、\u0e01\u0e31 \n'’")), max_size=24)


def test_normalise_is_squads() -> None:
    assert squad_normalise("The  Eiffel-Tower, (a) an AN\tit's!") == "eiffeltower its"
    assert squad_normalise("the a an ...") == ""
    # Not ASCII punctuation, so SQuAD keeps it.
    assert squad_normalise("“Über” – Ätsch") == "“über” – ätsch"


def test_exact_match() -> None:
    assert exact_match("The Beatles!", ["rolling stones", "beatles"]) == 1.0
    assert exact_match("Beatles songs", ["beatles"]) == 0.0
    # Nothing is left of either: the same, as in SQuAD.
    assert exact_match("the", ["a..."]) == 1.0


def test_f1_by_hand() -> None:
    # cat sat on mat | cat on mat: 3 in common, precision 3/4, recall 3/3, F1 = 2 · 3/4 · 1 / (7/4) = 6/7.
    assert token_f1("The cat sat on the mat", ["a cat on the mat"]) == pytest.approx(6 / 7, abs=1e-15)
    # Tokens count with repetition: "x x y" and "x y y" share x once and y once, 2/3 and 2/3.
    assert token_f1("x x y", ["x y y"]) == pytest.approx(2 / 3, abs=1e-15)
    assert token_f1("Paris", ["London", "Paris, France"]) == pytest.approx(2 / 3, abs=1e-15)
    assert token_f1("the", ["the"]) == 0.0


def test_containment_is_by_whole_tokens() -> None:
    assert containment("It was Paris, of course.", ["paris"]) == 1.0
    assert containment("Nobody knows", ["no"]) == 0.0
    assert containment("new york and jersey", ["New Jersey"]) == 0.0
    assert containment("anything", ["the"]) == 0.0
    assert containment("An", ["the"]) == 1.0


def test_rouge_l_by_hand() -> None:
    # police kill the gunman | police killed the gunman: 3 of 4 tokens in order on both sides, F = 3/4.
    assert rouge_l("police kill the gunman", ["police killed the gunman"]) == pytest.approx(0.75, abs=1e-15)
    # the gunman kill police: "the gunman" is the longest, 2/4 and 2/4.
    assert rouge_l("the gunman kill police", ["police killed the gunman"]) == pytest.approx(0.5, abs=1e-15)
    assert rouge_l("", ["x"]) == rouge_l("x", ["…"]) == 0.0


def test_scripts_without_blanks_have_a_token_a_character() -> None:
    # 東京都 | 東京: 2 in common, precision 2/3, recall 1, F1 = 4/5. SQuAD sees two different words.
    assert token_f1("東京都", ["東京"]) == pytest.approx(0.8, abs=1e-15)
    assert token_f1("東京都", ["東京"], tokens="squad") == 0.0
    assert exact_match("東京。", ["東京"]) == 1.0
    assert exact_match("東京。", ["東京"], tokens="squad") == 0.0
    assert containment("それは東京タワーです", ["東京タワー"]) == 1.0
    assert rouge_l("東京都", ["東京"]) == 0.0
    assert rouge_l("東京都", ["東京"], tokens="unicode") == pytest.approx(0.8, abs=1e-15)
    assert COMPARISONS["rouge-l-unicode"]("東京都", ["東京"]) == pytest.approx(0.8, abs=1e-15)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ＡＢＣ　１２", ["abc", "12"]),
        ("iPhone15を買う", ["iphone15", "を", "買", "う"]),
        ("สวัสดี", ["ส", "วั", "ส", "ดี"]),
        ("هل باريس؟", ["هل", "باريس"]),
        ("दिल्ली।", ["दिल्ली"]),
        ("서울 타워", ["서울", "타워"]),
        ("good 👍🏽 job", ["good", "👍🏽", "job"]),
        ("“quoted” – dash", ["“quoted”", "–", "dash"]),
    ],
)
def test_words_of_other_scripts(text: str, expected: list[str]) -> None:
    assert split_words(text) == expected


@pytest.mark.parametrize("name", COMPARISONS)
@given(text=TEXTS, accepted=st.lists(TEXTS, min_size=1, max_size=3))
def test_values_are_from_0_to_1_and_the_best_counts(name: str, text: str, accepted: list[str]) -> None:
    compare = COMPARISONS[name]
    value = compare(text, accepted)
    assert 0.0 <= value <= 1.0
    assert value == max(compare(text, [one]) for one in accepted)
    assert compare(text, accepted[::-1]) == value


@given(text=TEXTS)
def test_a_text_is_equal_to_itself(text: str) -> None:
    assert exact_match(text, [text]) == containment(text, [text]) == 1.0
    whole = 1.0 if split_words(text) else 0.0
    assert token_f1(text, [text]) == rouge_l(text, [text], tokens="unicode") == whole


@given(text=TEXTS, other=TEXTS)
def test_f1_and_rouge_do_not_depend_on_the_side(text: str, other: str) -> None:
    for compare in (token_f1, rouge_l, partial(rouge_l, tokens="unicode")):
        assert compare(text, [other]) == pytest.approx(compare(other, [text]), abs=1e-12)
    # A subsequence is a selection.
    assert rouge_l(text, [other], tokens="unicode") <= token_f1(text, [other]) + 1e-12


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_longest_common_is_the_tables(first: list[str], second: list[str]) -> None:
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
    assert longest_common_subsequence(first, second) == table[-1][-1]


@pytest.mark.parametrize("name", COMPARISONS)
def test_no_accepted_answers_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="no accepted answers"):
        COMPARISONS[name]("x", [])
    with pytest.raises(InputError, match="are one text"):
        COMPARISONS[name]("x", "yes")


@pytest.mark.parametrize("compare", [exact_match, token_f1, containment, rouge_l])
def test_unknown_tokens_are_refused(compare: Any) -> None:
    with pytest.raises(InputError, match="unknown tokens 'chars'"):
        compare("x", ["x"], tokens="chars")
