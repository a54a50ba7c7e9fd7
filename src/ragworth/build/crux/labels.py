"""Relevance labels from ratings: graded by redundancy, by document, and by sub-question."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ragworth.metrics.required_passages import FULL, PARTIAL, REQUIRED, USELESS, RedundancyRule, required
from ragworth.tables import OK, Judgments, Ratings

GRADES = {REQUIRED: 3.0, PARTIAL: 2.0, FULL: 1.0, USELESS: 0.0}
"""Graded relevance of the classes of passages."""


def graded_relevance(ratings: Ratings, eta: float = 3.0, redundancy: RedundancyRule = "answered") -> Judgments:
    """3 for required passages, 2 for partially and 1 for fully redundant ones, 0 for those that answer nothing."""
    classes = required(ratings, eta, redundancy)
    grade = pl.col("class").replace_strict(GRADES, return_dtype=pl.Float64)
    return _judgments(classes.select("query", "passage", grade.alias("value")), f"ratings, eta {eta:g}, {redundancy}")


def document_relevance(passages: Judgments, documents: Mapping[str, str]) -> Judgments:
    """The highest grade of each document's passages; ``documents`` has the document of each passage."""
    frame = passages.frame.with_columns(pl.col("passage").replace_strict(documents, return_dtype=pl.String))
    best = frame.group_by("query", "passage", maintain_order=True).agg(pl.max("value"))
    return _judgments(best, "highest grade of the document's passages")


def answered_subquestions(ratings: Ratings, eta: float = 3.0) -> Ratings:
    """Binary sub-topic labels: 1 where a passage answers a sub-question; other pairs are left out, for ndeval."""
    answered = ratings.frame.filter((pl.col("status") == OK) & (pl.col("value") >= eta))
    return Ratings.trusted(answered.with_columns(value=pl.lit(1.0)))


def _judgments(frame: pl.DataFrame, source: str) -> Judgments:
    whole = frame.with_columns(aspect=pl.lit("relevance"), status=pl.lit(OK), source=pl.lit(source))
    return Judgments.trusted(whole.select(list(Judgments.schema)))
