"""How far judges agree: tables, sentences and figures of all aspects and cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ragworth.errors import InputError, format_count, format_list
from ragworth.report.study import Findings, StudyFigure, StudyTable
from ragworth.report.study.charts import dot_chart, heat_chart
from ragworth.report.study.findings import left_out_table
from ragworth.studies.judge_panel import JudgePanel
from ragworth.studies.judge_tables import word
from ragworth.studies.judges import Judges

DRAWN = 6
"""Pairs of judges whose confusions are drawn."""


@dataclass
class JudgePanels:
    """All aspects of all cases."""

    study: Judges
    tables: Mapping[str, pl.DataFrame]

    def findings(self) -> Findings:
        every = [
            JudgePanel(self.study, case, str(aspect), part)
            for case, frame in self.tables.items()
            for (aspect,), part in frame.group_by("aspect", maintain_order=True)
            if part.drop_nulls("value")["judge"].n_unique() > 1
        ]
        known = {judge for panel in every for judge in panel.judges}
        if self.study.reference is not None and self.study.reference not in known:
            raise InputError(f"there is no judge {self.study.reference!r}", expected=format_list(sorted(known), 12))
        self._check_yes(every)
        pairs, together = (
            self._frame(p for x in every for p in x.pairs),
            self._frame(t for x in every for t in x.together),
        )
        against = self._frame(row for panel in every for row in panel.against())
        confusions = self._frame(row for panel in every for row in panel.confusions)
        shown = [
            StudyTable("judges", "Who judged what", self._frame(row for panel in every for row in panel.who())),
            StudyTable("together", "All judges together", together, "intervals are over queries"),
            StudyTable(
                "pairs",
                "Every two judges",
                pairs,
                "over the things that both gave a value; κ quadratic and ρ need an order",
            ),
        ]
        if against.height:
            shown.append(StudyTable("reference", f"Each judge against {self.study.reference}", against))
        if confusions.height:
            shown.append(
                StudyTable(
                    "confusions", "What one says where the other says what", confusions, "share: of what the first says"
                )
            )
        lead = " ".join(
            f"{panel.case}, {panel.aspect}: {format_count(len(panel.judges), 'judge')} of "
            f"{format_count(len(panel.values), 'thing')} of "
            f"{format_count(len(set(panel.queries.tolist())), 'query', 'queries')}."
            for panel in every
        )
        return Findings(
            "Judges: how far do they agree?",
            lead,
            tuple(panel.sentence() for panel in every),
            tuple(shown),
            tuple(self._figures(every, together)),
            left_out_table(
                (panel.case, f"{panel.aspect}: fewer than two judgments", lone, "things")
                for panel in every
                if (lone := panel.lone())
            ),
            tuple(self._notes(every)),
        )

    def _check_yes(self, every: list[JudgePanel]) -> None:
        """Refuse a label for yes that nobody uses."""
        words = sorted({name for panel in every for name in panel.names.values()})
        if self.study.yes is not None and word(self.study.yes) not in words:
            raise InputError(
                f"yes is {self.study.yes!r}, and no judge says that",
                expected=format_list(words, 12)
                if words
                else "numbers have no labels; --positive says from which on it is yes",
            )

    def _notes(self, every: list[JudgePanel]) -> Iterator[str]:
        for panel in every:
            if self.study.reference in panel.judges and panel.positive is None:
                labels = format_list(sorted(panel.names.values()), 6)
                yield (
                    f"{panel.head}there is no precision and recall, since nothing says which of {labels} means yes; "
                    "name it (--yes)"
                )

    @staticmethod
    def _frame(rows: Iterator[dict[str, Any]] | Any) -> pl.DataFrame:
        return pl.DataFrame(list(rows), infer_schema_length=None)

    def _figures(self, every: list[JudgePanel], together: pl.DataFrame) -> Iterator[StudyFigure]:
        known = together.filter(pl.col("value").is_not_null())
        if known.height:
            several = len(every) > 1
            group = [pl.concat_str(["case", "aspect"], separator=", ").alias("group")] if several else []
            frame = known.select(
                pl.col("measure").alias("label"), "value", "low", "high", pl.col("things").alias("n"), *group
            )
            yield StudyFigure(
                "together",
                "How far all judges agree",
                f"{self.study.level:.0%} intervals over queries; 0 is chance.",
                dot_chart(frame, "agreement", zero=True),
            )
        for number, panel in enumerate(every, 1):
            yield from self._matrix(number, panel, len(every) > 1)
            yield from self._confused(number, panel)

    def _matrix(self, number: int, panel: JudgePanel, several: bool) -> Iterator[StudyFigure]:
        name = "κ" if panel.few else "Spearman ρ"
        rows = [(one["first"], one["second"], one[name], one["things"]) for one in panel.pairs if one[name] is not None]
        if len(panel.judges) < 3 or not rows:
            return
        frame = pl.DataFrame(
            [*rows, *((b, a, value, n) for a, b, value, n in rows)],
            schema=["first", "second", "value", "n"],
            orient="row",
        )
        where = f": {panel.case}, {panel.aspect}" if several else ""
        words = "Cohen κ" if panel.few else name
        yield StudyFigure(
            f"pairs-{number}",
            f"How far every two judges agree{where}",
            f"{words} over the things that both judged.",
            heat_chart(frame, panel.judges, panel.judges, words),
        )

    def _confused(self, number: int, panel: JudgePanel) -> Iterator[StudyFigure]:
        frame = self._frame(panel.confusions)
        if not frame.height or len(panel.shown()) > DRAWN:
            return
        values = sorted({float(v) for v in np.unique(panel.values[~np.isnan(panel.values)])})
        labels = [panel.word(value) for value in values]
        for at, (a, b) in enumerate(panel.shown(), 1):
            first, second = panel.judges[a], panel.judges[b]
            mine = frame.filter((pl.col("first") == first) & (pl.col("second") == second)).select(
                pl.col("first says").alias("first"),
                pl.col("second says").alias("second"),
                pl.col("share").alias("value"),
                pl.col("things").cast(pl.String).alias("label"),
                pl.col("things").alias("n"),
            )
            yield StudyFigure(
                f"confusion-{number}-{at}",
                f"What {second} says where {first} says what",
                "Number of things in each cell; the colour is their share of the row.",
                heat_chart(mine, labels, labels, "share of the row", "share", down=first, along=second),
            )
