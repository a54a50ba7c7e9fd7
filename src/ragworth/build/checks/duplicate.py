"""``duplicate``: no earlier question asks the same. By wording, and by meaning where an encoder is installed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ragworth.build.checks.contract import Check, CheckFinding, Evidence
from ragworth.build.question_set import Question
from ragworth.core.errors import quote_short
from ragworth.text_match.short_answers import grade_short_answer

Floats = NDArray[np.float32]

PERMUTATIONS, BANDS = 64, 16
"""MinHash: texts whose shingles overlap by 0.8 share one of the bands with probability 0.9998, by 0.3 with 0.12."""
ROWS = 2048
"""Vectors that are compared at a time."""
MAX_BLOCK = 50
"""Texts of a block that are compared with each other; in a larger one, each with those just before it."""
SHINGLE = 4
PRIME = (1 << 61) - 1


def shingles(text: str) -> set[int]:
    """Hashes of all runs of four characters, without case and with single blanks."""
    plain = f" {' '.join(text.casefold().split())} "
    runs = {plain[at : at + SHINGLE] for at in range(max(1, len(plain) - SHINGLE + 1))}
    return {
        int.from_bytes(hashlib.blake2b(run.encode("utf-8", "replace"), digest_size=4).digest(), "big") for run in runs
    }


def jaccard(first: set[int], other: set[int]) -> float:
    return len(first & other) / len(first | other)


def minhash_pairs(texts: Sequence[str], *, seed: int = 0) -> Iterator[tuple[int, int]]:
    """Candidates for overlap in wording, the earlier text first. A pair comes once for every band that it shares."""
    draw = np.random.default_rng(seed)
    factors = draw.integers(1, 1 << 31, PERMUTATIONS, dtype=np.uint64)
    offsets = draw.integers(0, 1 << 31, PERMUTATIONS, dtype=np.uint64)
    mixers = draw.integers(1, 1 << 63, PERMUTATIONS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    keys = np.empty((BANDS, len(texts)), np.uint32)
    for number, text in enumerate(texts):
        hashes = np.fromiter(shingles(text), np.uint64)
        lowest = ((hashes[:, None] * factors + offsets) % np.uint64(PRIME)).min(axis=0)
        keys[:, number] = (lowest * mixers).reshape(BANDS, -1).sum(axis=1) >> np.uint64(32)
    for band in keys:
        for members in _blocks(band):
            some = members.tolist()
            yield from _near(some) if len(some) > MAX_BLOCK else combinations(some, 2)


def block_pairs(keys: Sequence[Hashable]) -> Iterator[tuple[int, int]]:
    """Places with equal keys, the earlier one first. Empty keys are equal to none."""
    places: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        if key:
            places.setdefault(key, []).append(place)
    for some in places.values():
        yield from _near(some) if len(some) > MAX_BLOCK else combinations(some, 2)


def vector_pairs(vectors: Floats, least: float) -> Iterator[tuple[int, int, float]]:
    """Pairs of unit vectors with a cosine of ``least`` or more, each pair once, the earlier one first."""
    for start in range(0, len(vectors), ROWS):
        some = vectors[start : start + ROWS]
        for first in range(0, start + 1, ROWS):
            cosines = vectors[first : first + ROWS] @ some.T
            for one, other in np.argwhere(cosines >= least).tolist():
                if first + one < start + other:
                    yield first + one, start + other, float(cosines[one, other])


def _blocks(keys: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
    """Places of equal keys, in order, where there are two or more. Places that are alone take no memory."""
    order = np.argsort(keys, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(keys[order])) + 1, len(order))
    starts = np.concatenate([[0], ends[:-1]])
    for at in np.flatnonzero(ends - starts > 1):
        yield order[starts[at] : ends[at]]


def _near(members: list[int]) -> Iterator[tuple[int, int]]:
    """Each text with the first of the block and the one before it, which keeps a large block linear."""
    yield from ((members[0], other) for other in members[1:])
    yield from pairwise(members[1:])


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
    from ragworth.retrieval.encoders import load_vectors, open_encoder

    return load_vectors(open_encoder(encoder), pl.Series(list(texts), dtype=pl.String), None)
