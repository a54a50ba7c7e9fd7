"""Utility and distracting effect of each passage, derived from judgments."""

from __future__ import annotations

import polars as pl

from ragworth.core.errors import TableError
from ragworth.data import OK, Judgments
from ragworth.data.coercion import Data
from ragworth.metrics.reader_judgments import READER_JUDGED, reader_judged

WEAK, HARD = 0.2, 0.8
"""Distracting effect below which an irrelevant passage is a weak distractor, and above which it is a hard one."""


def utilities(judgments: Judgments | Data, rel: float = 1.0, *, weak: float = WEAK, hard: float = HARD) -> pl.DataFrame:
    """Return every passage that has an abstention probability, with its utility and class.

    u = R·(1 − p_abstain), where R is +1 if relevance is at least ``rel`` and −1 otherwise; an unjudged passage counts
    as irrelevant, as in UDCG. The distracting effect of an irrelevant passage is 1 − p_abstain. Classes are
    ``relevant``, ``weak-distractor`` (effect below ``weak``), ``hard-distractor`` (above ``hard``) and ``distractor``.

    Returns query, passage, relevance, abstention, utility, distraction, class and status. If either judgment failed,
    the utility is missing, and the status gives the reason. If the model that declines or answers judged relevance
    itself, utility and class would follow from its own opinion alone; they are missing too (``reader-judged``).
    """
    table = judgments if isinstance(judgments, Judgments) else Judgments(judgments)
    asked, judged = table.of("abstention"), table.of("relevance")
    for name, part in (("abstention", asked), ("relevance", judged)):
        if not part.height:
            raise TableError(
                f"there are no judgments of {name}",
                expected="judgments of relevance and abstention",
                remedy=f"create them with ragworth annotate {name}",
            )
    keys = ["query", "passage"]
    both = asked.select(*keys, pl.col("value").alias("abstention"), "status").join(
        judged.select(*keys, pl.col("value").alias("relevance"), pl.col("status").alias("_failed")),
        on=keys,
        how="left",
        maintain_order="left",
    )
    own = reader_judged(table).with_columns(_own=pl.lit(True)).unique()
    both = both.join(own, on=keys, how="left", maintain_order="left")
    sure = 1 - pl.col("abstention")
    relevant = (pl.col("relevance") >= rel).fill_null(False)
    known = pl.col("status") == OK
    effect = pl.when(known & ~relevant).then(sure)
    return (
        both.with_columns(
            pl.when((pl.col("status") == OK) & (pl.col("_failed").fill_null(OK) != OK))
            .then(pl.col("_failed"))
            .when((pl.col("status") == OK) & pl.col("_own").fill_null(False))
            .then(pl.lit(READER_JUDGED))
            .otherwise(pl.col("status"))
            .alias("status")
        )
        .with_columns(
            pl.when(known & relevant).then(sure).when(known).then(pl.col("abstention") - 1).alias("utility"),
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
