"""Find where an answer has the other part in what happened: "Hannibal defeated Scipio" for who defeated Hannibal."""

from __future__ import annotations

import re

from ragworth.text_match.denials import answer_places

_AUXILIARIES = "is|are|was|were|be|been|did|do|does|has|have|had|will|would|can|could|should|may|might|must|s|to"
_BE = r"(?:is|are|was|were|be|been|being|gets?|got)"
_ADVERBS = "first|later|originally|also|actually|finally|now|currently|then"
_SUBJECT = re.compile(
    rf"(?i)^\W*who(?: (?:{_ADVERBS}))?(?: (?:has|have|had|will|would|can|could|should|may|must))?(?: (?:{_ADVERBS}))? "
    rf"(?!(?:{_AUXILIARIES}|the|a|an|most|more|no|any|\w+est)\b)([a-z]+)\b"
    rf"|^\W*(?:which|what) (?!(?:{_AUXILIARIES})\b)[\w-]+(?: (?:has|have|had))? "
    rf"(?!(?:{_AUXILIARIES})\b)([a-z]+(?:s|ed))\b"
)
_PASSIVE = re.compile(
    rf"(?i)^\W*(?:who|(?:which|what) [\w-]+) (?:{_BE}|has been|have been|will be) (?:\w+ly )?([a-z]+) by\b"
)
_OBJECT = re.compile(r"(?i)^\W*(?:whom?|(?:which|what) [\w-]+(?: [\w-]+)?) (?:did|does|do)\b")
_IRREGULAR_TEXT = """
beat beats beaten; teach teaches taught; pay pays paid; sell sells sold; buy buys bought; lend lends lent; lead leads
led; win wins won; write writes wrote written; take takes took taken; give gives gave given; find finds found; send
sends sent; choose chooses chose chosen; steal steals stole stolen; hold holds held; overthrow overthrows overthrew
overthrown; bring brings brought; drive drives drove driven; shoot shoots shot
"""
_FORMS = {word: line.split()[0] for line in _IRREGULAR_TEXT.split(";") for word in line.split()}
_MUTUAL_TEXT = "marry meet fight join merge befriend resemble equal star feature include name call mean play live"
_MUTUAL = frozenset(re.sub(r"(\w)\1$", r"\1", word) for word in _MUTUAL_TEXT.split())
"""Verbs whose two parts are the same, or may change places: "starred Michael Rennie"."""
_PREPOSITIONS_TEXT = "with for in from on at of as by like than until after before against because via"
_PREPOSITIONS = frozenset(_PREPOSITIONS_TEXT.split())
_DENIES = re.compile(r"(?i)\bnot\b|n['’]t\b|\bnever\b")
_BEFORE, _AFTER = 70, 60
_STOPS = re.compile(r"[.;!?\n]|,(?! (?:who|which|that)\b)|\b(?:and|but|while|whereas)\b")
_WORDS = re.compile(r"[\w'’-]+")
_VERBS = re.compile(r"(?<!\bthe )(?<!\ba )(?<!\ban )(?<!\bof )\b[a-z]{3,}\b")
"""Words of a question that may be its verb."""
_MAX_BETWEEN = 3


def has_other_part(text: str, answer: str, question: str) -> bool:
    """Whether each place of an answer has the other part with the verb of the question."""
    verbs, part = _asked(question)
    if not verbs or not _MUTUAL.isdisjoint(verbs) or _DENIES.search(question):
        return False
    parts = [_part_at(text, start, end, verbs) for start, end in answer_places(text, answer)]
    return bool(parts) and all(said == -part for said in parts)


def _asked(question: str) -> tuple[frozenset[str], int]:
    """What may be the verb of a question, and 1 if it asks who does it, −1 if it asks to whom it is done."""
    passive = _PASSIVE.search(question)
    if passive is not None:
        return frozenset((_base(passive[1]),)), -1
    subject = _SUBJECT.search(question)
    if subject is not None:
        return frozenset((_base(subject[1] or subject[2]),)), 1
    asked = _OBJECT.search(question)
    words = _VERBS.findall(question[asked.end() :].lower()) if asked else []
    return frozenset(_base(word) for word in words if word not in _PREPOSITIONS), -1


def _part_at(text: str, start: int, end: int, verbs: frozenset[str]) -> int:
    """1 if the answer at a place does what a verb says, −1 if it is done to it, 0 if neither is clear."""
    before = _STOPS.split(text[max(0, start - _BEFORE) : start])[-1]
    after = _STOPS.split(text[end : end + _AFTER])[0]
    return _part_before(after, verbs) or _part_behind(before, verbs)


def _part_before(after: str, verbs: frozenset[str]) -> int:
    """The part of an answer by the words after it: "defeated Hannibal", "was defeated by Hannibal"."""
    words = [word.lower() for word in _WORDS.findall(after)]
    if words[:1] and words[0] in ("who", "which", "that"):
        words = words[1:]
    for at, word in enumerate(words[: _MAX_BETWEEN + 1]):
        if _base(word) in verbs:
            passive = bool(re.search(rf"\b{_BE}\b", " ".join(words[:at])))
            return -1 if passive else 1
        if not re.fullmatch(rf"{_AUXILIARIES}|{_ADVERBS}|\w+ly", word):
            return 0
    return 0


def _part_behind(before: str, verbs: frozenset[str]) -> int:
    """The part of an answer by the words before it: "Hannibal defeated", "Hannibal was defeated by"."""
    words = [word.lower() for word in _WORDS.findall(before)]
    place = next((at for at in range(len(words) - 1, -1, -1) if _base(words[at]) in verbs), None)
    if place is None or len(words) - place - 1 > _MAX_BETWEEN or place == 0:
        return 0
    between, subject = words[place + 1 :], words[:place]
    if re.search(rf"\b{_BE}\b", " ".join(subject[-3:])):
        return 1 if "by" in between else 0
    return 0 if _PREPOSITIONS.intersection(between) or subject[-1] in ("to", "it", "this") else -1


def _base(word: str) -> str:
    """A verb without its ending, and without a doubled last letter: "starred" is "star", "kill" is "kil"."""
    word = word.lower()
    plain = re.sub(r"(?<=\w{3})(?:ed|es|e|s|ing)$", "", re.sub(r"(?<=\w{2})ie[ds]$", "y", word))
    return _FORMS.get(word) or re.sub(r"(\w)\1$", r"\1", plain)
