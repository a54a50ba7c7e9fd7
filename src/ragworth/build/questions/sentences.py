"""Sentences of running text that questions can be made from: complete, in prose, and clear without their neighbours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

SENTENCE_END = re.compile(
    r"(?<=[.!?])[\"')\]”]?\s+(?=[\"'(\[“]? ?[A-Z0-9]|--[a-z]|[\w-]+\.[a-z]{2,7}\b|[a-z]+[A-Z])|\n\s*\n"
)
_SHORT = "Dr Mr Mrs Ms Maj Lt Capt Sgt Gov Sen Rev Adm Brig St Jr Sr vs etc al No Inc Co Bros Mt Gen Col Prof"
ABBREVIATION = re.compile(rf"(?:\b(?:{_SHORT.replace(' ', '|')}|e\.g|i\.e)|\b[A-Za-z]) ?\.$")
"""A full stop that doesn't end a sentence."""
FOREIGN = re.compile(
    r"[|{}<>=\\`~^*#@$\[\]−×÷≤≥]|''|https?:|\w/\w|\bsee below\b|\bet al\b|\.\.\.|…|--(?![a-z])|\d\.\d+\.\d|\b_|_\b"
)
"""Signs of code, tables, links and references, which make no question."""
_OPENERS = (
    "This|That|These|Those|Here|There|Such|Then|But|And|So|Or|If|However|For example|For instance|Above|Below|After|"
    "See|They|Their|Therefore|Thus|Hence|Nonetheless|Nevertheless|Moreover|Furthermore|Also|Instead|Otherwise|Meanwhile|Later|Likewise|"
    "Similarly|Finally|Additionally|Again|Both|Another|Others|Neither|Either|Still|Yet|On the other hand|In contrast|"
    r"In addition|In turn|As a result|As such|At the same time|At that time|An? (?:year|month|week|day|decade)s? later|"
    "Before that|Since then|By then|Of these|Of its|Apart from|Unlike"
)
OPENING = re.compile(rf"^(?:{_OPENERS})\b")
"""Words that tie a sentence to the one before it, and commands."""
REFERRING = re.compile(
    r"\b(?:this|these|those|the (?:former|latter|following|above|others|two|three)|as such|aforementioned|"
    r"respectively|above|below|here|the next|the previous|earlier|mentioned)\b"
)
MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
PRONOUN = re.compile(r"^(?:He|She|It|They|Its|His|Her|Their)\b")
_VERBS = (
    "is are was were has have had does do did can could will would may might must should gives takes uses needs "
    "contains includes shows makes holds runs reads writes keeps sees means says costs lasts begins ends lives stands "
    "carries seats supports consists became began took gave made led rose fell went came met won held ran wrote sold "
    "built left sent spent grew kept found brought put cut"
)
VERB = re.compile(rf"\b(?:{'|'.join(_VERBS.split())}|[a-z]{{3,}}ed)\b")
MIN_WORDS, MAX_WORDS = 6, 28


class Sentence(NamedTuple):
    text: str
    start: int
    """Its place in the passage."""


def split_sentences(text: str) -> Iterator[Sentence]:
    """Sentences with their places; a blank line ends one too."""
    start = 0
    for end in (*(match.span() for match in SENTENCE_END.finditer(text)), (len(text), len(text))):
        piece = text[start : end[0]]
        if ABBREVIATION.search(piece) and end[0] < len(text) and "\n" not in text[slice(*end)]:
            continue
        if piece.strip():
            yield Sentence(piece.strip(), start + len(piece) - len(piece.lstrip()))
        start = end[1]


def is_prose(sentence: str) -> bool:
    """Whether a sentence is one: of ordinary length, complete, and no code, table or heading."""
    words = sentence.split()
    return (
        MIN_WORDS <= len(words) <= MAX_WORDS
        and sentence[0].isupper()
        and sentence.rstrip("\"')”").endswith(".")
        and not ABBREVIATION.search(sentence)
        and "\n" not in sentence.strip()
        and sentence.count("(") == sentence.count(")")
        and not re.search('["“”«»?!]|:$', sentence)
        and not FOREIGN.search(sentence)
        and VERB.search(sentence) is not None
        and sum(word[:1].isalpha() for word in words) >= 0.7 * len(words)
    )


def is_clear(sentence: str) -> bool:
    """Whether a sentence can be understood without the one before it, given the title of its document."""
    return not OPENING.match(sentence) and not REFERRING.search(sentence) and not _lacks_person(sentence)


def _lacks_person(sentence: str) -> bool:
    """Whether *he*, *she* or *they* comes before anybody was named."""
    found = re.search(r"\b(?:he|she|they)\b", sentence)
    if found is None or re.match(r"(?:He|She|His|Her)\b", sentence):
        return False
    named = re.findall(r"(?<=\w )[A-Z][a-z]+|\b(?:an?|the) [a-z]+|[a-z]{3,}s\b", sentence[: found.start()])
    return not [word for word in named if not re.match(MONTH, word)]
