"""What each passage shown is worth: whether it is relevant, and its utility."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from ragworth.metrics.passage_utility import utilities
from ragworth.metrics.reader_judgments import reader_judged
from ragworth.tables import OK, Contexts, Judgments, Ratings

KEYS = ["query", "passage"]


class Worth(NamedTuple):
    """The rows of contexts with what is known of them.

    Attributes
    ----------
    rows: system, query, rank, passage, relevant, utility; null where it is not known; and own: whether the reader
        judged its relevance itself, so that it can't be known whether the passage misleads.
    judged: queries of which it is known what is relevant.
    """

    rows: pl.DataFrame
    judged: pl.Series


def worth(contexts: Contexts, judgments: Judgments | None, ratings: Ratings | None, rel: float, eta: float) -> Worth:
    """Relevance by labels, for queries without labels by ratings; a passage without either is not relevant.

    Nothing is known of queries without labels and ratings.
    """
    known = _relevance(judgments, ratings, rel, eta)
    judged = known["query"].unique()
    rows = contexts.frame.select("system", "query", "rank", "passage")
    rows = rows.join(known, on=KEYS, how="left", maintain_order="left")
    rows = rows.join(_utility(judgments, rel), on=KEYS, how="left", maintain_order="left")
    own = reader_judged(judgments).unique().with_columns(own=pl.lit(True))
    rows = rows.join(own, on=KEYS, how="left", maintain_order="left").with_columns(pl.col("own").fill_null(False))
    in_judged = rows.select(pl.col("query").is_in(judged.implode())).to_series()
    unlisted = pl.col("listed").is_null()
    rows = rows.with_columns(
        relevant=pl.when(in_judged).then(pl.when(unlisted).then(False).otherwise(pl.col("relevant"))),
        utility=pl.when(in_judged).then(pl.col("utility")),
    )
    return Worth(rows.drop("listed"), judged)


def _relevance(judgments: Judgments | None, ratings: Ratings | None, rel: float, eta: float) -> pl.DataFrame:
    """query, passage, relevant (null where the judgment failed), listed (true)."""
    schema = {"query": pl.String, "passage": pl.String, "relevant": pl.Boolean}
    found = [pl.DataFrame(schema=schema)]
    if judgments is not None:
        found.append(judgments.of("relevance").select(*KEYS, relevant=pl.col("value") >= rel))
    if ratings is not None:
        others = ratings.frame.join(pl.concat(found), on="query", how="anti")
        best, failed = (pl.col("value") >= eta).any(), pl.col("value").is_null().any()
        found.append(
            others.group_by(KEYS).agg(relevant=pl.when(best).then(True).when(failed).then(None).otherwise(False))
        )
    return pl.concat(found).with_columns(listed=pl.lit(True))


def _utility(judgments: Judgments | None, rel: float) -> pl.DataFrame:
    if judgments is None or not judgments.of("relevance").height or not judgments.of("abstention").height:
        return pl.DataFrame(schema={"query": pl.String, "passage": pl.String, "utility": pl.Float64})
    return utilities(judgments, rel).filter(pl.col("status") == OK).select(*KEYS, "utility")
