"""Split a text into clauses, and find those that have an accepted answer."""

from __future__ import annotations

import re

from ragworth.text_match.quantities import QuestionHints
from ragworth.text_match.quantity_match import find_quantities
from ragworth.text_match.text_facts import TextFacts

_SENTENCES = re.compile(r"(?<=[^\d\s][.!?;。！？])\s+|\n+")
_COORDINATED = re.compile(
    r"(?i)[,\s]\s*(?:and|while|whereas|but|und|während|aber|et|mais|tandis que|y|pero|mientras|e|ma|mas|maar|och|men|"
    r"og|ale)\s+"
)
_COMMAS = re.compile(r",(?!\s?\d)\s+|\s[–—]\s")


def clauses_with(text: TextFacts, wanted: TextFacts, *, commas: bool = True) -> list[TextFacts]:
    """The clauses that give an answer verbatim or as a quantity; whole sentences if it is in no clause."""
    sentences = _SENTENCES.split(text.raw)
    clauses = [clause for sentence in sentences for clause in _COORDINATED.split(sentence)]
    parts = [part for clause in clauses for part in _COMMAS.split(clause)] if commas else []
    for units in (parts, clauses, sentences):
        found = [facts for facts in map(TextFacts, units) if _gives(facts, wanted)]
        if found:
            return found
    return []


def _gives(clause: TextFacts, wanted: TextFacts) -> bool:
    if wanted.matchable.line in clause.matchable.line:
        return True
    findings = find_quantities(wanted.quantities, clause.quantities, QuestionHints())
    return bool(findings) and all(each.status == "given" for each in findings)
