"""``duplicate``: no earlier question asks the same. By wording, and by meaning where an encoder is installed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import polars as pl

from ragworth.build.checks.contract import Check, CheckFinding, Evidence
from ragworth.build.near_duplicates import (
    Floats,
    block_pairs,
    jaccard,
    minhash_pairs,
    shingles,
    vector_pairs,
)
from ragworth.build.question_set import Question
from ragworth.errors import quote_short
from ragworth.text_match.short_answers import grade_short_answer

MAX_SHINGLED = 4096
"""Texts whose shingles are in memory at a time."""
NUMBER = re.compile(r"\d[\d.,]*")
WORD = re.compile(r"[\w'’-]+")
_POLITE = "please can could would you tell me i i'd like to know do quick question the a an hi hello"
POLITE_WORDS = frozenset(_POLITE.split())
"""Words that don't make another question."""


class Similar(NamedTuple):
    """An earlier question that asks the same, by its place, and how similar it is."""

    similarity: float
    place: int


@dataclass(frozen=True)
class NoDuplicate(Check):
    """The similarity to the most similar earlier question: cosine of the encoder, or overlap of characters or words.

    Questions with different names or numbers, or whose accepted answers disagree, aren't duplicates, however alike they
    are. Two questions on the same source with the same answer need less similarity, since paraphrases differ in words.
    """

    wording: float = 0.8
    meaning: float = 0.92
    same_span: float = 0.75
    """Cosine of questions that rest on the same quotation."""
    same_passages: float = 0.85
    """Cosine of questions on the same passages, where no quotations are known."""
    same_span_words: float = 0.35
    """Share of the shorter question's words that are in the other one; without an encoder, for the same quotation."""

    name: ClassVar[str] = "duplicate"
    title: ClassVar[str] = "no near-duplicate of an earlier question"
    measures: ClassVar[str] = "similarity to an earlier question"

    def find_all(self, evidence: Evidence) -> list[CheckFinding]:
        questions = evidence.questions.questions
        missing = evidence.missing.get("encoder", "")
        similar: dict[int, dict[int, float]] = {}
        encoder = "" if missing or not questions else evidence.encoder
        vectors = encode_questions(_texts(questions), encoder) if encoder else None
        for one, other, value in self._alike(questions, vectors):
            known = similar.get(other, {}).get(one, 0.0)
            if value > known and (known or _same_request(questions[one], questions[other])):
                similar.setdefault(other, {})[one] = value
        how = f"compared by wording only: {missing}" if missing else ""
        return [_finding(similar.get(number, {}), questions, how) for number in range(len(questions))]

    def _alike(self, questions: Sequence[Question], vectors: Floats | None) -> Iterator[tuple[int, int, float]]:
        """Pairs that are alike enough to ask the same, the earlier one first. A pair may come more than once."""
        plain = [plain_question(text) for text in _texts(questions)]
        grams = lru_cache(MAX_SHINGLED)(lambda number: shingles(plain[number]))
        for one, other in minhash_pairs(plain):
            if (overlap := jaccard(grams(one), grams(other))) >= self.wording:
                yield one, other, overlap
        if vectors is not None:
            yield from vector_pairs(vectors, self.meaning)
        for one, other in block_pairs([each.passages for each in questions]):
            spans = [set(each.spans) for each in (questions[one], questions[other])]
            if all(spans) and not spans[0] & spans[1]:
                continue
            if vectors is not None:
                value = float(vectors[one] @ vectors[other])
                least = self.same_span if all(spans) else self.same_passages
            else:
                value, least = _shared_words(plain[one], plain[other]), self.same_span_words if all(spans) else 2.0
            if value >= least:
                yield one, other, value


def _texts(questions: Sequence[Question]) -> list[str]:
    return [question.text for question in questions]


def _finding(similar: dict[int, float], questions: Sequence[Question], how: str) -> CheckFinding:
    if not similar:
        return CheckFinding("pass", None, how)
    ranked = sorted((Similar(value, place) for place, value in similar.items()), key=lambda each: -each.similarity)
    first = questions[ranked[0].place]
    reason = f"near-duplicate of {first.id}: {quote_short(first.text, 80)}"
    return CheckFinding("fail", ranked[0].similarity, reason, tuple(questions[each.place].id for each in ranked))


def _same_request(one: Question, other: Question) -> bool:
    """Whether two similar questions may ask the same: equal numbers and names, and answers that don't disagree."""
    if not _same_names(one.text, other.text):
        return False
    if sorted(NUMBER.findall(one.text)) != sorted(NUMBER.findall(other.text)):
        return False
    if not one.answers or not other.answers:
        return bool(one.answers) == bool(other.answers)
    return any(
        answer.strip() and grade_short_answer(answer, accepted.answers, question=accepted.text).label == "correct"
        for answers, accepted in ((one.answers, other), (other.answers, one))
        for answer in answers
    )


def plain_question(text: str) -> str:
    """The words that make a question another one, without case and marks."""
    return " ".join(_words(text)) or text


def _words(text: str) -> list[str]:
    words = (re.sub("['’]s$", "", word.casefold()) for word in WORD.findall(text))
    return [word for word in words if word not in POLITE_WORDS]


def _shared_words(one: str, other: str) -> float:
    words = set(one.split()), set(other.split())
    return len(words[0] & words[1]) / max(1, min(map(len, words)))


def _same_names(one: str, other: str) -> bool:
    """Whether each names what the other names. A name is a capitalised word that doesn't begin the question."""
    words = [set(_words(text)) for text in (one, other)]
    names = [
        set(_words(" ".join(word for word in WORD.findall(text)[1:] if word[0].isupper()))) for text in (one, other)
    ]
    return names[0] <= words[1] and names[1] <= words[0]


def encode_questions(texts: Sequence[str], encoder: str) -> Floats:
    """Unit vectors of questions."""
    from ragworth.retrieval.encoders import open_encoder
    from ragworth.retrieval.encoders.vector_cache import load_vectors

    return load_vectors(open_encoder(encoder), pl.Series(list(texts), dtype=pl.String), None)
