"""Texts of one mark or word again and again: no pattern takes more than linear time."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from ragworth.text_match.languages import identify_language
from ragworth.text_match.markup import unwrapped, without_marks, without_markup
from ragworth.text_match.matching import match_answer, to_matchable
from ragworth.text_match.normalise import canonical_words, fold_accents, read_pieces
from ragworth.text_match.overlap import rouge_l, token_f1
from ragworth.text_match.quantities import read_hints, read_quantities
from ragworth.text_match.refusals import find_refusal
from ragworth.text_match.sentences import parse_citations, sentences, without_citations
from ragworth.text_match.short_answers import grade_short_answer
from tests.tiers import slow

LENGTH = 50_000
SECONDS = 4.0
"""CPU time: quadratic time would be minutes."""

FUNCTIONS: dict[str, Callable[[str], object]] = {
    "answer": lambda text: grade_short_answer(f"x{text}", ["5 cats"], question="Is it so?"),
    "accepted": lambda text: grade_short_answer("Paris has 5.", [f"x{text}"], question="Is it so?"),
    "polarity": lambda text: grade_short_answer(f"x{text}", ["Yes, it is."], question=f"Is it so? {text}"),
    "refusal": find_refusal,
    "words": canonical_words,
    "accents": fold_accents,
    "match": lambda text: match_answer(to_matchable(text), "John F. Smith Jones, 1998"),
    "quantities": lambda text: read_quantities(read_pieces(text)),
    "hints": read_hints,
    "citations": lambda text: parse_citations(text, ["a", "b"]),
    "without citations": without_citations,
    "without marks": without_marks,
    "sentences": sentences,
    "sentence after a word": lambda text: sentences(f"It.{text}x"),
    "markup": without_markup,
    "unwrapped": unwrapped,
    "overlap": lambda text: (rouge_l(text, ["Paris"]), token_f1(text, ["Paris"])),
    "language": identify_language,
}
PIECES = [
    *(".", "\n", " ", "1", "a", '"', "[1", "1 ", "Mr. ", ". \n"),
    *slow("(", ")", "[", "]", ",", "-", "一", "十", "'", "“", "*", "$", "\\(", "<s>", "&", "`", "~~", "a.", "a ", "1,"),
    *slow("1.", ".1", "- ", "[1]", "(1)", "\n\n", "\t ", "!?", "。", "é́", "x^", "1/", "one ", "5 June ", "10^", "\\"),
    *slow("{", "<answer>", "(source", "【", "but ", "no ", "</think>", "1. a\n", "yes", "Yes. ", "A, B and "),
]


@pytest.mark.parametrize("piece", PIECES)
def test_time_grows_with_the_length(piece: str) -> None:
    text = (piece * (LENGTH // len(piece) + 1))[:LENGTH]
    for name, function in FUNCTIONS.items():
        start = time.process_time()
        function(text)
        assert time.process_time() - start < SECONDS, name
