"""Facts of an accepted answer that a text has in another place: swapped numbers, reversed names, one of several."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragworth.text_match.lists import AND, with_plain_joints
from ragworth.text_match.matching import stem_of
from ragworth.text_match.plurals import singular
from ragworth.text_match.quantities import Quantity, QuestionHints
from ragworth.text_match.quantity_match import QuantityFinding, compare
from ragworth.text_match.text_facts import TextFacts, carries_fact

MAX_ALTERNATIVE_GAP = 3
"""Words between a quantity and another one after an "or"."""


def is_alternative(text: TextFacts, finding: QuantityFinding) -> bool:
    """Whether a quantity is one of several that the text offers: "in 1990, 1991 or 1992"."""
    said = finding.match
    if finding.status != "given" or said is None:
        return False
    for other in text.quantities:
        if other is said or compare(finding.wanted, other, QuestionHints()) != "different":
            continue
        first, second = sorted((said, other), key=lambda each: each.start)
        between = text.tokens[first.end : second.start]
        if "or" in between and len(between) <= MAX_ALTERNATIVE_GAP:
            return True
    return False


_JOINT = re.compile(rf"\b(?:{AND})\b|,")


_PASSIVE = re.compile(r"\b(?:is|are|was|were|been|being) (?:\w+ly )?(\w+) by\b")
_NAME = re.compile(r"(?:[A-Z][\w'’-]+ ?)+")


def names_reversed(text: TextFacts, wanted: TextFacts) -> bool:
    """Whether two names that the answer does not merely list stand in the other order, or in the passive."""
    names = [found.group().split()[-1] for found in _NAME.finditer(wanted.raw)]
    if len(names) != 2 or names[0] == names[1] or _JOINT.search(with_plain_joints(wanted.raw)):
        return False
    (first, second), (own_first, own_second) = ([raw.find(name) for name in names] for raw in (text.raw, wanted.raw))
    if min(first, second) < 0:
        return False
    between = text.raw[min(first, second) : max(first, second)]
    turned = (_PASSIVE.search(between) is None) != (_PASSIVE.search(wanted.raw[own_first:own_second]) is None)
    return (second < first) != turned


def numbers_swapped(text: TextFacts, wanted: TextFacts, findings: Sequence[QuantityFinding]) -> bool:
    """Whether two numbers of the accepted answer have changed places: each stands by the other's word."""
    given = [each for each in findings if each.status == "given" and each.match is not None]
    if len(given) < 2:
        return False
    stems = [stem_of(singular(token)) if token else "" for token in text.tokens]
    moved = set()
    for label, owner in _labels(wanted, [each.wanted for each in given]).items():
        distances = [
            (_distance(place, each.match), number)
            for place, stem in enumerate(stems)
            if stem == label
            for number, each in enumerate(given)
            if each.match is not None
        ]
        if distances:
            moved.add((owner, min(distances)[1]))
    return any(first != second and (second, first) in moved for first, second in moved)


def _distance(place: int, quantity: Quantity) -> int:
    return quantity.start - place if place < quantity.start else place - quantity.end + 1


def _labels(wanted: TextFacts, quantities: Sequence[Quantity]) -> dict[str, int]:
    """The words that stand by one quantity only, with its number."""
    owners: dict[str, set[int]] = {}
    for place, token in enumerate(wanted.tokens):
        if not token or not token[0].isalpha() or not carries_fact(token):
            continue
        nearest = min((_distance(place, each), number) for number, each in enumerate(quantities))[1]
        owners.setdefault(stem_of(singular(token)), set()).add(nearest)
    return {label: next(iter(numbers)) for label, numbers in owners.items() if len(numbers) == 1}


_FORMULA = re.compile(r"[\w.]*[A-Za-z][\w.]*")


_PRODUCT = re.compile(r"(?:\w+ )*[A-Z]\w* ?\d+")


_LETTER_AFTER = re.compile(r"(?!(?:st|nd|rd|th)\b)[A-Za-z]")


def continues_name(text: str, answer: str) -> bool:
    """Whether a name that ends in a number stands only with a letter behind it: "Android 12" in "Android 12L"."""
    name = answer.strip()
    if not _PRODUCT.fullmatch(name):
        return False
    places = [found.end() for found in re.finditer(rf"(?<!\w){re.escape(name)}", text)]
    return bool(places) and all(_LETTER_AFTER.match(text, end) for end in places)


def continues_formula(text: str, answer: str) -> bool:
    """Whether a short formula stands only with an exponent or index behind it: "2x" in "2x^2"."""
    formula = answer.strip()
    if not _FORMULA.fullmatch(formula) or not re.search(r"\d", formula):
        return False
    places = [found.end() for found in re.finditer(rf"(?<!\w){re.escape(formula)}", text)]
    return bool(places) and all(re.match(r"\s?(?:\^|\*\*|[²³⁴⁵⁶⁷⁸⁹ⁿ])", text[end:]) for end in places)
