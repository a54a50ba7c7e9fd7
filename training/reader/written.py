"""Groups of passages written for readers, with questions and which of the passages answers which.

What a search finds is mostly about the right thing and still does not say what was asked: the other year's winner, the
date that was planned, the price of the smaller model. Questions of other collections come with the passage that answers
them, hardly ever with several that nearly do. The files in ``written/`` have such groups; whatever is asked about is
invented, so that nobody can answer from memory. Their form:

    == a short topic
    1: a passage
    2: another one
    ? a question => its answer | another spelling of it => 2
    ? a question => its answer => 1 ~2
    ? a question that none of them answers => =>

After the second arrow stand the passages that answer. ``~`` is before one that some would say answers: it is left out.
``!`` is before one that seems to answer, mostly because it has the answer's words, and does not. All others of the
group do not answer either. Labels are for single passages: shown together, some that do not answer might.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from ragworth.judging.labels import NO_RESPONSE_LABEL
from training.reader.examples import WRITTEN, Example
from training.reader.texts import holds, styled

FOLDER = Path(__file__).parent / "written"
ANSWERS, OTHER = WRITTEN, f"{WRITTEN} near miss"
JOINED, AS_WRITTEN = 0.25, 0.6
"""How many passages are shown joined to others of their group; how many questions as they were written."""
MISSES = 2
"""Near misses that a question is shown with in each pass, besides those that seem to answer."""
APART = 12
"""One in so many groups is kept to choose by, and one to judge by."""


class Asked(NamedTuple):
    """A question of a group: the passages that answer it, those that may, and those that only seem to."""

    text: str
    answers: tuple[str, ...]
    answering: tuple[int, ...]
    disputed: tuple[int, ...]
    seeming: tuple[int, ...]


class Group(NamedTuple):
    """Passages about one thing, by number, and questions about them."""

    topic: str
    passages: dict[int, str]
    questions: list[Asked]

    def missing(self, asked: Asked) -> list[str]:
        """The passages that do not answer, those first that seem to."""
        others = [n for n in self.passages if n not in (*asked.answering, *asked.disputed)]
        return [self.passages[n] for n in sorted(others, key=lambda n: n not in asked.seeming)]


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.txt"))


def read(path: Path) -> list[Group]:
    """The groups of a file. What cannot be right is an error that names the line: labels are all that counts here."""
    groups: list[Group] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{path}:{number}"
        passage = re.match(r"(\d+): (.+)", line)
        if line.startswith("== "):
            groups.append(Group(line[3:].strip(), {}, []))
        elif not groups and line.strip():
            raise ValueError(f"{where}: a group begins with '== ' and its topic")
        elif passage:
            _place(groups[-1], int(passage[1]), passage[2].strip(), where)
        elif line.startswith("? "):
            groups[-1].questions.append(_question(line[2:], groups[-1], where))
        elif line.strip():
            raise ValueError(f"{where}: neither a topic (==), a passage (1:) nor a question (?)")
    if empty := [group.topic for group in groups if not group.questions]:
        raise ValueError(f"{path}: no question about {empty[0]!r}")
    return groups


def _place(group: Group, number: int, text: str, where: str) -> None:
    if group.questions:
        raise ValueError(f"{where}: a passage after the questions; they were asked without it")
    if number != len(group.passages) + 1:
        raise ValueError(f"{where}: passage {number} where {len(group.passages) + 1} is next")
    group.passages[number] = text


def _question(line: str, group: Group, where: str) -> Asked:
    parts = [part.strip() for part in line.split("=>")]
    if len(parts) != 3:
        raise ValueError(f"{where}: a question, its answer and the passages have '=>' between them")
    text, answers = parts[0], tuple(part.strip() for part in parts[1].split("|") if part.strip())
    marks = [re.fullmatch(r"([~!]?)(\d+)", mark) for mark in parts[2].split()]
    if not all(mark and int(mark[2]) in group.passages for mark in marks):
        raise ValueError(f"{where}: {parts[2]!r} are not all numbers of passages above it")
    answering, disputed, seeming = (
        tuple(int(mark[2]) for mark in marks if mark and mark[1] == sign) for sign in ("", "~", "!")
    )
    if len({*answering, *disputed, *seeming}) < len(marks):
        raise ValueError(f"{where}: a passage is named twice in {parts[2]!r}")
    if (answers and not (answering or disputed)) or (answering and not answers):
        raise ValueError(f"{where}: an answer needs a passage that has it, and a passage an answer")
    for n, passage in group.passages.items():
        has = holds(answers, passage) is not None
        if has != (n in answering) and n not in (*disputed, *seeming):
            raise ValueError(f"{where}: passage {n} {'has' if has else 'lacks'} the words of the answer")
    return Asked(text, answers, answering, disputed, seeming)


class Sides(NamedTuple):
    """Groups to learn from, to choose a reader by, and to judge it by."""

    learned: list[Group]
    chosen_by: list[Group]
    judged_by: list[Group]


def split(groups: Sequence[Group]) -> Sides:
    """Which side a group is on depends on its topic alone: one in twelve to choose by, another one to judge by."""
    sides = Sides([], [], [])
    for group in groups:
        sides[max(0, 2 - crc32(group.topic.encode()) % APART)].append(group)
    return sides


def examples(groups: Sequence[Group], seed: int) -> Iterator[Example]:
    """Single passages and contexts for each question, drawn anew."""
    draw = random.Random(seed)
    for group in groups:
        for asked in group.questions:
            yield from _of(group, asked, draw)


def _of(group: Group, asked: Asked, draw: random.Random) -> Iterator[Example]:
    missing = group.missing(asked)
    right = [group.passages[n] for n in asked.answering]
    for text in draw.sample(right, min(2, len(right))):
        yield _single(asked, _joined(text, missing, draw), _said(asked, text), ANSWERS, draw)
    seeming = missing[: len(asked.seeming)]
    for text in [*seeming, *draw.sample(missing[len(seeming) :], min(MISSES, len(missing) - len(seeming)))]:
        yield _single(asked, _joined(text, missing, draw), NO_RESPONSE_LABEL, OTHER, draw)
    if right and missing and draw.random() < 0.6:
        gold = draw.choice(right)
        yield _several(asked, [gold, *_some(missing, 1, 4, draw)], _said(asked, gold), "context with gold", draw)
    if len(missing) > 1 and draw.random() < 0.4:
        yield _several(asked, _some(missing, 2, 5, draw), NO_RESPONSE_LABEL, "context without", draw)
    if right and draw.random() < 0.15:
        gold = draw.choice(right)
        yield _several(asked, [gold, *_some(missing, 0, 2, draw)], _said(asked, gold), "reply", draw)


def held(groups: Sequence[Group]) -> Iterator[Example]:
    """Every passage for every question as it was written, to choose by."""
    for group in groups:
        for asked in group.questions:
            for n, text in group.passages.items():
                values = {"query": asked.text, "passage": text}
                if n in asked.answering:
                    yield Example("abstention", values, _said(asked, text), ANSWERS)
                elif n not in asked.disputed:
                    yield Example("abstention", values, NO_RESPONSE_LABEL, OTHER)


def _said(asked: Asked, text: str) -> str:
    """The first of the accepted answers that the passage has, as it spells it."""
    return next(found for answer in asked.answers if (found := holds([answer], text)))


def _some(texts: Sequence[str], least: int, most: int, draw: random.Random) -> list[str]:
    return draw.sample(texts, min(len(texts), draw.randint(least, most)))


def _joined(text: str, missing: Sequence[str], draw: random.Random) -> str:
    """The passage, or now and then with some that do not answer, as a page has several paragraphs."""
    if draw.random() >= JOINED:
        return text
    page = [text, *_some([other for other in missing if other != text], 1, 2, draw)]
    draw.shuffle(page)
    return "\n".join(page)


def _query(asked: Asked, draw: random.Random) -> str:
    return asked.text if draw.random() < AS_WRITTEN else styled(asked.text, draw)


def _single(asked: Asked, passage: str, said: str, kind: str, draw: random.Random) -> Example:
    name = "abstention" if draw.random() < 0.85 else "abstention-swapped"
    return Example(name, {"query": _query(asked, draw), "passage": passage}, said, kind)


def _several(asked: Asked, shown: list[str], said: str, kind: str, draw: random.Random) -> Example:
    draw.shuffle(shown)
    passages = [{"text": text} for text in shown]
    return Example(
        "reply" if kind == "reply" else "answer", {"query": _query(asked, draw), "passages": passages}, said, kind
    )
