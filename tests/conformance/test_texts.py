"""Comparisons of texts against other implementations: rouge-score, and the SQuAD rules written down once more."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.text_match.overlap import exact_match, rouge_l, token_f1
from tests.strategies import examples

ODD = [
    "",
    " ",
    "the",
    "A an, THE!",
    "...",
    "’“”–…",
    "The theatre; an anthem: a-an",
    "don't  stop\tme\nnow\x0bplease\u00a0ok\u3000wide",
    "U.S.A. (1776) $5.00 50% _under_score_",
    "東京タワー。",
    "北京 和 上海",
    "서울특별시",
    "مرحبا بالعالم؟",
    "שלום עולם",
    "नमस्ते दुनिया।",
    "good 👍🏽 family 👨‍👩‍👧",
    "İstanbul ß ﬁne Ⅳ ²",
    "café cafe\u0301 naïve",
    "１２３ ａｂｃ",
    "x\u200by z\u00adw",
    "a" * 300,
    "one two three four five six seven eight nine ten " * 20,
]

WORDS = "the a an cat cats sat, on. mat! x-y café 1,000 it's THE"
TEXTS = st.one_of(
    st.sampled_from(ODD),
    st.lists(st.sampled_from(WORDS.split()), max_size=12).map(" ".join),
    st.text(max_size=30),
)
LATIN = st.one_of(
    st.sampled_from([text for text in ODD if not re.search(r"[\u0590-\u1fff\u3000-\uffff]", text)]),
    st.text(alphabet=st.characters(max_codepoint=0x24F), max_size=30),
)


def squad_tokens(text: str) -> list[str]:
    """SQuAD's rules, character by character: ASCII marks vanish, articles are whole words between non-words."""
    kept = "".join(c for c in text.lower() if not (c.isascii() and unicodedata.category(c)[0] in "PS"))
    pieces = re.split(r"(\W+)", kept)
    return "".join(" " if piece in ("a", "an", "the") else piece for piece in pieces).split()


def squad(text: str, accepted: list[str]) -> tuple[float, float]:
    """Exact match and F1 of the best accepted answer; the common tokens are struck out one by one."""
    best_match, best_f1 = 0.0, 0.0
    said = squad_tokens(text)
    for answer in accepted:
        wanted = squad_tokens(answer)
        left, common = list(wanted), 0
        for token in said:
            if token in left:
                left.remove(token)
                common += 1
        best_match = max(best_match, float(said == wanted))
        best_f1 = max(best_f1, 2 * common / (len(said) + len(wanted)) if common else 0.0)
    return best_match, best_f1


@examples(300)
@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_squad_on_any_text(text: str, accepted: list[str]) -> None:
    match, f1 = squad(text, accepted)
    assert exact_match(text, accepted, tokens="squad") == match
    assert token_f1(text, accepted, tokens="squad") == pytest.approx(f1, abs=1e-12)


@examples(300)
@given(LATIN, st.lists(LATIN, min_size=1, max_size=3))
def test_the_default_is_squads_on_latin_text(text: str, accepted: list[str]) -> None:
    match, f1 = squad(text, accepted)
    assert exact_match(text, accepted) == match
    assert token_f1(text, accepted) == pytest.approx(f1, abs=1e-12)


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_against_each_other(text: str) -> None:
    for other in ODD:
        assert (exact_match(text, [other], tokens="squad"), token_f1(text, [other], tokens="squad")) == (
            pytest.approx(squad(text, [other]), abs=1e-12)
        )


@pytest.fixture(scope="module")
def scorer() -> Any:
    return pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"], use_stemmer=False)


@pytest.mark.parametrize("text", ODD)
def test_rouge_l_of_odd_texts(scorer: Any, text: str) -> None:
    for other in ODD:
        assert rouge_l(text, [other]) == scorer.score(other, text)["rougeL"].fmeasure


@examples(300)
@given(text=TEXTS, accepted=st.lists(TEXTS, min_size=1, max_size=3))
def test_rouge_l_of_any_text(scorer: Any, text: str, accepted: list[str]) -> None:
    assert rouge_l(text, accepted) == max(scorer.score(one, text)["rougeL"].fmeasure for one in accepted)
