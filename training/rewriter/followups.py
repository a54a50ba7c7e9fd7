"""How a full question is asked in a conversation: with a pronoun, a noun, less than the whole, or only what is new.

Every rule is narrow and gives up where its words don't fit: a question that no rule shortens isn't a follow-up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from training.rewriter.names import WORD, Mention, Name, fold

PRONOUN, NOUN, OMISSION, ELLIPSIS = "pronoun", "noun", "omission", "ellipsis"

_AUXILIARY = set("did does do is was were are has have had will would can could should".split())
_BEFORE_OBJECT = set(
    "of in at for from during to by with about than against after before behind near into through "
    "won win wins built build wrote write bought buy sold sell made make makes owns own ran run runs led lead sang "
    "plays play played founded designed composed directed created invented opened closed visit saw left leave join "
    "joined published produces produced bid sponsors sponsored found host hosts hosted beat face faced use uses".split()
)
_AFTER = set(
    "in at on of for from to by with about during after before until since when where while than as and or per "
    "is was were are did does do has have had will would can could first finally really still now today altogether "
    "according held built born made sold won open opened closed start started come came stand cost costs last".split()
)
_DROPPED = {"of", "in", "at", "for", "from", "during"}
_NEEDS_ITS_OBJECT = set(
    "one out part many most all some each any instead because ahead became become think made accused speak heard hear "
    "consists composed consist believe end ended ends come comes came live lives lived arrive arrived stand stood die "
    "go goes went work works worked play plays played look looks looking wait vote voted ask asked apply stay stayed "
    "born happened happen named called except besides".split()
)
"""Words that say little once the phrase after them is gone."""
_ADJECTIVES = set("old new first second third last current former next previous original big small".split())


class Followup(NamedTuple):
    text: str
    kind: str


def shortened(question: str, mention: Mention, *, pronoun: bool, noun: bool) -> list[Followup]:
    """Ways to ask the question without its name; ``pronoun``, ``noun``: whether these would be understood."""
    start, end = mention.start, mention.end
    possessive = re.match(r"['’]s?(?!\w)", question[end:])
    if possessive:
        end += possessive.end()
    before, after = WORD.findall(question[:start]), WORD.findall(question[end:])
    if before and before[-1].lower() == "the":
        start = question.lower().rindex("the", 0, start)
        before = before[:-1]
    previous = before[-1].lower() if before else ""
    following = after[0].lower() if after else ""
    if previous in _ADJECTIVES or re.match(r"[-:–(\"“]", question[end:].strip()) or following in _ADJECTIVES - {"first", "last"}:
        return []
    put = _Put(question, start, end, bool(possessive))
    found: list[Followup] = []
    if possessive:
        found += _referring(put, mention.name, "possessive", pronoun=pronoun, noun=noun)
        return found
    ends = not following or following in _AFTER or following.endswith("ed")
    if previous in _AUXILIARY and following not in _COMPOUND_HEADS:
        found += _referring(put, mention.name, "subject", pronoun=pronoun, noun=noun)
    elif previous in _BEFORE_OBJECT and ends:
        found += _referring(put, mention.name, "object", pronoun=pronoun, noun=noun)
    if previous in _DROPPED and ends and len(before) > 2 and before[-2].lower() not in _NEEDS_ITS_OBJECT:
        found.append(Followup(put.without(previous), OMISSION))
    elif following and not ends and previous not in _AUXILIARY and not following[0].isdigit():
        found.append(Followup(put.as_modifier(), OMISSION))
    return [one for one in found if _enough(one.text)]


_COMPOUND_HEADS = set("shares share cars trucks brand shares tickets stock fans team staff trial murder case".split())


class _Put(NamedTuple):
    """A place in a question, with ``the`` before it and ``'s`` after it, if they are there."""

    question: str
    start: int
    end: int
    possessive: bool

    def replaced(self, words: str) -> str:
        return _tidy(f"{self.question[: self.start]}{words}{self.question[self.end :]}")

    def without(self, preposition: str) -> str:
        kept = self.question[: self.start].rstrip()
        return _tidy(f"{kept[: -len(preposition)].rstrip()}{self.question[self.end :]}")

    def as_modifier(self) -> str:
        """Without the name before a noun; an article stays, ``the`` comes in where none was and the noun stays alone."""
        article = "the " if self.question[self.start :].lower().startswith("the ") else ""
        text = _tidy(f"{self.question[: self.start]}{article}{self.question[self.end :].lstrip()}")
        return re.sub(r"\ban? (?=(\w))", lambda match: "an " if match[1].lower() in "aeiou" else "a ", text)


def _referring(put: _Put, name: Name, role: str, *, pronoun: bool, noun: bool) -> list[Followup]:
    found = []
    if pronoun and name.pronouns is not None:
        found.append(Followup(put.replaced(getattr(name.pronouns, role)), PRONOUN))
    if noun and name.noun is not None:
        found.append(Followup(put.replaced(f"the {name.noun}{chr(39) + 's' if role == 'possessive' else ''}"), NOUN))
    return found


def _tidy(text: str) -> str:
    text = re.sub(r"\s+([?,.])", r"\1", re.sub(r"\s+", " ", text)).strip()
    return text


def _enough(text: str) -> bool:
    return len(WORD.findall(text)) >= 3


def elliptic(previous: str, question: str) -> str | None:
    """Only what is new in a question that is otherwise the one before it: ``in 2019`` or ``the northern tunnel``."""
    old, new = WORD.findall(previous), WORD.findall(question)
    first = _alike(old, new)
    last = min(_alike(old[::-1], new[::-1]), len(old) - first, len(new) - first)
    changed, was = new[first : len(new) - last], old[first : len(old) - last]
    if first < 3 or not 1 <= len(changed) <= 5 or not 1 <= len(was) <= 5 or first + last < 0.6 * len(new):
        return None
    if last and not _stands_alone(changed):
        return None
    start = first
    while start > 0 and new[start - 1].lower() in {"the", "a", "an", "in", "at", "for", "on", "of", "from"}:
        start -= 1
    phrase = " ".join(new[start : len(new) - last])
    return phrase if start > 1 and fold(phrase) not in fold(previous) else None


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words both begin with."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if fold(left) != fold(right):
            break
        count += 1
    return count


def _stands_alone(words: Sequence[str]) -> bool:
    """A year, an ordinal or a name, which can be asked about without the words after it."""
    last = words[-1]
    return bool(re.fullmatch(r"\d{4}|\d+(st|nd|rd|th)|first|second|third|fourth|fifth", last)) or all(
        word[0].isupper() for word in words
    )
