"""What was judged twice: scores of all queries by the cheap judge, and of the sample by the expensive one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ragworth.core.errors import InputError, MetricError, format_count, format_list, quote_short
from ragworth.data import OK, Contexts, Judgments, Scores
from ragworth.metrics.parsing import Metrics
from ragworth.scoring import score, split_metrics

PARTLY_JUDGED = "partly-judged"
"""Why a query of the sample is of no use: the expensive judge has not judged all that the cheap one has."""


class JudgedMetric(NamedTuple):
    """A metric: what it reads of what is judged twice, and how far down it looks; None to the end."""

    name: str
    aspects: set[str]
    depth: int | None


def _parse_metrics(metrics: Metrics, aspects: set[str], folder: Path | None) -> list[JudgedMetric]:
    ours, theirs = split_metrics(metrics, folder)
    made = [
        JudgedMetric(
            str(metric),
            aspects & {str(need) for need in metric.needs},
            metric.cutoff * metric.declaration.reach if metric.cutoff and "runs" not in metric.needs else None,
        )
        for metric in ours
    ]
    return made + [JudgedMetric(str(measure), aspects & {"relevance"}, None) for measure in theirs]


def metrics_reading(metrics: Metrics, aspects: Iterable[str], folder: Path | None = None) -> list[str]:
    """Those of the metrics that read one of the aspects."""
    return [each.name for each in _parse_metrics(metrics, set(aspects), folder) if each.aspects]


def judged_metrics(metrics: Metrics, aspects: set[str], folder: Path | None) -> list[JudgedMetric]:
    """The metrics; those that read none of the aspects are refused."""
    made = _parse_metrics(metrics, aspects, folder)
    blind = [each.name for each in made if not each.aspects]
    if blind:
        raise MetricError(
            f"{format_list(blind)} {'does' if len(blind) == 1 else 'do'} not read what is judged twice",
            expected=f"metrics of {format_list(sorted(aspects))}",
            remedy="ask for others (ragworth metrics lists them with what they read)",
        )
    return made


class TwoJudgeScores:
    """Contexts, judgments of both judges and those that they share."""

    def __init__(
        self, contexts: Contexts, cheap: Judgments, expensive: Judgments, others: Judgments, more: Mapping[str, Any]
    ) -> None:
        known, said = set(cheap.frame["aspect"]), set(expensive.frame["aspect"])
        self.contexts, self.cheap, self.others, self.more = contexts, cheap, others, more
        self.aspects, self._unused = known & said, sorted(said - known)
        if not self.aspects:
            raise InputError(
                f"the expensive judgments are of {format_list(sorted(said)) or 'nothing'}, "
                f"the cheap ones of {format_list(sorted(known)) or 'nothing'}",
                expected="an aspect that both have",
            )
        self.queries = cheap.frame.select("query", "aspect").unique(maintain_order=True)
        mine = expensive.frame.filter(pl.col("aspect").is_in(list(self.aspects)))
        self.expensive = mine.join(self.queries, on=["query", "aspect"], how="semi", maintain_order="left")
        self._strange = mine["query"].n_unique() - self.expensive["query"].n_unique()
        if not self.expensive.height:
            few = format_list([quote_short(query, 24) for query in mine["query"].unique(maintain_order=True)], 3)
            raise InputError(
                f"the cheap judge saw none of the queries that the expensive one saw ({few})",
                remedy="check that both are of the same collection and write ids the same way",
            )
        self.sample = self.expensive.select("query", "aspect").unique(maintain_order=True)
        self._notes = [*expensive.notes]

    def scored(self, metrics: list[JudgedMetric]) -> pl.DataFrame:
        """Every score by the cheap judge, and ``dear`` by the expensive one where ``use`` is ok.

        ``use`` is null outside the sample, and says why a query in it is of no use.
        """
        names, keys = [each.name for each in metrics], ["system", "query", "metric"]
        scores = self._score(self.cheap.frame, names)
        # Queries that were not drawn keep their cheap judgments, so that both sides score the same queries.
        left = self.cheap.frame.join(self.sample, on=["query", "aspect"], how="anti", maintain_order="left")
        better = self._score(pl.concat([left, self.expensive]), names)
        dear = better.frame.select(*keys, dear="value", dear_status="status")
        both = scores.frame.join(dear, on=keys, how="left", maintain_order="left")
        self._notes = [*scores.notes, *self._notes]
        made = pl.concat([self._used(both.filter(pl.col("metric") == each.name), each) for each in metrics])
        if silent := both["query"].n_unique() - made["query"].n_unique():
            queries = format_count(silent, "query", "queries")
            self._notes.append(f"{queries} of which the cheap judge judged nothing: estimates are over the others")
        return made.with_columns(pl.when(pl.col("use") == OK).then(pl.col("dear")).alias("dear"))

    def _score(self, frame: pl.DataFrame, names: list[str]) -> Scores:
        mine = Judgments.trusted(frame, self.cheap.notes)
        return score(self.contexts, Judgments.concat([self.others, mine]), names, **self.more)

    def _used(self, part: pl.DataFrame, metric: JudgedMetric) -> pl.DataFrame:
        """One metric's scores with ``use``, for the queries that could have been drawn."""
        read = pl.col("aspect").is_in(list(metric.aspects))
        drawn = self.sample.filter(read).select("query", drawn=True).unique()
        lacking = self._of(self.cheap.frame, metric).join(
            self.expensive, on=["query", "passage", "aspect"], how="anti", maintain_order="left"
        )
        lacking = lacking.select("system", "query", lacking=True).unique()
        part = part.join(self.queries.filter(read), on="query", how="semi", maintain_order="left")
        part = part.join(drawn, on="query", how="left", maintain_order="left")
        part = part.join(lacking, on=["system", "query"], how="left", maintain_order="left")
        use = (
            pl.when("lacking")
            .then(pl.lit(PARTLY_JUDGED))
            .when(pl.col("status") != OK)
            .then("status")
            .otherwise("dear_status")
        )
        return part.with_columns(use=pl.when("drawn").then(use)).drop("drawn", "lacking", "dear_status")

    def bought(self, metric: JudgedMetric) -> pl.DataFrame:
        """The expensive judgments of what each system shows: system, query, passage, aspect."""
        return self._of(self.expensive, metric)

    def _of(self, judgments: pl.DataFrame, metric: JudgedMetric) -> pl.DataFrame:
        """Those of judgments that a metric reads, for each system that shows the passage."""
        near = self.contexts.cut(metric.depth) if metric.depth is not None else self.contexts
        mine = judgments.filter(pl.col("aspect").is_in(list(metric.aspects)))
        pairs = near.frame.select("system", "query", "passage")
        return pairs.join(mine.select("query", "passage", "aspect"), on=["query", "passage"], maintain_order="left")

    @cached_property
    def notes(self) -> list[str]:
        """What did not match; all of it once there are scores."""
        made = list(self._notes)
        if self._unused:
            made.append(
                f"expensive judgments of {format_list(self._unused)} are not used: the cheap ones have none of that"
            )
        if self._strange:
            made.append(f"{format_count(self._strange, 'query', 'queries')} that only the expensive judge saw")
        return list(dict.fromkeys(made))
