"""Does support by a model as judge go with what people say of faithfulness? ClapNQ and MT-RAG, graded by people.

    RAGWORTH_DATA=FOLDER python benchmarks/support.py clapnq --limit 20 --model embedded --store calls.sqlite

Prints what the control statements say of the judge, and Spearman's ρ of the share of supported sentences with the mean
of people's grades, over answers, with an interval over questions. Of a judge that is unfit, the same from what it said.
Questions are taken evenly from the file, whose neighbours may be turns of one conversation.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from benchmarks.judged_sets import clapnq_graded, mtrag_graded

import ragworth
from ragworth.stats.pooled import pooled_correlations

FILES = {
    "clapnq": ("clapnq_human/rag_model_performance.json.gz", clapnq_graded),
    "mtrag": ("mtrag/reference_subset_with_human_evaluations.json.gz", mtrag_graded),
}


class GradedAnswer(NamedTuple):
    system: str
    query: str
    text: str
    faithfulness: float


def read(name: str, data: Path) -> tuple[dict[str, Any], list[GradedAnswer]]:
    """The file, and its answers that people graded."""
    path, graded = FILES[name]
    with gzip.open(data / path, "rt", encoding="utf-8") as stream:
        whole = json.load(stream)
    texts = {
        (row["model_id"], row["task_id"]): row.get("model_response")
        or " ".join(each["content"] for each in row["output"] if each["role"] == "assistant")
        for row in whole.get("evaluations", whole.get("results"))
    }
    people = {(one.system, one.query): one.people.get("faithfulness", {}) for one in graded(data)}
    known = [(key, fmean(each.values())) for key, each in people.items() if each and texts[key].strip()]
    return whole, [GradedAnswer(*key, texts[key], value) for key, value in known]


def world(whole: dict[str, Any], queries: list[str]) -> tuple[ragworth.Collection, dict[str, list[str]]]:
    """The texts of some questions, and the passages that each was answered from."""
    documents = {each["document_id"]: each["text"] for each in whole["documents"]}
    tasks = {task["task_id"]: task for task in whole["tasks"] if task["task_id"] in set(queries)}
    shown = {name: [each["document_id"] for each in task["contexts"]] for name, task in tasks.items()}
    used = sorted({passage for each in shown.values() for passage in each})
    collection = ragworth.Collection.of(
        queries={"query": list(tasks), "text": [task["input"][-1]["text"] for task in tasks.values()]},
        passages={"passage": used, "text": [documents[passage] for passage in used]},
    )
    return collection, shown


def report(name: str, data: Path, limit: int, model: str, store: Path) -> Iterator[str]:
    whole, answers = read(name, data)
    every = list(dict.fromkeys(one.query for one in answers))
    queries = every[:: max(1, len(every) // limit)][:limit]
    chosen = [one for one in answers if one.query in set(queries)]
    collection, shown = world(whole, queries)
    rows = [(one.system, one.query, one.text, shown[one.query]) for one in chosen]
    table = pl.DataFrame(rows, schema=["system", "query", "text", "shown"], orient="row")
    found = ragworth.grade("support", table, collection, model, store=store, alone=False, keep_cut=True)
    yield from found.notes
    said = found.answers.unique(["system", "query"], keep="first", maintain_order=True)
    share = {
        (row["system"], row["query"]): row["labels"].count("supported") / len(row["labels"])
        for row in said.iter_rows(named=True)
        if row["labels"] is not None
    }
    both = [
        (share[one.system, one.query], one.faithfulness, one.query)
        for one in chosen
        if (one.system, one.query) in share
    ]
    x, y, groups = (np.array(each) for each in zip(*both, strict=True))
    (one,) = pooled_correlations(x.reshape(-1, 1), y, np.unique(groups, return_inverse=True)[1])
    size = f"{len(both)} of {len(chosen)} answers, {len(queries)} questions"
    labels = Counter(label for row in said["labels"].drop_nulls() for label in row)
    yield f"{name}: sentences {dict(labels)}; people's mean grade {y.mean():.2f}, from {y.min():.2f} to {y.max():.2f}"
    known = f"{one.value:.2f} {one.interval}" if one.value is not None else f"undefined ({one.reason})"
    yield f"{name}: Spearman ρ {known} over {size}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=tuple(FILES))
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--store", type=Path, default=Path("calls.sqlite"))
    given = parser.parse_args()
    for line in report(given.name, Path(os.environ["RAGWORTH_DATA"]), given.limit, given.model, given.store):
        print(line, flush=True)


if __name__ == "__main__":
    main()
