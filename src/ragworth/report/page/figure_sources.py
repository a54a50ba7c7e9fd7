"""What figures are made from."""

from __future__ import annotations

from dataclasses import dataclass

from ragworth.metrics.reader_judgments import READER_REASON
from ragworth.report.page.overview import Overview
from ragworth.report.page.survey import Survey
from ragworth.results import Results

KIND_COLORS = {"helpful": "good", "harmless": "none", "distracting": "poor", "misleading": "bad"}
NO_UTILITY = "utility needs judgments of relevance and of abstention"


@dataclass(frozen=True)
class FigureSources:
    """What figures are made from."""

    results: Results
    survey: Survey
    overview: Overview
    seed: int

    @property
    def no_utility(self) -> str:
        """Why no passage has a utility."""
        return f"it {READER_REASON}" if self.survey.reader_judged else NO_UTILITY

    @property
    def systems(self) -> list[str]:
        """Best first."""
        return [each.system for each in self.overview.standings]
