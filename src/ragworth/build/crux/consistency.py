"""The consistency filter, which keeps sub-questions that some passage answers, and relevance labels from ratings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

import polars as pl

from ragworth.core.errors import InputError
from ragworth.data import OK, Judgments, Ratings
from ragworth.metrics.required_passages import FULL, PARTIAL, REQUIRED, USELESS, RedundancyRule, required

FailedRatings = Literal["leave-out", "zero"]
FAILED_RATINGS = get_args(FailedRatings)
UNANSWERABLE = "unanswerable"
UNRATED = "unrated"


class ConsistentRatings(NamedTuple):
    """Ratings of answerable sub-questions, all with a value, and what was dropped."""

    ratings: Ratings
    passages: dict[tuple[str, str], str]
    """Dropped (query, passage), with the reason: every rating of it failed."""
    subquestions: dict[tuple[str, str], tuple[str, str]]
    """Dropped (query, subquestion), with status and reason."""

    @property
    def counts(self) -> Counter[str]:
        """Dropped sub-questions by status."""
        return Counter(status for status, _ in self.subquestions.values())


def filter_consistent(ratings: Ratings, eta: float = 3.0, failed: FailedRatings = "leave-out") -> ConsistentRatings:
    """Drop sub-questions that no passage answers with ``eta`` or more.

    A failed rating could have made its sub-question answerable, or a passage required. ``leave-out`` drops passages
    whose ratings all failed, then sub-questions with a failed rating. ``zero`` counts failed ratings as 0, as the
    paper does.
    """
    if failed not in FAILED_RATINGS:
        raise InputError(f"failed is {failed!r}", expected=" or ".join(FAILED_RATINGS))
    frame = ratings.frame
    if failed == "zero":
        bad = pl.col("status") != OK
        frame = frame.with_columns(
            pl.when(bad).then(0.0).otherwise("value").alias("value"),
            pl.when(bad)
            .then(pl.concat_str("source", pl.lit(" · failed, counted as 0")))
            .otherwise("source")
            .alias("source"),
            pl.lit(OK).alias("status"),
        )
    good = pl.col("status") == OK
    passages = _failed_passages(frame)
    frame = frame.join(passages, on=["query", "passage"], how="anti", maintain_order="left")
    asked = ratings.frame.select("query", "subquestion").unique(maintain_order=True)
    by_question = frame.group_by("query", "subquestion", maintain_order=True).agg(
        pl.col("value").filter(good).max().alias("best"),
        (~good).sum().alias("failed"),
        pl.col("status").filter(~good).first().alias("why"),
    )
    facts = asked.join(by_question, on=["query", "subquestion"], how="left", maintain_order="left")
    dropped = {
        (query, name): status
        for query, name, best, lost, why in facts.iter_rows()
        if (status := _question_status(best, lost, why, eta)) is not None
    }
    names = pl.DataFrame(list(dropped), schema={"query": pl.String, "subquestion": pl.String}, orient="row")
    kept = frame.join(names, on=["query", "subquestion"], how="anti", maintain_order="left")
    reasons = {(query, passage): f"all its ratings failed ({why})" for query, passage, why in passages.iter_rows()}
    return ConsistentRatings(Ratings.trusted(kept.select(list(Ratings.schema))), reasons, dropped)


def _failed_passages(frame: pl.DataFrame) -> pl.DataFrame:
    bad = pl.col("status") != OK
    groups = frame.group_by("query", "passage", maintain_order=True).agg(bad.all().alias("all"), pl.first("status"))
    return groups.filter("all").drop("all")


def _question_status(best: float | None, failed: int | None, why: str | None, eta: float) -> tuple[str, str] | None:
    if failed is None:
        return UNRATED, "no passage has a rating for it"
    if failed:
        return UNRATED, f"{failed:,} of its ratings failed, the first with {why}"
    if best is None or best < eta:
        return UNANSWERABLE, f"no passage is rated {eta:g} or more"
    return None


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
