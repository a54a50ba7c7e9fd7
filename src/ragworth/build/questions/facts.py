"""Facts in running text that a question can ask for: dates, years, numbers, names and lists, with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

FactKind = Literal["date", "year", "number", "name", "list"]

MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]”]?\s+(?=[\"'(\[“]?[A-Z0-9])|\n\s*\n")
DATE = re.compile(rf"\b(?:\d{{1,2}} (?:{MONTHS}) \d{{4}}|(?:{MONTHS}) \d{{1,2}}, \d{{4}}|(?:{MONTHS}) \d{{4}})\b")
YEAR = re.compile(r"(?<=\b(?:in|by|of) )(?:1[0-9]\d\d|20\d\d)\b(?! [a-z]+s\b)|(?<=\bsince )(?:1[0-9]\d\d|20\d\d)\b")
SPELLED = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred"
NUMBER = re.compile(
    rf"(?<![\w.,$€£+@:/(-])(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?(?= [a-z])|\b(?:{SPELLED})\b(?= [a-z]+s\b)"
)
NAME = re.compile(
    r"(?<=[a-z,] )(?:[A-Z][\w'’-]*[a-z0-9][\w'’-]*|[A-Z]{2,})(?: (?:(?:of|the|de|van|von|and) )?[A-Z][\w'’-]+){0,3}"
    r"(?![\w'’-]| [A-Z]|\. [A-Z]\.)"
)
ITEM = r"[A-Za-z][\w'’-]*(?: [\w'’-]+){0,3}"
LIST = re.compile(
    r"(?:\binclud(?:e|es|ing)|\bsuch as|\bconsists? of|\bare|\bcontains?|:) "
    rf"((?:{ITEM}, ){{1,6}}{ITEM},? (?:and|or) {ITEM})"
)
FOREIGN = re.compile(r"[|{}<>=\\_`~^]|https?:|\w/\w|\.\w{2,4}\b(?! )|--|\bsee below\b")
"""Signs of code, tables and links, which make no question."""
DANGLING = re.compile(
    r"^(?:This|That|These|Those|Here|There|Such|Then|But|And|So|Or|If|However|For example|Above|Below|After|See)\b"
)
PRONOUN = re.compile(r"^(?:He|She|It|They|Its|His|Her|Their)\b")
MIN_WORDS, MAX_WORDS = 6, 34


class Sentence(NamedTuple):
    text: str
    start: int
    """Its place in the passage."""


class Fact(NamedTuple):
    """Something that a sentence states."""

    kind: FactKind
    text: str
    sentence: Sentence
    start: int
    """Its place in the sentence."""

    @property
    def before(self) -> str:
        return self.sentence.text[: self.start].rstrip()

    @property
    def after(self) -> str:
        return self.sentence.text[self.start + len(self.text) :].strip().rstrip(".!?;: ")


def split_sentences(text: str) -> Iterator[Sentence]:
    """Sentences with their places; a blank line ends one too."""
    start = 0
    for end in (*(match.span() for match in SENTENCE_END.finditer(text)), (len(text), len(text))):
        piece = text[start : end[0]]
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
        and "\n" not in sentence.strip()
        and sentence.count("(") == sentence.count(")")
        and sentence.count('"') % 2 == 0
        and not re.search("[:;]", sentence)
        and not FOREIGN.search(sentence)
        and not DANGLING.match(sentence)
        and sum(word[:1].isalpha() for word in words) >= 0.7 * len(words)
    )


def find_facts(passage: str) -> list[Fact]:
    """All facts in the prose of a passage, sentence by sentence. Nothing overlaps, except that lists contain names."""
    return [fact for sentence in split_sentences(passage) if is_prose(sentence.text) for fact in _facts_in(sentence)]


def _facts_in(sentence: Sentence) -> Iterator[Fact]:
    taken: list[tuple[int, int]] = []
    patterns: tuple[tuple[FactKind, re.Pattern[str]], ...]
    patterns = (("date", DATE), ("year", YEAR), ("number", NUMBER), ("name", NAME))
    for kind, pattern in patterns:
        for match in pattern.finditer(sentence.text):
            if not any(start < match.end() and match.start() < end for start, end in taken):
                taken.append(match.span())
                if _is_one_of_many(sentence.text, *match.span()):
                    continue
                yield Fact(kind, match[0], sentence, match.start())
    for match in LIST.finditer(sentence.text):
        yield Fact("list", match[1], sentence, match.start(1))


def _is_one_of_many(sentence: str, start: int, end: int) -> bool:
    """Whether a place is in parentheses, in a list or in a range, so that asking for it alone is odd."""
    before, after = sentence[:start], sentence[end:]
    listed = re.search(r"(?:,|\b(?:and|or|to|from|between))\s*$", before) or re.match(
        r"\s*(?:,? (?:and|or|to)\b|, \w+,|,? et al)", after
    )
    return before.count("(") > before.count(")") or listed is not None
