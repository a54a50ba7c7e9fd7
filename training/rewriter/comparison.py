"""All arms on the turns of a test, from the files of rewrites."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ragworth.collection import Collection
from ragworth.conversations import turns_of
from ragworth.rewriting.evaluation.arms import arm_from_rewrites, baseline_arms
from ragworth.rewriting.evaluation.run import ArmComparison

REWRITES = {"query": pl.String, "text": pl.String, "status": pl.String, "reason": pl.String, "raw": pl.String}


def rewrites_file(folder: Path, test: str, arm: str) -> Path:
    return folder / "rewrites" / test / f"{arm}.jsonl"


def compare_arms(folder: Path, test: str, collection: Collection) -> ArmComparison:
    """Rules, human rewrites, and whatever has rewritten this test."""
    turns = turns_of(collection)
    arms = baseline_arms(turns, collection)
    for file in sorted((folder / "rewrites" / test).glob("*.jsonl")):
        arms.append(arm_from_rewrites(file.stem, turns, pl.read_ndjson(file, schema=REWRITES)))
    return ArmComparison(turns, collection, arms)
