"""What passages do alone and next to others: judgments of single passages beside contributions, and what is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from ragworth.contribution.rows import context_rows, passage_rows
from ragworth.results import Results
from ragworth.stats.correlation import Measure, correlation
from ragworth.tables import OK, Scores

JUDGED = ("1 − p_abstain", "relevance", "utility", "alone")
"""What is known of a passage without the others."""
OUTCOMES = ("gain", "contributing", "harm", "effective", "redundancy")
"""What the contributions of a context amount to."""


def judged_passages(results: Results, frame: pl.DataFrame) -> pl.DataFrame:
    """The passages of an annotator's frame that have a contribution, with `JUDGED`; null where it isn't known."""
    known = passage_rows(frame).filter(pl.col("status") == OK, pl.col("passage").is_not_null())
    for aspect in ("abstention", "relevance"):
        judged = results.judgments.of(aspect) if results.judgments is not None else None
        if judged is None or not judged.height:
            known = known.with_columns(pl.lit(None, pl.Float64).alias(aspect))
            continue
        values = judged.filter(pl.col("status") == OK).select("query", "passage", pl.col("value").alias(aspect))
        known = known.join(values, on=["query", "passage"], how="left", maintain_order="left")
    sign = pl.when(pl.col("relevance").fill_null(0) >= 1).then(1.0).otherwise(-1.0)
    known = known.join(_singles(frame), on=["system", "query", "passage"], how="left", maintain_order="left")
    return known.with_columns(
        (1 - pl.col("abstention")).alias("1 − p_abstain"), (sign * (1 - pl.col("abstention"))).alias("utility")
    )


def _singles(frame: pl.DataFrame) -> pl.DataFrame:
    """What each passage adds to the answer if it is the only one."""
    known = context_rows(frame).filter(pl.col("single").is_not_null() & (pl.col("passages").list.len() > 0))
    rows = known.select("system", "query", pl.col("passages").alias("passage"), pl.col("single").alias("alone"))
    return rows.explode("passage", "alone")


def single_correlations(passages: pl.DataFrame, name: str, measure: Measure) -> dict[str, float]:
    """By query, the mean over contexts of the correlation of a judgment with contributions; NaN where there is none."""
    by_query: dict[str, list[float]] = {}
    for (_, query), mine in passages.group_by("system", "query", maintain_order=True):
        both = mine.select(name, "contribution").drop_nulls()
        one = correlation(both[name].to_numpy(), both["contribution"].to_numpy(), measure)
        by_query.setdefault(str(query), []).extend([] if one.value is None else [one.value])
    return _means(by_query)


def overlaps(contexts: pl.DataFrame) -> dict[str, float]:
    """By query, the mean share of what passages add alone that is lost if all are shown; contexts of `context_rows`."""
    by_query: dict[str, list[float]] = {}
    for row in contexts.filter(pl.col("single").is_not_null()).iter_rows(named=True):
        alone = float(np.maximum(row["single"], 0).sum())
        if alone > 0:
            gain = row["logprob"] - row["logprob_alone"]
            by_query.setdefault(row["query"], []).append((alone - gain) / alone)
    return _means(by_query)


def outcome_means(frame: pl.DataFrame, aspect: str) -> dict[str, float]:
    """By query, the mean over contexts of one of `OUTCOMES`."""
    mine = frame.filter(pl.col("aspect") == aspect, pl.col("status") == OK)
    return dict(mine.group_by("query", maintain_order=True).agg(pl.col("value").mean()).iter_rows())


def _means(by_query: Mapping[str, list[float]]) -> dict[str, float]:
    return {query: float(np.mean(values)) if values else float("nan") for query, values in by_query.items()}


def outcomes_as_scores(results: Results, frame: pl.DataFrame) -> Results:
    """Results whose scores have `OUTCOMES` beside the metrics."""
    said = frame.filter(pl.col("aspect").is_in(OUTCOMES))
    more = said.select("system", "query", pl.col("aspect").alias("metric"), "value", "status")
    both = pl.concat([results.scores.frame.select(more.columns), more])
    return replace(results, scores=Scores.trusted(both))
