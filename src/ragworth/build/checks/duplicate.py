"""``duplicate``: no earlier question asks the same. By wording, and by meaning where an encoder is installed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import polars as pl

from ragworth.build.checks.contract import Check, CheckFinding, Evidence
from ragworth.build.near_duplicates import Floats, jaccard, minhash_pairs, shingles, vector_pairs
from ragworth.build.question_set import Question
from ragworth.errors import quote_short
from ragworth.text_match.short_answers import grade_short_answer

MAX_SHINGLED = 4096
"""Texts whose shingles are in memory at a time."""
NUMBER = re.compile(r"\d[\d.,]*")
WORD = re.compile(r"[\w'’-]+")
_POLITE = "please can could would you tell me i'd like to know do quick question the a an hi hello"
POLITE_WORDS = frozenset(_POLITE.split())
"""Words that don't make another question."""


@dataclass(frozen=True)
class NoDuplicate(Check):
    """The similarity to the most similar earlier question: cosine of the encoder, or overlap of characters.

    Questions with different numbers, or whose accepted answers disagree, aren't duplicates, however alike they are.
    """

    wording: float = 0.8
    meaning: float = 0.92

    name: ClassVar[str] = "duplicate"
    title: ClassVar[str] = "no near-duplicate of an earlier question"
    measures: ClassVar[str] = "similarity to an earlier question"

    def find_all(self, evidence: Evidence) -> list[CheckFinding]:
        questions = evidence.questions.questions
        texts = [question.standalone for question in questions]
        plain = [" ".join(_words(text)) or text for text in texts]
        best: dict[int, tuple[float, int]] = {}
        grams = lru_cache(MAX_SHINGLED)(lambda number: shingles(plain[number]))
        for one, other in minhash_pairs(plain):
            self._compare(best, questions, one, other, jaccard(grams(one), grams(other)), self.wording)
        missing = evidence.missing.get("encoder", "")
        if not missing and texts:
            vectors = encode_questions(texts, evidence.encoder)
            for one, other, cosine in vector_pairs(vectors, self.meaning):
                self._compare(best, questions, one, other, cosine, self.meaning)
        how = f"compared by wording only: {missing}" if missing else ""
        return [self._finding(best.get(number), questions, how) for number in range(len(questions))]

    def _compare(
        self,
        best: dict[int, tuple[float, int]],
        questions: Sequence[Question],
        one: int,
        other: int,
        value: float,
        least: float,
    ) -> None:
        """Note the pair if it is alike enough, and more than what is known."""
        known = best.get(other, (0.0, -1))[0]
        if value >= least and value > known and _same_request(questions[one], questions[other]):
            best[other] = (value, one)

    def _finding(self, best: tuple[float, int] | None, questions: Sequence[Question], how: str) -> CheckFinding:
        if best is None:
            return CheckFinding("pass", None, how)
        first = questions[best[1]]
        return CheckFinding("fail", best[0], f"near-duplicate of {first.id}: {quote_short(first.text, 80)}")


def _same_request(one: Question, other: Question) -> bool:
    """Whether two similar questions may ask the same: equal numbers and names, and answers that don't disagree."""
    if not _same_names(one.standalone, other.standalone):
        return False
    if sorted(NUMBER.findall(one.standalone)) != sorted(NUMBER.findall(other.standalone)):
        return False
    if not one.answers or not other.answers:
        return bool(one.answers) == bool(other.answers)
    return any(
        answer.strip() and grade_short_answer(answer, accepted.answers, question=accepted.standalone).label == "correct"
        for answers, accepted in ((one.answers, other), (other.answers, one))
        for answer in answers
    )


def _words(text: str) -> list[str]:
    return [word.casefold() for word in WORD.findall(text) if word.casefold() not in POLITE_WORDS]


def _same_names(one: str, other: str) -> bool:
    """Whether each names what the other names. A name is a capitalised word that doesn't begin the question."""
    words = [set(_words(text)) for text in (one, other)]
    names = [{word.casefold() for word in WORD.findall(text)[1:] if word[0].isupper()} for text in (one, other)]
    return names[0] - POLITE_WORDS <= words[1] and names[1] - POLITE_WORDS <= words[0]


def encode_questions(texts: Sequence[str], encoder: str) -> Floats:
    """Unit vectors of questions."""
    from ragworth.retrieval.encoders import open_encoder
    from ragworth.retrieval.encoders.vector_cache import load_vectors

    return load_vectors(open_encoder(encoder), pl.Series(list(texts), dtype=pl.String))
