"""Find where a text has an accepted answer, but says it of something else than the question asks.

"Part-time employees get 25 days; full-time employees get 30 days" has the "25 days" of a question about full-time
employees, and "Brazil beat Germany" the name that the question "Who won, Germany or Brazil?" offers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragworth.text_match.directions import DIRECTIONS
from ragworth.text_match.matching import stem_of
from ragworth.text_match.opposites import has_opposite
from ragworth.text_match.plurals import singular
from ragworth.text_match.quantities import Quantity
from ragworth.text_match.quantity_match import QuantityFinding, compare
from ragworth.text_match.text_facts import QuestionFacts, TextFacts, carries_fact

_LEVELS = frozenset(("profit", "loss", "deficit", "up", "down", "higher", "lower", "positive", "negative", "minus"))
"""Words of direction that also name what is measured, or a level."""
_CLAUSE_ENDS = frozenset((".", ";", ",", "!", "?", "\n", "and", "while", "whereas", "but"))
_LETTER = re.compile(r"\W*([A-Ha-h])\W*")
_LEAD = re.compile(r"(?i)\W*(?:(?:the\s+)?(?:(?:correct|right|final)\s+)?(?:answer|option|choice)\W+(?:is\W+)?)?")
_LABEL = re.compile(r"([A-H])(?=[).:]|\W*(?:\n|$))")


def direction_opposed(findings: Sequence[QuantityFinding], question: QuestionFacts) -> bool:
    """Whether a number is said to be a fall where the question asks for a rise, and the answer has no direction."""
    asked = {DIRECTIONS[word] for word in question.tokens if word in DIRECTIONS and word not in _LEVELS}
    if len(asked) != 1:
        return False
    sign = asked.pop()
    return any(
        each.match is not None
        and each.wanted.value > 0
        and not each.wanted.direction
        and each.match.direction == -sign
        and each.match.role != "level"
        for each in findings
    )


def prefers_rival(text: TextFacts, wanted: TextFacts, question: QuestionFacts) -> bool:
    """Whether a question offers the answer or another one, and the text may say that it is the other one.

    It may if it names the other one first, or uses the opposite of a word of the question: "Germany lost".
    """
    rival = _rival(wanted, question)
    if not rival:
        return False
    said, own = text.matchable.words, set(wanted.matchable.words)
    first = next((place for place, word in enumerate(said) if word in own), len(said))
    other = next((place for place, word in enumerate(said) if word == rival), len(said))
    asked = [word for word in question.matchable.words if carries_fact(word) or word in DIRECTIONS]
    others = [word for word in said if word not in own]
    opposite = any(has_opposite(word, others) for word in asked if word not in {*own, rival, *said})
    return opposite or other < first


def _rival(wanted: TextFacts, question: QuestionFacts) -> str:
    """The nearest word of what a question offers beside the answer: "brazil" for Germany in "Germany or Brazil"."""
    words, own = question.matchable.words, wanted.matchable.words
    for place in (at for at, word in enumerate(words) if word == "or"):
        before, after = words[:place], words[place + 1 :]
        if before[-len(own) :] == own:
            return next((word for word in after if word not in own and carries_fact(word)), "")
        if after[: len(own)] == own:
            return next((word for word in reversed(before) if word not in own and carries_fact(word)), "")
    return ""


def said_of_another(
    text: TextFacts, wanted: TextFacts, findings: Sequence[QuantityFinding], question: QuestionFacts
) -> bool:
    """Whether the clause with the number is about something else than the question, and another clause fits better.

    The other one has another number of the kind, and more words of the question, with all those of the first.
    """
    matches = [each for each in findings if each.status == "given" and each.match is not None]
    if len(matches) != 1 or not question.content:
        return False
    found = matches[0]
    compared = [(compare(found.wanted, each, question.hints), each) for each in text.quantities]
    same = [each for comparison, each in compared if comparison == "same"]
    others = [each for comparison, each in compared if comparison == "different" and _alike(found.wanted, each)]
    if not same or not others:
        return False
    known = question.content | wanted.content
    return all(any(_fits_better(text, other, each, question.content, known) for other in others) for each in same)


def _fits_better(
    text: TextFacts, other: Quantity, quantity: Quantity, asked: frozenset[str], known: frozenset[str]
) -> bool:
    """Whether the clause of another number has more of what is asked, and is parallel to that of a number."""
    mine, theirs = _clause(text, quantity), _clause(text, other)
    first, second = sorted((quantity, other), key=lambda each: each.start)
    between = sum(token in _CLAUSE_ENDS for token in text.tokens[first.end : second.start])
    return mine & asked < theirs & asked and bool(mine - known) and between == 1


def _alike(one: Quantity, other: Quantity) -> bool:
    if one.kind != other.kind:
        return False
    dimensions = ({unit.dimension for unit in each.units} for each in (one, other))
    first, second = dimensions
    return bool(first & second) if first or second else one.noun == other.noun


def _clause(text: TextFacts, quantity: Quantity) -> frozenset[str]:
    """The stems of the clause in which a quantity stands."""
    tokens = text.tokens
    start = next((at + 1 for at in range(quantity.start - 1, -1, -1) if tokens[at] in _CLAUSE_ENDS), 0)
    end = next((at for at in range(quantity.end, len(tokens)) if tokens[at] in _CLAUSE_ENDS), len(tokens))
    inside = [token for at, token in enumerate(tokens[start:end], start) if not quantity.start <= at < quantity.end]
    return frozenset(stem_of(singular(token)) for token in inside if token and carries_fact(token))


def begins_with_other_label(text: str, answer: str) -> bool:
    """Whether a text begins with the letter of another option: "C. B is wrong because …"."""
    wanted = _LETTER.fullmatch(answer)
    if wanted is None:
        return False
    lead = _LEAD.match(text)
    label = _LABEL.match(text, lead.end() if lead else 0)
    if label is None or label[1] == wanted[1].upper():
        return False
    return not (label[1] == "A" and text[label.end() : label.end() + 1] == ":")  # "A: B" begins with "Answer:"
