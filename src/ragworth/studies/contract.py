"""What a study is: the whole contract, on one screen.

A study is a frozen dataclass in a file of its own and one line in `STUDIES`. Its fields made with `setting` are its
settings, in Python and as options of the command line. `run` makes contexts for one workspace and has them judged,
answered and graded by a `Bench`; `take` starts from tables that are there, so that no model is needed; `find` says
what all cases together come to. What every study does alike (reading, checking, writing, the page) is done around it
(`running`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from ragworth.errors import InputError
from ragworth.results import Results
from ragworth.tasks.options import option, validate_options

if TYPE_CHECKING:
    from ragworth.config import Workspace
    from ragworth.report.study import Findings
    from ragworth.studies.bench import Bench

MEASURES = ("spearman", "kendall", "kendall-c", "pearson")
"""Correlations that studies may take; ``kendall`` is τ-b, ``kendall-c`` τ-c."""

DESIGN = {"system": pl.String}


@dataclass(frozen=True)
class Case:
    """The tables of one collection, or of one model's work on it.

    Attributes
    ----------
    name: what the case is called in tables and figures.
    results: contexts, judgments, outcomes, scores; a context is one (system, query), so that ten contexts of a query
        are ten systems.
    design: what each system is: ``system``, and the columns that a study gives it (position, size, kind, …). Empty
        where the systems are those of somebody's runs.
    left_out: queries that were left out before anything was asked, by reason.
    """

    name: str
    results: Results
    design: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=DESIGN))
    left_out: Mapping[str, int] = field(default_factory=dict)

    def designed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Rows of systems, with what their systems are."""
        return frame.join(self.design, on="system", how="inner", maintain_order="left")


@dataclass(frozen=True)
class Study:
    """One study with its settings."""

    resamples: int = option(2000, "resamples of the bootstrap", low=100)
    level: float = option(0.95, "confidence level of intervals", low=0.5, high=0.999)
    seed: int = option(0, "seed of resampling; contexts are drawn by the seed of the workspace", low=0)

    kind: ClassVar[str]
    title: ClassVar[str]
    """What it asks, in one line."""
    paper: ClassVar[str] = ""
    """Where its procedure comes from."""
    judges: ClassVar[tuple[str, ...]] = ()
    """Kinds of judgment that it needs besides those of the workspace."""
    answers: ClassVar[bool] = True
    """Whether it has answers written and graded."""
    labels: ClassVar[bool] = True
    """Whether it needs relevance labels."""

    def __post_init__(self) -> None:
        validate_options(self, self.kind)
        self.check()

    def check(self) -> None:
        """Refuse settings that do not go together."""

    def fit(self, space: Workspace) -> Workspace:
        """The workspace with settings of judgments, answers and grades that this study cannot do without."""
        return space

    def run(self, bench: Bench) -> Case:
        """Make contexts of one workspace, and have them judged, answered and graded."""
        raise InputError(
            f"{self.kind} makes no contexts of its own",
            remedy=f"name a folder of results: ragworth study {self.kind} DIR",
        )

    def reads(self, place: Path) -> Case | None:
        """A case out of a file that is neither a workspace nor results; None where the study takes no such file."""
        return None

    def take(self, case: Case) -> Case:
        """A case out of results that are there: an evaluation's, or those that this study wrote before.

        Refuses what the study cannot be made of. `case.design` is empty where the results are an evaluation's.
        """
        if case.design.width < 2:
            raise InputError(
                f"{case.name}: these are results of an evaluation, and {self.kind} needs contexts made on purpose",
                remedy=f"name the workspace, or results that ragworth study {self.kind} wrote before",
            )
        return case

    def find(self, cases: Sequence[Case]) -> Findings:
        """What the cases come to."""
        raise NotImplementedError

    @property
    def settings(self) -> dict[str, Any]:
        """All settings, by name."""
        from ragworth.tasks.options import options_of

        return {each.name: getattr(self, each.name) for each in options_of(type(self))}
