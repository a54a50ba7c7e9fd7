"""Do automatic grades agree with people's, and would they put the systems in another order?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import polars as pl

from ragworth.core.errors import InputError, format_list
from ragworth.data import OK, Outcomes
from ragworth.data.coercion import Data
from ragworth.stats.agreement import Kappa, cohen_kappa

HUMAN_SOURCE = "human"
"""The aspect of grades by people, where a table says no more of them."""

KEYS = ["system", "query"]
MAX_LABELS = 10
"""Distinct values above which they are no labels, so that κ says nothing."""

NOT_LABELS = f"there are more than {MAX_LABELS} different values, so they are no labels"
BINARY_SCALES = ({0.0, 1.0}, {1.0, -1.0})
"""Values of people who only said correct or not, as numbers or in words."""

OTHER_SCALE = "people's grades are on another scale"
GRADE_VALUES = {1.0, 0.5, 0.0, -1.0}
"""Values of three-way grades."""

RESAMPLES = 1000


class SystemMeans(NamedTuple):
    """A system's mean by people and by the automatic grades of the same queries, each over those that have a value."""

    system: str
    automatic: float | None
    human: float
    n_automatic: int
    n_human: int


class RankingFlip(NamedTuple):
    """Two systems that people and the automatic grades put in opposite order; people prefer ``better``."""

    better: str
    worse: str
    human_difference: float
    automatic_difference: float


@dataclass(frozen=True)
class GradeAgreement:
    """Agreement of the automatic grades of an aspect with people's.

    ``n`` answers have both; ``undecided`` have only people's. ``accuracy`` and ``kappa`` (with its interval over
    queries) are of those ``n``. ``binary`` says that people only said correct or not, so that automatic grades above 0
    counted as correct. ``systems`` is in people's order.
    """

    aspect: str
    human_aspect: str
    n: int
    undecided: int
    accuracy: float | None
    kappa: Kappa
    binary: bool
    systems: tuple[SystemMeans, ...]
    flips: tuple[RankingFlip, ...]


def grade_agreement(outcomes_automatic: Outcomes | Data, outcomes_human: Outcomes | Data) -> list[GradeAgreement]:
    """Compare automatic outcomes with people's, aspect by aspect.

    Aspects of the same name belong together. People's aspect ``human``, or their only one, belongs to ``grade``, or to
    the only automatic aspect. Only answers that people graded are compared. Rankings are by each side's own means over
    these, so an automatic grader that leaves the hard answers undecided doesn't hide it.
    """
    automatic, human = (_with_values(each) for each in (outcomes_automatic, outcomes_human))
    if not human.height or not automatic.height:
        return []
    return [
        _agreement(automatic.filter(pl.col("aspect") == aspect), human.filter(pl.col("aspect") == other), aspect, other)
        for aspect, other in _paired_aspects(automatic, human)
    ]


def _with_values(outcomes: Outcomes | Data) -> pl.DataFrame:
    table = outcomes if isinstance(outcomes, Outcomes) else Outcomes(outcomes)
    return table.frame.filter(pl.col("status") == OK).select(*KEYS, "aspect", "value")


def _paired_aspects(automatic: pl.DataFrame, human: pl.DataFrame) -> list[tuple[str, str]]:
    ours, theirs = (frame["aspect"].unique(maintain_order=True).to_list() for frame in (automatic, human))
    same = [(aspect, aspect) for aspect in ours if aspect in theirs]
    if same:
        return same
    other = HUMAN_SOURCE if HUMAN_SOURCE in theirs else theirs[0] if len(theirs) == 1 else None
    own = "grade" if "grade" in ours else ours[0] if len(ours) == 1 else None
    if other is None or own is None:
        raise InputError(
            f"the automatic outcomes are of {format_list(ours, 12)}, people's of {format_list(theirs, 12)}",
            expected=f"a common aspect, or people's called {HUMAN_SOURCE!r}",
            remedy="rename the aspects so that those to be compared have the same name",
        )
    return [(own, other)]


def _agreement(automatic: pl.DataFrame, human: pl.DataFrame, aspect: str, other: str) -> GradeAgreement:
    values = set(human["value"].to_list())
    binary = any(values <= scale and not set(automatic["value"].to_list()) <= scale for scale in BINARY_SCALES)
    if binary:
        human, automatic = (
            frame.with_columns(value=(pl.col("value") > 0).cast(pl.Float64)) for frame in (human, automatic)
        )
    both = human.select(*KEYS, pl.col("value").alias("human")).join(
        automatic.select(*KEYS, "value"), on=KEYS, how="left", maintain_order="left"
    )
    known = both.drop_nulls("value")
    a, b = known["value"].to_numpy(), known["human"].to_numpy()
    reason = NOT_LABELS if len({*a.tolist(), *b.tolist()}) > MAX_LABELS else ""
    if set(automatic["value"].to_list()) <= GRADE_VALUES and not values <= GRADE_VALUES:
        reason = OTHER_SCALE
    if reason:
        kappa = Kappa(None, reason, None, known.height, both.height - known.height)
    else:
        kappa = cohen_kappa(a, b, groups=known["query"].to_numpy(), resamples=RESAMPLES)
    systems = _system_means(both)
    return GradeAgreement(
        aspect,
        other,
        known.height,
        both.height - known.height,
        kappa.observed,
        kappa,
        binary,
        systems,
        tuple(_flips(systems)),
    )


def _system_means(both: pl.DataFrame) -> tuple[SystemMeans, ...]:
    means = both.group_by("system", maintain_order=True).agg(
        pl.col("value").mean().alias("automatic"),
        pl.col("human").mean(),
        pl.col("value").count().alias("n_automatic"),
        pl.col("human").count().alias("n_human"),
    )
    return tuple(SystemMeans(*row) for row in means.sort("human", "system", descending=[True, False]).iter_rows())


def _flips(systems: tuple[SystemMeans, ...]) -> list[RankingFlip]:
    found = []
    for better, worse in combinations(systems, 2):
        if better.automatic is None or worse.automatic is None or better.human <= worse.human:
            continue
        if better.automatic < worse.automatic:
            found.append(
                RankingFlip(better.system, worse.system, better.human - worse.human, better.automatic - worse.automatic)
            )
    return found
