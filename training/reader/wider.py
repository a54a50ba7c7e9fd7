"""What the wider recipe adds to each pass: answers spread over passages, tables, FAQs, contradictions, other years,
contexts of up to ten passages, and attacks on all of these and on the other examples.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ragworth.judging.labels import NO_RESPONSE_LABEL
from training.reader import several, tables, written
from training.reader.attacks import attacked, faq
from training.reader.examples import CONTRADICTED, OTHER_YEAR, Example
from training.reader.invented import World
from training.reader.sources import Question, Seen
from training.reader.texts import holds, kind_of, replaced, snippet, styled

INVENTED, TABLES = 3000, 1500
"""Questions about the invented world that take two passages, and tables, in each pass."""
ATTACKED = 0.04
FENCED = 0.5
"""Shares of all examples that are attacked, and that have fences around their passages."""

_YEAR = re.compile(r"\b(1[5-9]\d\d|20\d\d)\b")


class Wider(NamedTuple):
    """Where questions of several hops are, and what must not occur."""

    musique: Path | None
    avoided: Seen

    def spreads(self, held: set[str]) -> list[several.Spread]:
        """Questions of several hops, none of whose passages has a title that is held out."""
        seen = self.avoided._replace(titles=self.avoided.titles | held)
        return several.musique(self.musique, seen) if self.musique else []


def examples(
    questions: Sequence[Question], groups: Sequence[written.Group], spreads: Sequence[several.Spread], seed: int
) -> Iterator[Example]:
    """The additions of one pass."""
    draw = random.Random(f"wider {seed}")
    every = chain(spreads, several.joined(groups, draw), several.invented(INVENTED, seed))
    yield from chain.from_iterable(several.examples(spread, draw) for spread in every)
    yield from tables.examples(TABLES, seed)
    yield from _of_questions(questions, draw)
    for group in groups:
        yield from _faqs(group, draw)
        yield from _long(group, draw.choice(groups), draw)


def with_attacks(some: Iterator[Example], seed: int) -> Iterator[Example]:
    """The examples, some of them with an attack."""
    world = World(seed)
    for example in some:
        yield attacked(example, world) if world.draw.random() < ATTACKED else example


def _of_questions(questions: Sequence[Question], draw: random.Random) -> Iterator[Example]:
    answers: dict[str, list[str]] = {}
    held = [(question, answer) for question in questions if (answer := holds(question.answers, question.gold))]
    for _, answer in held:
        answers.setdefault(kind_of(answer), []).append(answer)
    for question, answer in held:
        other = draw.choice(answers[kind_of(answer)])
        if other.lower() != answer.lower() and (changed := replaced(question.gold, answer, other)):
            passages = [question.gold, snippet(question.gold, answer, draw), snippet(changed, other, draw)]
            yield _context(question.text, passages, answer, CONTRADICTED, draw)
        if moved := _in_another_year(question, draw):
            values = {"query": styled(question.text, draw), "passage": moved}
            yield Example("abstention", values, NO_RESPONSE_LABEL, OTHER_YEAR)


def _in_another_year(question: Question, draw: random.Random) -> str | None:
    """The gold passage with another year in the place of the one that the question names; None if there is none."""
    asked = _YEAR.search(question.text)
    if asked is None or holds([asked[0]], question.gold) is None or asked[0] in question.answers:
        return None
    shift = draw.choice((-3, -2, -1, 1, 2, 3))
    return replaced(question.gold, asked[0], str(int(asked[0]) + shift))


def _faqs(group: written.Group, draw: random.Random) -> Iterator[Example]:
    asked = [one for one in group.questions if one.answering]
    if len(asked) < 4:
        return
    mine, *others = (Example("abstention", {"query": one.text}, one.answers[0], "") for one in draw.sample(asked, 4))
    yield from faq(mine, others, draw)


def _long(group: written.Group, other: written.Group, draw: random.Random) -> Iterator[Example]:
    """Contexts of six to ten passages: a group's own, and those of another group."""
    asked = draw.choice(group.questions)
    missing = [*group.missing(asked), *(other.passages.values() if other is not group else ())]
    size = draw.randint(6, several.MOST)
    if asked.answering:
        gold = group.passages[draw.choice(asked.answering)]
        shown = [gold, *draw.sample(missing, min(len(missing), size - 1))]
        yield _context(asked.text, shown, holds(asked.answers, gold) or "", "context with gold", draw)
    shown = draw.sample(missing, min(len(missing), size))
    yield _context(asked.text, shown, NO_RESPONSE_LABEL, "context without", draw)


def _context(question: str, shown: list[str], said: str, kind: str, draw: random.Random) -> Example:
    passages = [{"text": text} for text in draw.sample(shown, len(shown))]
    return Example("answer", {"query": styled(question, draw), "passages": passages}, said, kind)
