"""Conversations of people, as the same files as ours: MT-RAG with a pool of passages, CANARD and CAsT 2019 without.

    python -m training.rewriter.real_data mtrag DATA build/mtrag
    python -m training.rewriter.real_data canard DATA build/canard
    python -m training.rewriter.real_data cast19 DATA build/cast19

DATA is the folder of the datasets. What each can be used for:

- ``mtrag``: the files have the texts of 350 passages only. With those of ClapNQ (two other folders) as passages that
  answer nothing, they are a pool for the turns that have a relevant passage among the 350. A rewriter is evaluated on
  it; as nearly all other passages are about something else, the last turn alone does well.
- ``canard``: rewrites by people, no passages. SFT on them is a control with supervision; nothing can be retrieved.
- ``cast19``: rewrites by people and relevance labels, but not the texts of the 38 million passages. Rewrites can be
  compared with those of people; nothing can be retrieved.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

import ragworth
from ragworth.collection import Collection
from ragworth.formats import conversations
from training.rewriter.conversations import as_json, write_lines

CLAPNQ_HUMAN = "clapnq_human/rag_model_performance.json.gz"
CLAPNQ_DEV = ("clapnq_dev/clapnq_dev_answerable.jsonl.gz", "clapnq_dev/clapnq_dev_unanswerable.jsonl.gz")


def mtrag(data: Path, folder: Path) -> str:
    """The turns of MT-RAG that have a relevant passage in the pool, with the pool and the labels in it."""
    found = ragworth.load(f"mtrag:{data / 'mtrag'}").collection
    if found.relevance is None:
        raise ValueError(f"{data / 'mtrag'}: there are no labels")
    own = dict(found.passages.select("passage", "text").iter_rows())
    pool = {**own, **_others(data, set(own.values()))}
    labels = found.relevance.frame.filter(pl.col("value") > 0, pl.col("passage").is_in(list(own)))
    _write(found, folder, labels["query"].unique().to_list())
    write_lines(folder / "passages.jsonl", as_json({"_id": name, "text": text} for name, text in pool.items()))
    rows = labels.select("query", "passage", "value").iter_rows()
    write_lines(folder / "qrels.txt", [f"{query} 0 {passage} {value:g}" for query, passage, value in rows])
    return f"{labels['query'].n_unique()} turns, {len(pool)} passages"


def _others(data: Path, known: set[str]) -> dict[str, str]:
    """Passages of ClapNQ, each text once."""
    with gzip.open(data / CLAPNQ_HUMAN, "rt", encoding="utf-8") as file:
        texts = [document["text"] for document in json.load(file)["documents"]]
    for name in CLAPNQ_DEV:
        with gzip.open(data / name, "rt", encoding="utf-8") as file:
            texts += [passage["text"] for line in file for passage in json.loads(line)["passages"]]
    new = [text for text in dict.fromkeys(texts) if text not in known]
    return {f"clapnq-{number:04}": text for number, text in enumerate(new, 1)}


def canard(data: Path, folder: Path) -> str:
    """CANARD's questions with their rewrites."""
    found = ragworth.load(f"canard:{data / 'canard' / 'dev.json.gz'}").collection
    _write(found, folder, found.turns["query"].to_list())
    return f"{found.turns.height} turns of {found.turns['conversation'].n_unique()} conversations, no passages"


def cast19(data: Path, folder: Path) -> str:
    """The evaluation topics of CAsT 2019 with resolved questions."""
    found = ragworth.load(f"cast:{data / 'cast19'}").collection
    _write(found, folder, found.turns["query"].to_list())
    return f"{found.turns.height} turns of {found.turns['conversation'].n_unique()} conversations, no passages"


def _write(collection: Collection, folder: Path, queries: list[str]) -> None:
    folder.mkdir(parents=True)
    few = pl.col("query").is_in(queries)
    part = Collection.of(
        queries=collection.queries.filter(few),
        turns=collection.turns.filter(few),
        answers=collection.answers.filter(few),
    )
    conversations.write(part, folder / "conversations.jsonl")


WRITERS: dict[str, Callable[[Path, Path], str]] = {"mtrag": mtrag, "canard": canard, "cast19": cast19}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write conversations of people as files to experiment on.")
    parser.add_argument("dataset", choices=WRITERS)
    parser.add_argument("data", type=Path, help="folder of the datasets")
    parser.add_argument("folder", type=Path, help="new folder to write to")
    given: Any = parser.parse_args(arguments)
    if given.folder.exists():
        parser.error(f"{given.folder} exists; name a new folder")
    print(WRITERS[given.dataset](given.data, given.folder))


if __name__ == "__main__":
    main()
