"""Find which side of a relation an answer is on: "followed by Major", "a student of Socrates"."""

from __future__ import annotations

import re

from ragworth.text_match.denials import answer_places

_FOLLOWED = r"(?:succeeded|followed|replaced|superseded)"
_AFTER_VERBS = rf"(?:{_FOLLOWED}|took over from|came after)"
_ASKS_NEXT = re.compile(
    rf"(?i)\bwho (?:then |later )?{_AFTER_VERBS}|\bsuccessor\b|\b(?:who|whom|which \w+) (?:was|is) .*{_FOLLOWED} by|"
    r"\bby whom .*\b(?:succeeded|followed|replaced)"
)
_ASKS_PREVIOUS = re.compile(
    r"(?i)\bwho (?:preceded|came before)|\bpredecessor\b|\bwhom? did .*\b(?:succeed|replace|follow)\b"
)
_NEXT_BEFORE = re.compile(
    rf"{_FOLLOWED} (?:\w+ )?by (?:the |a )?$|\b(?:successor|replacement)(?: was| is|,) (?:the )?$"
    r"|\b(?:gave way to|handed over to|preceded|predecessor of) (?:the )?$"
)
_PREVIOUS_BEFORE = re.compile(
    rf"\b{_AFTER_VERBS} (?:the )?$|\bsuccessor (?:of|to) (?:the )?$|\bpreceded (?:\w+ )?by (?:the )?$"
    r"|\bpredecessor(?: was| is|,) (?:the )?$"
)
_NEXT_AFTER = re.compile(
    rf"\s*,?\s*(?:who )?(?:later |then )?{_AFTER_VERBS}\b|\s*,?\s*(?:who )?(?:is|was) (?:preceded by|the successor)"
)
_PREVIOUS_AFTER = re.compile(
    rf"\s*,?\s*(?:who )?(?:is|was) (?:later |then )?(?:{_FOLLOWED} (?:\w+ )?by|the predecessor)"
    r"|\s(?:preceded|handed over)\b|['’]s (?:successor|replacement)"
)
_PEOPLE = (
    "teacher|mentor|student|pupil|parent|father|mother|son|daughter|sister|brother|husband|wife|cousin|friend|owner|boss|"
    "manager|supervisor|assistant|deputy|subsidiary|division|supplier|colleague"
)
_ASKED_RELATION = re.compile(rf"\b({_PEOPLE})s? (?:of|to) (?=[^?]*\w)|['’]s ({_PEOPLE})\b")
_SAID_RELATION = re.compile(rf"\b({_PEOPLE})s? (?:of|to) (?:the )?$")
_REACH = 60


def succession_verdict(text: str, answer: str, question: str) -> int:
    """1 if an answer comes after or before what the question names, as asked; −1 if it is the other way round.

    0 if it doesn't ask for that, or the text doesn't say.
    """
    asked = bool(_ASKS_NEXT.search(question)) - bool(_ASKS_PREVIOUS.search(question))
    sides = {_side(text, start, end) for start, end in answer_places(text, answer)} - {0}
    return asked * sides.pop() if len(sides) == 1 else 0


def _side(text: str, start: int, end: int) -> int:
    before, after = text[max(0, start - _REACH) : start].lower(), text[end : end + _REACH].lower()
    if _NEXT_BEFORE.search(before) or _NEXT_AFTER.match(after):
        return 1
    return -1 if _PREVIOUS_BEFORE.search(before) or _PREVIOUS_AFTER.match(after) else 0


def is_other_relative(text: str, answer: str, question: str) -> bool:
    """Whether a text has a relation the other way round: "a student of Plato" for who was the student of Socrates."""
    asked = {found[1] or found[2] for found in _ASKED_RELATION.finditer(question.lower())}
    if not asked:
        return False
    places = [start for start, _ in answer_places(text, answer)]
    said = [_SAID_RELATION.search(text[max(0, start - _REACH) : start].lower()) for start in places]
    return bool(said) and all(found is not None and found[1] in asked for found in said)
