"""What contexts of different sizes come to: tables, sentences and heatmaps of all cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ragworth.errors import format_count
from ragworth.report.study import Findings, StudyFigure, StudyTable
from ragworth.report.study.charts import heat_chart
from ragworth.report.study.findings import left_out_table
from ragworth.studies.contract import Case
from ragworth.studies.sentences import measure_words
from ragworth.studies.top_k import TopK
from ragworth.studies.top_k_cells import PARTS, SegmentedCase, kinds_of


@dataclass
class TopKSummary:
    """All cases together."""

    study: TopK
    cases: Sequence[Case]

    def findings(self) -> Findings:
        self.every = [SegmentedCase(self.study, case) for case in self.cases]
        table = pl.concat([one.table() for one in self.every])
        gaps = pl.concat([one.gaps() for one in self.every])
        outcomes = pl.concat([one.outcomes() for one in self.every])
        words = measure_words(self.study.measure)
        return Findings(
            "Top-k: which metric predicts the answers when few or many passages are shown?",
            " ".join(self._lead(one) for one in self.every),
            tuple(one.sentence(place) for one in self.every for place in PARTS),
            (
                StudyTable(
                    "correlations",
                    f"{words} with the outcome, in parts and in cells of K/N_p",
                    table,
                    "narrow: K < N_p; wide: K ≥ N_p; low and high are of the first correlation, over queries",
                ),
                StudyTable(
                    "differences",
                    f"{words} of one metric less that of another",
                    gaps,
                    "p by a paired bootstrap over queries",
                ),
                StudyTable("outcomes", "What became of the answers in each cell", outcomes),
            ),
            tuple(self._figures(table, gaps, outcomes)),
            left_out_table(row for one in self.every for row in one.left()),
            tuple(self._notes()),
        )

    def _lead(self, one: SegmentedCase) -> str:
        rows = one.rows
        return (
            f"{one.case.name}: {format_count(len(rows.queries), 'context')} of "
            f"{format_count(len(set(rows.queries)), 'query', 'queries')} and "
            f"{format_count(len(one.retrievers), 'system')} with "
            f"the outcome {rows.aspect!r}, {int((~one.wide).sum()):,} narrow and "
            f"{int(one.wide.sum()):,} wide; {format_count(len(one.cells), 'cell')} of {self.study.least:,} contexts "
            "or more."
        )

    def _notes(self) -> Iterator[str]:
        for one in self.every:
            if one.small:
                contexts = sum(int(part.keep.sum()) for part in one.small)
                yield (
                    f"{one.case.name}: {format_count(len(one.small), 'cell')} with "
                    f"{format_count(contexts, 'context')} left out, "
                    f"each of fewer than {self.study.least:,}"
                )

    def _figures(self, table: pl.DataFrame, gaps: pl.DataFrame, outcomes: pl.DataFrame) -> Iterator[StudyFigure]:
        words = measure_words(self.study.measure)
        parts = table.filter(pl.col("K/N_p").is_in(["narrow", "wide"]))
        which = ["case"] if len(self.every) > 1 else []
        named = parts.with_columns(pl.concat_str([*which, "system", "K/N_p"], separator=", ").alias("first"))
        yield StudyFigure(
            "parts",
            "Metrics where few and where many passages are shown",
            f"{words} with the outcome; narrow is K < N_p.",
            heat_chart(
                named.select(
                    "first",
                    pl.col("metric").alias("second"),
                    pl.col("correlation").alias("value"),
                    pl.col("contexts").alias("n"),
                ),
                named["first"].unique(maintain_order=True).to_list(),
                named["metric"].unique(maintain_order=True).to_list(),
                words,
            ),
        )
        for number, one in enumerate(self.every, 1):
            if one.cells:
                yield from self._cells(number, one, table, gaps, outcomes)

    def _cells(
        self, number: int, one: SegmentedCase, table: pl.DataFrame, gaps: pl.DataFrame, outcomes: pl.DataFrame
    ) -> Iterator[StudyFigure]:
        """The heatmaps of one case: cells of K/N_p along, systems down."""
        words, name = measure_words(self.study.measure), one.case.name
        where = "" if len(self.every) == 1 else f": {name}"
        along = sorted({part.place for part in one.cells}, key=float)
        systems = list(dict.fromkeys(part.retriever for part in one.cells))
        in_cells = (pl.col("case") == name) & pl.col("K/N_p").is_in(along)
        shares = outcomes.filter(in_cells).with_columns((pl.col("system") + ": " + pl.col("outcome")).alias("row"))
        kinds = kinds_of(one.rows.outcome)[1][::-1]
        yield StudyFigure(
            f"outcomes-{number}",
            f"What became of the answers{where}",
            "Share of the contexts of a system and cell; those of one system and one K/N_p add up to 1.",
            self._heat(
                shares, "row", "share", [f"{s}: {kind}" for s in systems for kind in kinds], along, "share", "share"
            ),
        )
        if (best := one.best("all")) is not None:
            metric = one.rows.metrics[best[0]]
            mine = table.filter(in_cells & (pl.col("metric") == metric))
            yield StudyFigure(
                f"correlation-{number}",
                f"How well {metric} predicts the answers{where}",
                f"{words} with the outcome in each cell.",
                self._heat(mine, "system", "correlation", systems, along, words),
            )
        for at, (a, b) in enumerate(one.pairs, 1):
            first, second = one.rows.metrics[a], one.rows.metrics[b]
            mine = gaps.filter(in_cells & (pl.col("first") == first) & (pl.col("second") == second))
            yield StudyFigure(
                f"difference-{number}-{at}",
                f"{first} less {second}{where}",
                f"Difference of their {words} with the outcome: above 0, {first} predicts better.",
                self._heat(mine, "system", "difference", systems, along, "difference"),
            )

    @staticmethod
    def _heat(
        frame: pl.DataFrame,
        down: str,
        value: str,
        rows: list[str],
        along: list[str],
        legend: str,
        kind: str = "diverging",
    ) -> dict[str, Any]:
        chosen = frame.select(
            pl.col(down).alias("first"),
            pl.col("K/N_p").alias("second"),
            pl.col(value).alias("value"),
            pl.col("contexts").alias("n"),
        )
        return heat_chart(chosen, rows, along, legend, kind, along="K/N_p")  # type: ignore[arg-type]
