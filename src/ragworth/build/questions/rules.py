"""The writer that asks no model: questions made from the sentences of the documents by rules.

The answer is a date, number, name, list or definition in a sentence. The question is the rest of that sentence: turned
round where its form allows it, and with a gap otherwise. Such questions repeat the words of their passage, so they
favour retrieval by words; the check ``copied`` measures it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from ragworth.build.drafts import Draft
from ragworth.build.questions.contract import NO_FACT, QUESTION, QuestionSlot, SourceSpan, SourceText, WrittenQuestion
from ragworth.build.questions.facts import (
    NO_NAMES,
    PRONOUN,
    UNIT,
    Fact,
    FactKind,
    Sentence,
    find_facts,
    split_sentences,
)
from ragworth.build.questions.phrasing import (
    ask_for,
    gap_statement,
    in_chat,
    join_questions,
    key_words,
    mentions,
    natural_question,
    tidy,
)
from ragworth.calls.job import Job
from ragworth.calls.programs import Forecast
from ragworth.core.errors import format_count

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


KINDS: dict[str, tuple[FactKind, ...]] = {
    "fact": ("name", "definition"),
    "numeric": ("number",),
    "time": ("date", "year"),
    "list": ("list",),
    "unanswerable": ("date", "year", "number"),
    "multi-passage": ("name", "date", "year", "number"),
    "comparison": ("year", "number"),
}
MAX_MENTIONS = 2
"""An answer that the passage has more often is likely to be ambiguous."""
RECENT = 4096
"""Passages whose facts are kept."""

_COMMON_NAMES = "United States America American English British New York World War University National"
COMMON_NAMES = frozenset((*_COMMON_NAMES.split(), *NO_NAMES))
"""Names that two texts may share and have nothing to do with each other."""


class SourcedFact(NamedTuple):
    fact: Fact
    source: SourceText
    natural: bool = False
    """Whether its sentence can be turned into a real question, without a gap."""

    @property
    def span(self) -> SourceSpan:
        return SourceSpan(self.source.id, self.fact.sentence.text)

    @property
    def names(self) -> set[str]:
        """Names in the sentence, without its first word and without those that say little."""
        return set(re.findall(r"(?<=\w )[A-Z][\w'’-]{2,}", self.fact.sentence.text)) - COMMON_NAMES

    @property
    def answers(self) -> tuple[str, ...]:
        """The fact as the text has it, and with tidy blanks if they differ."""
        return tuple(dict.fromkeys((tidy(self.fact.text), self.fact.text)))


FindFacts = Callable[[str], list[SourcedFact]]
"""The facts that questions on a passage can ask for, by its id."""


@dataclass(frozen=True)
class Workplace:
    """What a question of one slot is made with."""

    slot: QuestionSlot
    facts: Iterator[SourcedFact]
    """Of the right kind and not asked for yet, the best passages first."""
    kin: SameKind
    draw: random.Random

    def in_style(self, text: str, draft: SourcedFact | None = None) -> str:
        """The question as a user of the slot's style puts it. What can't be said in key words is asked in full."""
        if self.slot.style == "keywords" and draft is not None:
            return key_words(draft.fact, draft.source.title) or text
        return in_chat(text, self.draw) if self.slot.style == "chat" else text


class RuleWriter:
    """Writes questions by rules. The same slots and passages give the same questions."""

    name = "rules"

    def plan(
        self, slots: Sequence[QuestionSlot], passages: Mapping[str, SourceText], job: Job | None
    ) -> Forecast | None:
        return None

    def write(
        self, slots: Sequence[QuestionSlot], passages: Mapping[str, SourceText], job: Job | None = None
    ) -> list[Draft]:
        asked: set[tuple[str, str]] = set()
        kin = SameKind(passages)
        # A passage is a candidate of many slots, most of them neighbours.
        find = lru_cache(RECENT)(lambda id: _clear_facts(passages[id]))
        return [_draft(slot, find, asked, kin) for slot in slots]


def _draft(slot: QuestionSlot, find: FindFacts, asked: set[tuple[str, str]], kin: SameKind) -> Draft:
    draw = random.Random(slot.seed)
    written = WRITERS[slot.type](Workplace(slot, _usable_facts(slot, find, asked, draw), kin, draw))
    if written is None:
        number = format_count(len(slot.candidates), "passage")
        return Draft(slot.id, QUESTION, slot.stratum, {}).drop(NO_FACT, f"no sentence in {number} fits {slot.type}")
    return Draft(slot.id, QUESTION, slot.stratum, written.fields(slot))


def _usable_facts(
    slot: QuestionSlot, find: FindFacts, asked: set[tuple[str, str]], draw: random.Random
) -> Iterator[SourcedFact]:
    """Facts of the right kind from sentences that no earlier question of this type used, each marked when taken."""
    for id in slot.candidates:
        facts = [found for found in find(id) if found.fact.kind in KINDS[slot.type]]
        draw.shuffle(facts)
        facts.sort(key=lambda found: not found.natural)  # real questions first
        for found in facts:
            key = (slot.type, f"{id} {found.fact.sentence.start}")
            if key not in asked:
                asked.add(key)
                yield found


def _clear_facts(source: SourceText) -> list[SourcedFact]:
    facts = (fact for fact in find_facts(source.text) if _is_clear(fact, source))
    return [SourcedFact(fact, source, bool(natural_question(fact, source.title))) for fact in facts]


def _is_clear(fact: Fact, source: SourceText) -> bool:
    """Whether question and answer make sense: the answer is said once or twice and isn't what the title says."""
    mentions = len(re.findall(rf"(?<!\w){re.escape(fact.text)}(?!\w)", source.text))
    rest = f"{fact.before} {fact.after}".casefold()
    return (
        mentions <= MAX_MENTIONS
        and not fact.text.endswith(("'s", "’s", "'", "’"))
        and fact.text.casefold() not in source.title.casefold()
        and fact.text.casefold() not in rest
        and (len(rest.split()) >= 4 or fact.kind == "definition")
        and not (PRONOUN.match(fact.sentence.text) and not source.title)
    )


def _single(work: Workplace) -> WrittenQuestion | None:
    for found in work.facts:
        text = work.in_style(ask_for(found.fact, found.source.title), found)
        return WrittenQuestion(text, found.answers, (found.span,))
    return None


def _unanswerable(work: Workplace) -> WrittenQuestion | None:
    """A question about the subject of one document, asked about another of the same kind that doesn't state it."""
    for found in work.facts:
        if other := work.kin.without(found.fact, found.source, work.draw):
            moved = about_another(found.fact, found.source.title, other.title)
            text = work.in_style(ask_for(moved, other.title), SourcedFact(moved, other))
            return WrittenQuestion(text, (), (SourceSpan(other.id, ""),))
    return None


def _multi_passage(work: Workplace) -> WrittenQuestion | None:
    """Two facts of two passages that have something to do with each other, asked for together."""

    def related(one: SourcedFact, other: SourcedFact) -> bool:
        near = one.source.document == other.source.document or one.names & other.names
        return bool(near) and one.fact.text.casefold() != other.fact.text.casefold()

    pair = _pair(work.facts, related)
    if pair is None:
        return None
    one, other = pair
    text = join_questions(*(ask_for(each.fact, each.source.title) for each in pair))
    answers = tuple(f"{one.answers[0]}{between}{other.answers[0]}" for between in (" and ", ", "))
    return WrittenQuestion(work.in_style(text), answers, (one.span, other.span))


def _comparison(work: Workplace) -> WrittenQuestion | None:
    """Which of two years, or of two numbers of the same things, from two passages, is greater."""

    def comparable(one: SourcedFact, other: SourcedFact) -> bool:
        return _counted(one.fact) == _counted(other.fact) != "%" and _differ(one.fact, other.fact)

    pair = _pair(work.facts, comparable)
    if pair is None:
        return None
    one, other = pair
    later = max(pair, key=lambda each: _number(each.fact) or 0.0)
    what = "Which year is later" if one.fact.kind == "year" else f"Which number of {_counted(one.fact)} is greater"
    gaps = " or the one missing in ".join(gap_statement(each.fact, each.source.title) for each in (one, other))
    text = f"{what}: the one missing in {gaps}?"
    return WrittenQuestion(work.in_style(text), later.answers, (one.span, other.span))


def _pair(
    facts: Iterator[SourcedFact], fit: Callable[[SourcedFact, SourcedFact], bool]
) -> tuple[SourcedFact, SourcedFact] | None:
    """The first two facts of different passages that fit together."""
    seen: list[SourcedFact] = []
    for found in facts:
        for other in seen:
            if other.source.id != found.source.id and fit(other, found):
                return other, found
        seen.append(found)
    return None


def _counted(fact: Fact) -> str:
    """What a number counts; ``year`` for a year."""
    unit = re.match(UNIT, fact.after)
    return fact.kind if fact.kind != "number" or unit is None else unit[0]


def _number(fact: Fact) -> float | None:
    try:
        return float(fact.text.replace(",", ""))
    except ValueError:
        return None  # a number in words


def _differ(one: Fact, other: Fact) -> bool:
    values = _number(one), _number(other)
    return None not in values and values[0] != values[1]


WRITERS: dict[str, Callable[[Workplace], WrittenQuestion | None]] = {
    "fact": _single,
    "numeric": _single,
    "time": _single,
    "list": _single,
    "unanswerable": _unanswerable,
    "multi-passage": _multi_passage,
    "comparison": _comparison,
}
