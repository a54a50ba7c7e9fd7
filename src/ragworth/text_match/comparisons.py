"""Find which of two things a comparison puts first: "Saturn is smaller than Jupiter" answers which one is larger."""

from __future__ import annotations

import re

from ragworth.text_match.languages import ENGLISH, WORD_SETS, identify_language
from ragworth.text_match.opposites import has_opposite
from ragworth.text_match.spelling import canonical_words
from ragworth.text_match.text_facts import QuestionFacts, TextFacts

_THAN = re.compile(r"\bthan\s(?!any\b|all\b|every|\d)")
_THAN_ELSEWHERE = re.compile(r"\b(?:als|que|di|dan|än|enn|end|niż|než|чем)\s")
_CLAUSE = re.compile(r"[.;!?\n]|, (?:and|but|while|whereas)\b")
_ASKS_THAN = re.compile(r"\b(?:than|als|que|dan)\W*$")
_MIN_STEM = 4
_COMMON = frozenset().union(*WORD_SETS.values())
_MORE = frozenset(("more", "plus", "mas", "piu", "mais", "meer", "mehr"))
_LESS = frozenset(("less", "fewer", "moins", "menos", "meno", "minder", "weniger"))
_SKIPPED = _MORE | _LESS | _COMMON


def comparison_verdict(text: TextFacts, wanted: TextFacts, question: QuestionFacts) -> int:
    """1 if comparisons put the answer where the question asks, −1 if they put it elsewhere, 0 if they don't tell."""
    if wanted.quantities or _ASKS_THAN.search(question.raw.lower()):
        return 0
    found = {_side(clause, wanted, question) for clause in _CLAUSE.split(text.raw)} - {0}
    return found.pop() if len(found) == 1 else 0


def _side(clause: str, wanted: TextFacts, question: QuestionFacts) -> int:
    english = identify_language(question.raw) in ("", ENGLISH)
    than = (_THAN if english else _THAN_ELSEWHERE).search(clause)
    if than is None:
        return 0
    before, after = (TextFacts(part).matchable.line for part in (clause[: than.start()], clause[than.end() :]))
    place = (wanted.matchable.line in before) - (wanted.matchable.line in after)
    return place * _direction(before.split(), question)


def _direction(said: list[str], question: QuestionFacts) -> int:
    """1 if the word that compares, before the "than", is the question's, −1 if it is the opposite, otherwise 0."""
    asked = set(question.matchable.words)
    for word in reversed(said[-3:]):
        if word in _SKIPPED:
            continue
        if has_opposite(word, asked):
            return -1
        if any(_same_adjective(word, one) for one in asked):
            return -1 if _LESS.intersection(said[-3:]) - asked else 1
    if _MORE.intersection(said[-3:]) or _LESS.intersection(said[-3:]):
        return _amount(said[-3:], asked)
    return 0


def _amount(said: list[str], asked: set[str]) -> int:
    """The same of "more" and "less" alone: "costs more than"."""
    wanted = bool(_MORE & asked or "most" in asked) - bool(_LESS & asked or "least" in asked)
    return wanted * (bool(_MORE.intersection(said)) - bool(_LESS.intersection(said)))


def _same_adjective(one: str, other: str) -> bool:
    """Whether two words are forms of an adjective: "older", "oldest"."""
    short, long = sorted((_stem(one), _stem(other)), key=len)
    return len(short) >= _MIN_STEM - 1 and long.startswith(short)


def _stem(word: str) -> str:
    folded = canonical_words(word)[0] if canonical_words(word) else word
    return re.sub(r"(?:est|er|e|es|en|ste|ere)$", "", folded)
