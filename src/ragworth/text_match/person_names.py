"""Recognize a person by surname: "Picasso" for "Pablo Picasso", but not "Charlotte Brontë" for "Emily Brontë"."""

from __future__ import annotations

import re
from functools import lru_cache

from ragworth.text_match.languages import WORD_SETS

_PARTICLES_TEXT = "von van de der den di da del della du la le bin ibn al el dos ten ter zu"
_PARTICLES = frozenset(_PARTICLES_TEXT.split())
_TITLES_TEXT = """
mr mrs ms miss dr prof professor sir lord lady dame president chancellor king queen prince princess pope saint herr frau
monsieur madame señor señora signor signora mevrouw senator governor judge justice captain general author writer actor
painter composer director
"""
_TITLES = frozenset(_TITLES_TEXT.split())
_COMMON = frozenset().union(*(WORD_SETS[name] for name in ("English", "German", "French", "Spanish", "Dutch")))
"""Words that begin a sentence more often than they are given names."""
_ASKS_PERSON = re.compile(
    r"(?i)\b(?:who|whom|whose|wer|wen|wem|wessen|wie|qui|quién|quien|quiénes|chi|quem|kto|kdo|kim|vem|hvem|kuka|кто|"
    r"(?:which|what|the name of) (?:\w+ ){0,3}?(?:person|president|author|writer|actor|actress|singer|artist|painter|"
    r"composer|scientist|king|queen|player|director|ceo|minister|architect|inventor|philosopher|explorer))\b"
)
_MIN_LETTERS = 3
_MAX_PARTS = 5


def with_full_name(text: str, answer: str, question: str) -> str:
    """A text with the bare surname of the person that an accepted answer names written as there."""
    name = answer.strip().rstrip(".")
    surname = _surname(name)
    if not surname or not _ASKS_PERSON.search(question) or re.search(rf"(?i)\b{re.escape(surname)}\b", question):
        return text
    pattern = re.compile(rf"(?<![\w'’-]){re.escape(surname)}(?![\w-]|['’]s\b)(?! [A-Z])")
    bare = [_is_bare(text[: found.start()]) for found in pattern.finditer(text)]
    return pattern.sub(lambda _: name, text) if bare and all(bare) else text


@lru_cache(maxsize=8192)
def _surname(name: str) -> str:
    """The surname of a name of several capitalized words; empty for anything else."""
    parts = name.split()
    while len(parts) > 1 and parts[0].strip(".").lower() in _TITLES:
        parts = parts[1:]
    named = [re.sub(r"[.'’-]", "", part) for part in parts if part.lower() not in _PARTICLES]
    if not 2 <= len(named) <= _MAX_PARTS or not all(each.isalpha() and each[0].isupper() for each in named):
        return ""
    return parts[-1] if len(parts[-1]) >= _MIN_LETTERS and not parts[-1].isupper() else ""


def _is_bare(before: str) -> bool:
    """Whether no other given name or initial stands before a surname; a title or a common word may."""
    word = re.search(r"([^\s,;:!?\"“('’]+)\s+$", before[-40:])
    if word is None or not word[1][0].isupper():
        return True
    return word[1].strip(".").lower() in _TITLES or word[1].lower() in _COMMON
