"""How much a rewrite can gain: what BM25 finds with the last turn, with all turns, and with the gold rewrite.

    python -m training.rewriter.headroom build/conversations/judge --passages build/conversations/passages.jsonl

prints, for each kind of turn, MRR and R@10 of the three, and the share of turns for which the last turn finds no
relevant passage among the first ten while the gold rewrite finds one.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

import ragworth
from ragworth.collection import Collection
from ragworth.retrieval import StepContext

DEPTH = 10


class Turn(NamedTuple):
    query: str
    kind: str
    searches: dict[str, str]


def turns(folder: Path) -> list[Turn]:
    """The turns of a folder that have a history, with the texts to search with."""
    kinds = _kinds(folder / "kinds.tsv")
    lines = (folder / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return [Turn(row["query"], kinds.get(row["query"], "any"), _searches(row)) for row in found if row["history"]]


def _searches(row: dict[str, Any]) -> dict[str, str]:
    said = [message["text"] for message in row["history"] if message["role"] == "user"]
    texts = {"last turn": row["text"], "all turns": " ".join([*said, row["text"]])}
    return {**texts, "gold rewrite": row["rewrite"]} if row["rewrite"] else texts


def _kinds(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["query"]: row["kind"] for row in csv.DictReader(file, delimiter="\t")}


def ranks(some: Sequence[Turn], passages: Path, qrels: Path) -> pl.DataFrame:
    """For each turn and way to search, the rank of the first relevant passage, null where there is none."""
    texts = pl.read_ndjson(passages).select(pl.col("_id").alias("passage"), "text")
    judged = ragworth.read_judgments(qrels).frame.filter(pl.col("value") > 0).select("query", "passage")
    tables = []
    for way in dict.fromkeys(way for turn in some for way in turn.searches):
        asked = [turn for turn in some if way in turn.searches]
        queries = pl.DataFrame({"query": [t.query for t in asked], "text": [t.searches[way] for t in asked]})
        setting = StepContext(Collection.of(passages=texts, queries=queries), queries, depth=DEPTH)
        shown = ragworth.retrieve({way: f"bm25 % {DEPTH}"}, setting).frame
        first = shown.join(judged, on=["query", "passage"]).group_by("query").agg(pl.col("rank").min())
        kinds = pl.DataFrame({"query": [t.query for t in asked], "kind": [t.kind for t in asked]})
        tables.append(kinds.with_columns(way=pl.lit(way)).join(first, on="query", how="left", maintain_order="left"))
    return pl.concat(tables)


def table(found: pl.DataFrame) -> pl.DataFrame:
    """MRR and R@10 by kind and way, and the share of turns that only the gold rewrite finds a passage for."""
    found = pl.concat([found, found.with_columns(kind=pl.lit("all"))])
    reciprocal = (1 / pl.col("rank")).fill_null(0.0)
    means = found.group_by("kind", "way", maintain_order=True).agg(
        pl.len().alias("turns"), reciprocal.mean().alias("MRR@10"), pl.col("rank").is_not_null().mean().alias("found")
    )
    wide = found.pivot("way", index=["query", "kind"], values="rank")
    if "gold rewrite" not in wide.columns:
        return means
    only = pl.col("last turn").is_null() & pl.col("gold rewrite").is_not_null()
    shares = wide.group_by("kind").agg(only.mean().alias("only the gold rewrite"))
    return means.join(shares, on="kind", how="left", maintain_order="left")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Compare what BM25 finds with the last turn and the gold rewrite.")
    parser.add_argument("folder", type=Path, help="folder with conversations.jsonl and qrels.txt")
    parser.add_argument("--passages", type=Path, required=True)
    given = parser.parse_args(arguments)
    found = ranks(turns(given.folder), given.passages, given.folder / "qrels.txt")
    with pl.Config(tbl_rows=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, float_precision=3):
        print(table(found))


if __name__ == "__main__":
    main()
