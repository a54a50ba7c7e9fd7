"""Find where a text may give an answer in a form that shares no word with it: "NYC", "none" for "0"."""

from __future__ import annotations

import re

_NONE = re.compile(r"(?i)\W*(?:0|zero|none|no[ -]?one|nobody|nothing)\W*")
_SAYS_NONE = re.compile(r"(?i)\b(?:no|none|zero|no[ -]?one|nobody|nothing|never|without|not any|n['’]t any)\b")
_ACRONYM = re.compile(r"\b(?:[A-Z]\.?){2,6}(?!\w)")
_WORD = re.compile(r"\w+")
_SKIPPED = frozenset(("of", "the", "and", "for", "in", "de"))


def may_be_short_form(text: str, answer: str) -> bool:
    """Whether one may be an acronym of the other, or both may say that there is none."""
    if _NONE.fullmatch(answer):
        return _SAYS_NONE.search(text) is not None
    return _spells_out(answer, text, whole=True) or _spells_out(text, answer, whole=False)


def _spells_out(long: str, short: str, *, whole: bool) -> bool:
    """Whether the initials of capitalized words of one text, or of all of it, are an acronym in the other."""
    acronyms = {found.group().replace(".", "") for found in _ACRONYM.finditer(short)}
    if not acronyms:
        return False
    words = [word for word in _WORD.findall(long) if word.lower() not in _SKIPPED]
    initials = "".join(word[0] if word[0].isupper() and not word.isupper() else " " for word in words)
    return initials in acronyms if whole else any(acronym in initials for acronym in acronyms)
