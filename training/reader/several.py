"""Questions that take several passages: all of them together answer, a part of them does not.

Sources: questions of MuSiQue with all their hops; two questions of a written group as one; and chains, comparisons and
yes-or-no questions about the invented world, whose facts are known one by one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from ragworth.judging.labels import NO_RESPONSE_LABEL
from training.reader import written
from training.reader.examples import ALL_PARTS, SOME_PARTS, Example
from training.reader.invented import KINDS, World
from training.reader.sources import Seen, lines, plain
from training.reader.texts import holds, styled

MOST = 10
"""Passages of a context."""
PAIRS = 2
"""Pairs of questions that a written group is asked in each pass."""

ROLES = {
    ("film", "director"): "the director of {e}",
    ("film", "lead"): "the lead actor of {e}",
    ("company", "founder"): "the founder of {e}",
    ("company", "boss"): "the chief executive of {e}",
    ("team", "coach"): "the head coach of {e}",
    ("team", "rival"): "the team that {e} beat in the final",
    ("team", "scorer"): "the player who scored the winning goal for {e}",
    ("festival", "winner"): "the winner of {e}",
    ("device", "maker"): "the maker of the {e}",
    ("bridge", "architect"): "the architect of {e}",
    ("person", "spouse"): "the spouse of {e}",
}
"""What to call the value of a relation, if it is an entity with relations of its own."""

COMPARED = {
    ("company", "founded"): ("which company was founded first, {a} or {b}", min),
    ("company", "staff"): ("which company employs more people, {a} or {b}", max),
    ("bridge", "opened"): ("which was opened earlier, {a} or {b}", min),
    ("bridge", "length"): ("which is longer, {a} or {b}", max),
    ("festival", "visitors"): ("which drew more visitors, {a} or {b}", max),
    ("person", "award"): ("who won the Halmar medal first, {a} or {b}", min),
    ("person", "age"): ("who lived longer, {a} or {b}", max),
    ("device", "weight"): ("which is heavier, the {a} or the {b}", max),
}
SAME = {
    ("company", "seat"): "are {a} and {b} based in the same town",
    ("film", "director"): "were {a} and {b} directed by the same person",
    ("team", "ground"): "do {a} and {b} play in the same town",
    ("person", "birth"): "were {a} and {b} born in the same town",
    ("bridge", "river"): "do {a} and {b} cross the same river",
    ("device", "maker"): "are the {a} and the {b} made by the same company",
}


class Spread(NamedTuple):
    """A question, the passages that it takes, and passages that do not help."""

    question: str
    answer: str
    needed: tuple[str, ...]
    others: tuple[str, ...]


def examples(spread: Spread, draw: random.Random) -> Iterator[Example]:
    """All that is needed, and parts of it: as contexts, and as single passages."""
    yield _context(spread, list(spread.needed), spread.answer, ALL_PARTS, draw)
    part = draw.sample(spread.needed, draw.randint(1, len(spread.needed) - 1))
    yield _context(spread, part, NO_RESPONSE_LABEL, SOME_PARTS, draw)
    if draw.random() < 0.6:
        yield _single(spread, draw.choice(spread.needed), NO_RESPONSE_LABEL, SOME_PARTS, draw)
    if draw.random() < 0.4:
        page = draw.sample(spread.needed, len(spread.needed))
        yield _single(spread, "\n".join(page), spread.answer, ALL_PARTS, draw)


def _context(spread: Spread, shown: list[str], said: str, kind: str, draw: random.Random) -> Example:
    room = MOST - len(shown)
    more = draw.sample(spread.others, min(len(spread.others), room, draw.choice((0, 0, 1, 2, 3, 5, 8))))
    passages = draw.sample([*shown, *more], len(shown) + len(more))
    values = {"query": styled(spread.question, draw), "passages": [{"text": text} for text in passages]}
    return Example("answer", values, said, kind)


def _single(spread: Spread, passage: str, said: str, kind: str, draw: random.Random) -> Example:
    return Example("abstention", {"query": styled(spread.question, draw), "passage": passage}, said, kind)


def musique(path: Path, avoided: Seen) -> list[Spread]:
    """Questions of MuSiQue with the paragraphs of all their hops, except those that must not occur."""
    made = []
    for item in lines(path):
        places = {hop["paragraph_support_idx"] for hop in item["question_decomposition"]} - {None}
        texts = {each["idx"]: each["paragraph_text"] for each in item["paragraphs"]}
        titles = {each["title"] for each in item["paragraphs"] if each["idx"] in places}
        if len(places) < 2 or plain(item["question"]) in avoided.questions or titles & avoided.titles:
            continue
        needed = tuple(texts[place] for place in sorted(places))
        others = tuple(text for place, text in texts.items() if place not in places)
        if holds([item["answer"]], " ".join(needed)):
            made.append(Spread(item["question"], item["answer"], needed, others))
    return made


def joined(groups: Sequence[written.Group], draw: random.Random) -> Iterator[Spread]:
    """Two questions of a group as one, where no passage answers both, or may."""
    for group in groups:
        pairs = [pair for pair in combinations(group.questions, 2) if _apart(*pair)]
        for first, second in draw.sample(pairs, min(PAIRS, len(pairs))):
            needed = tuple(group.passages[draw.choice(asked.answering)] for asked in (first, second))
            used = {*first.answering, *second.answering, *first.disputed, *second.disputed}
            others = tuple(text for number, text in group.passages.items() if number not in used)
            said = [holds(asked.answers, text) for asked, text in zip((first, second), needed, strict=True)]
            rest = second.text[:1].lower() + second.text[1:]
            yield Spread(f"{first.text.rstrip('?')}, and {rest}", f"{said[0]} and {said[1]}", needed, others)


def _apart(first: written.Asked, second: written.Asked) -> bool:
    either = {*first.answering, *first.disputed} & {*second.answering, *second.disputed}
    return bool(first.answering and second.answering and not either)


def invented(number: int, seed: int) -> Iterator[Spread]:
    """Chains, comparisons and yes-or-no questions about the invented world, in equal shares."""
    world = World(seed)
    ways = (_chain, _comparison, _same)
    for place in range(number):
        yield ways[place % len(ways)](world)


def _chain(world: World) -> Spread:
    """A question about an entity that the first passage names and only the second tells about."""
    draw = world.draw
    kind, link = draw.choice(list(ROLES))
    value = KINDS[kind][link].value
    asked = draw.choice([name for name in KINDS[value] if (value, name) not in ROLES])
    start, middle, other = world.entity(kind), world.value(value), world.value(value)
    answer, wrong = world.value(KINDS[value][asked].value), world.value(KINDS[value][asked].value)
    ask = draw.choice([text for text in KINDS[value][asked].asks if not text.startswith("{e}")])
    question = ask.format(e=ROLES[kind, link].format(e=start))
    first = world.passage([_told(world, kind, link, start, middle), *_facts(world, kind, start, 2, {link})])
    second = world.passage([_told(world, value, asked, middle, answer), *_facts(world, value, middle, 2, {asked})])
    others = (
        world.passage([_told(world, value, asked, other, wrong)]),
        world.passage([draw.choice(KINDS[kind][link].hints).format(e=start), *_facts(world, kind, start, 1, {link})]),
        world.passage(_facts(world, kind, world.entity(kind), 2, set())),
    )
    return Spread(question, answer, (first, second), tuple(text for text in others if answer not in text))


def _comparison(world: World) -> Spread:
    draw = world.draw
    kind, name = draw.choice(list(COMPARED))
    ask, best = COMPARED[kind, name]
    values: dict[str, str] = {}
    while len({_number(value) for value in values.values()}) < 2:
        values = {world.entity(kind): world.value(KINDS[kind][name].value) for _ in range(2)}
    first, second = values
    answer = best(values, key=lambda entity: _number(values[entity]))
    return _two(world, kind, name, values, ask.format(a=first, b=second), answer)


def _same(world: World) -> Spread:
    draw = world.draw
    kind, name = draw.choice(list(SAME))
    relation, same = KINDS[kind][name], draw.random() < 0.5
    value = world.value(relation.value)
    first = second = world.entity(kind)
    while second == first:
        second = world.entity(kind)
    other = value if same else world.value(relation.value)
    question = SAME[kind, name].format(a=first, b=second)
    return _two(world, kind, name, {first: value, second: other}, question, "yes" if other == value else "no")


def _two(world: World, kind: str, name: str, values: dict[str, str], question: str, answer: str) -> Spread:
    """A passage about each of two entities, and some that lack what is asked."""
    needed = tuple(
        world.passage([_told(world, kind, name, entity, value), *_facts(world, kind, entity, 2, {name})])
        for entity, value in values.items()
    )
    others = (
        *(world.passage(_facts(world, kind, entity, 2, {name})) for entity in values),
        world.passage([_told(world, kind, name, world.entity(kind), world.value(KINDS[kind][name].value))]),
    )
    return Spread(question, answer, needed, others)


def _told(world: World, kind: str, name: str, entity: str, value: str) -> str:
    return world.draw.choice(KINDS[kind][name].tells).format(e=entity, v=value)


def _facts(world: World, kind: str, entity: str, most: int, without: set[str]) -> list[str]:
    """Other facts about an entity, at least one."""
    names = [name for name in KINDS[kind] if name not in without]
    some = world.draw.sample(names, world.draw.randint(1, most))
    return [_told(world, kind, name, entity, world.value(KINDS[kind][name].value)) for name in some]


def _number(value: str) -> int:
    return int(re.sub(r"\D", "", value))
