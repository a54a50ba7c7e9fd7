"""What a figure is, and what figures are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from ragworth.report.page.charts import Spec
from ragworth.report.page.overview import Overview
from ragworth.report.page.survey import Survey
from ragworth.results import Results

KIND_COLORS = {"helpful": "good", "harmless": "none", "distracting": "poor", "misleading": "bad"}
GRADE_COLORS = {"correct": "good", "partially-correct": "fair", "abstained": "none", "wrong": "bad"}
NO_UTILITY = "utility needs judgments of relevance and of abstention"


class ChartPanel(NamedTuple):
    """One chart of a figure."""

    name: str
    title: str
    spec: Spec


@dataclass(frozen=True)
class ReportFigure:
    """One or more charts under one caption, with the numbers that they show."""

    name: str
    title: str
    caption: str
    panels: Sequence[ChartPanel]
    data: pl.DataFrame


@dataclass(frozen=True)
class FigureSources:
    """What pictures are made from."""

    results: Results
    survey: Survey
    overview: Overview
    seed: int

    @property
    def systems(self) -> list[str]:
        """Best first."""
        return [each.system for each in self.overview.standings]
