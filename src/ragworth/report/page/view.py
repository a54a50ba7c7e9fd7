"""Everything that the report says, computed: what its sections and figures are made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from urllib.parse import quote

import polars as pl

from ragworth.core.errors import format_count
from ragworth.diagnosis import ContextFacts, Diagnosis
from ragworth.diagnosis.context_facts import graded_answers
from ragworth.diagnosis.rules import ContributionDiagnosis
from ragworth.report.page.answers import AnswerOverview
from ragworth.report.page.figures import FigureSet
from ragworth.report.page.overview import Overview
from ragworth.report.page.survey import Survey
from ragworth.results import Results

UNKNOWN = "not recorded"


class SystemEntry(NamedTuple):
    """A system, its pipeline or file as it is written, what it shows in words, and what was noticed of it."""

    name: str
    written: str
    shows: str
    notes: tuple[str, ...]


def describe_systems(results: Results, known: Survey, view: Overview) -> list[SystemEntry]:
    """The systems, best first."""
    written = results.manifest.get("systems")
    written = written if isinstance(written, Mapping) else {}
    noticed = system_notes(results)
    names = [each.system for each in view.standings]
    return [
        SystemEntry(name, str(written.get(name, UNKNOWN)), _shows(name, known), noticed.get(name, ())) for name in names
    ]


def system_notes(results: Results) -> dict[str, tuple[str, ...]]:
    """What was noticed while each system retrieved; only of those of which something was."""
    stages = results.manifest.get("stages")
    found: dict[str, tuple[str, ...]] = {}
    for stage in stages if isinstance(stages, list) else []:
        noted = stage.get("noted") if isinstance(stage, Mapping) else None
        for name, some in noted.items() if isinstance(noted, Mapping) else ():
            # The row, or the line, says already whose note it is.
            bare = (str(note).removeprefix(f"{name}: ") for note in (some if isinstance(some, list) else ()))
            found[str(name)] = tuple(bare)
    return {name: some for name, some in found.items() if some}


def _shows(name: str, known: Survey) -> str:
    """How many passages a system shows, and for how many queries it shows none."""
    sizes = known.sizes.get(name, Counter[int]())
    some = sorted(size for size in sizes if size)
    if not some:
        return "nothing"
    many = (
        format_count(some[-1], "passage")
        if some[0] == some[-1]
        else f"{some[0]:,} to {format_count(some[-1], 'passage')}"
    )
    bare, total = sizes.get(0, 0), sum(sizes.values())
    return f"{many} a query" + (f"; nothing for {bare:,} of {format_count(total, 'query', 'queries')}" if bare else "")


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
    def systems(self) -> list[SystemEntry]:
        """What each system is, in the order of the leaderboard."""
        return describe_systems(self.results, self.survey, self.overview)

    @cached_property
    def explored(self) -> list[str]:
        """The queries that the explorer holds."""
        return list(dict.fromkeys(query for _, query in self.facts.shown))

    @property
    def outcome_names(self) -> list[str]:
        """The aspects that answers were graded by."""
        return self.results.outcomes.distinct("aspect") if self.results.outcomes is not None else []

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
        if frame is None and support is None:
            return ContributionDiagnosis()
        from ragworth.diagnosis.contributions import diagnose_contributions
        from ragworth.judging.contribution.rows import contributing_from, passage_rows

        if frame is None:
            return diagnose_contributions(None, support, {})
        # The facts are of the explorer's queries alone.
        grades = graded_answers(self.results.outcomes, self.results.said.get("grade")).answers
        return diagnose_contributions(passage_rows(frame), support, grades, contributing_from(frame))


def explorer_address(**where: str) -> str:
    """An address inside the explorer."""
    return "#" + "&".join(f"{key}={quote(value, safe='')}" for key, value in where.items())
