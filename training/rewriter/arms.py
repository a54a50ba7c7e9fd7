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
from ragworth.generation.rewriter import QueryRewriter
from ragworth.llm.contract import Model
from ragworth.rewriting.candidates import by_rules
from ragworth.rewriting.pairs import PreferencePairs, build_pairs, shuffle_pairs
from ragworth.rewriting.training.run import TrainingRun
from ragworth.rewriting.utilities import AnswerabilityUtility, GoldRankUtility, KeyEntropyUtility
from ragworth.tables import OK
from ragworth.tasks.contract import run_task
from training.rewriter.costs import Cost

RULES = ("last", "all", "first+last", "history-terms", "human")
BASE = "base"
KEEP = 0.5
"""Share of the pairs that DPO learns from: those with the larger gap."""


class Examples(NamedTuple):
    """What an adapter learns from: rewrites for SFT, pairs for DPO, or the adapter of another arm to start from."""

    best: pl.DataFrame | None
    pairs: pl.DataFrame | None = None
    start: str = ""


@dataclass(frozen=True)
class Labelled:
    """Training turns with labels of each kind."""

    collection: Collection
    labels: Mapping[str, pl.DataFrame]

    def pairs(self, kind: str, seed: int) -> PreferencePairs:
        return build_pairs(self.labels[kind], keep=KEEP, seed=seed)

    def arms(self, seed: int) -> dict[str, Examples]:
        """What each trained arm learns from, those first that others start from."""
        utility = self.pairs(KeyEntropyUtility.kind, seed)
        gold, answered = self.pairs(GoldRankUtility.kind, seed), self.pairs(AnswerabilityUtility.kind, seed)
        human = self.collection.turns.filter(pl.col("rewrite").is_not_null())
        return {
            "sft-random": Examples(utility.random),
            "sft-utility": Examples(utility.best),
            "dpo-utility": Examples(None, utility.pairs, "sft-utility"),
            "dpo-shuffled": Examples(None, shuffle_pairs(utility.pairs, seed), "sft-utility"),
            "sft-answerability": Examples(answered.best),
            "dpo-answerability": Examples(None, answered.pairs, "sft-answerability"),
            "sft-gold-rank": Examples(gold.best),
            "dpo-gold-rank": Examples(None, gold.pairs, "sft-gold-rank"),
            "sft-human": Examples(human.select("query", pl.col("rewrite").alias("text"))),
        }


def train(run: TrainingRun, examples: Examples, adapters: Path) -> Path:
    """Train one arm, unless it is there."""
    start = adapters / examples.start if examples.start else None
    return replace(run, best=examples.best, pairs=examples.pairs, start=start).train().folder


def rule_rewrites(collection: Collection) -> dict[str, pl.DataFrame]:
    """Search texts that need no model: query, text."""
    turns = turns_of(collection)
    found: dict[str, pl.DataFrame] = {}
    for rule in RULES:
        made = [each for each in by_rules(turns, [rule], collection) if each is not None]
        if len(made) == len(turns):
            found[rule] = pl.DataFrame({"query": [one.query for one in made], "text": [one.text for one in made]})
    return found


def model_rewrites(collection: Collection, model: Model, store: Path, cost: Cost) -> pl.DataFrame:
    """Greedy rewrites: query, text, and the reason in ``failed`` where the last turn stands for a missing one."""
    turns = turns_of(collection)
    with Job(model, store, wait=600) as job:
        made = run_task(QueryRewriter(job.card), turns, job).frame
        cost.add(job)
    last = {turn.query: turn.question for turn in turns}
    own = pl.col("query").replace_strict(last, return_dtype=pl.String)
    failed = pl.when(pl.col("status") != OK).then(pl.col("status"))
    return made.select("query", pl.coalesce("text", own).alias("text"), failed.alias("failed"))
