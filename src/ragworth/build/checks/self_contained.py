"""``self-contained``: the question makes sense without the passage it was written from.

By rules, for English: references to the text ("according to the passage"), pronouns and demonstratives with nothing
before them that they could stand for, and comparisons with something unsaid ("the former").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from ragworth.build.checks.contract import Check, CheckFinding, Evidence
from ragworth.build.question_set import Question
from ragworth.text_match.languages import ENGLISH, identify_language

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


TEXT_NOUNS = "passage|text|document|excerpt|article|paragraph|section|author|authors|context|snippet|chapter|page"
REFERENCE = re.compile(
    rf"\b(?:according to|in|from|by|of|does|do|did|is|are|as|per) (?:the|this|that|these|given)"
    rf"(?: (?:above|given|provided|following|same|preceding))? (?:{TEXT_NOUNS})\b"
    r"(?! (?:of|on|in|about|called|titled|at)\b)"
    rf"|\bthis (?:{TEXT_NOUNS}|study|paper|report|example|table|figure|list)\b"
    rf"|\b(?:the )?(?:{TEXT_NOUNS}) (?:above|below|provided|mentions?|states?|says|describes?|discusses|gives)\b"
    r"|\b(?:mentioned|described|listed|shown|given|stated|discussed|quoted) (?:above|below|here|earlier|before)\b"
    r"|\bthe (?:following|above|aforementioned|former|latter|preceding)\b",
    re.IGNORECASE,
)
PRONOUN = re.compile(r"\b(he|she|it|they|him|her|them|his|hers|its|their|theirs)\b", re.IGNORECASE)
EMPTY_IT = re.compile(
    r"\b(?:is|was|does|did|can|could|will|would|has|had|may|might|must|should) it (?:true|possible|likely|necessary|"
    r"legal|safe|called|take|mean|cost|snow|rain|important|better|that|ok|okay)\b|\bit (?:is|was|'s) (?:\w+ )?"
    r"(?:that|called|like|to)\b|\bit (?:takes?|means?|costs?|rains?|snows?|gets?)\b"
    r"|\b(?:do|did|does) they (?:film|make|sell|say|call|play|grow|speak|shoot|record) \w+ \w+",
    re.IGNORECASE,
)
DEMONSTRATIVE = re.compile(
    r"\b(?:this|these|those) (?!year|month|week|day|morning|evening|century|kind|type|sort|way|time|who|that|of)[a-z]+"
    r"|\b(?:this|these|those)[?.!]*$|^(?:and|but|so|then) (?!what|when|where|who|why|how)\b|\bsuch an? [a-z]+\b"
    r"|^(?:is|was|are|were|does|did) (?:this|that|these|those)\b|^(?:and |but |so )?what about\b|\bthe other one\b",
    re.IGNORECASE,
)
FILLERS = (
    "what which who whom whose when where why how is are was were do does did can could will would should has have had "
    "many much long old far the a an of in on at to for by with from and or please tell me you know i'd like quick "
    "question about s be been if that there"
)
FILLER_WORDS = frozenset(FILLERS.split())
ARTICLES = frozenset(("the", "a", "an", "my", "your", "our", "each", "every"))
_MARKERS = "some all most any is are was were do does did can could will would has had"
MARKERS = frozenset(_MARKERS.split())
"""Words that stand before a noun: quantifiers, and auxiliaries before their subject."""


@dataclass(frozen=True)
class SelfContained(Check):
    """1, or 0 with the words that refer to something outside the question."""

    name: ClassVar[str] = "self-contained"
    title: ClassVar[str] = "makes sense without its passage"
    measures: ClassVar[str] = "1 if nothing refers outside"

    def find(self, question: Question, evidence: Evidence) -> CheckFinding:
        text = question.text.strip()
        if not text:
            return CheckFinding("fail", 0.0, "the question is empty")
        language = identify_language(text)
        if language not in (ENGLISH, ""):
            return CheckFinding("unknown", None, f"the rules are for English, and the question is in {language}")
        found = dangling_reference(text)
        passages = evidence.questions.known_texts(question)
        if not found and passages and names_nothing(text, passages):
            found = unintroduced_words(text, passages)
        if found:
            return CheckFinding("fail", 0.0, f"“{found}” refers to something outside the question")
        return CheckFinding("pass", 1.0)


def dangling_reference(text: str) -> str:
    """Words that refer to something outside the question; empty if there are none."""
    unquoted = re.sub(r"[“\"][^“”\"]*[”\"]", " ", text)
    for pattern in (REFERENCE, DEMONSTRATIVE):
        if found := pattern.search(unquoted):
            return " ".join(found[0].split())
    idle = [match.span() for match in EMPTY_IT.finditer(unquoted)]
    for match in PRONOUN.finditer(unquoted):
        if not _names_something(unquoted[: match.start()]) and not any(
            start <= match.start() < end for start, end in idle
        ):
            return match[0]
    return ""


def _names_something(before: str) -> bool:
    """Whether the words before a pronoun have something that it may stand for: a name, a noun with an article, a
    plural, or the subject of a verb."""
    words = re.findall(r"[\w'’-]+", before)
    if not words:
        return False
    if words[0].casefold() not in FILLER_WORDS and len(words) > 1:
        return True  # key words: what the question is about comes first
    pairs = list(pairwise(word.casefold() for word in words))
    if any(one in ARTICLES for one, _ in pairs):
        return True
    named = any(word[0].isupper() and word.casefold() not in FILLER_WORDS for word in words[1:])
    marked = any(one in MARKERS and other not in FILLER_WORDS for one, other in pairs)
    plural = any(len(word) > 4 and word.endswith("s") and not word.endswith(("ss", "us", "is")) for word in words[1:])
    return named or marked or plural
