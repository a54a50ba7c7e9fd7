"""Arms of an experiment side by side: contexts of the same queries that differ in one thing, and what became of them.

An arm is a system of a case. Only queries that have an outcome in every arm are counted, so that arms never differ
because their queries do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.errors import InputError
from ragworth.report.study.charts import bar_chart, outcome_chart
from ragworth.stats.bootstrap import mean_intervals
from ragworth.stats.paired import PairedComparison, compare_paired, holm
from ragworth.stats.power import detectable_difference
from ragworth.stats.range_intervals import Bounds
from ragworth.stats.resampling import ConfidenceInterval
from ragworth.studies.contract import Case, Study
from ragworth.studies.score_rows import GRADE, aspect_of
from ragworth.studies.sentences import signed
from ragworth.tables import OK

Floats = npt.NDArray[np.float64]

KINDS = {"correct": 1.0, "partial": 0.5, "abstained": 0.0, "wrong": -1.0}
"""What can become of an answer, best first, with its grade."""

SHARE: Bounds = (0.0, 1.0)
"""Bounds of accuracy, and of other shares."""

NO_OUTCOME = "no outcome in every context"
ROUNDING = 1e-12


def is_grade(aspect: str, values: Floats) -> bool:
    """Whether an outcome is a grade, of which shares can be given: by its name, and by all of its values."""
    named = aspect == GRADE or aspect.endswith(f"-{GRADE}")
    return named and bool(np.isin(values, list(KINDS.values())).all())


class Arms(NamedTuple):
    """What became of each arm's contexts.

    Attributes
    ----------
    names: systems.
    queries: those that have an outcome in every arm.
    values: outcomes, queries × arms.
    aspect: which outcome it is.
    missing: queries of the arms that lack an outcome somewhere; they are left out.
    """

    names: list[str]
    queries: list[str]
    values: Floats
    aspect: str
    missing: int

    @property
    def graded(self) -> bool:
        """Whether the outcome is a grade, of which shares can be given."""
        return is_grade(self.aspect, self.values)

    @property
    def worth(self) -> Floats:
        """What is averaged: of grades whether the answer is correct, of other outcomes their value."""
        return self.of("correct") if self.graded else self.values

    @property
    def bounds(self) -> Bounds | None:
        """Between what the values averaged lie, if that is known."""
        return SHARE if self.graded else None

    @property
    def what(self) -> str:
        """What the average is called."""
        return "accuracy" if self.graded else f"mean {self.aspect}"

    def of(self, kind: str) -> Floats:
        """1 where an answer is of a kind."""
        return np.asarray(self.values == KINDS[kind], dtype=np.float64)

    def say(self, value: float) -> str:
        """An average in words: grades in per cent."""
        return f"{100 * value:.1f} %" if self.graded else signed(value)

    def span(self, span: ConfidenceInterval | None) -> str:
        if span is None:
            return "(no interval)"
        ends = (100 * span.low, 100 * span.high) if self.graded else span
        return f"[{', '.join(_short(end, 1 if self.graded else 2) for end in ends)}]"

    def gap(self, value: float) -> str:
        """A difference in words, without its sign: grades in points."""
        return f"{abs(100 * value):.1f} points" if self.graded else signed(abs(value))

    def shows(self, least: float | None) -> str:
        """What so many queries can show, in words; nothing where that cannot be said, or is more than there can be."""
        if least is None or (self.graded and least > 1):
            return ""
        return f"; so many queries show a true difference of {self.gap(least)} with probability 0.8"


def arms_of(case: Case, names: Sequence[str], wanted: str | None) -> Arms:
    """The outcomes of some systems of a case."""
    aspect = aspect_of(case.results.outcomes, wanted, case.name)
    assert case.results.outcomes is not None
    frame = case.results.outcomes.frame.filter((pl.col("aspect") == aspect) & (pl.col("status") == OK))
    asked = case.results.contexts.frame.filter(pl.col("system").is_in(list(names)))["query"].unique(maintain_order=True)
    values = matrix(frame, names, asked.to_list())
    there = np.asarray(~np.isnan(values).any(axis=1))
    if not there.any():
        raise InputError(
            f"{case.name}: none of {len(asked):,} queries has an outcome {aspect!r} in every context",
            remedy="see why the answers have no grades: outcomes.parquet, column status",
        )
    queries = [query for query, known in zip(asked, there, strict=True) if known]
    return Arms(list(names), queries, values[there], aspect, int((~there).sum()))


def matrix(frame: pl.DataFrame, systems: Sequence[str], queries: Sequence[str]) -> Floats:
    """Values of a frame (system, query, value) as queries × systems; NaN where there is none."""
    row, column = ({name: at for at, name in enumerate(names)} for names in (queries, systems))
    made = np.full((len(queries), len(systems)), np.nan)
    for system, query, value in frame.select("system", "query", "value").iter_rows():
        if system in column and query in row and value is not None:
            made[row[query], column[system]] = value
    return made


class ArmMean(NamedTuple):
    """An average over queries with its interval; no value of no query.

    There is no interval of a single query, nor if too few values differ and their range is unknown.
    """

    value: float | None
    span: ConfidenceInterval | None
    n: int


def arm_means(values: Floats, study: Study, bounds: Bounds | None = None) -> list[ArmMean]:
    """The mean of each column, whose values lie within ``bounds``; NaN is left out."""
    made = []
    for column, span in zip(
        values.T,
        mean_intervals(values, level=study.level, resamples=study.resamples, seed=study.seed, bounds=bounds).spans(),
        strict=True,
    ):
        known = column[~np.isnan(column)]
        made.append(ArmMean(float(known.mean()) if len(known) else None, span, len(known)))
    return made


def arms_table(case: Case, label: str, arms: Arms, study: Study, shown: Mapping[str, object]) -> pl.DataFrame:
    """A row for each arm: of grades the share of each kind, else the mean; with the interval of what is averaged.

    ``shown`` says what stands for each arm in the column ``label``.
    """
    rows: list[dict[str, object]] = []
    for at, (name, mean) in enumerate(zip(arms.names, arm_means(arms.worth, study, arms.bounds), strict=True)):
        row: dict[str, object] = {"case": case.name, label: shown[name]}
        if arms.graded:
            row |= {kind: float(arms.of(kind)[:, at].mean()) for kind in KINDS}
        else:
            row |= {"mean": mean.value}
        row |= {"low": mean.span.low if mean.span else None, "high": mean.span.high if mean.span else None}
        rows.append(row | {"queries": mean.n})
    numbers = (*KINDS, "mean", "low", "high")
    return pl.DataFrame(rows, schema_overrides={name: pl.Float64 for name in numbers if name in rows[0]})


def arms_figure(tables: Sequence[pl.DataFrame], label: str, what: str) -> dict[str, object]:
    """Stacked bars of the shares of each arm; bars of the means where an outcome is no grade."""
    one = len(tables) == 1
    group = [] if one else [pl.col("case").alias("group")]
    if all("correct" in table.columns for table in tables):
        parts = [
            table.select(
                pl.col(label).cast(pl.String).alias("label"),
                pl.lit(kind).alias("kind"),
                pl.col(kind).alias("share"),
                (pl.col(kind) * pl.col("queries")).round().cast(pl.Int64).alias("count"),
                *group,
            )
            for table in tables
            for kind in KINDS
            if kind != "partial" or any(each["partial"].sum() for each in tables)
        ]
        order = pl.concat([table.select(pl.col(label).cast(pl.String).alias("label"), *group) for table in tables])
        return outcome_chart(order.join(pl.concat(parts), on=order.columns, maintain_order="left"))
    parts = [
        table.select(
            pl.col(label).cast(pl.String).alias("label"),
            pl.col("correct" if "correct" in table.columns else "mean").alias("value"),
            "low",
            "high",
            pl.col("queries").alias("n"),
            *group,
        )
        for table in tables
    ]
    return bar_chart(pl.concat(parts), what)


class Contrast(NamedTuple):
    """Two sides compared query by query: ``found`` is of the first less the second."""

    measure: str
    first: str
    second: str
    found: PairedComparison
    detectable: float | None


def contrast(
    measure: str,
    first: tuple[str, Floats],
    second: tuple[str, Floats],
    study: Study,
    bounds: Bounds | None = None,
) -> Contrast:
    """The first side less the second, by Wilcoxon's signed-rank test over queries; ``bounds`` are those of a side."""
    (name, a), (other, b) = first, second
    found = compare_paired(
        b, a, "wilcoxon", level=study.level, resamples=study.resamples, seed=study.seed, bounds=bounds
    )
    return Contrast(measure, name, other, found, detectable_difference(a - b, alpha=1 - study.level).value)


CONTRASTS = {"case": pl.String, "measure": pl.String, "first": pl.String, "second": pl.String} | {
    **dict.fromkeys(("difference", "low", "high", "p", "p_holm"), pl.Float64),
    **dict.fromkeys(("wins", "ties", "losses", "queries"), pl.Int64),
    "detectable": pl.Float64,
}
CONTRASTED = (
    "first less second; p by Wilcoxon's signed-rank test over queries; wins: queries in which the first is higher; "
    "detectable: the smallest true difference that so many queries show with probability 0.8"
)


def corrected(found: Sequence[Contrast]) -> list[float]:
    """The p-values of contrasts, corrected by Holm among those of the same measure."""
    p = np.array([each.found.p for each in found])
    made = np.empty(len(p))
    for measure in {each.measure for each in found}:
        at = [place for place, each in enumerate(found) if each.measure == measure]
        made[at] = holm(p[at])
    return [float(each) for each in made]


def contrasts(case: Case, found: Sequence[Contrast]) -> pl.DataFrame:
    """The table of contrasts."""
    rows = []
    for (measure, first, second, one, least), p in zip(found, corrected(found), strict=True):
        ends = one.interval if one.interval is not None else (None, None)
        counts = (one.wins, one.ties, one.losses, one.n)
        rows.append((case.name, measure, first, second, one.value, *ends, one.p, p, *counts, least))
    return pl.DataFrame(rows, schema=CONTRASTS, orient="row")


def of_design(case: Case, kind: str, column: str) -> Case:
    """The case, if a study made its contexts that says ``column`` of them; a refusal if not."""
    if column in case.design.columns and case.design.height:
        return case
    studied = case.design.width > 1 or bool(case.results.manifest.get("study"))
    other = "another study made these contexts" if studied else "these are results of an evaluation"
    raise InputError(
        f"{case.name}: {other}, and {kind} needs contexts of its own",
        remedy=f"name the workspace, or results that ragworth study {kind} wrote before (its folder cases/01)",
    )


def left_out_rows_of(case: Case, arms: Arms) -> list[tuple[str, str, int]]:
    """What was left out of a case: before anything was asked, and for want of an outcome."""
    rows = [(case.name, reason, number) for reason, number in case.left_out.items()]
    return rows + ([(case.name, NO_OUTCOME, arms.missing)] if arms.missing else [])


def p_words(p: float) -> str:
    """A p-value in words."""
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def no_queries_error(left: Mapping[str, int], remedy: str) -> InputError:
    """That no query can be studied, with the reasons counted."""
    reasons = ", ".join(f"{why}: {count:,}" for why, count in left.items()) or "there are none"
    return InputError(f"no query is left to study ({reasons})", remedy=remedy)


def _short(value: float, digits: int) -> str:
    made = f"{value:.{digits}f}".replace("-", "−")
    return made.removeprefix("−") if not any(each in "123456789" for each in made) else made
