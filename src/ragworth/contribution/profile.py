"""What passages contribute by their position in the context, and what one context comes down to in a sentence."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from ragworth.contribution.rows import passage_rows
from ragworth.contribution.subsets import Floats
from ragworth.contribution.summary import threshold
from ragworth.core.errors import format_count
from ragworth.data.conversations import cluster_labels
from ragworth.stats.estimate import Resampling, mean_estimates

MOST = 0.9
"""The share of the contributions that the sentence on a context goes by."""


def position_profile(
    frame: pl.DataFrame, plan: Resampling | None = None, conversations: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Mean contribution, in nats, at each position, with a bootstrap interval over queries.

    From the frame of an annotator or grader. ``share`` is the mean share of the positive contributions, over contexts
    that have any. ``conversations`` has the conversation of each query that is a turn: whole conversations are drawn.
    """
    chosen = plan or Resampling()
    known = passage_rows(frame).filter(pl.col("status") == "ok", pl.col("passage").is_not_null())
    rows = []
    for (system, rank), mine in known.group_by("system", "rank", maintain_order=True):
        turns = cluster_labels(mine["query"], conversations or {})
        units = mine["query"].to_numpy() if turns is None else turns  # several answers to a query are one unit
        (mean,) = mean_estimates(mine["contribution"].to_numpy().reshape(-1, 1), chosen, clusters=units)
        share = mine["share"].drop_nulls()
        rows.append(
            {
                "system": system,
                "position": rank,
                "contribution": mean.value,
                "low": mean.low,
                "high": mean.high,
                "share": float(np.mean(share.to_numpy())) if len(share) else None,
                "n": mine.height,
            }
        )
    numbers = dict.fromkeys(("contribution", "low", "high", "share"), pl.Float64)
    schema = {"system": pl.String, "position": pl.Int64, **numbers, "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("system", "position", maintain_order=True)


def context_sentence(values: Floats, least: float, *, accepted: bool = False) -> str:
    """One context in words: how few passages carry most of the answer, and how many go against it.

    ``accepted``: the answer is known to be right, so what goes against it does harm.
    """
    k, against = len(values), int((values < -threshold(values, least)).sum())
    one, many = ("does harm", "do harm") if accepted else ("goes against it", "go against it")
    tail = f"; {against} of {k} {one if against == 1 else many}" if against else ""
    number = carrying(values, least)
    if not number:
        return f"no passage makes the answer likelier by more than {least:g} nats{tail}"
    positive = np.sort(np.maximum(values, 0))[::-1]
    share = positive[:number].sum() / positive.sum()
    verb = "carries" if number == 1 else "carry"
    return f"{format_count(number, 'passage')} of {k} {verb} {100 * share:.0f} % of the answer{tail}"


def carrying(values: Floats, least: float) -> int:
    """How few passages have `MOST` of the positive contributions; 0 if none contributes more than ``least`` nats."""
    positive = np.sort(np.maximum(values, 0))[::-1]
    if not len(values) or positive[0] <= least:
        return 0
    return int(np.searchsorted(np.cumsum(positive) / positive.sum(), MOST - 1e-12)) + 1
