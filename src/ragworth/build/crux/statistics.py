"""Statistics of a collection with rated sub-questions, as in Table 4 of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from ragworth.build.crux.consistency import FailedRatings, filter_consistent
from ragworth.core.errors import InputError
from ragworth.data import OK, Ratings
from ragworth.data.coercion import Data
from ragworth.data.collection import Collection
from ragworth.metrics.required_passages import FULL, PARTIAL, REQUIRED, USELESS, RedundancyRule, required
from ragworth.stats.estimate import Estimate, Resampling, mean_estimates
from ragworth.stats.range_intervals import Bounds

DEFAULT_PLAN = Resampling()
COUNTS, SHARES = (0.0, np.inf), (0.0, 1.0)
"""Possible values of what is averaged."""


class Statistic(NamedTuple):
    """One row: what was counted, and how many or how much; the interval of a mean over queries."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class RatingStatistics:
    """Statistics of a collection, computed from its ratings."""

    rows: list[Statistic]
    histogram: dict[str, int]
    """How often each rating was given; failed ratings by their status."""

    def __getitem__(self, name: str) -> float:
        return next(row.value for row in self.rows if row.name == name)

    @property
    def frame(self) -> pl.DataFrame:
        schema = {"statistic": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64}
        return pl.DataFrame(self.rows, schema=schema, orient="row")

    @property
    def readable(self) -> pl.DataFrame:
        """The rows for people: whole numbers without digits, and intervals in brackets."""
        rows = [(row.name, _words(row.value), _span(row)) for row in self.rows]
        schema = {"statistic": pl.String, "value": pl.String, "95 % interval": pl.String}
        return pl.DataFrame(rows, schema=schema, orient="row")

    @property
    def histogram_frame(self) -> pl.DataFrame:
        total = sum(self.histogram.values())
        rows = [(name, number, number / total) for name, number in self.histogram.items()]
        return pl.DataFrame(rows, schema={"rating": pl.String, "n": pl.Int64, "share": pl.Float64}, orient="row")


def _words(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def _span(row: Statistic) -> str:
    return "" if row.low is None or row.high is None else f"[{row.low:.2f}, {row.high:.2f}]"


def rating_statistics(
    ratings: Ratings | Data,
    collection: Collection | None = None,
    *,
    eta: float = 3.0,
    redundancy: RedundancyRule = "answered",
    failed: FailedRatings = "leave-out",
    summary: Ratings | None = None,
    summaries: Sequence[str] = (),
    plan: Resampling = DEFAULT_PLAN,
) -> RatingStatistics:
    """Count queries, passages, sub-questions, required and redundant passages, and mean lengths.

    As in the paper, all passages but the required ones are redundant.

    Parameters
    ----------
    ratings: of all passages of each query; failed ratings are treated as `filter_consistent` does.
    collection: texts, whose lengths are counted with the collection's counter.
    summary: ratings of each query's summary, for its coverage of the answerable sub-questions.
    summaries: their texts.
    """
    table = ratings if isinstance(ratings, Ratings) else Ratings(ratings)
    if not table.frame.height:
        raise InputError("there are no ratings", expected="at least one")
    consistent = filter_consistent(table, eta, failed)
    classes = required(consistent.ratings, eta, redundancy)
    queries = table.frame["query"].unique(maintain_order=True)
    number = {name: int((classes["class"] == name).sum()) for name in (REQUIRED, PARTIAL, FULL, USELESS)}
    asked = table.frame.select("query", "subquestion").unique().height
    answerable = consistent.ratings.frame.select("query", "subquestion").unique()
    rows = [
        Statistic("queries", len(queries)),
        Statistic("queries with an answerable sub-question", answerable["query"].n_unique()),
        Statistic("sub-questions", asked),
        Statistic("answerable sub-questions", answerable.height),
        *(Statistic(f"sub-questions dropped: {status}", n) for status, n in consistent.counts.most_common()),
        Statistic("rated passages", table.frame.select("query", "passage").unique().height),
        *([Statistic("passages dropped: unrated", len(consistent.passages))] if consistent.passages else []),
        Statistic("required passages", number[REQUIRED]),
        Statistic("redundant passages", sum(number.values()) - number[REQUIRED]),
        Statistic("partially redundant", number[PARTIAL]),
        Statistic("fully redundant", number[FULL]),
        Statistic("answering nothing", number[USELESS]),
        *_mean("required passages per query", _required_per_query(classes), plan, COUNTS),
    ]
    if summary is not None:
        shares = [share for _, share in summary_coverage(consistent.ratings, summary, eta)]
        rows += _mean("coverage of the summary", shares, plan, SHARES)
    return RatingStatistics([*rows, *_lengths(collection, summaries)], rating_histogram(table))


def summary_coverage(ratings: Ratings, summary: Ratings, eta: float) -> list[tuple[str, float]]:
    """Share of each query's answerable sub-questions that its summary answers.

    ``ratings`` are those of the answerable sub-questions. A query whose summary lacks one of these ratings is left out.
    """
    asked = ratings.frame.select("query", "subquestion").unique(maintain_order=True)
    own = summary.frame.filter(pl.col("status") == OK).select("query", "subquestion", "value")
    both = asked.join(own, on=["query", "subquestion"], how="left", maintain_order="left")
    facts = both.group_by("query", maintain_order=True).agg(
        (pl.col("value") >= eta).mean().alias("share"), pl.col("value").null_count().alias("unknown")
    )
    return [(query, share) for query, share, unknown in facts.iter_rows() if not unknown]


def rating_histogram(ratings: Ratings) -> dict[str, int]:
    """How often each value was given, from 0 to 5, then failures by status."""
    frame = ratings.frame
    values: Mapping[float, int] = dict(frame.filter(pl.col("status") == OK)["value"].value_counts().iter_rows())
    names = sorted({*values, *map(float, range(6))})
    failures = frame.filter(pl.col("status") != OK)["status"].value_counts(sort=True).iter_rows()
    return {**{f"{value:g}": values.get(value, 0) for value in names}, **dict(failures)}


def _required_per_query(classes: pl.DataFrame) -> list[float]:
    per_query = classes.group_by("query", maintain_order=True).agg((pl.col("class") == REQUIRED).sum())
    return [float(n) for _, n in per_query.iter_rows()]


def _mean(name: str, values: Sequence[float], plan: Resampling, bounds: Bounds) -> list[Statistic]:
    """The mean over queries with its interval; nothing if there are none."""
    if not values:
        return []
    found: Estimate = mean_estimates(np.array(values, dtype=np.float64)[:, None], plan, bounds)[0]
    assert found.value is not None
    return [Statistic(name, found.value, found.low, found.high)]


def _lengths(collection: Collection | None, summaries: Sequence[str]) -> list[Statistic]:
    if collection is None:
        return []
    count = collection.counter.count
    texts = {
        "query": collection.queries["text"].to_list(),
        "sub-question": collection.subquestions["text"].to_list(),
        "passage": collection.passages["text"].to_list(),
        "summary": list(summaries),
    }
    return [
        Statistic(f"mean tokens of a {what}", float(np.mean([count(text) for text in some])))
        for what, some in texts.items()
        if some
    ]
