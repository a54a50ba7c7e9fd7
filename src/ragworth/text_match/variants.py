"""Other spellings of the same words: British and American ones, abbreviations of countries, names with initials."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

# Each pair: British letters and American ones, within words.
_BRITISH = tuple(
    (re.compile(rf"\b{british}"), american)
    for british, american in (
        (r"(\w*)haem", r"\1hem"),
        (r"(\w*[bcdfghjklmnprst])aemi(a|c)\b", r"\1emi\2"),
        (r"(an|gyn|orthop|encyclop|p)ae(?=[sdc])", r"\1e"),
        (r"oe(?=dem|soph|str)", "e"),
        (r"(\w*)diarrhoea", r"\1diarrhea"),
        (r"foet", "fet"),
        (r"leukaem", "leukem"),
        (r"sul(?:ph)(?=[auio])", "sulf"),
        (r"alumini?um\b", "aluminum"),
        (r"grey\b", "gray"),
        (r"tyre", "tire"),
        (r"(col|fav|flav|hon|hum|lab|neighb|harb|behavi|od|rum|vap|tum|arm|sav|vig|cand|glam|rig|end?eav)our", r"\1or"),
        (r"(\w{3,}[lnrtvdzmgc])is(?=(?:e|es|ed|ing|ation\w*|er)\b)", r"\1iz"),
        (r"(\w{2,}(?:al|an|t))yse", r"\1yze"),
        (r"(cent|met|lit|fib|theat|lust|meag|calib|spect)re(?=s?\b)", r"\1er"),
        (r"(catal|dial|anal|monol|prol)ogue", r"\1og"),
        (r"(defen|offen|licen|preten)ce\b", r"\1se"),
        (r"(cancel|travel|label|model|fuel|signal)l(?=(?:ed|ing|er)\b)", r"\1"),
        (r"(program)me\b", r"\1"),
    )
)

_FULL_NAMES = {
    "United States": r"U\.\s?S\.\s?A\.?|U\.\s?S\.(?!\w)|USA\b|US\b(?!\s?\$|\sdollar)|United States of America\b",
    "United Kingdom": r"U\.\s?K\.(?!\w)|UK\b",
    "European Union": r"E\.\s?U\.(?!\w)|EU\b",
    "United Nations": r"U\.\s?N\.(?!\w)|UN\b",
    "United Arab Emirates": r"U\.\s?A\.\s?E\.?(?!\w)|UAE\b",
    "World Health Organization": r"WHO\b|World Health Organisation\b",
}
"""Names with their usual abbreviations, in capitals only: "us" is another word."""
_MIN_SURNAME = 3
_ABBREVIATED = {name: re.compile(rf"\b(?:{short})") for name, short in _FULL_NAMES.items()}


def american_spelling(words: Iterable[str]) -> str:
    """Words in lower case as a line, in American spelling: "hemoglobin", "color", "organize"."""
    return f" {' '.join(map(_american_word, words))} "


@lru_cache(maxsize=1 << 16)
def _american_word(word: str) -> str:
    for pattern, american in _BRITISH:
        word = pattern.sub(american, word)
    return word


@lru_cache(maxsize=1024)
def full_names(text: str) -> str:
    """A text with common abbreviations of countries and organizations in full; one all in capitals is left alone."""
    if text.isupper() and len(text.split()) > 1:
        return text
    for name, short in _ABBREVIATED.items():
        text = short.sub(name, text)
    return text


def has_initials(text: str, name: str) -> bool:
    """Whether a text has a name with its first name, or the genus of a species, as an initial, and no other initial."""
    parts = name.split()
    if (
        len(parts) < 2
        or parts[-1] not in text
        or not all(part[0].isalpha() for part in parts)
        or not parts[0][0].isupper()
    ):
        return False
    if not (all(part[0].isupper() for part in parts) or (len(parts) == 2 and parts[1].islower())):
        return False
    initials = "".join(part[0] for part in parts[:-1])
    found = re.search(rf"\b((?:[A-Z]\.[ -]?){{1,3}}){re.escape(parts[-1])}(?!\w)", text)
    if found is None or len(parts[-1]) < _MIN_SURNAME:
        return False
    said = re.sub(r"\W", "", found[1])
    return said in (initials, initials[0])
