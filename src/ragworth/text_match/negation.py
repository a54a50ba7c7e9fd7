"""Find out whether a text denies an answer: a negation stands within a few words of the answer's words."""

from __future__ import annotations

from collections.abc import Sequence

_NEGATION_WORDS = """
not no never none neither nor without cannot cant dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wont
wouldnt couldnt shouldnt unable fail failed failing lack lacked lacking
nicht kein keine keinen pas non niet geen não nunca nie не нет 不 没 非
"""
NEGATIONS = frozenset(_NEGATION_WORDS.split())
"""Words that deny what follows, as the tokens of texts are written: without apostrophes."""

BEFORE, AFTER = 4, 2
"""How many words before an answer, and after it, a negation denies it: "not in the city of Paris", "Paris is not"."""

_CLAUSE_ENDS = frozenset((*",;:.!?\n–—()，、；：。！？", "but"))


def is_denied(tokens: Sequence[str], answer: frozenset[str]) -> bool:
    """Whether a negation is near the words of an answer, in the first of the clauses that have most of them.

    ``tokens`` are the words and marks of a text; ``answer`` are the answer's words. Marks and "but" end a clause.
    """
    best: tuple[int, list[str]] = (0, [])
    for clause in _clauses(tokens):
        shared = len(answer.intersection(clause))
        if shared > best[0]:
            best = (shared, clause)
    clause = best[1]
    negations = [place for place, token in enumerate(clause) if token in NEGATIONS]
    return any(
        -AFTER <= place - other <= BEFORE
        for place, token in enumerate(clause)
        if token in answer
        for other in negations
    )


def _clauses(tokens: Sequence[str]) -> list[list[str]]:
    clauses: list[list[str]] = [[]]
    for token in tokens:
        if token in _CLAUSE_ENDS:
            clauses.append([])
        else:
            clauses[-1].append(token)
    return clauses
