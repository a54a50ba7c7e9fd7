"""The interface of studies.

A study is a frozen dataclass in a file of its own and one line in `STUDIES`. Its fields made with `option` are its
settings, in Python and on the command line. `run` makes contexts from one workspace and has them judged, answered and
graded by a `Bench`; `take` starts from existing tables, so no model is needed; `examine` writes what one case shows to
the page, mostly with `contrast` (arms side by side) and `prediction` (metrics against outcomes). Reading, checking,
writing and the page are the same for every study (`run.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from ragworth.core.errors import InputError, quote_short
from ragworth.data.conversations import cluster_labels, cluster_notes
from ragworth.judging.contract import option, options_of, validate_options
from ragworth.metrics.utility import abstention_notes
from ragworth.report.study.page import StudyPage, TableText
from ragworth.results import Results
from ragworth.score_rows import PARTIAL_GRADE
from ragworth.stats.estimate import Resampling

if TYPE_CHECKING:
    from ragworth.report.study import Findings
    from ragworth.studies.bench import Bench
    from ragworth.workspace.config import Workspace

MEASURES = ("spearman", "kendall", "kendall-c", "pearson")
"""Correlations that studies may take; ``kendall`` is τ-b, ``kendall-c`` τ-c."""

COMMON_DIFFERENCES = (
    "the model, the retriever and the graders are the workspace's",
    "prompts are in our words",
    "a passage without a label counts as irrelevant",
)
"""What differs from every paper."""

PARTIAL_DIFFERENCE = (
    f"correct answers from a context without a relevant passage count in full; the column {PARTIAL_GRADE}, in which "
    "they count half, contains the labels that metrics of relevance read, so no sentence rests on it"
)
"""The difference from a paper that grades like that."""

_RANGE = re.compile(r"(\d{1,6})(?:\s*-\s*(\d{1,6}))?", re.ASCII)

OURS = "ours"
"""The protocol of a study if none is named."""


@dataclass(frozen=True)
class Case:
    """The tables of one collection, or of one model's work on it.

    Attributes
    ----------
    name: what the case is called in tables and figures.
    results: contexts, judgments, outcomes, scores. A context is one (system, query), so ten contexts of a query are ten
        systems.
    design: what each system is: ``system``, and the columns that a study gives it (position, size, kind, …). Empty if
        the systems are those of an evaluation.
    left_out: queries that were left out before anything was asked, by reason.
    """

    name: str
    results: Results
    design: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema={"system": pl.String}))
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_designed(self) -> bool:
        """Whether a study made the contexts."""
        return self.design.width > 1

    def with_tables(self, **tables: Any) -> Case:
        """The case with other tables in its results."""
        return replace(self, results=replace(self.results, **tables))

    def clusters(self, queries: Iterable[str]) -> list[int] | None:
        """The number of each query's conversation; None if these queries are independent."""
        return cluster_labels(queries, self.results.conversations)


@dataclass(frozen=True)
class Published:
    """The published design of a study.

    Attributes
    ----------
    paper: which one, with tables and figures.
    settings: of the study.
    metrics: without their cutoff; none: those of the study.
    queries: how many the paper studies for each collection; None: all.
    tasks: settings of the tasks (``answers``, or the name of an annotator or grader). In every published design, p of
        abstention is the model's own, never a calibrated one.
    differences: what is still different here.
    partial: whether it counts a correct answer from a context without a relevant passage as half.
    """

    paper: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    queries: int | None = None
    tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    differences: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True)
class Study:
    """One study with its settings."""

    resamples: int = option(2000, "resamples of the bootstrap", low=100)
    level: float = option(0.95, "confidence level of intervals", low=0.5, high=0.999)
    seed: int = option(0, "seed of resampling; contexts are drawn with the seed of the workspace", low=0)
    protocol: str = field(default=OURS, kw_only=True)

    kind: ClassVar[str]
    title: ClassVar[str]
    """Its question, in one line."""
    question: ClassVar[str]
    """The title of its page."""
    published: ClassVar[Mapping[str, Published]] = {}
    """Published designs by the name of their protocol; the first is that of ``--protocol paper``."""
    why_ours: ClassVar[str] = ""
    """Why the default differs from the published design."""
    design_column: ClassVar[str] = ""
    """A column of the designs that it makes, by which it knows its own results."""
    judges: ClassVar[tuple[str, ...]] = ()
    """Kinds of judgment that it needs besides those of the workspace."""
    answers: ClassVar[bool] = True
    """Whether it needs answers and grades."""
    labels: ClassVar[bool] = True
    """Whether it needs relevance labels."""
    needs_relevant: ClassVar[bool] = True
    """Whether it can only use queries with a relevant passage."""

    def __post_init__(self) -> None:
        validate_options(self, self.kind)
        self.check()

    def judges_of(self, metrics: Sequence[str]) -> tuple[str, ...]:
        """Kinds of judgment that it needs besides those of the workspace, if the user names these metrics."""
        return self.judges

    def check(self) -> None:
        """Refuse settings that don't go together."""

    def fit(self, space: Workspace) -> Workspace:
        """The workspace with the settings of judgments, answers and grades that this study needs."""
        return space

    def run(self, bench: Bench) -> Case:
        """Make contexts from one workspace, and have them judged, answered and graded."""
        remedy = f"name a folder of results: ragworth study {self.kind} DIR"
        raise InputError(f"{self.kind} makes no contexts of its own", remedy=remedy)

    def reads(self, place: Path) -> Case | None:
        """A case from a file that is neither a workspace nor results; None if the study takes no such file."""
        return None

    def take(self, case: Case) -> Case:
        """A case from existing results: those of an evaluation, or those that this study wrote before.

        Refuses results that the study can't use: by default all but its own. `case.design` is empty if they are those
        of an evaluation.
        """
        if self.design_column in case.design.columns and case.design.height:
            return case
        studied = case.is_designed or bool(case.results.manifest.get("study"))
        other = "another study made these contexts" if studied else "these are results of an evaluation"
        remedy = f"name the workspace, or results that ragworth study {self.kind} wrote before (its folder cases/01)"
        raise InputError(f"{case.name}: {other}, and {self.kind} needs contexts of its own", remedy=remedy)

    def tables(self) -> Mapping[str, TableText]:
        """The tables of its page, in order."""
        raise NotImplementedError

    def examine(self, case: Case, page: StudyPage) -> None:
        """Write what one case shows to the page."""
        raise NotImplementedError

    def finish(self, page: StudyPage) -> None:
        """Write what all cases together show: mostly figures."""

    def find(self, cases: Sequence[Case]) -> Findings:
        """The findings of all cases."""
        page = StudyPage(self.question, self.tables(), cases)
        for case in cases:
            page.leave_out(case, case.left_out)
            page.note(case, *cluster_notes(case.results.conversations), *abstention_notes(case.results.judgments))
            self.examine(case, page)
        self.finish(page)
        return page.findings()

    @property
    def needs_answers(self) -> bool:
        """Whether it can only use queries with accepted answers."""
        return self.answers

    @property
    def plan(self) -> Resampling:
        return Resampling(self.level, self.resamples, self.seed)

    @property
    def design(self) -> Published | None:
        """The published design that it follows; None if it follows ours."""
        return self.published.get(self.protocol)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings, by name."""
        return {each.name: getattr(self, each.name) for each in options_of(type(self))} | {"protocol": self.protocol}

    def protocol_notes(self) -> list[str]:
        """Which design this is, what differs from the paper's, and why."""
        if self.design is not None:
            partial = (PARTIAL_DIFFERENCE,) if self.design.partial else ()
            left = "; ".join((*self.design.differences, *partial, *COMMON_DIFFERENCES))
            return [f"Protocol {self.protocol}: the design of {self.design.paper}. Still different: {left}."]
        first = next(iter(self.published), "")
        return [f"Protocol ours. {self.why_ours} --protocol {first} runs the published design."] if first else []


@dataclass(frozen=True)
class PoolStudy(Study):
    """A study that makes its contexts from what a retriever found."""

    depth: int = option(
        25, "number of passages from the top of the ranking that contexts are made of", low=1, high=10_000
    )
    retriever: str | None = option(None, "system whose passages are used; by default the first that isn't a control")
    outcome: str | None = option(None, "outcome to go by; by default the grade")


def parse_numbers(text: str, what: str, high: int = 1000) -> list[int]:
    """The numbers of a list such as ``1-5,10,15``, each once, in ascending order; ``what`` they are, for errors."""
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= high:
            raise InputError(
                f"{what}: {quote_short(part.strip())} names no numbers",
                expected=f"numbers from 1 to {high:,} and ranges of them, such as 1-5,10,15",
            )
        found.update(range(first, last + 1))
    return sorted(found)


def parse_names(text: str | None) -> list[str]:
    """The names of a list with commas between them."""
    return [each.strip() for each in (text or "").split(",") if each.strip()]
