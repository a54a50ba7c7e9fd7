"""Contexts pooled by how many passages they show relative to the number of relevant ones."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import polars as pl

from ragworth.fitting.alpha_sweep import AlphaSweep, PassageCounts, alpha_sweeps
from ragworth.fitting.rows import Bools
from ragworth.results import Results
from ragworth.score_rows import ScoreRows

ALL, PARTS = "all systems", ("narrow", "wide", "all")


class Segment(NamedTuple):
    """Contexts of one system, or of all: narrow, wide, all, or those of a cell, which have the same K/N_p."""

    system: str
    place: str
    keep: Bools

    @property
    def contexts(self) -> int:
        return int(self.keep.sum())

    @property
    def columns(self) -> dict[str, object]:
        """How tables name it."""
        return {"system": self.system, "K/N_p": self.place}


class PooledContexts:
    """The contexts that have an outcome and a relevant passage; ``without``: queries that have none.

    Parameters
    ----------
    level: lowest label that counts as relevant.
    names: what to call each system; those of the same name are one.
    most: how many of its passages a context shows; None for all.
    """

    def __init__(
        self, results: Results, rows: ScoreRows, level: float, names: Mapping[str, str], most: int | None
    ) -> None:
        assert results.judgments is not None
        self.contexts = results.contexts.frame
        self.labels = results.judgments.of("relevance").filter(pl.col("value") >= level)
        relevant = dict(self.labels.group_by("query").len().iter_rows())
        self.rows = rows.only(np.array([query in relevant for query in rows.queries], dtype=bool))
        self.without = len(set(rows.queries) - set(self.rows.queries))
        shown = zip(self._counts(most)[0], self.rows.queries, strict=True)
        ratios = [Fraction(int(k), relevant[query]) for k, query in shown]
        self.wide = np.array([ratio >= 1 for ratio in ratios], dtype=bool)
        self.ratio = np.array([float(round(ratio, 1)) for ratio in ratios])
        self.retriever = np.array([names[system] for system in self.rows.systems], dtype=object)
        self.retrievers = list(dict.fromkeys(self.retriever))

    def _counts(self, cutoff: int | None) -> PassageCounts:
        """How many passages the context of each row shows, up to a cutoff, and how many of them are relevant."""
        shown = self.contexts.filter(pl.col("rank") <= cutoff) if cutoff else self.contexts
        pair, good = ["system", "query"], self.labels.select("query", "passage", pl.lit(1.0).alias("hit"))
        counts = shown.join(good, on=["query", "passage"], how="left").group_by(pair).agg(pl.len(), pl.sum("hit"))
        order = pl.DataFrame(
            {"system": self.rows.systems, "query": self.rows.queries}, schema=dict.fromkeys(pair, pl.String)
        )
        made = order.join(counts, on=pair, how="left", maintain_order="left").fill_null(0)
        return made["len"].to_numpy().astype(np.float64), made["hit"].to_numpy()

    def segments(self) -> tuple[list[Segment], list[Segment]]:
        """Parts, and cells: of all systems if there are several, then of each."""
        every = np.ones(len(self.wide), dtype=bool)
        groups = [(str(name), np.asarray(self.retriever == name)) for name in self.retrievers]
        groups = [(ALL, every), *groups] if len(groups) > 1 else groups
        places = list(zip(PARTS, (~self.wide, self.wide, every), strict=True))
        ratios = [(f"{ratio:.1f}", self.ratio == ratio) for ratio in np.unique(self.ratio)]

        def split(some: list[tuple[str, Bools]]) -> list[Segment]:
            found = [Segment(name, place, mine & where) for name, mine in groups for place, where in some]
            return [each for each in found if each.contexts]

        return split(places), split(ratios)

    def sweeps(self) -> dict[int, AlphaSweep]:
        """Metrics that have an α, by their column."""
        rows, queries = self.rows, np.array(self.rows.queries, dtype=np.str_)
        turns = None if rows.clusters is None else rows.clusters.astype(np.str_)
        return alpha_sweeps(rows.metrics, rows.values, rows.outcome, queries, self._counts, turns)
