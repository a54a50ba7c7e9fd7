"""How a full question is asked in a conversation: with a pronoun, a noun, less than the whole, or only what is new.

Every rule is narrow and gives up where its words don't fit: a question that no rule shortens isn't a follow-up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from training.rewriter.names import HE, IT, NOUNS, SHE, WORD, Mention, Name, Pronouns, fold
from training.rewriter.words import words

PRONOUN, NOUN, OMISSION, ELLIPSIS = "pronoun", "noun", "omission", "ellipsis"

_AUXILIARY = words("auxiliaries")
_BEFORE_OBJECT = words("before_objects")
_AFTER = words("after_phrases")
_PARTICIPLES = words("participles")
_BEFORE_NOUN = words("before_nouns")
_VERBS = words("verbs")
"""Words after a subject, as in ``did the tunnel open``."""
_DROPPED = words("dropped_prepositions")
_NEEDS_ITS_OBJECT = words("need_objects")
"""Words that say little once the phrase after them is gone."""
_ADJECTIVES = words("adjectives")


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
    modifies = not before or before[-1].lower() in _BEFORE_NOUN or before[-1][0].isdigit()
    if before and before[-1].lower() == "the":
        start = question.lower().rindex("the", 0, start)
        before = before[:-1]
    previous = before[-1].lower() if before else ""
    following = after[0].lower() if after else ""
    joined = re.match(r"[-:–(\"“]", question[end:].strip()) is not None
    if previous in _ADJECTIVES or joined or following in _ADJECTIVES - {"first", "last"}:
        return []
    put = _Put(question, start, end, bool(possessive))
    found: list[Followup] = []
    if possessive:
        found += _referring(put, mention.name, "possessive", pronoun=pronoun, noun=noun)
        return found
    ends = not following or following in _AFTER | _PARTICIPLES or following.endswith(("ed", "ly"))
    asks_do = bool({word.lower() for word in before} & {"did", "does", "do", "will", "can", "could"})
    if previous in _AUXILIARY and (following in _VERBS or following.endswith("ed") or following in _PARTICIPLES):
        found += _referring(put, mention.name, "subject", pronoun=pronoun, noun=noun)
    elif previous in _BEFORE_OBJECT and ends and not (following and previous in {"after", "before", "than"}):
        found += _referring(put, mention.name, "object", pronoun=pronoun and previous not in {"of", "to"}, noun=noun)
    if previous in _DROPPED and ends and len(before) > 2 and _can_lose(before[-2], following):
        found.append(Followup(put.without(previous), OMISSION))
    elif not ends and modifies and not following[0].isdigit() and _is_noun(following, previous, after, asks_do):
        found.append(Followup(put.as_modifier(), OMISSION))
    return [one for one in found if _enough(one.text)]


def _can_lose(head: str, following: str) -> bool:
    """Whether the words around a phrase with a preposition make sense without it."""
    return head.lower() not in _NEEDS_ITS_OBJECT and following != "of"


def _is_noun(word: str, previous: str, after: Sequence[str], asks_do: bool) -> bool:
    """Whether the word after a name is a noun that the name describes, not the verb that it is the subject of."""
    if previous in _AUXILIARY:
        return word in NOUNS
    return not (asks_do and len(after) == 1) and word not in _VERBS - words("verbs_or_nouns")


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
        """Without the name before a noun; its article stays."""
        article = "the " if self.question[self.start :].lower().startswith("the ") else ""
        text = _tidy(f"{self.question[: self.start]}{article}{self.question[self.end :].lstrip()}")
        return re.sub(r"\ban? (?=(\w))", lambda match: "an " if match[1].lower() in "aeiou" else "a ", text)


def _referring(put: _Put, name: Name, role: str, *, pronoun: bool, noun: bool) -> list[Followup]:
    found = []
    place = re.search(r"\b(in|at) $", put.question[: put.start])
    if pronoun and name.pronouns is IT and place and role == "object":
        found.append(Followup(put._replace(start=place.start()).replaced("there"), PRONOUN))
    elif pronoun and name.pronouns is not None and not _contradicts(name.pronouns, put.question):
        found.append(Followup(put.replaced(getattr(name.pronouns, role)), PRONOUN))
    if noun and name.noun is not None:
        found.append(Followup(put.replaced(f"the {name.noun}{chr(39) + 's' if role == 'possessive' else ''}"), NOUN))
    return found


def _contradicts(pronouns: Pronouns, question: str) -> bool:
    """Whether a question already has the pronoun of somebody else, or the passages used the wrong one."""
    words = {word.lower() for word in WORD.findall(question)}
    other = {HE: {"she", "her"}, SHE: {"he", "his", "him"}, IT: {"he", "his", "she", "her"}}
    return bool(words & other.get(pronouns, set()))


def _tidy(text: str) -> str:
    return re.sub(r"\s+([?,.])", r"\1", re.sub(r"\s+", " ", text)).strip()


def _enough(text: str) -> bool:
    return len(WORD.findall(text)) >= 3


def elliptic(previous: str, question: str) -> str | None:
    """Only what is new in a question that is otherwise the one before it: ``in 2019`` or ``the northern tunnel``."""
    places = list(WORD.finditer(question))
    old, new = WORD.findall(previous), [place[0] for place in places]
    first = _alike(old, new)
    last = min(_alike(old[::-1], new[::-1]), len(old) - first, len(new) - first)
    changed, was = new[first : len(new) - last], old[first : len(old) - last]
    if first < 3 or not 1 <= len(changed) <= 5 or not 1 <= len(was) <= 5 or first + last < 0.6 * len(new):
        return None
    if (
        (last and not _stands_alone(changed))
        or changed[0] in _AUXILIARY
        or _is_verb(changed[-1])
        or (changed[0].islower() and new[first - 1].lower() not in _BEFORE_NOUN)
    ):
        return None
    start, end = first, len(new) - last
    if changed[0][0].isupper() and changed[-1][0].isupper():
        start, end = _whole_name(new, start, end)
    if end == len(new) - 1 and not _is_verb(new[-1]):
        end += 1
    while start > 0 and new[start - 1].lower() in {"the", "a", "an", "in", "at", "for", "on", "of", "from"}:
        start -= 1
    phrase = question[places[start].start() : places[end - 1].end()]
    return phrase if start > 1 and fold(phrase) not in fold(previous) else None


def _whole_name(words: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """The places of the whole run of capitalised words around some of them."""
    while start > 0 and words[start - 1][0].isupper():
        start -= 1
    while end < len(words) and words[end][0].isupper():
        end += 1
    return start, end


def _is_verb(word: str) -> bool:
    return word.endswith("ed") or word in _VERBS or word in _PARTICIPLES


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
