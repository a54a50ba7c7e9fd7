"""Find where a text may give an answer in a form that shares no word with it: "NYC", "none" for "0", "Москве"."""

from __future__ import annotations

import re
import unicodedata

_NONE = re.compile(r"(?i)\W*(?:0|zero|none|no[ -]?one|nobody|nothing)\W*")
_SAYS_NONE = re.compile(
    r"(?i)\b(?:no|none|zero|0|no[ -]?one|nobody|nothing|never|without|not (?:\w+ )?any)\b|n['’]t (?:\w+ )?any\b"
)
_COUNTED_NONE = re.compile(r"(?i)(?:\b(?:no|zero|0|not (?:have )?any)|n['’]t (?:have )?any) (?:\w+ )?(\w+)\b")
_ACRONYM = re.compile(r"\b(?:[A-Z]\.?){2,6}(?!\w)")
_WORD = re.compile(r"\w+")
_INFLECTING = re.compile("[\u0370-\u03ff\u0400-\u052f]+")  # Greek and Cyrillic
_MIN_STEM, _MAX_ENDING, _MIN_ACRONYM = 4, 3, 3
_SKIPPED = frozenset(("of", "the", "and", "for", "in", "de"))


def may_be_short_form(text: str, answer: str) -> bool:
    """Whether one may be an acronym or an inflected form of the other, or both may say that there is none."""
    if _NONE.fullmatch(answer):
        return _SAYS_NONE.search(text) is not None
    if _has_stems(text, answer):
        return True
    if _scripts_differ(text, answer):
        return True
    acronyms = {_letters(found.group()) for found in _ACRONYM.finditer(text)}
    short = _ACRONYM.fullmatch(answer.strip())
    if short is not None and _letters(short.group()) in _initials(text):
        return True
    return _initials(answer) in acronyms or any(_may_abbreviate(each, answer) for each in acronyms)


def says_none(text: str, answer: str, question: str) -> bool:
    """Whether both say that there is none: "he has no siblings" for "none", if the question counts siblings."""
    if not _NONE.fullmatch(answer):
        return False
    if _NONE.fullmatch(text):
        return True
    asked = re.search(r"(?i)\bhow (?:many|much) (?:\w+ ){0,2}?(\w+)\b", question)
    wanted = {word[:_MIN_STEM] for word in _WORD.findall(question.casefold()) if len(word) >= _MIN_STEM}
    return asked is not None and any(
        found[1].casefold()[:_MIN_STEM] in wanted for found in _COUNTED_NONE.finditer(text)
    )


def _may_abbreviate(acronym: str, answer: str) -> bool:
    """Whether an acronym begins like an answer of several words, and takes its letters from it in sequence.

    "EASA" may be the "European Union Aviation Safety Agency", "DNA" "deoxyribonucleic acid", "USA" the "United States".
    """
    words = [word for word in _WORD.findall(answer.casefold()) if word not in _SKIPPED]
    letters = acronym.casefold()
    if len(words) < 2 or len(letters) < _MIN_ACRONYM or letters[0] != words[0][0]:
        return False
    initials = "".join(word[0] for word in words)
    if letters.startswith(initials) or _in_sequence(letters, initials):
        return True
    return _in_sequence(initials, letters) and _in_sequence(letters, "".join(words))


def _in_sequence(letters: str, text: str) -> bool:
    rest = iter(text)
    return all(letter in rest for letter in letters)


def _scripts_differ(text: str, answer: str) -> bool:
    """Whether one has only Latin letters and the other none, so that they may say the same in two languages."""
    said, wanted = _are_latin(text), _are_latin(answer)
    return len(said) == len(wanted) == 1 and said != wanted


def _are_latin(text: str) -> set[bool]:
    return {"LATIN" in unicodedata.name(letter, "") for letter in text if letter.isalpha()}


def _has_stems(text: str, answer: str) -> bool:
    """Whether each word of an answer in Greek or Cyrillic is there with another ending: "Москве" for "Москва"."""
    wanted, said = _WORD.findall(answer.casefold()), _WORD.findall(text.casefold())
    return bool(wanted) and all(
        _INFLECTING.fullmatch(word) and any(_same_stem(word, one) for one in said) for word in wanted
    )


def _same_stem(one: str, other: str) -> bool:
    shared = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return shared >= _MIN_STEM and max(len(one), len(other)) - shared <= _MAX_ENDING


def _letters(acronym: str) -> str:
    return acronym.replace(".", "")


def _initials(text: str) -> str:
    """The initials of capitalized words, with a blank for every other word."""
    words = [word for word in _WORD.findall(text) if word.lower() not in _SKIPPED]
    return "".join(word[0] if word[0].isupper() and not word.isupper() else " " for word in words)
