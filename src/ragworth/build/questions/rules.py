"""The writer that asks no model: questions made from the sentences of the documents by rules.

The answer is a date, number, name or list in a sentence, and the question is the rest of that sentence. Such questions
repeat the words of their passage, so they favour retrieval by words; the check ``copied`` measures it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ragworth.build.drafts import Draft
from ragworth.build.questions.contract import NO_FACT, QUESTION, QuestionSlot, SourceSpan, SourceText, WrittenQuestion
from ragworth.build.questions.facts import PRONOUN, Fact, FactKind, find_facts
from ragworth.build.questions.phrasing import ask_for, gap_statement, in_style, standalone
from ragworth.calls.job import Job
from ragworth.calls.programs import Forecast
from ragworth.errors import format_count

KINDS: dict[str, tuple[FactKind, ...]] = {
    "fact": ("name",),
    "numeric": ("number",),
    "time": ("date", "year"),
    "list": ("list",),
    "unanswerable": ("name", "date", "year", "number"),
    "follow-up": ("name", "date", "year", "number"),
    "multi-passage": ("name", "date", "year", "number"),
    "comparison": ("year", "number"),
}
MAX_MENTIONS = 2
"""An answer that the passage has more often is likely to be ambiguous."""


class SourcedFact(NamedTuple):
    fact: Fact
    source: SourceText

    @property
    def span(self) -> SourceSpan:
        return SourceSpan(self.source.id, self.fact.sentence.text)


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
        asked: set[tuple[str, str, str]] = set()
        return [self._draft(slot, passages, asked) for slot in slots]

    def _draft(self, slot: QuestionSlot, passages: Mapping[str, SourceText], asked: set[tuple[str, str, str]]) -> Draft:
        draw = random.Random(slot.seed)
        facts = _usable_facts(slot, passages, asked, draw)
        written = WRITERS[slot.type](facts, slot, passages, draw)
        if written is None:
            number = format_count(len(slot.candidates), "passage")
            return Draft(slot.id, QUESTION, slot.stratum, {}).drop(NO_FACT, f"no sentence in {number} fits {slot.type}")
        question = in_style(written.text, slot.style, draw)
        return Draft(slot.id, QUESTION, slot.stratum, written._replace(text=question).fields(slot))


def _usable_facts(
    slot: QuestionSlot, passages: Mapping[str, SourceText], asked: set[tuple[str, str, str]], draw: random.Random
) -> Iterator[SourcedFact]:
    """Facts of the right kind that no earlier question of this type asked for, each marked as asked when taken."""
    for id in slot.candidates:
        source = passages[id]
        facts = [fact for fact in find_facts(source.text) if fact.kind in KINDS[slot.type] and _is_clear(fact, source)]
        draw.shuffle(facts)
        for fact in facts:
            key = (slot.type, f"{id} {fact.sentence.start}", fact.text)
            if key not in asked:
                asked.add(key)
                yield SourcedFact(fact, source)


def _is_clear(fact: Fact, source: SourceText) -> bool:
    """Whether question and answer make sense: the answer is said once or twice and isn't what the title says."""
    mentions = len(re.findall(rf"(?<!\w){re.escape(fact.text)}(?!\w)", source.text))
    rest = f"{fact.before} {fact.after}".casefold()
    return (
        mentions <= MAX_MENTIONS
        and not fact.text.endswith(("'s", "’s", "'", "’"))
        and fact.text.casefold() not in source.title.casefold()
        and fact.text.casefold() not in rest
        and len(rest.split()) >= 4
        and not (PRONOUN.match(fact.sentence.text) and not source.title)
    )


def _single(
    facts: Iterator[SourcedFact], slot: QuestionSlot, passages: Mapping[str, SourceText], draw: random.Random
) -> WrittenQuestion | None:
    for found in facts:
        return WrittenQuestion(ask_for(found.fact, found.source.title), (found.fact.text,), (found.span,))
    return None


def _unanswerable(
    facts: Iterator[SourcedFact], slot: QuestionSlot, passages: Mapping[str, SourceText], draw: random.Random
) -> WrittenQuestion | None:
    """A question about one document, asked about another one that doesn't state it."""
    for found in facts:
        others = [
            passages[id]
            for id in slot.candidates
            if passages[id].document != found.source.document and passages[id].title
        ]
        others = [each for each in others if found.fact.text not in each.text and each.title != found.source.title]
        if not others:
            continue
        subject = draw.choice(others)
        text = ask_for(found.fact, subject.title, named=found.source.title)
        if text and found.source.title.casefold() not in text.casefold():
            return WrittenQuestion(text, (), (SourceSpan(subject.id, ""),))
    return None


def _follow_up(
    facts: Iterator[SourcedFact], slot: QuestionSlot, passages: Mapping[str, SourceText], draw: random.Random
) -> WrittenQuestion | None:
    """Two facts of one passage: the first question and its answer are the conversation, the second refers back."""
    first: SourcedFact | None = None
    for found in facts:
        if first is None or found.source.id != first.source.id:
            first = found
            continue
        if found.fact.sentence == first.fact.sentence:
            continue
        asked = ask_for(first.fact, first.source.title)
        history = (("user", standalone(asked)), ("assistant", first.fact.text))
        text, rewrite = ask_for(found.fact, ""), ask_for(found.fact, found.source.title)
        return WrittenQuestion(f"and {text}", (found.fact.text,), (found.span,), history, standalone(rewrite))
    return None


def _multi_passage(
    facts: Iterator[SourcedFact], slot: QuestionSlot, passages: Mapping[str, SourceText], draw: random.Random
) -> WrittenQuestion | None:
    """Two facts of two passages, asked for together."""
    pair = _pair(facts, lambda one, other: one.fact.text.casefold() != other.fact.text.casefold())
    if pair is None:
        return None
    one, other = pair
    text = f"{ask_for(one.fact, one.source.title)}, and {ask_for(other.fact, other.source.title)}"
    answers = (f"{one.fact.text} and {other.fact.text}", f"{one.fact.text}, {other.fact.text}")
    return WrittenQuestion(text, answers, (one.span, other.span))


def _comparison(
    facts: Iterator[SourcedFact], slot: QuestionSlot, passages: Mapping[str, SourceText], draw: random.Random
) -> WrittenQuestion | None:
    """Which of two years or numbers, from two passages, is greater."""

    def comparable(one: SourcedFact, other: SourcedFact) -> bool:
        return one.fact.kind == other.fact.kind and _number(one.fact) is not None and _differ(one.fact, other.fact)

    pair = _pair(facts, comparable)
    if pair is None:
        return None
    one, other = pair
    later = max(pair, key=lambda each: _number(each.fact) or 0.0)
    what = "which year is later" if one.fact.kind == "year" else "which number is greater"
    gaps = " or ".join(gap_statement(each.fact, each.source.title) for each in (one, other))
    return WrittenQuestion(f"{what}: the one missing in {gaps}", (later.fact.text,), (one.span, other.span))


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


def _number(fact: Fact) -> float | None:
    try:
        return float(fact.text.replace(",", ""))
    except ValueError:
        return None  # a number in words


def _differ(one: Fact, other: Fact) -> bool:
    values = _number(one), _number(other)
    return None not in values and values[0] != values[1]


WRITERS = {
    "fact": _single,
    "numeric": _single,
    "time": _single,
    "list": _single,
    "unanswerable": _unanswerable,
    "follow-up": _follow_up,
    "multi-passage": _multi_passage,
    "comparison": _comparison,
}
