"""A few conversations, and training runs on them with a tiny model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from ragworth.data.collection import Collection
from ragworth.rewriting.training.run import TrainingRun
from ragworth.rewriting.training.settings import TrainingSettings

TOPICS = ("the lighthouse", "the harbour", "the windmill", "the ferry", "the bakery", "the museum")


def conversations(number: int = 6) -> Collection:
    """Conversations of two turns each: ``c1-1`` opens the topic, ``c1-2`` follows up on it."""
    queries, turns, passages, relevance, answers = [], [], [], [], []
    for n, topic in enumerate(TOPICS[:number], 1):
        first, second = f"c{n}-1", f"c{n}-2"
        opening, reply = f"When was {topic} built?", f"{topic.capitalize()} was built in {1800 + n}."
        queries += [(first, opening), (second, "Who built it?")]
        history = [{"role": "user", "text": opening}, {"role": "assistant", "text": reply}]
        turns += [(first, f"c{n}", 1, [], opening), (second, f"c{n}", 2, history, f"Who built {topic}?")]
        passages += [(f"p{n}a", reply), (f"p{n}b", f"{topic.capitalize()} was the work of builder {n}.")]
        relevance += [(first, f"p{n}a", 1.0), (second, f"p{n}b", 1.0)]
        answers += [(first, str(1800 + n)), (second, f"builder {n}")]
    return Collection.of(
        queries=pl.DataFrame(queries, schema=["query", "text"], orient="row"),
        passages=pl.DataFrame(passages, schema=["passage", "text"], orient="row"),
        answers=pl.DataFrame(answers, schema=["query", "text"], orient="row"),
        relevance=pl.DataFrame(relevance, schema=["query", "passage", "value"], orient="row"),
        turns=pl.DataFrame(turns, schema=["query", "conversation", "number", "history", "rewrite"], orient="row"),
    )


def training_run(output: Path, base: Path, **more: Any) -> TrainingRun:
    """SFT and DPO on the second turns of all conversations."""
    rows = [(f"c{n}-2", f"Who built {topic}?", "Who built it?") for n, topic in enumerate(TOPICS, 1)]
    settings: dict[str, Any] = {
        "sft_rates": (1e-3,),
        "dpo_rates": (1e-3, 1e-2),
        "epochs": 2,
        "batch": 2,
        "micro_batch": 2,
    }
    settings |= {"rank": 2, "alpha": 4, "save_steps": 2, "held_out": 0.2, **more.pop("settings", {})}
    given: dict[str, Any] = {
        "best": pl.DataFrame([row[:2] for row in rows], schema=["query", "text"], orient="row"),
        "pairs": pl.DataFrame(rows, schema=["query", "chosen", "rejected"], orient="row"),
        "settings": TrainingSettings(**settings),
    }
    return TrainingRun(conversations(), output, f"hf:{base}", **(given | more))
