"""What a question is about: names, numbers and quoted words. Without one, *the lake* can be any lake."""

from __future__ import annotations

import re
from collections.abc import Sequence

NAME = re.compile(r"(?<!^)(?<![.!?:…] )(?<![\"'“‘(])\b[A-Z][\w'’-]*")
"""A capitalised word that doesn't begin a sentence."""
CODE = re.compile(r"\d|[“\"«]|\w_\w|\b\w+[a-z][A-Z]|\b[A-Z]{2,}|\w\.\w{2,}")
"""Numbers, quotations, identifiers and acronyms."""
WORD = re.compile(r"[^\W\d_][\w'’-]*")
BARE_NOUN = re.compile(
    r"\bthe ([a-z-]{3,})(?=$|[?.,;:!]| (?:is|are|was|were|be|been|has|have|had|do|does|did|can|could|will|would|may|"
    r"might|must|should|and|or|if|after|before|than|because|as|while|until|since|still|now)\b)"
    r"|\b(?:do|does|did|can|could|will|would|must|should) the ([a-z-]{3,}) [a-z]+(?=$|[?.,;:!])",
    re.IGNORECASE,
)
"""A noun with *the* that nothing describes further."""
_UNIQUE = (
    "world earth sun moon sky sea ocean universe internet web bible quran future past present weather government law "
    "body brain heart blood skin day night morning evening year week month same difference name number amount meaning "
    "purpose reason way time first last next most least best only other others rest wild dark public media president "
    "environment economy user users reader"
)
UNIQUE = frozenset(_UNIQUE.split())
"""Nouns that need no introduction, and words that aren't nouns."""
ELSEWHERE = re.compile(
    r"(?<!is )(?<!are )\b(?:there|here)(?=$|[?.,!])|\bthe (?:second|third|other|old|new) (?:one|case|step|name)s?\b"
    r"|\bin (?:the|this) (?:example|scenario|case|clause)\b|\baccording to the \w+(?=$|[?.,])"
    r"|\b(?:in|with|for) (?:that|this) (?:case|version)\b|\b(?:described|mentioned|discussed|listed)(?=$|[?.,])",
    re.IGNORECASE,
)
TOPIC_WORDS = 4


def names_nothing(question: str, passages: Sequence[str]) -> bool:
    """Whether a question has no name, though its passages have some. False in doubt: without a capital in the
    question, names can't be recognised."""
    if not re.search("[A-Z]", question) or NAME.search(question) or CODE.search(question):
        return False
    names = {name.casefold() for text in passages for name in _names(text)}
    return bool(names) and not names & {word.casefold() for word in WORD.findall(question)}


def _names(text: str) -> set[str]:
    """Capitalised words that the text never writes in small letters, without those that only begin a sentence."""
    words = {match[0] for match in NAME.finditer(text)} - {"I"}
    return words - {word.capitalize() for word in WORD.findall(text) if word[0].islower()}


def unintroduced_words(question: str, passages: Sequence[str]) -> str:
    """Words of a question that only its passages explain, such as *the lake*; empty if there are none."""
    if found := ELSEWHERE.search(question):
        return found[0]
    topics = {topic for text in passages for topic in _topics(text)}
    nouns = ((match[1] or match[2]).casefold() for match in BARE_NOUN.finditer(question))
    bare = next((noun for noun in nouns if noun not in UNIQUE | topics and not noun.endswith("est")), "")
    return f"the {bare}" if bare else ""


def _topics(text: str) -> set[str]:
    """Nouns that a passage begins with, without a name behind them: its subject in general."""
    words = WORD.findall(text[:200])[:TOPIC_WORDS]
    following = [*words[1:], ""]
    return {word.casefold() for word, after in zip(words, following, strict=True) if not after[:1].isupper()}
