"""Facts in running text that a question can ask for: dates, years, numbers, names, lists and definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

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


FactKind = Literal["date", "year", "number", "name", "list", "definition"]

DATE = re.compile(
    rf"\b(?:\d{{1,2}} (?:{MONTH}) \d{{4}}|(?:{MONTH}) \d{{1,2}} ?, \d{{4}}|(?:{MONTH}) \d{{4}}|"
    rf"\d{{1,2}} (?:{MONTH})|(?:{MONTH}) \d{{1,2}})\b"
)
YEAR = re.compile(r"(?<=\b(?:in|by|of) )(?:1[0-9]\d\d|20\d\d)\b(?! [a-z]+s\b)|(?<=\bsince )(?:1[0-9]\d\d|20\d\d)\b")
SPELLED = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred"
NO_UNIT = (
    r"(?!(?:has|was|is|as|its|his|plus|less|does|minus|versus|across|here|becomes|gets|gives|makes|takes|means)\b)"
)
PLURAL = rf"{NO_UNIT}[a-z-]+[a-rt-z]s|people|children|men|women|percent|%"
UNIT = rf"(?:(?:[a-z]+(?:al|ic|ed|ive|ous|ern|ar|en|er) )?(?:{PLURAL}))(?!\w)"
"""A plural noun, at most with an adjective in front."""
NUMBER = re.compile(
    r"(?<![\w.,$€£+@:/(–-])(?<![–.-] )(?<!'s )(?<!the )(?<!The )(?<!these )(?<!both )(?<!other )(?<!all )"
    r"(?<!first )(?<!last )(?<!next )(?<!couple )"
    rf"(?<![A-Z]\w )(?:(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?(?: (?:million|billion|thousand))?|\b(?:{SPELLED})\b)"
    rf"(?= {UNIT})"
)
NAME = re.compile(
    r"(?<=[a-z,] )(?:[A-Z][\w'’-]*[a-z0-9][\w'’-]*|[A-Z]{2,})(?: (?:(?:of|the|de|van|von|of the) )?[A-Z][\w'’-]*){0,4}"
)
CODE_NAME = re.compile(
    r"(?<![\w.-])(?:--[a-z][a-z-]+|[\w-]+\.(?:jsonl?|toml|md|txt|py|parquet|csv|tsv|html|run|ya?ml|xml)|"
    r"[a-z]+(?:_[a-z]+)+|[a-z]+[A-Z]\w+)(?![\w-]|\.\w)"
)
"""Options, files and identifiers."""
_BEFORE_NAMES = (
    "in at by from to with on near under over into through of for called named is was are were as becomes became "
    "beats include includes including than"
)
ROLE = (
    "the (?:[a-z]+(?:er|or|ist|ian|ant|ect)|king|queen|mayor|company|president|duke|poet|group|band|village|town|city)"
)
BEFORE_NAME = re.compile(rf"(?<![A-Z]\w )\b(?:{'|'.join(_BEFORE_NAMES.split())})(?: the| {ROLE})?$")
"""What a whole name stands behind; other words make it a part of something."""
CAPITALISED_BEFORE = re.compile(r"[A-Z][\w'’-]* (?:in|of|at|for|and|on|to)(?: the)?$")
_AFTER_NAMES = (
    "in at by from to with on near under over into through for and or but is was are were has had that which who where "
    "when as after before during until since because while than instead rather without can will may must"
)
AFTER_NAME = re.compile(rf"^ ?(?:$|\.$|[,;]|(?:{'|'.join(_AFTER_NAMES.split())})\b)")
NO_NAMES = frozenset(
    (*MONTH.split("|"), "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "I")
)
ITEM = r"[A-Za-z][\w'’-]*(?: [\w'’-]+){0,3}"
LIST = re.compile(
    r"^[\w'’ -]{3,60}? (?:include|includes|consists? of|are|were|contains?) "
    rf"((?:{ITEM} ?, ){{1,6}}{ITEM} ?,? (?:and|or) {ITEM}) ?\.$"
)
LIST_BREAK = re.compile(r"\b(?:is|are|was|were|has|have|not|because|which|that|who|so|but)\b")
NO_SUBJECT = (
    "It|He|She|They|Its|His|Her|Within|In|On|At|Under|Among|Between|Inside|Near|Behind|For|With|By|From|To|What|One"
)
NO_DEFINITION = (
    "error|source|result|most|major|same|different|real|good|better|best|number|matter|question|part|kind|lot|few|"
    "way|only|case|one|two|other"
)
"""Words after an article that say too little to define something."""
DEFINITION = re.compile(
    rf"^(?!(?:{NO_SUBJECT})\b)(?:[A-Z][\w'’-]*(?: [\w'’-]+){{0,4}}) (?:is|are|was|were) (an? |the )"
    rf"(?!(?:{NO_DEFINITION})\b)([^,();]{{5,90}}?\w) ?\.$"
)
MAX_DEFINITION = 12


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


def find_facts(passage: str) -> list[Fact]:
    """All facts in the prose of a passage, sentence by sentence. Only lists and definitions overlap with others."""
    sentences = (each for each in split_sentences(passage) if is_prose(each.text) and is_clear(each.text))
    return [fact for sentence in sentences for fact in _facts_in(sentence)]


def _facts_in(sentence: Sentence) -> Iterator[Fact]:
    text = sentence.text
    taken: list[tuple[int, int]] = []
    patterns: tuple[tuple[FactKind, re.Pattern[str]], ...]
    patterns = (("date", DATE), ("year", YEAR), ("number", NUMBER), ("name", CODE_NAME), ("name", NAME))
    for kind, pattern in patterns:
        for match in pattern.finditer(text):
            if any(start < match.end() and match.start() < end for start, end in taken):
                continue
            taken.append(match.span())
            if _is_one_of_many(text, *match.span()) or (pattern is NAME and not _is_whole_name(text, match)):
                continue
            yield Fact(kind, match[0], sentence, match.start())
    if (items := LIST.match(text)) and not LIST_BREAK.search(items[1]):
        yield Fact("list", items[1], sentence, items.start(1))
    said = DEFINITION.match(text)
    if said and len(said[2].split()) <= MAX_DEFINITION and not re.search(r"\b(?:doesn't|does|is|are)\b", said[2]):
        yield Fact("definition", text[said.start(1) : said.end(2)], sentence, said.start(1))


def _is_whole_name(sentence: str, match: re.Match[str]) -> bool:
    """Whether a name is complete and stands for something, unlike *Exit* in "see Exit codes"."""
    before, after = sentence[: match.start()].rstrip(), sentence[match.end() :]
    return (
        match[0].split()[0] not in NO_NAMES
        and len(match[0]) > 2
        and BEFORE_NAME.search(before) is not None
        and CAPITALISED_BEFORE.search(before) is None
        and AFTER_NAME.match(after) is not None
    )


LISTED_BEFORE = re.compile(r"(?:,|\b(?:and|or|to|from|between)|-[a-z-]+|:)\s*$")
LISTED_AFTER = re.compile(
    r"\s*(?: ?,? (?:and|or|to)\b| ?, (?:[\w'’-]+ ){1,3}(?:,|and\b)| ?, [A-Z][\w'’-]* ?(?:,|\.$|or\b|and\b)|,? --|"
    r" [\w-]+\.[a-z]{2,7}\b)"
)


def _is_one_of_many(sentence: str, start: int, end: int) -> bool:
    """Whether a place is in parentheses, in a list or in a range, so that asking for it alone is odd."""
    before, after = sentence[:start], sentence[end:]
    listed = LISTED_BEFORE.search(before) or LISTED_AFTER.match(after)
    return before.count("(") > before.count(")") or listed is not None
