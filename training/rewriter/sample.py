"""Rewrites to read: a sample of an arm's rewrites with their turn, the gold rewrite, and the ranks of both.

    python -m training.rewriter.sample build/experiment --data build/conversations --arm dpo-utility-0 > read.tsv

Half of the turns are drawn from those that the rewrite serves worse than the gold rewrite, if there are enough. The
column ``error`` is for the reader; ``ERRORS`` lists the classes.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ragworth.collection import Collection
from ragworth.conversations import Turn, turns_of
from ragworth.rewriting.contexts import retrieve_by_text
from ragworth.rewriting.evaluation.arms import arm_from_rewrites
from training.rewriter.comparison import REWRITES, rewrites_file
from training.rewriter.setup import read_part

DEPTH = 100
ERRORS = (
    "none",
    "unchanged",
    "wrong name",
    "name missing",
    "answers",
    "other question",
    "repeats the history",
    "garbled",
)
COLUMNS = ("query", "history", "turn", "gold", "rewrite", "gold_rank", "rank", "error")


class Ranked(NamedTuple):
    turn: Turn
    rewrite: str
    rank: int | None
    gold_rank: int | None

    @property
    def worse(self) -> bool:
        return (self.gold_rank or DEPTH + 1) < (self.rank or DEPTH + 1)


def ranked(rewrites: Path, collection: Collection) -> list[Ranked]:
    """Each turn with the ranks of the first relevant passage, None beyond the first hundred."""
    turns = turns_of(collection)
    texts = arm_from_rewrites(rewrites.stem, turns, pl.read_ndjson(rewrites, schema=REWRITES)).texts
    gold = {turn.query: turn.rewrite or turn.question for turn in turns}
    shown = retrieve_by_text([*texts.values(), *gold.values()], collection, f"bm25 % {DEPTH}")
    if collection.relevance is None:
        raise ValueError("there are no labels")
    labels = collection.relevance.frame.filter(pl.col("value") > 0).select("query", "passage")
    relevant = set(labels.iter_rows())

    def rank(query: str, text: str) -> int | None:
        return next((n for n, passage in enumerate(shown.get(text, ()), 1) if (query, passage) in relevant), None)

    return [
        Ranked(turn, texts[turn.query], rank(turn.query, texts[turn.query]), rank(turn.query, gold[turn.query]))
        for turn in turns
    ]


def drawn(found: Sequence[Ranked], number: int, seed: int) -> list[Ranked]:
    """Half of them worse than the gold rewrite, as far as there are any, in random order."""
    draw = random.Random(seed)
    worse, others = [one for one in found if one.worse], [one for one in found if not one.worse]
    half = min(len(worse), max(number // 2, number - len(others)))
    chosen = draw.sample(worse, half) + draw.sample(others, min(len(others), number - half))
    draw.shuffle(chosen)
    return chosen


def rows(chosen: Sequence[Ranked]) -> Iterator[tuple[object, ...]]:
    for turn, rewrite, rank, gold_rank in chosen:
        history = " | ".join(f"{message.role[0].upper()}: {message.text}" for message in turn.history)
        yield turn.query, history, turn.question, turn.rewrite, rewrite, gold_rank, rank, ""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Print rewrites of an arm for reading, as TSV.")
    parser.add_argument("folder", type=Path, help="folder of the experiment")
    parser.add_argument("--data", type=Path, required=True, help="folder with judge and passages.jsonl")
    parser.add_argument("--arm", default="dpo-utility-0")
    parser.add_argument("--number", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test-turns", type=int, default=400, help="as in the experiment")
    given = parser.parse_args(arguments)
    collection = read_part(given.data / "judge", given.data / "passages.jsonl", given.test_turns)
    found = ranked(rewrites_file(given.folder, "judge", given.arm), collection)
    writer = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows(drawn(found, given.number, given.seed)))


if __name__ == "__main__":
    main()
