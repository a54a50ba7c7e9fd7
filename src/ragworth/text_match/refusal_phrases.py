"""Compile ``refusal_phrases.txt``, the table of phrases that decline to answer, to regular expressions."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from ragworth.text_match.overlap import SCRIPTS_WITHOUT_SPACES

PHRASE_KINDS = ("declines", "soft", "sorry", "but", "aside")
_OWN_BUT = "yet"

# A few words between, within the sentence. Bounded, so that the time is proportional to the length of the text.
_GAP = r"[^.!?。！？।\n]{0,60}?"
_SCRIPTS_WITHOUT_ENDS = re.compile(f"[{SCRIPTS_WITHOUT_SPACES}\uac00-\ud7af]")


class LanguagePhrases(NamedTuple):
    """The phrases of a language by kind, as regular expressions, and its labels."""

    phrases: dict[str, list[str]]
    labels: list[str]


class RefusalPatterns(NamedTuple):
    """One expression per kind for all languages, one per language for phrases that decline, and all labels."""

    declines: re.Pattern[str]
    soft: re.Pattern[str]
    sorry: re.Pattern[str]
    but: re.Pattern[str]
    aside: re.Pattern[str]
    by_language: dict[str, re.Pattern[str]]
    labels: frozenset[str]
    but_after: dict[str, re.Pattern[str]]
    """For languages with a "but" that is a word of another language: all of their words for it."""


def normalise_for_phrases(text: str) -> str:
    """Normalize a text for phrase matching: lower case, one form of apostrophe, composed characters."""
    return unicodedata.normalize("NFC", text).casefold().replace("’", "'").replace("ʼ", "'").replace("`", "'")


def with_word_boundaries(pattern: str) -> str:
    """Add word boundaries to a pattern; Korean and scripts without blanks have none where phrases end."""
    if _SCRIPTS_WITHOUT_ENDS.search(pattern):
        return f"(?:{pattern})"
    return rf"(?<!\w)(?:{pattern})(?!\w)"


NON_LATIN_LANGUAGES = frozenset(
    ("Russian", "Arabic", "Hindi", "Chinese", "Japanese", "Korean", "Greek", "Hebrew", "Thai", "Ukrainian")
)
"""Languages whose phrases can't occur in a text of ASCII characters."""


@cache
def refusal_patterns(*, ascii_only: bool = False) -> RefusalPatterns:
    """The table, compiled on first use; ``ascii_only`` leaves out phrases in other scripts, which saves time."""
    table = parse_phrases(files("ragworth.text_match").joinpath("refusal_phrases.txt").read_text(encoding="utf-8"))
    if ascii_only:
        table = {name: language for name, language in table.items() if name not in NON_LATIN_LANGUAGES}
    together = [
        re.compile("|".join(phrase for language in table.values() for phrase in language.phrases[kind]))
        for kind in PHRASE_KINDS
    ]
    by_language = {
        name: re.compile("|".join(language.phrases["declines"]))
        for name, language in table.items()
        if language.phrases["declines"]
    }
    labels = frozenset(label for language in table.values() for label in language.labels)
    declines, soft, sorry, but, aside = together
    but_after = {
        name: re.compile("|".join((but.pattern, *language.phrases[_OWN_BUT])))
        for name, language in table.items()
        if language.phrases[_OWN_BUT]
    }
    return RefusalPatterns(declines, soft, sorry, but, aside, by_language, labels, but_after)


def parse_phrases(text: str) -> dict[str, LanguagePhrases]:
    """Parse the table of phrases, whose format is explained at its top."""
    table: dict[str, LanguagePhrases] = {}
    words: dict[str, str] = {}
    language = LanguagePhrases({kind: [] for kind in (*PHRASE_KINDS, _OWN_BUT)}, [])
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if not line or kind == "#":
            continue
        if line.startswith("["):
            words = {}
            language = table[line.strip("[]")] = LanguagePhrases({kind: [] for kind in (*PHRASE_KINDS, _OWN_BUT)}, [])
        elif kind == "word":
            name, _, choice = rest.partition(" = ")
            words[f"{{{name}}}"] = f"({_with_words(choice, words)})"
        elif kind == "label":
            language.labels.append(normalise_for_phrases(rest))
        else:
            language.phrases[kind].append(_expression(rest, words))
    return table


def _with_words(phrase: str, words: dict[str, str]) -> str:
    for name, choice in words.items():
        phrase = phrase.replace(name, choice)
    return phrase


def _expression(phrase: str, words: dict[str, str]) -> str:
    phrase = re.sub(r"\((?!\?)", "(?:", normalise_for_phrases(_with_words(phrase, words)))
    # Words are separate on both sides of a gap; characters of scripts without blanks need not be.
    phrase = re.sub(r" ?… ?", lambda gap: _GAP + (r"\b" if " " in gap.group() else ""), phrase)
    return with_word_boundaries(phrase.replace(" ?", r"\s?").replace(" ", r"\s+"))
