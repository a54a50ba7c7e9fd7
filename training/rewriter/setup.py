"""What the experiment starts from: collections of conversations, and the settings of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

import ragworth
from ragworth.collection import Collection
from ragworth.conversations import Turn, turns_of
from ragworth.rewriting.training.settings import TrainingSettings
from ragworth.tables import Judgments


@dataclass(frozen=True)
class Experiment:
    """Sizes and places of a run.

    Attributes
    ----------
    data: folder that `training.rewriter.conversations` wrote.
    others: folders of further test conversations, each with its own passages.
    train_turns, test_turns: most turns with a history; whole conversations are drawn until they suffice.
    samples: rewrites that the base model writes of each training turn.
    canard: folder of CANARD's turns, whose human rewrites two arms learn from; None for no such arms.
    processes: how many label and answer side by side, each with the model and a store of its own.
    """

    data: Path
    folder: Path
    device: str
    others: tuple[Path, ...] = ()
    train_turns: int = 1200
    test_turns: int = 400
    samples: int = 4
    temperature: float = 0.8
    canard: Path | None = None
    processes: int = 1
    training: TrainingSettings = field(default_factory=TrainingSettings)

    def store(self, part: int = 0) -> Path:
        return self.folder / (f"calls-{part}.sqlite" if part else "calls.sqlite")

    def train(self) -> Collection:
        return read_part(self.data / "train", self.data / "passages.jsonl", self.train_turns)

    def human_sources(self) -> dict[str, Collection]:
        """Turns whose human rewrites arms learn from: the training turns, more of their kind, and those of CANARD."""
        every = _read_turns(self.data / "train")
        found = {"human": _read_turns(self.data / "train", self.train_turns), "human-all": every}
        if self.canard is not None:
            found["canard"] = _read_turns(self.canard, self.train_turns)
            found["human-and-canard"] = _together(every, _read_turns(self.canard))
        return found

    def tests(self) -> dict[str, Collection]:
        """Test conversations by name."""
        found = {"judge": read_part(self.data / "judge", self.data / "passages.jsonl", self.test_turns)}
        return found | {
            other.name: read_part(other, other / "passages.jsonl", self.test_turns) for other in self.others
        }


def read_part(folder: Path, passages: Path, most: int) -> Collection:
    """Conversations with their labels, and the passages; only turns with a history, of some conversations."""
    found = _read_turns(folder, most)
    labels = ragworth.read_judgments(folder / "qrels.txt").frame
    return replace(
        found,
        passages=pl.read_ndjson(passages).select(pl.col("_id").cast(pl.String).alias("passage"), "text"),
        relevance=Judgments(labels.filter(pl.col("query").is_in(found.queries["query"].to_list()))),
    )


def _read_turns(folder: Path, most: int | None = None) -> Collection:
    """Turns with a history, of all conversations or of some."""
    found = ragworth.load(f"conversations:{folder / 'conversations.jsonl'}").collection
    turns = [turn for turn in turns_of(found) if turn.history]
    kept = turns if most is None else _draw(turns, most)
    return select_turns(found, [turn.query for turn in kept])


def select_turns(collection: Collection, queries: Sequence[str]) -> Collection:
    """Some turns of a collection, with the answers and labels of these, and all passages."""
    few = pl.col("query").is_in(list(queries))
    relevance = collection.relevance
    return replace(
        collection,
        queries=collection.queries.filter(few),
        turns=collection.turns.filter(few),
        answers=collection.answers.filter(few),
        relevance=None if relevance is None else Judgments(relevance.frame.filter(few)),
    )


def _together(one: Collection, other: Collection) -> Collection:
    return replace(one, queries=pl.concat([one.queries, other.queries]), turns=pl.concat([one.turns, other.turns]))


def _draw(turns: Sequence[Turn], most: int) -> list[Turn]:
    """The turns of some conversations, which their names' hashes choose, so that a smaller draw is part of a larger."""
    by_conversation: dict[str, list[Turn]] = {}
    for turn in turns:
        by_conversation.setdefault(turn.conversation, []).append(turn)
    kept: list[Turn] = []
    for name in sorted(by_conversation, key=lambda name: hashlib.sha256(name.encode()).hexdigest()):
        if len(kept) + len(by_conversation[name]) > most:
            break
        kept += by_conversation[name]
    return kept
