"""The passages that a long answer needs: the required subset of each query, and redundant passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from typing import Literal, get_args

import numpy as np
import polars as pl

from ragworth.core.errors import InputError, TableError, format_count, quote_short
from ragworth.data import OK, Ratings
from ragworth.data.coercion import Data
from ragworth.metrics.blocks import Floats
from ragworth.metrics.coverage import required_subset
from ragworth.metrics.ground_truth import rating_matrices

REQUIRED, PARTIAL, FULL, USELESS = "required", "partially-redundant", "fully-redundant", "answers-nothing"
RedundancyRule = Literal["answered", "crux"]
REDUNDANCY_RULES = get_args(RedundancyRule)


def required(ratings: Ratings | Data, eta: float = 3.0, redundancy: RedundancyRule = "answered") -> pl.DataFrame:
    """Return every rated passage with its class.

    The required subset of a query is built greedily: repeatedly the passage that answers most open sub-questions, ties
    by order of appearance, until no passage answers another one. ``redundancy`` decides about the others:

    - ``answered`` (**Choice**): a passage that answers something is fully redundant if the subset answers each of its
      sub-questions with at least the same rating, otherwise partially redundant. Others answer nothing.
    - ``crux``: the rule of CRUX's released code, over all sub-questions, answered or not. A passage is fully redundant
      if the subset's best rating of every sub-question is higher than its own, otherwise partially redundant.

    Failed ratings are rejected, because they could change the subset: filter them out or rate again.

    Returns query, passage, class, place (1 for the first chosen; null outside the subset) and gain
    (sub-questions it was the first to answer).
    """
    if redundancy not in REDUNDANCY_RULES:
        raise InputError(f"redundancy is {redundancy!r}", expected=" or ".join(REDUNDANCY_RULES))
    table = ratings if isinstance(ratings, Ratings) else Ratings(ratings)
    failed = table.frame.filter(pl.col("status") != OK)
    if failed.height:
        raise TableError(
            f"{format_count(failed.height, 'rating')} without a value ({failed['status'][0]}), such as query "
            f"{quote_short(failed['query'][0], 24)}, passage {quote_short(failed['passage'][0], 24)}",
            expected="a value for every rating",
            remedy="rate those again, or filter the rows with status 'ok'",
        )
    queries = table.frame["query"].unique(maintain_order=True)
    rated = rating_matrices(table, queries)
    bounds = np.searchsorted(rated.query, np.arange(len(queries) + 1))
    rows: list[tuple[str, str, str, int | None, int]] = []
    for i, query in enumerate(queries):
        span = slice(int(bounds[i]), int(bounds[i + 1]))
        matrix = rated.value[span, : rated.columns[i]]
        rows += [(query, *row) for row in _classify(matrix, rated.passage[span].to_list(), eta, redundancy)]
    return pl.DataFrame(
        rows,
        schema={"query": pl.String, "passage": pl.String, "class": pl.String, "place": pl.Int64, "gain": pl.Int64},
        orient="row",
    )


def required_subsets(ratings: Ratings, eta: float) -> dict[str, list[str]]:
    """The required subset of each query that has one, in the order in which passages were chosen."""
    chosen = required(ratings, eta).filter(pl.col("class") == REQUIRED).sort("place")
    return dict(chosen.group_by("query", maintain_order=True).agg("passage").iter_rows())


def subsets_of_queries(
    ratings: Ratings, eta: float, queries: Iterable[str], subquestions: Container[str]
) -> tuple[dict[str, list[str]], Counter[str]]:
    """The required subset of each query, and how many queries have none, by reason.

    ``subquestions`` contains the queries that have some.
    """
    whole = without_failed(ratings)
    chosen = required_subsets(whole, eta)
    reasons: dict[str, Container[str]] = {
        "no sub-questions": subquestions,
        "no ratings": set(ratings.frame["query"]),
        "a rating failed": set(whole.frame["query"]),
        f"no sub-question is answered with {eta:g} or more": chosen,
    }
    names = list(queries)
    why = {query: next((reason for reason, known in reasons.items() if query not in known), "") for query in names}
    subsets = {query: chosen[query] for query in names if not why[query]}
    return subsets, Counter(reason for reason in why.values() if reason)


def without_failed(ratings: Ratings) -> Ratings:
    """The ratings of queries in which none failed."""
    failed = ratings.frame.filter(pl.col("status") != OK)
    return Ratings.trusted(ratings.frame.join(failed, on="query", how="anti", maintain_order="left"))


def answerable(ratings: Ratings, eta: float) -> dict[str, frozenset[str]]:
    """Sub-questions that some passage answers, by query; queries with a failed rating are left out."""
    best = without_failed(ratings).frame.group_by("query", "subquestion", maintain_order=True).agg(pl.max("value"))
    found = best.filter(pl.col("value") >= eta).group_by("query", maintain_order=True).agg("subquestion")
    return {query: frozenset(names) for query, names in found.iter_rows()}


def _classify(
    matrix: Floats, passages: list[str], eta: float, redundancy: RedundancyRule
) -> list[tuple[str, str, int | None, int]]:
    chosen = required_subset(matrix, eta)
    answers = matrix >= eta
    best = matrix[chosen].max(axis=0) if chosen else np.full(matrix.shape[1], -np.inf)
    open_ = np.ones(matrix.shape[1], dtype=bool)
    place: dict[int, tuple[int, int]] = {}
    for n, row in enumerate(chosen, 1):
        place[row] = (n, int((answers[row] & open_).sum()))
        open_ &= ~answers[row]
    result: list[tuple[str, str, int | None, int]] = []
    for row, passage in enumerate(passages):
        if row in place:
            result.append((passage, REQUIRED, *place[row]))
        elif redundancy == "crux":
            result.append((passage, FULL if bool((best > matrix[row]).all()) else PARTIAL, None, 0))
        elif not answers[row].any():
            result.append((passage, USELESS, None, 0))
        else:
            full = bool((best[answers[row]] >= matrix[row][answers[row]]).all())
            result.append((passage, FULL if full else PARTIAL, None, 0))
    return result
