"""What the rewriter learns from: turns with a history, and the questions that people would ask without it.

    python -m training.rewriter.examples $DATA/canard/dev.json.gz build/rewriter

writes the turns of ``conversations.jsonl.gz`` and of CANARD, and their rewrites, for ``ragworth rewrite train``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

import ragworth
from ragworth.data.collection import Collection
from ragworth.data.conversations import turns_of
from ragworth.formats import conversations

WRITTEN = Path(__file__).parent / "conversations.jsonl.gz"
"""Turns of conversations that rules made from ``reader/written``; README.md says how."""


def read(source: str) -> Collection:
    """The turns with a history."""
    collection = ragworth.load(source).collection
    queries = [turn.query for turn in turns_of(collection) if turn.history]
    kept = pl.col("query").is_in(queries)
    return replace(collection, queries=collection.queries.filter(kept), turns=collection.turns.filter(kept))


def examples(canard: Path) -> Collection:
    """All turns, the written ones first."""
    written, people = read(f"conversations:{WRITTEN}"), read(f"canard:{canard}")
    return Collection.of(
        queries=pl.concat([written.queries, people.queries]), turns=pl.concat([written.turns, people.turns])
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write what the rewriter learns from.")
    parser.add_argument("canard", type=Path, help="CANARD's file")
    parser.add_argument("folder", type=Path, help="new folder to write to")
    given = parser.parse_args(arguments)
    if given.folder.exists():
        parser.error(f"{given.folder} exists; name a new folder")
    collection = examples(given.canard)
    given.folder.mkdir(parents=True)
    conversations.write(collection, given.folder / "conversations.jsonl")
    rewrites = collection.turns.drop_nulls("rewrite").select("query", pl.col("rewrite").alias("text"))
    rewrites.write_ndjson(given.folder / "rewrites.jsonl")
    print(f"{rewrites.height:,} rewrites in {given.folder}")


if __name__ == "__main__":
    main()
