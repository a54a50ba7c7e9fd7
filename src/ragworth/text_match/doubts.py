"""Find why a text that has the words or numbers of an accepted answer may not give it: it denies or compares them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from ragworth.errors import quote_short
from ragworth.text_match.asked_ends import gives_asked_end
from ragworth.text_match.asked_periods import names_asked_period
from ragworth.text_match.clock_times import half_is_unclear
from ragworth.text_match.comparisons import comparison_verdict
from ragworth.text_match.contrasts import bound_at, bound_of, bounds_opposed, find_contrast
from ragworth.text_match.denials import is_denied, is_offered, is_set_apart, is_taken_back
from ragworth.text_match.directions import NEGATIONS
from ragworth.text_match.matching import LITTLE_WORDS, stem_of
from ragworth.text_match.misplaced_facts import continues_formula, continues_name, is_alternative, names_reversed
from ragworth.text_match.other_subjects import find_other_subject
from ragworth.text_match.periods import period_after, period_asked
from ragworth.text_match.quantity_match import QuantityFinding
from ragworth.text_match.question_contrasts import (
    begins_with_other_label,
    direction_opposed,
    prefers_rival,
    said_of_another,
)
from ragworth.text_match.relations import succession_verdict
from ragworth.text_match.text_facts import QuestionFacts, TextFacts
from ragworth.text_match.units import units_differ_in_case

_COUNTS_ANYTHING = frozenset(
    (
        *("time", "total", "altogether", "overall", "different"),
        *("people", "person", "individual", "participant", "subject", "item", "piece", "thing", "case"),
    )
)
"""Words after a number that may stand for whatever was asked for, as in "120 people" for "120 patients"."""
_YEAR = re.compile(r"(?:1\d{3}|20\d{2})(?!\d)")


def find_denial(text: TextFacts, wanted: TextFacts, question: QuestionFacts) -> str:
    if question.denies:
        return ""
    if is_denied(text.raw, wanted.raw, question.raw) and not NEGATIONS.intersection(wanted.tokens):
        return f"denies {quote_short(wanted.raw)}, or seems to"
    sentences = (text.raw, wanted.raw, question.raw)
    if is_set_apart(*sentences) and succession_verdict(*sentences) <= 0:
        return f"has {quote_short(wanted.raw)} as an exception, or to compare"
    if is_taken_back(text.raw, wanted.raw):
        return f"has {quote_short(wanted.raw)}, and may take it back"
    if is_offered(text.raw, wanted.raw):
        return f"has {quote_short(wanted.raw)} as one of several"
    return ""


def find_other_noun(
    text: TextFacts, wanted: TextFacts, findings: Sequence[QuantityFinding], question: QuestionFacts
) -> str:
    """Why a number that is followed by another word than the accepted one may count or measure something else."""
    if any(each.match and each.match.units and each.wanted.units for each in findings) or _YEAR.match(wanted.raw):
        return ""
    first, *rest = wanted.matchable.words
    words = (*text.matchable.words, "")
    followed = [after for word, after in pairwise(words) if word == first != after]
    if any(each.status == "given" and each.wanted.scaled for each in findings):
        return ""  # "1,9 Mio. Einwohner" for "1,9 Millionen"
    known = {*map(stem_of, rest), *question.stems}
    measured = any(each.wanted.units for each in findings)
    if any(not after[:1].isalpha() or after in LITTLE_WORDS or stem_of(after) in known for after in followed):
        return ""
    if not measured and not _COUNTS_ANYTHING.isdisjoint(followed):
        return ""
    if any(stem_of(word) in text.stems for word in rest):
        return ""
    return f"has the number of {quote_short(wanted.raw)} with another word"


def find_doubt(text: TextFacts, wanted: TextFacts, findings: Sequence[QuantityFinding], question: QuestionFacts) -> str:
    """Why a text that has the numbers or words of an answer may not give it."""
    if any(is_alternative(text, each) for each in findings):
        return f"has {quote_short(wanted.raw)} as one of several"
    if any(_is_wider(each, findings) for each in findings) and not gives_asked_end(text, wanted, question):
        return f"has a range for {quote_short(wanted.raw)}"
    if units_differ_in_case(text.raw, wanted.raw):
        return f"has the unit of {quote_short(wanted.raw)} with other capital letters"
    if half_is_unclear(text.raw, wanted.raw, question.raw):
        return f"has the time of {quote_short(wanted.raw)}, but one of them may be in the other half of the day"
    if any(_bounds_opposed(text, wanted, each, question) for each in findings):
        return f"has the opposite bound of {quote_short(wanted.raw)}"
    if any(_is_of_other_period(text, wanted, each, question) for each in findings):
        return f"has the number of {quote_short(wanted.raw)} for another period"
    if continues_formula(text.raw, wanted.raw):
        return f"has {quote_short(wanted.raw)} only as a part of a formula"
    if continues_name(text.raw, wanted.raw):
        return f"has a longer name than {quote_short(wanted.raw)}"
    if direction_opposed(findings, question):
        return f"has {quote_short(wanted.raw)} in the other direction than the question asks"
    if said_of_another(text, wanted, findings, question) and not names_asked_period(text, wanted, question):
        return f"has {quote_short(wanted.raw)}, but may say it of something else"
    other = find_other_subject(text, wanted, question)
    if other:
        return other
    if begins_with_other_label(text.raw, wanted.raw) or _may_prefer_rival(text, wanted, question):
        return f"has {quote_short(wanted.raw)}, but may choose another option"
    if wanted.matchable.line not in text.matchable.line and names_reversed(text, wanted):
        return f"has the names of {quote_short(wanted.raw)} in another order"
    return ""


def _may_prefer_rival(text: TextFacts, wanted: TextFacts, question: QuestionFacts) -> bool:
    return prefers_rival(text, wanted, question) and comparison_verdict(text, wanted, question) <= 0


def _is_wider(finding: QuantityFinding, findings: Sequence[QuantityFinding]) -> bool:
    """Whether a text has a range where the answer doesn't give both ends, as "from 1952 until 1953" does."""
    said = finding.match
    ends = {each.wanted.value for each in findings}
    return (
        finding.status == "coarse"
        and said is not None
        and said.high is not None
        and not {said.value, said.high} <= ends
    )


def find_wording_contrast(text: TextFacts, wanted: TextFacts, question: QuestionFacts) -> str:
    contrast = find_contrast(wanted.compared, text.compared, question.tokens)
    return f"{contrast} {quote_short(wanted.raw)}" if contrast else ""


def _bounds_opposed(text: TextFacts, wanted: TextFacts, finding: QuantityFinding, question: QuestionFacts) -> bool:
    said = finding.match
    asked = finding.wanted
    if said is not None and bound_of(question.tokens) * bound_at(text.tokens, said.start, said.end) < 0:
        return True  # "at most 12" for a minimum of 12
    return said is not None and bounds_opposed(
        wanted.tokens, (asked.start, asked.end), text.tokens, (said.start, said.end)
    )


def _is_of_other_period(text: TextFacts, wanted: TextFacts, finding: QuantityFinding, question: QuestionFacts) -> bool:
    """Whether a number is given for another period: "3.5 % per month" for "3.5 % p.a."."""
    if finding.status != "given" or finding.match is None:
        return False
    asked = period_after(wanted.tokens, finding.wanted.end) or period_asked(question.tokens)
    said = period_after(text.tokens, finding.match.end)
    return bool(asked and said) and asked != said
