"""What follows from judgments without asking anybody: utility and distraction of each passage."""

from __future__ import annotations

import polars as pl

from ragworth.errors import TableError
from ragworth.tables import OK, Judgments
from ragworth.tables.coercion import Data

WEAK, HARD = 0.2, 0.8
"""Distracting effect below which an irrelevant passage is a weak distractor, and above which it is a hard one."""


def utilities(judgments: Judgments | Data, rel: float = 1.0, *, weak: float = WEAK, hard: float = HARD) -> pl.DataFrame:
    """Every passage that has an abstention probability, with its utility and its class.

    u = R·(1 − p_abstain), R = +1 where relevance is at least ``rel`` and −1 everywhere else; a passage that nobody
    judged counts as irrelevant, as in UDCG. The distracting effect of an irrelevant passage is 1 − p_abstain. Classes
    are ``relevant``, ``weak-distractor`` (effect below ``weak``), ``hard-distractor`` (above ``hard``), ``distractor``.

    Returns query, passage, relevance, abstention, utility, distraction, class and status; where either judgment
    failed there is no utility, and the status says why.
    """
    table = judgments if isinstance(judgments, Judgments) else Judgments(judgments)
    asked, judged = table.of("abstention"), table.of("relevance")
    for name, part in (("abstention", asked), ("relevance", judged)):
        if not part.height:
            raise TableError(
                f"there are no judgments of {name}",
                expected="judgments of relevance and abstention",
                remedy=f"ragworth annotate {name} makes them",
            )
    keys = ["query", "passage"]
    both = asked.select(*keys, pl.col("value").alias("abstention"), "status").join(
        judged.select(*keys, pl.col("value").alias("relevance"), pl.col("status").alias("_failed")),
        on=keys,
        how="left",
        maintain_order="left",
    )
    sure = 1 - pl.col("abstention")
    relevant = (pl.col("relevance") >= rel).fill_null(False)
    known = pl.col("status") == OK
    effect = pl.when(known & ~relevant).then(sure)
    return (
        both.with_columns(
            pl.when((pl.col("status") == OK) & (pl.col("_failed").fill_null(OK) != OK))
            .then(pl.col("_failed"))
            .otherwise(pl.col("status"))
            .alias("status")
        )
        .with_columns(
            pl.when(known & relevant).then(sure).when(known).then(-sure).alias("utility"),
            effect.alias("distraction"),
        )
        .with_columns(
            pl.when(~known)
            .then(None)
            .when(relevant)
            .then(pl.lit("relevant"))
            .when(pl.col("distraction").round(12) < weak)
            .then(pl.lit("weak-distractor"))
            .when(pl.col("distraction").round(12) > hard)
            .then(pl.lit("hard-distractor"))
            .otherwise(pl.lit("distractor"))
            .alias("class")
        )
        .select(*keys, "relevance", "abstention", "utility", "distraction", "class", "status")
    )
