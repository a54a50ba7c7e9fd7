"""Questions made of the sentences of a passage: what was said there, asked for.

They are clumsier than what people ask, and there is no end to them. What matters is the other side: the same passage
in which the asked-for thing is only alluded to has all the words of the question and no answer.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from training.reader.texts import MONTHS, kind_of, sentences

_DATE = re.compile(rf"\b(?:\d{{1,2}} (?:{MONTHS}) \d{{4}}|(?:{MONTHS}) \d{{1,2}}, \d{{4}}|(?:{MONTHS}) \d{{4}})\b")
_YEAR = re.compile(r"\b(?:1[5-9]\d\d|20[0-2]\d)\b")
_NUMBER = re.compile(r"(?<![\d.,$-])\d{1,3}(?:,\d{3})*(?:\.\d+)?(?= [a-z])")
_NAME = re.compile(
    r"(?<=[a-z,] )[A-Z][\w'-]+(?: (?:(?:of|the|de|van) )?[A-Z][\w'-]+){0,3}\b(?![.'-]?\w| [A-Z\d]|\. [A-Z]\.)"
)
_PRONOUN = re.compile(r"^(He|She|It|They|This|His|Her|Its|Their)\b")
_WH = {
    "date": ("when", "on what date", "what date"),
    "year": ("what year", "which year"),
    "number": ("how many", "what number of"),
    "name": ("who or what", "which one", "what name"),
}


class Made(NamedTuple):
    """A question, and its answer as the passage spells it."""

    question: str
    answer: str


def question(title: str, passage: str, draw: random.Random) -> Made | None:
    """A question that one sentence of the passage answers; None where no sentence lends itself to it."""
    some = [each for each in sentences(passage) if 7 <= len(each.split()) <= 32]
    draw.shuffle(some)
    for sentence in some:
        if (found := _span(sentence, draw)) is None:
            continue
        kind, start, end = found
        answer = sentence[start:end]
        if answer.lower() in title.lower() or passage.lower().count(answer.lower()) > 2:
            continue
        before, after = sentence[:start].split(), sentence[end:].rstrip(".!?\"') ").split()
        asked = draw.choice(_WH[kind])
        words = [*before[-14:], asked, *after[:6]]
        if kind in ("date", "year") and draw.random() < 0.5:
            words = ["when", *_trimmed(before[-14:]), *after[:4]]
        text = _PRONOUN.sub(title, " ".join(words))
        if title and not any(word in text for word in title.split()):
            text = f"{title}: {text}"
        if answer.lower() not in text.lower():
            return Made(text, answer)
    return None


def _trimmed(words: list[str]) -> list[str]:
    """Words without a preposition at their end, which belonged to the date."""
    return words[:-1] if words and words[-1].lower() in ("in", "on", "since", "by", "from", "of", "until") else words


def _span(sentence: str, draw: random.Random) -> tuple[str, int, int] | None:
    """A date, year, number or name to ask for, and where it stands."""
    found = _found(sentence)
    return draw.choice(found) if found else None


def _found(sentence: str) -> list[tuple[str, int, int]]:
    """What could be asked for in a sentence; nothing overlaps."""
    found = [("date", *match.span()) for match in _DATE.finditer(sentence)]
    for kind, pattern in (("year", _YEAR), ("number", _NUMBER), ("name", _NAME)):
        for match in pattern.finditer(sentence):
            if not any(start < match.end() and match.start() < end for _, start, end in found):
                found.append((kind, *match.span()))
    return found


_HINTS = {
    "date": ("at a later date", "on a day that was kept open", "some time after"),
    "year": ("in that year", "later", "some years earlier"),
    "number": ("several", "a number of", "many"),
    "measure": ("a good deal", "some", "more than expected"),
    "name": ("another one", "someone else", "one of them", "the other"),
    "words": ("something", "this", "a certain thing"),
}


def alluded(passage: str, answer: str, draw: random.Random) -> str | None:
    """The passage with something vague in the place of the answer; None where the answer is not there."""
    hints = _HINTS[re.sub(r"\d", "", kind_of(answer))]
    before = r"(?:\b(?:in|on|the|an?) )?"
    changed, times = re.subn(
        rf"{before}(?<!\w){re.escape(answer)}(?!\w)", lambda _: draw.choice(hints), passage, flags=re.IGNORECASE
    )
    return changed if times else None
