"""The arms of the experiment: search texts without training, and adapters trained on different data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ragworth.calls.job import Job
from ragworth.collection import Collection
from ragworth.conversations import turns_of
from ragworth.errors import InputError
from ragworth.generation.rewriter import QueryRewriter
from ragworth.rewriting.pairs import PreferencePairs, build_pairs, shuffle_pairs
from ragworth.rewriting.training.run import TrainingRun
from ragworth.rewriting.utilities import AnswerabilityUtility, GoldRankUtility, KeyEntropyUtility
from ragworth.tasks.contract import run_task

BASE, FEW_SHOT_BASE = "base", "base-few-shot"
KINDS = {
    "utility": KeyEntropyUtility.kind,
    "answerability": AnswerabilityUtility.kind,
    "gold-rank": GoldRankUtility.kind,
}
"""Arms by the labels that they learn from."""
KEEP = 0.5
"""Share of the pairs that DPO learns from: those with the larger gap."""


class Examples(NamedTuple):
    """What an adapter learns from: rewrites for SFT, pairs for DPO, or the adapter of another arm to start from.

    ``collection`` has the turns if they are not the training turns.
    """

    best: pl.DataFrame | None
    pairs: pl.DataFrame | None = None
    start: str = ""
    collection: Collection | None = None

    @property
    def size(self) -> int:
        return sum(table.height for table in (self.best, self.pairs) if table is not None)


@dataclass(frozen=True)
class Labelled:
    """Training turns with labels of each kind, and turns with human rewrites."""

    collection: Collection
    labels: Mapping[str, pl.DataFrame]
    human: Mapping[str, Collection]

    def pairs(self, kind: str, seed: int) -> PreferencePairs | None:
        """Pairs by one kind of label; None, with a message, if it tells no rewrites apart."""
        try:
            return build_pairs(self.labels[kind], keep=KEEP, seed=seed)
        except InputError as error:
            print(f"{kind}: {error}", flush=True)
            return None

    def arms(self, seed: int) -> dict[str, Examples]:
        """What each trained arm learns from, those first that others start from."""
        found: dict[str, Examples] = {}
        for name, kind in KINDS.items():
            pairs = self.pairs(kind, seed)
            if pairs is None:
                continue
            if kind == KeyEntropyUtility.kind:
                found["sft-random"] = Examples(pairs.random)
            found[f"sft-{name}"] = Examples(pairs.best)
            found[f"dpo-{name}"] = Examples(None, pairs.pairs, f"sft-{name}")
            if kind == KeyEntropyUtility.kind:
                found["dpo-shuffled"] = Examples(None, shuffle_pairs(pairs.pairs, seed), f"sft-{name}")
        for name, collection in self.human.items():
            found[f"sft-{name}"] = Examples(_human_rewrites(collection), collection=collection)
        return found


def chains(arms: Mapping[str, Examples]) -> list[list[str]]:
    """The arms in groups that don't depend on each other, the longest work first.

    Each group begins with the arm that the others start from.
    """
    found = {name: [name] for name, examples in arms.items() if not examples.start}
    for name, examples in arms.items():
        if examples.start:
            found[examples.start].append(name)
    return sorted(found.values(), key=lambda names: sum(arms[name].size for name in names), reverse=True)


def _human_rewrites(collection: Collection) -> pl.DataFrame:
    turns = collection.turns.filter(pl.col("rewrite").is_not_null())
    return turns.select("query", pl.col("rewrite").alias("text"))


def train(run: TrainingRun, examples: Examples, adapters: Path) -> Path:
    """Train one arm, unless it is there."""
    start = adapters / examples.start if examples.start else None
    turns = examples.collection or run.collection
    made = replace(run, collection=turns, best=examples.best, pairs=examples.pairs, start=start)
    return made.train().folder


def model_rewrites(collection: Collection, job: Job, prompt: str) -> pl.DataFrame:
    """Greedy rewrites of all turns, with their status."""
    made = run_task(QueryRewriter(job.card, prompt=prompt), turns_of(collection), job).frame
    return made.select("query", "text", "status", "reason", "raw")
