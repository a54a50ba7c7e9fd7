"""Questions that the documents don't answer: what is known of one subject, asked about another of its kind."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from functools import cached_property

from ragworth.build.questions.contract import SourceText
from ragworth.build.questions.facts import UNIT, Fact
from ragworth.build.questions.phrasing import mentions
from ragworth.build.questions.sentences import Sentence, split_sentences

KIND = re.compile(r"^.{2,90}? (?:is|was|are|were) (?:an?|the|one of the) ([a-zA-Z' -]{3,80})")
KIND_END = re.compile(
    r"\b(?:of|in|that|which|who|for|by|on|from|with|to|at|located|used|set|created|starring|based|and|or|as|where|made)\b"
)
TIME = re.compile(r"\b(?:1\d{3}|20\d\d)\b")


def kind_of(source: SourceText) -> str:
    """The noun that a passage says its title is, such as *river*; empty if its first sentence doesn't."""
    first = next(split_sentences(source.text), None)
    match = KIND.match(first.text) if first and source.title and mentions(first.text, source.title) else None
    words = KIND_END.split(match[1])[0].split() if match else []
    return words[-1].casefold() if words else ""


class SameKind:
    """Documents by what they are about, found out when it is first asked for."""

    def __init__(self, passages: Mapping[str, SourceText]) -> None:
        self._passages = passages

    @cached_property
    def _kinds(self) -> dict[str, str]:
        """What each document is about, where a passage says so."""
        found: dict[str, str] = {}
        for source in self._passages.values():
            if source.document not in found and (kind := kind_of(source)):
                found[source.document] = kind
        return found

    @cached_property
    def _documents(self) -> dict[str, list[str]]:
        """Documents of each kind."""
        found: dict[str, list[str]] = {}
        for document, kind in self._kinds.items():
            found.setdefault(kind, []).append(document)
        return found

    @cached_property
    def _ids(self) -> dict[str, list[str]]:
        """Passages of the documents whose kind is known."""
        found: dict[str, list[str]] = {}
        for source in self._passages.values():
            if source.document in self._kinds:
                found.setdefault(source.document, []).append(source.id)
        return found

    def without(self, fact: Fact, source: SourceText, draw: random.Random) -> SourceText | None:
        """A passage about another subject of the same kind whose document says nothing like the fact; None if there
        is none, or if the fact isn't about the subject of its own document."""
        kind = self._kinds.get(source.document, "")
        sentence = fact.sentence.text
        if not kind or not (sentence.startswith("It ") or sentence.casefold().startswith(source.title.casefold())):
            return None
        others = [each for each in self._documents[kind] if each != source.document]
        draw.shuffle(others)
        for document in others:
            texts = [self._passages[id] for id in self._ids[document]]
            if texts[0].title != source.title and not any(_says_such(fact, each.text) for each in texts):
                return texts[0]
        return None


def _says_such(fact: Fact, text: str) -> bool:
    """Whether a text may answer a question for the fact: it has a year, or the things that are counted."""
    if fact.kind == "number" and (unit := re.match(UNIT, fact.after)):
        return unit[0].split()[-1].removesuffix("s") in text.casefold()
    return TIME.search(text) is not None


def about_another(fact: Fact, title: str, other: str) -> Fact:
    """The fact with another subject in its sentence."""
    before = fact.sentence.text[: fact.start]
    changed = re.sub(re.escape(title), lambda _: other, before, flags=re.IGNORECASE)
    after = re.sub(re.escape(title), lambda _: other, fact.sentence.text[fact.start :], flags=re.IGNORECASE)
    return fact._replace(sentence=Sentence(changed + after, fact.sentence.start), start=len(changed))
