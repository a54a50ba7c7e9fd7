"""How far judges agree: tables, sentences and figures of all aspects and cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ragworth.errors import InputError, counted, listed
from ragworth.report.study import Figure, Findings, Shown
from ragworth.report.study.charts import dots, heat
from ragworth.report.study.findings import left_out
from ragworth.studies.judge_panel import Panel
from ragworth.studies.judge_tables import word
from ragworth.studies.judges import Judges

DRAWN = 6
"""Pairs of judges whose confusions are drawn."""


@dataclass
class Panels:
    """All aspects of all cases."""

    study: Judges
    tables: Mapping[str, pl.DataFrame]

    def findings(self) -> Findings:
        every = [
            Panel(self.study, case, str(aspect), part)
            for case, frame in self.tables.items()
            for (aspect,), part in frame.group_by("aspect", maintain_order=True)
            if part.drop_nulls("value")["judge"].n_unique() > 1
        ]
        known = {judge for panel in every for judge in panel.judges}
        if self.study.reference is not None and self.study.reference not in known:
            raise InputError(f"there is no judge {self.study.reference!r}", expected=listed(sorted(known), 12))
        self._check_yes(every)
        pairs, together = (
            self._frame(p for x in every for p in x.pairs),
            self._frame(t for x in every for t in x.together),
        )
        against = self._frame(row for panel in every for row in panel.against())
        confusions = self._frame(row for panel in every for row in panel.confusions)
        shown = [
            Shown("judges", "Who judged what", self._frame(row for panel in every for row in panel.who())),
            Shown("together", "All judges together", together, "intervals are over queries"),
            Shown(
                "pairs",
                "Every two judges",
                pairs,
                "over the things that both gave a value; κ quadratic and ρ need an order",
            ),
        ]
        if against.height:
            shown.append(Shown("reference", f"Each judge against {self.study.reference}", against))
        if confusions.height:
            shown.append(
                Shown(
                    "confusions", "What one says where the other says what", confusions, "share: of what the first says"
                )
            )
        lead = " ".join(
            f"{panel.case}, {panel.aspect}: {counted(len(panel.judges), 'judge')} of "
            f"{counted(len(panel.values), 'thing')} of {counted(len(set(panel.queries.tolist())), 'query', 'queries')}."
            for panel in every
        )
        return Findings(
            "Judges: how far do they agree?",
            lead,
            tuple(panel.sentence() for panel in every),
            tuple(shown),
            tuple(self._figures(every, together)),
            left_out(
                (panel.case, f"{panel.aspect}: fewer than two judgments", lone, "things")
                for panel in every
                if (lone := panel.lone())
            ),
            tuple(self._notes(every)),
        )

    def _check_yes(self, every: list[Panel]) -> None:
        """Refuse a label for yes that nobody uses."""
        words = sorted({name for panel in every for name in panel.names.values()})
        if self.study.yes is not None and word(self.study.yes) not in words:
            raise InputError(
                f"yes is {self.study.yes!r}, and no judge says that",
                expected=listed(words, 12)
                if words
                else "numbers have no labels; --positive says from which on it is yes",
            )

    def _notes(self, every: list[Panel]) -> Iterator[str]:
        for panel in every:
            if self.study.reference in panel.judges and panel.positive is None:
                labels = listed(sorted(panel.names.values()), 6)
                yield (
                    f"{panel.head}there is no precision and recall, since nothing says which of {labels} means yes; "
                    "name it (--yes)"
                )

    @staticmethod
    def _frame(rows: Iterator[dict[str, Any]] | Any) -> pl.DataFrame:
        return pl.DataFrame(list(rows), infer_schema_length=None)

    def _figures(self, every: list[Panel], together: pl.DataFrame) -> Iterator[Figure]:
        known = together.filter(pl.col("value").is_not_null())
        if known.height:
            several = len(every) > 1
            group = [pl.concat_str(["case", "aspect"], separator=", ").alias("group")] if several else []
            frame = known.select(
                pl.col("measure").alias("label"), "value", "low", "high", pl.col("things").alias("n"), *group
            )
            yield Figure(
                "together",
                "How far all judges agree",
                f"{self.study.level:.0%} intervals over queries; 0 is chance.",
                dots(frame, "agreement", zero=True),
            )
        for number, panel in enumerate(every, 1):
            yield from self._matrix(number, panel, len(every) > 1)
            yield from self._confused(number, panel)

    def _matrix(self, number: int, panel: Panel, several: bool) -> Iterator[Figure]:
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
        yield Figure(
            f"pairs-{number}",
            f"How far every two judges agree{where}",
            f"{words} over the things that both judged.",
            heat(frame, panel.judges, panel.judges, words),
        )

    def _confused(self, number: int, panel: Panel) -> Iterator[Figure]:
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
            yield Figure(
                f"confusion-{number}-{at}",
                f"What {second} says where {first} says what",
                "Number of things in each cell; the colour is their share of the row.",
                heat(mine, labels, labels, "share of the row", "share", down=first, along=second),
            )
