"""The tables of the experiment: every arm and seed on every test, and how far the labels agree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

import polars as pl
from scipy.stats import kendalltau

import ragworth
from ragworth.collection import Collection
from ragworth.conversations import turns_of
from ragworth.rewriting.contexts import retrieve_by_text
from ragworth.tables import OK, Contexts
from training.reader.texts import holds
from training.rewriter.setup import Experiment

METRICS = ("RR", "nDCG@3", "R@10", "R@20", "R@100")
DEPTH = 100


def rewrites_file(folder: Path, test: str, arm: str) -> Path:
    return folder / "rewrites" / test / f"{arm}.jsonl"


def write(experiment: Experiment, labels: Mapping[str, pl.DataFrame]) -> None:
    """Compute all tables and write them as CSV."""
    per_turn = pl.concat([_per_turn(experiment, *test) for test in experiment.tests().items()])
    per_turn.write_csv(experiment.folder / "turns.csv")
    tables = {"arms": by_seed(per_turn), "means": over_seeds(per_turn), "agreement": agreement(labels)}
    tables["costs"] = pl.read_ndjson(experiment.folder / "costs.jsonl")
    for name, table in tables.items():
        table.write_csv(experiment.folder / f"{name}.csv")
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200, float_precision=3, fmt_str_lengths=40):
            print(name, table, sep="\n", flush=True)


def _per_turn(experiment: Experiment, test: str, collection: Collection) -> pl.DataFrame:
    """A row for each arm, seed and turn."""
    files = sorted((experiment.folder / "rewrites" / test).glob("*.jsonl"))
    return pl.concat([_arm(test, file, collection, experiment.folder / "cache") for file in files])


def _arm(test: str, file: Path, collection: Collection, cache: Path) -> pl.DataFrame:
    rewrites = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    name, _, seed = file.stem.rpartition("-")
    arm, number = (name, int(seed)) if seed.isdigit() else (file.stem, None)
    texts = pl.DataFrame(rewrites, schema={"query": pl.String, "text": pl.String, "failed": pl.String})
    scores = _scores(texts, collection, cache)
    facts = texts.join(_properties(texts, collection), on="query").join(scores, on="query", how="left")
    return facts.select(
        pl.lit(test).alias("test"), pl.lit(arm).alias("arm"), pl.lit(number, pl.Int64).alias("seed"), "*"
    )


def _scores(texts: pl.DataFrame, collection: Collection, cache: Path) -> pl.DataFrame:
    """The metrics of what each rewrite retrieves; a rewrite that retrieves nothing scores 0."""
    shown = retrieve_by_text(texts["text"].to_list(), collection, f"bm25 % {DEPTH}", cache)
    ranked = {
        query: {passage: float(DEPTH - rank) for rank, passage in enumerate(shown.get(text, ()))}
        for query, text in texts.select("query", "text").iter_rows()
    }
    found = ragworth.score(Contexts(ranked), collection.relevance, METRICS).frame
    return found.pivot("metric", index="query", values="value")


def _properties(texts: pl.DataFrame, collection: Collection) -> pl.DataFrame:
    """Words, whether the rewrite is the turn itself, and whether it has an accepted answer that nobody mentioned."""
    turns = {turn.query: turn for turn in turns_of(collection)}
    answers = dict(collection.answers.group_by("query").agg("text").iter_rows())
    rows = []
    for query, text in texts.select("query", "text").iter_rows():
        turn = turns[query]
        before = " ".join([*(message.text for message in turn.history), turn.question])
        new = [answer for answer in answers.get(query, []) if holds([answer], before) is None]
        same = " ".join(text.casefold().split()) == " ".join(turn.question.casefold().split())
        rows.append((query, turn.conversation, len(text.split()), same, holds(new, text) is not None))
    names = ("query", "conversation", "words", "unchanged", "leaks")
    return pl.DataFrame(rows, schema=list(names), orient="row")


def by_seed(per_turn: pl.DataFrame) -> pl.DataFrame:
    """Means over turns for each arm and seed."""
    values = [pl.col(name).mean() for name in (*METRICS, "words", "unchanged", "leaks")]
    failed = pl.col("failed").is_not_null().mean().alias("failed")
    keys = ["test", "arm", "seed"]
    return per_turn.group_by(keys).agg(pl.len().alias("turns"), *values, failed).sort(keys)


def over_seeds(per_turn: pl.DataFrame) -> pl.DataFrame:
    """Means over seeds, with the smallest and largest MRR of a seed."""
    seeds = by_seed(per_turn)
    names = [name for name in seeds.columns if name not in ("test", "arm", "seed", "turns")]
    spread = [pl.col("RR").min().alias("least RR"), pl.col("RR").max().alias("largest RR")]
    means = seeds.group_by("test", "arm").agg(
        pl.len().alias("seeds"), *(pl.col(name).mean() for name in names), *spread
    )
    return means.sort("test", "RR", descending=[False, True])


def agreement(labels: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """For each two kinds of labels: Kendall's τ-b within turns, and how often they choose the same context."""
    rows = []
    for one, other in combinations(labels, 2):
        found = list(_within_turns(labels[one], labels[other]))
        taus = [tau for tau, _ in found if tau is not None]
        mean = sum(taus) / len(taus) if taus else None
        same = sum(same for _, same in found) / len(found) if found else None
        rows.append((one, other, len(found), len(taus), mean, same))
    names = ("one", "other", "turns", "turns that vary", "mean tau", "same best context")
    return pl.DataFrame(rows, schema=list(names), orient="row")


def _within_turns(one: pl.DataFrame, other: pl.DataFrame) -> Iterator[tuple[float | None, bool]]:
    """For each turn with two contexts or more: τ, None where one kind is constant, and whether a best one is shared."""
    sides = [
        table.filter(pl.col("status") == OK).unique(["query", "context"]).select("query", "context", "value")
        for table in (one, other)
    ]
    both = sides[0].join(sides[1], on=["query", "context"], suffix="_other").sort("query", "context")
    for _, turn in both.group_by("query", maintain_order=True):
        left, right = turn["value"].to_list(), turn["value_other"].to_list()
        if len(left) < 2:
            continue
        varies = len(set(left)) > 1 and len(set(right)) > 1
        best = [{n for n, value in enumerate(side) if value == max(side)} for side in (left, right)]
        yield (float(kendalltau(left, right).statistic) if varies else None), bool(best[0] & best[1])
