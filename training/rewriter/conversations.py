"""Conversations made from the written groups, by rules and a seed.

    python -m training.rewriter.conversations build/conversations

writes ``passages.jsonl``, the passages of all groups, and for each of ``train``, ``choose`` and ``judge`` a folder with
``conversations.jsonl``, ``qrels.txt`` and ``kinds.tsv``: how each turn came about. The split is by topic and
follows the reader's. The question as it was written is the gold rewrite of a turn.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from training.reader import written
from training.reader.written import Group
from training.rewriter.dialogues import Said, about_one, about_two

SEED = 21
PARTS = ("train", "choose", "judge")
ROUNDS = "abc"
"""Each group is talked about in as many conversations, if its questions suffice."""
JUDGED_BY = (0, 2, 3)
"""Remainders of a topic's checksum: the reader's own groups to judge by, and two more in twelve."""
SHIFTS = 0.5
"""Share of groups in conversations that shift to another group."""


class Placed(NamedTuple):
    """A group and the name that its passages' ids begin with."""

    name: str
    group: Group


class Conversation(NamedTuple):
    name: str
    turns: list[tuple[Placed, Said]]


def placed(paths: Sequence[Path]) -> list[Placed]:
    return [
        Placed(f"{path.stem}-{place:03}", group) for path in paths for place, group in enumerate(written.read(path), 1)
    ]


def parts(groups: Sequence[Placed]) -> dict[str, list[Placed]]:
    """The groups to train on, to choose by and to judge by: those of the reader's training, and more to judge by.

    One in twelve gives too few turns to judge by, so two more in twelve of the reader's training groups join them. The
    reader that ships has learned from none of the groups.
    """
    chosen_by = {group.topic for group in written.split([one.group for one in groups]).chosen_by}
    judged_by = {one.group.topic for one in groups if crc32(one.group.topic.encode()) % written.APART in JUDGED_BY}
    found: dict[str, list[Placed]] = {part: [] for part in PARTS}
    for one in groups:
        topic = one.group.topic
        found["choose" if topic in chosen_by else "judge" if topic in judged_by else "train"].append(one)
    return found


def conversations(groups: Sequence[Placed], seed: int) -> list[Conversation]:
    """Conversations about one group, or two of the same file; a question is asked in one of them at most."""
    draw = random.Random(seed)
    made: list[Conversation] = []
    used: set[str] = set()
    for letter in ROUNDS:
        order = list(groups)
        draw.shuffle(order)
        while order:
            one = order.pop()
            other = _partner(one, order, draw)
            if other is not None:
                order.remove(other)
            new = _conversation(one, other, draw, used)
            made += [conversation._replace(name=f"{conversation.name}-{letter}") for conversation in new]
            used.update(said.asked.text for conversation in new for _, said in conversation.turns)
    return sorted(made, key=lambda conversation: conversation.name)


def _partner(one: Placed, order: Sequence[Placed], draw: random.Random) -> Placed | None:
    """Another group of the same file, now and then."""
    if draw.random() >= SHIFTS:
        return None
    same = [other for other in order if _file(other) == _file(one)]
    return draw.choice(same) if same else None


def _file(one: Placed) -> str:
    return one.name.rsplit("-", 1)[0]


def _conversation(one: Placed, other: Placed | None, draw: random.Random, used: set[str]) -> list[Conversation]:
    if other is None:
        said = about_one(one.group, draw, draw.randint(4, 6), used)
    else:
        said = about_two(one.group, other.group, draw, used)
    by_group = {id(each.group): each for each in (one, other) if each is not None}
    turns = [(by_group[id(group)], line) for group, line in said]
    names = list(dict.fromkeys(each.name for each, _ in turns))
    return [Conversation("+".join(names), turns)] if turns else []


def rows(made: Iterable[Conversation]) -> list[dict[str, object]]:
    """The turns in ragworth's format of conversations, with the kind of each."""
    found: list[dict[str, object]] = []
    for name, turns in made:
        history: list[dict[str, str]] = []
        for number, (_, said) in enumerate(turns, 1):
            found.append(
                {
                    "query": f"{name}-t{number}",
                    "text": said.text,
                    "conversation": name,
                    "turn": number,
                    "history": list(history),
                    "rewrite": said.asked.text,
                    "answers": list(said.asked.answers),
                }
            )
            history += [{"role": "user", "text": said.text}, {"role": "assistant", "text": said.reply}]
    return found


def labels(made: Iterable[Conversation]) -> list[str]:
    """Relevance of the passages of a turn's group, without the disputed ones; nothing else is relevant."""
    return [
        f"{name}-t{number} 0 {one.name}-{n} {int(n in said.asked.answering)}"
        for name, turns in made
        for number, (one, said) in enumerate(turns, 1)
        for n in one.group.passages
        if n not in said.asked.disputed
    ]


def kinds(made: Iterable[Conversation]) -> list[str]:
    turns = (f"{name}-t{number}\t{said.kind}" for name, turns in made for number, (_, said) in enumerate(turns, 1))
    return ["query\tkind", *turns]


def passages(groups: Iterable[Placed]) -> list[dict[str, object]]:
    return [{"_id": f"{name}-{n}", "text": text} for name, group in groups for n, text in group.passages.items()]


def write(paths: Sequence[Path], folder: Path, seed: int) -> dict[str, Counter[str]]:
    """All files, in a new folder; the number of turns of each kind in each part."""
    groups = placed(paths)
    folder.mkdir(parents=True)
    write_lines(folder / "passages.jsonl", as_json(passages(groups)))
    counts: dict[str, Counter[str]] = {}
    for part, few in parts(groups).items():
        made = conversations(few, seed)
        (folder / part).mkdir()
        write_lines(folder / part / "conversations.jsonl", as_json(rows(made)))
        write_lines(folder / part / "qrels.txt", labels(made))
        write_lines(folder / part / "kinds.tsv", kinds(made))
        counts[part] = Counter(said.kind for _, turns in made for _, said in turns)
        counts[part]["conversations"] = len(made)
    return counts


def as_json(found: Iterable[dict[str, object]]) -> list[str]:
    return [json.dumps(row, ensure_ascii=False) for row in found]


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Make conversations from the written groups.")
    parser.add_argument("folder", type=Path, help="new folder to write to")
    parser.add_argument("--files", type=Path, nargs="+", default=written.files(), help="all by default")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args(arguments)
    if given.folder.exists():
        parser.error(f"{given.folder} exists; name a new folder")
    try:
        counts = write(given.files, given.folder, given.seed)
    except (OSError, ValueError) as problem:
        parser.error(str(problem))
    for part, kind in counts.items():
        turns = kind.total() - kind["conversations"]
        by_kind = ", ".join(f"{count} {name}" for name, count in sorted(kind.items()) if name != "conversations")
        print(f"{part}: {kind['conversations']} conversations, {turns} turns ({by_kind})")


if __name__ == "__main__":
    main()
