"""Pool the top passages of several systems, find the unjudged ones, and estimate how many relevant ones there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from ragworth.core.errors import InputError, format_count
from ragworth.data import OK, Contexts, Judgments
from ragworth.judging.judge import AnnotationItem
from ragworth.stats.capture_recapture import chao2, chapman
from ragworth.stats.estimate import Estimate

RELEVANT_SCHEMA = {
    "query": pl.String,
    "pooled": pl.Int64,
    "judged": pl.Int64,
    "found": pl.Int64,
    "N_p": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "method": pl.String,
    "note": pl.String,
}


class Pool(NamedTuple):
    """The pooled passages: query, passage, systems (how many show it) and rank (its best one)."""

    frame: pl.DataFrame
    systems: tuple[str, ...]
    depth: int


def pool_contexts(contexts: Contexts, depth: int) -> Pool:
    """The first ``depth`` passages of every system, each once for a query, in order of queries and best ranks."""
    systems = tuple(contexts.systems)
    if not systems:
        raise InputError("there is nothing to pool", expected="at least one system")
    # A system shows a passage once for a query, so rows of a pair count systems.
    shown = contexts.frame.filter(pl.col("rank") <= depth).with_columns(pl.col("rank").cast(pl.Int64))
    frame = shown.group_by("query", "passage", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("systems"), pl.col("rank").min()
    )
    order = frame.select(pl.col("query").unique(maintain_order=True)).with_row_index("place")
    ranked = frame.join(order, on="query", maintain_order="left").sort("place", "rank", maintain_order=True)
    return Pool(ranked.drop("place"), systems, depth)


def unjudged_items(pool: Pool, judgments: Judgments | None) -> list[AnnotationItem]:
    """Pooled pairs without a relevance label, as items of an annotator. A label that failed is none."""
    left = pool.frame
    if judgments is not None:
        known = judgments.of("relevance").filter(pl.col("status") == OK)
        left = left.join(known, on=["query", "passage"], how="anti", maintain_order="left")
    names: dict[str, str] = {}  # the id of a query is one object in all of its items
    pairs = left.select("query", "passage").iter_rows()
    return [AnnotationItem(names.setdefault(query, query), passage) for query, passage in pairs]


def scale_notes(labels: Judgments | None, highest: int) -> tuple[str, ...]:
    """Say if binary and graded labels get into one file, since metrics such as nDCG read both as grades."""
    known = None if labels is None else labels.of("relevance").filter(pl.col("status") == OK)
    top = 0.0 if known is None else max(known["value"], default=0.0)
    if not top or (top > 1) == (highest > 1):
        return ()
    remedy = "add --graded" if top > 1 else "leave out --graded"
    scales = f"the given labels go up to {top:g} and the new ones to {highest}"
    return (f"{scales}, which metrics such as nDCG read as one scale; {remedy} for equal scales",)


def merge_judgments(labels: Judgments | None, new: Judgments) -> Judgments:
    """Given labels, then the new ones that have a value. Labels that were given stay as they are."""
    good = new.frame.filter(pl.col("status") == OK)
    if labels is None:
        return Judgments.trusted(good)
    known = labels.of("relevance").filter(pl.col("status") == OK).select(list(Judgments.schema))
    fresh = good.join(known, on=["query", "passage"], how="anti", maintain_order="left")
    return Judgments.trusted(pl.concat([known, fresh.select(list(Judgments.schema))]))


def estimate_relevant(
    pool: Pool, contexts: Contexts, judgments: Judgments, relevance: float = 1.0, confidence: float = 0.95
) -> pl.DataFrame:
    """The number of relevant passages of each query: those in the pool, and an estimate of all with its interval.

    Two systems are two catches (Chapman); more are counted by how many systems found each passage (Chao's lower bound).
    With one system, or while a pooled passage is unjudged, the estimate is missing and the note says why. Relevant
    passages that no system was likely to find aren't counted by any estimate.
    """
    labels = judgments.of("relevance").filter(pl.col("status") == OK).select("query", "passage", "value")
    pairs = _two_catches(pool, contexts, labels.filter(pl.col("value") >= relevance))
    found = []
    for query, pooled, judged, caught in _caught(pool, labels, relevance):
        estimate, method = _estimate(caught, pooled - judged, len(pool.systems), pairs.get(query), confidence)
        found.append(
            (query, pooled, judged, len(caught), estimate.value, estimate.low, estimate.high, method, estimate.reason)
        )
    return pl.DataFrame(found, schema=RELEVANT_SCHEMA, orient="row")


def _caught(pool: Pool, labels: pl.DataFrame, relevance: float) -> Iterator[tuple[str, int, int, list[int]]]:
    """For each query: how many passages are pooled and judged, and how many systems found each relevant one."""
    pairs = pool.frame.join(labels, on=["query", "passage"], how="left", maintain_order="left")
    counts = pairs.group_by("query", maintain_order=True).agg(
        pl.len().alias("pooled"),
        pl.col("value").count().alias("judged"),
        pl.col("systems").filter(pl.col("value") >= relevance).alias("caught"),
    )
    return counts.iter_rows()


def _estimate(
    caught: list[int], unjudged: int, systems: int, pair: tuple[int, int, int] | None, level: float
) -> tuple[Estimate, str]:
    if unjudged:
        return Estimate(n=len(caught), reason=f"{format_count(unjudged, 'pooled passage')} unjudged"), ""
    if systems < 2:
        return Estimate(n=len(caught), reason="one system says nothing about what it missed"), ""
    if systems == 2:
        return chapman(*(pair or (0, 0, 0)), level=level), "Chapman"
    return chao2(caught, systems, level), "Chao2"


def _two_catches(pool: Pool, contexts: Contexts, relevant: pl.DataFrame) -> dict[str, tuple[int, int, int]]:
    """For two systems: relevant passages of the first, of the second, and of both, by query."""
    if len(pool.systems) != 2:
        return {}
    shown = contexts.frame.filter(pl.col("rank") <= pool.depth).join(relevant, on=["query", "passage"], how="semi")
    by_passage = shown.group_by("query", "passage").agg(
        (pl.col("system") == pool.systems[0]).any().alias("first"),
        (pl.col("system") == pool.systems[1]).any().alias("second"),
    )
    counts = by_passage.group_by("query").agg(
        pl.col("first").sum(), pl.col("second").sum(), (pl.col("first") & pl.col("second")).sum().alias("both")
    )
    return {query: (first, second, both) for query, first, second, both in counts.iter_rows()}
