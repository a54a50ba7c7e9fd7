"""Everything that the report says, computed: what its sections and figures are made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

import polars as pl

from ragworth.contribution.rows import contributing_from, passage_rows
from ragworth.diagnosis import ContextFacts, Diagnosis
from ragworth.diagnosis.context_facts import graded_answers
from ragworth.diagnosis.contributions import ContributionDiagnosis, diagnose_contributions
from ragworth.report.page.answers import AnswerOverview
from ragworth.report.page.budget import TwoJudgesSummary, summarise_two_judges
from ragworth.report.page.figures import FigureSet
from ragworth.report.page.overview import Overview
from ragworth.report.page.survey import Survey
from ragworth.report.page.systems import SystemEntry, describe_systems
from ragworth.results import Results

GRADED_CONTRIBUTION = "graded-contribution"
"""The step that says what passages did for the answers that were given."""


@dataclass(frozen=True)
class ReportView:
    """What sections are made from.

    ``facts`` and the rows of ``diagnosis`` are those of the queries that the explorer holds; its counts are of the
    queries that were examined.
    """

    results: Results
    title: str
    facts: ContextFacts
    survey: Survey
    overview: Overview
    answers: AnswerOverview | None
    diagnosis: Diagnosis
    draw: Callable[[], FigureSet]

    @property
    def judges_passages(self) -> bool:
        """Return whether it reports on the passages' worth: a metric was computed for some, or nothing else is known.

        Without metrics, outcomes take their place, and the answers' section has said everything about these.
        """
        return self.answers is None or bool(self.survey.passages and self.overview.main not in self.answers.outcomes)

    @cached_property
    def figure_set(self) -> FigureSet:
        """Its figures, drawn on first use: that takes longer than everything else."""
        return self.draw()

    @cached_property
    def budget(self) -> TwoJudgesSummary | None:
        """What a better judge of a sample says; None where there was none."""
        return summarise_two_judges(self.results, self.overview)

    @cached_property
    def systems(self) -> list[SystemEntry]:
        """What each system is, in the order of the leaderboard."""
        return describe_systems(self.results, self.survey, self.overview)

    @cached_property
    def explored(self) -> list[str]:
        """The queries that the explorer holds."""
        return list(dict.fromkeys(query for _, query in self.facts.shown))

    @property
    def contributions(self) -> pl.DataFrame | None:
        """What passages did for the answers that were given; else for the model's own or accepted ones."""
        given = self.results.said_of_answers(GRADED_CONTRIBUTION)
        return given if given is not None else self.results.said.get("contribution")

    @property
    def support(self) -> pl.DataFrame | None:
        """What the context says of the sentences of each answer."""
        return self.results.said_of_answers("support")

    @cached_property
    def contribution_diagnosis(self) -> ContributionDiagnosis:
        """What contributions and support say of single answers."""
        # Contributions to other answers than those that were graded say nothing about them.
        frame, support = self.results.said_of_answers(GRADED_CONTRIBUTION), self.support
        if frame is None:
            return diagnose_contributions(None, support, {})
        # The facts are of the explorer's queries alone.
        grades = graded_answers(self.results.outcomes, self.results.said.get("grade")).answers
        return diagnose_contributions(passage_rows(frame), support, grades, contributing_from(frame))


def explorer_address(**where: str) -> str:
    """An address inside the explorer."""
    return "#" + "&".join(f"{key}={quote(value, safe='')}" for key, value in where.items())
