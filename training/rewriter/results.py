"""The tables of the experiment: every arm and seed on every test, arms against each other, and agreement of labels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import polars as pl

from ragworth.collection import Collection
from ragworth.rewriting.evaluation.run import ANSWER_METRICS, DEFAULT_METRICS, WORDS
from ragworth.rewriting.utilities import GoldRankUtility
from ragworth.stats.estimate import Resampling, mean_estimates
from ragworth.stats.paired import correct_by_holm, difference
from ragworth.tables import OK
from training.rewriter import answers
from training.rewriter.comparison import compare_arms
from training.rewriter.setup import Experiment

TESTED = (*DEFAULT_METRICS, *ANSWER_METRICS)
AGAINST = ("last", "history-terms", "base", "sft-random", "sft-utility", "dpo-shuffled", "dpo-utility")
"""Arms that all others are compared with, averaged over seeds."""
SHARE = (0.0, 1.0)
"""Lowest and highest value of every measure but the number of words."""


def write(experiment: Experiment, labels: Mapping[str, pl.DataFrame]) -> None:
    """Compute all tables and write them as CSV."""
    values = pl.concat([_values(experiment, *test) for test in experiment.tests().items()])
    values.write_csv(experiment.folder / "values.csv")
    tables = {
        "arms": by_seed(values),
        "means": over_seeds(values),
        "differences": differences(values),
        "agreement": agreement(labels),
        "choices": choices(labels, dict(experiment.train().turns.select("query", "conversation").iter_rows())),
        "costs": pl.read_ndjson(experiment.folder / "costs.jsonl"),
    }
    for name, table in tables.items():
        table.write_csv(experiment.folder / f"{name}.csv")
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200, float_precision=3, fmt_str_lengths=40):
        for name in ("arms", "agreement", "choices", "costs"):
            print(name, tables[name], sep="\n", flush=True)


def _values(experiment: Experiment, test: str, collection: Collection) -> pl.DataFrame:
    """A row for each arm, seed, turn and measure."""
    found = compare_arms(experiment.folder, test, collection).evaluate(answers.read(experiment.folder, test))
    print(test, *found.notes, sep="\n", flush=True)
    named = pl.col("arm").str.extract_groups(r"^(?<name>.*?)(?:-(?<seed>\d+))?$").struct
    return found.values.with_columns(
        pl.lit(test).alias("test"), named["name"].alias("arm"), named["seed"].cast(pl.Int64).alias("seed")
    )


def by_seed(values: pl.DataFrame) -> pl.DataFrame:
    """Means over turns for each arm and seed, a column for each measure."""
    keys = ["test", "arm", "seed"]
    means = values.group_by(*keys, "measure").agg(pl.col("value").mean())
    return means.pivot("measure", index=keys, values="value").sort("test", "arm", "seed")


def _seeds_averaged(values: pl.DataFrame) -> pl.DataFrame:
    return values.group_by("test", "arm", "query", "conversation", "measure").agg(pl.col("value").mean())


def over_seeds(values: pl.DataFrame) -> pl.DataFrame:
    """Each arm with its turns averaged over seeds: intervals are over conversations."""
    rows = []
    averaged = _seeds_averaged(values).sort("test", "arm", "measure", "query")
    for (test, arm, measure), few in averaged.group_by("test", "arm", "measure", maintain_order=True):
        bounds = (0.0, math.inf) if measure == WORDS else SHARE
        turns = few["value"].to_numpy()[:, None]
        (one,) = mean_estimates(turns, Resampling(), bounds, few["conversation"].to_numpy())
        rows.append((test, arm, measure, one.value, one.low, one.high, one.n))
    names = ["test", "arm", "measure", "value", "low", "high", "turns"]
    return pl.DataFrame(rows, schema=names, orient="row").sort(
        "test", "measure", "value", descending=[False, False, True]
    )


def differences(values: pl.DataFrame) -> pl.DataFrame:
    """Every arm against each of `AGAINST`; Holm's correction is over the arms compared with one by one measure."""
    averaged = _seeds_averaged(values)
    rows: list[Sequence[object]] = []
    for (test, measure), few in averaged.filter(pl.col("measure").is_in(TESTED)).group_by("test", "measure"):
        wide = few.sort("query").pivot("arm", index=["query", "conversation"], values="value")
        clusters = wide["conversation"].to_numpy()
        arms = sorted(set(few["arm"]))
        for base in (arm for arm in AGAINST if arm in arms):
            sides = {arm: (_column(wide, arm), _column(wide, base)) for arm in arms if arm != base}
            moved = {
                arm: difference(*both, "randomisation", Resampling(), SHARE, clusters) for arm, both in sides.items()
            }
            for arm, one in correct_by_holm(moved).items():
                facts = (one.value, one.low, one.high, one.p, one.p_holm, one.detectable, one.n)
                rows.append((test, measure, arm, base, *facts))
    names = ["test", "measure", "arm", "against", "difference", "low", "high", "p", "p_holm", "detectable", "turns"]
    return pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None).sort(names[:4])


def _column(wide: pl.DataFrame, name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return wide[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()


def agreement(labels: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """For each two kinds of labels: Kendall's τ-b within turns, and how often they share a best context."""
    rows = []
    for one, other in combinations(labels, 2):
        found = list(_within_turns(labels[one], labels[other]))
        taus = [tau for tau, _ in found if tau is not None]
        mean = sum(taus) / len(taus) if taus else None
        same = sum(same for _, same in found) / len(found) if found else None
        rows.append((one, other, len(found), len(taus), mean, same))
    names = ["one", "other", "turns", "turns where both vary", "mean tau", "shared best context"]
    return pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)


def _within_turns(one: pl.DataFrame, other: pl.DataFrame) -> Iterator[tuple[float | None, bool]]:
    """For each turn with two contexts or more: τ, None where one kind is constant, and whether a best one is shared."""
    from scipy.stats import kendalltau

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


def choices(labels: Mapping[str, pl.DataFrame], conversations: Mapping[str, str]) -> pl.DataFrame:
    """The reciprocal rank of a relevant passage with the candidates that each kind of label likes best and least.

    Equally good candidates count by their mean. A random candidate is there for comparison.
    """
    gold = labels[GoldRankUtility.kind].filter(pl.col("status") == OK).select("query", "candidate", rr="value")
    value = pl.col("value")
    picks = {
        "best": value == value.max().over("query"),
        "worst": value == value.min().over("query"),
        "random": pl.lit(True),
    }
    rows = []
    for kind, table in labels.items():
        both = table.filter(pl.col("status") == OK).join(gold, on=["query", "candidate"])
        for name, picked in picks.items():
            turns = both.filter(picked).group_by("query", maintain_order=True).agg(pl.col("rr").mean())
            clusters = [conversations[query] for query in turns["query"]]
            (found,) = mean_estimates(turns["rr"].to_numpy()[:, None], Resampling(), SHARE, clusters)
            rows.append((kind, name, found.value, found.low, found.high, found.n))
    names = ["labels", "candidate", "reciprocal rank", "low", "high", "turns"]
    return pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)
