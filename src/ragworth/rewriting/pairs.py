"""Preference pairs: the best rewrite of a turn against its worst, by what each is worth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from ragworth.core.errors import InputError, format_count, format_list
from ragworth.data import OK
from ragworth.rewriting.tables import PAIRS, REWRITES

TIE = 1e-12
"""Utilities that differ by less are equal."""

ONE_CANDIDATE = "only one rewrite"
NO_VALUES = "fewer than two rewrites with a value"
SAME_CONTEXT = "all rewrites retrieve the same passages"
TIED = "all rewrites are worth the same"
SMALL_GAP = "among those with the smaller gap"
EMPTY_TEXT = "an empty rewrite is the best or the worst"


class Rewrite(NamedTuple):
    """A labelled rewrite."""

    text: str
    context: str
    value: float | None


@dataclass(frozen=True)
class PreferencePairs:
    """Pairs for DPO, and rewrites for SFT, of the same labels.

    Attributes
    ----------
    pairs: those kept, largest gap first.
    best: the best rewrite of each turn that has one, whatever its gap.
    random: one rewrite of each of these turns, drawn at random: the control of ``best``.
    dropped: turns without a pair, by reason.
    """

    pairs: pl.DataFrame
    best: pl.DataFrame
    random: pl.DataFrame
    dropped: Mapping[str, int]

    def __str__(self) -> str:
        words = ", ".join(f"{reason}: {number:,}" for reason, number in self.dropped.items())
        pairs = format_count(self.pairs.height, "pair")
        return f"{pairs} of {format_count(self.pairs.height + sum(self.dropped.values()), 'turn')}" + (
            f"; turns without one: {words}" if words else ""
        )


def build_pairs(labels: pl.DataFrame, *, utility: str = "", keep: float = 0.5, seed: int = 0) -> PreferencePairs:
    """Pair the best rewrite of each turn with its worst, and keep the share of pairs with the largest gaps.

    ``utility`` names the kind of label if there are several. Where several rewrites are equally good or bad, one of
    them is drawn at random, so that the order of candidates doesn't matter. The draw of a turn depends on ``seed`` and
    its id alone.
    """
    if not 0 < keep <= 1:
        raise InputError(f"keep is {keep:g}", expected="a share above 0, at most 1")
    dropped: Counter[str] = Counter()
    pairs: list[tuple[str, str, str, float, bool]] = []
    best: list[tuple[str, str]] = []
    drawn: list[tuple[str, str]] = []
    for query, rewrites in _by_turn(_one_utility(labels, utility)):
        rng = _random_of(query, seed)
        found = _best_and_worst(rewrites, rng)
        if isinstance(found, str):
            dropped[found] += 1
            continue
        high, low = found
        pairs.append((query, high.text, low.text, _gap(high, low), False))
        best.append((query, high.text))
        texts = [rewrite.text for rewrite in rewrites if rewrite.text.strip()]
        drawn.append((query, texts[int(rng.integers(len(texts)))]))
    if not pairs:
        reasons = "; ".join(f"{reason}: {format_count(number, 'turn')}" for reason, number in dropped.items())
        raise InputError(
            f"there is no pair ({reasons})",
            expected="turns with two rewrites that are worth different amounts",
            remedy="make more, or more different, candidates (rewrite candidates --samples, --temperature)",
        )
    frame = pl.DataFrame(pairs, schema=dict(PAIRS), orient="row").sort(["gap", "query"], descending=[True, False])
    kept = frame.head(math.ceil(round(keep * frame.height, 9)))
    if kept.height < frame.height:
        dropped[SMALL_GAP] = frame.height - kept.height
    top, drawn_texts = (pl.DataFrame(rows, schema=dict(REWRITES), orient="row") for rows in (best, drawn))
    return PreferencePairs(kept, top, drawn_texts, dict(dropped))


def shuffle_pairs(pairs: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The control: the same pairs, each with its sides swapped with probability one half."""
    ordered = pairs.sort("query")
    swap = pl.Series(np.random.default_rng(seed).random(ordered.height) < 0.5)
    sides = [
        pl.when(swap).then(pl.col(other)).otherwise(pl.col(name)).alias(name)
        for name, other in (("chosen", "rejected"), ("rejected", "chosen"))
    ]
    signed = pl.when(swap).then(-pl.col("gap")).otherwise(pl.col("gap")).alias("gap")
    swapped = ordered.with_columns(*sides, signed, (pl.col("swapped") != swap).alias("swapped"))
    return pairs.select("query").join(swapped, on="query", maintain_order="left")


def _one_utility(labels: pl.DataFrame, utility: str) -> pl.DataFrame:
    kinds = labels["utility"].unique(maintain_order=True).to_list()
    if (not utility and len(kinds) > 1) or (utility and utility not in kinds):
        found = f"there are labels by {format_list(kinds)}"
        raise InputError(found, expected=utility or "one kind", remedy="--utility names one")
    return labels.filter(pl.col("utility") == utility) if utility else labels


def _by_turn(labels: pl.DataFrame) -> Iterator[tuple[str, list[Rewrite]]]:
    """The rewrites of each turn; those with equal texts count once."""
    known = pl.when(pl.col("status") == OK).then(pl.col("value"))
    rows = labels.select("query", "text", "context", known.alias("value")).unique(
        ["query", "text"], keep="first", maintain_order=True
    )
    for (query,), part in rows.group_by("query", maintain_order=True):
        yield str(query), [Rewrite(*row) for row in part.select("text", "context", "value").iter_rows()]


def _best_and_worst(rewrites: list[Rewrite], rng: np.random.Generator) -> tuple[Rewrite, Rewrite] | str:
    """The best and the worst rewrite of a turn, or why there is no such pair."""
    if len(rewrites) < 2:
        return ONE_CANDIDATE
    valued = [rewrite for rewrite in rewrites if rewrite.value is not None]
    if len(valued) < 2:
        return NO_VALUES
    if valued[0].context and len({rewrite.context for rewrite in valued}) == 1:
        return SAME_CONTEXT
    values = [rewrite.value or 0.0 for rewrite in valued]
    top, bottom = max(values), min(values)
    if top - bottom < TIE:
        return TIED
    high = _draw([rewrite for rewrite, value in zip(valued, values, strict=True) if top - value < TIE], rng)
    low = _draw([rewrite for rewrite, value in zip(valued, values, strict=True) if value - bottom < TIE], rng)
    return (high, low) if high.text.strip() and low.text.strip() else EMPTY_TEXT


def _draw(among: list[Rewrite], rng: np.random.Generator) -> Rewrite:
    return among[int(rng.integers(len(among)))]


def _gap(high: Rewrite, low: Rewrite) -> float:
    assert high.value is not None and low.value is not None
    return high.value - low.value


def _random_of(query: str, seed: int) -> np.random.Generator:
    """A generator for one turn: the same whatever other turns there are."""
    return np.random.default_rng([seed, *query.encode("utf-8", "surrogatepass")])
