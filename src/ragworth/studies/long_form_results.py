"""What long answers and their contexts cover: systems, bounds, how they are ranked, and thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ragworth.collection import WORD_UNIT
from ragworth.comparison import value_bounds
from ragworth.errors import format_count, format_list
from ragworth.generation.writer import NO_CONTEXT_SYSTEM, ORACLE_SYSTEM
from ragworth.metrics.engine import Tokens
from ragworth.report.study import Findings, StudyFigure, StudyTable
from ragworth.report.study.charts import curve_chart, dot_chart, point_chart
from ragworth.scoring import score
from ragworth.studies.arms import SHARE, ArmMean, Floats, arm_means, matrix
from ragworth.studies.contract import Case
from ragworth.studies.long_form import THRESHOLDS, LongForm, at_threshold
from ragworth.studies.long_form_coverage import AnswerCoverage, answer_coverage, graded_coverage
from ragworth.studies.sentences import between, left_out_rows, signed
from ragworth.studies.system_order import SystemOrder, common_grid, compare_orders
from ragworth.tables import OK

ANSWERS = {"coverage": "coverage of the answer", "density": "density of the answer"}
BOUNDS = {NO_CONTEXT_SYSTEM: "lower bound", ORACLE_SYSTEM: "upper bound"}
MAIN = ("Cov", "alpha_nDCG", "Den")


class Threshold(NamedTuple):
    """Coverage of contexts and answers of the systems from one rating on, over the same queries."""

    eta: float
    contexts: list[ArmMean]
    answers: list[ArmMean]
    alike: SystemOrder | None


class LongFormCase:
    """One case: measures of contexts and of answers, by system and query."""

    def __init__(self, study: LongForm, case: Case) -> None:
        self.study, self.case = study, case
        results = case.results
        assert results.ratings is not None
        roles = dict(case.design.select("system", "role").iter_rows()) if "role" in case.design.columns else BOUNDS
        names = [*results.contexts.systems, *(name for name in roles if name not in results.contexts.systems)]
        rows = self._scores().filter(pl.col("status") == OK)
        self.contexts = {str(name): part for (name,), part in rows.group_by("metric", maintain_order=True)}
        mine = list(self.contexts)
        self.metrics = sorted(mine, key=lambda name: (not name.startswith(MAIN), mine.index(name)))
        rated, known = set(results.ratings.frame["query"]), set(rows["query"])
        self.queries = [query for query in results.collection.queries["query"] if query in rated & known] or sorted(
            rated & known
        )
        self.answers = self._answers(study.eta)
        there = {system for each in (rows, *self.answers) for system in each["system"]}
        self.roles = {name: roles.get(name, "system") for name in names if name in there}
        self.systems = [name for name, role in self.roles.items() if role == "system"]

    def _scores(self) -> pl.DataFrame:
        """Scores of contexts; those of another threshold than the study's are made anew."""
        results, frame = self.case.results, self.case.results.scores.frame
        known = frame["metric"].unique(maintain_order=True).to_list()
        wanted = list(dict.fromkeys(at_threshold(name, self.study.eta) for name in known))
        if lacking := [name for name in wanted if name not in known]:
            texts = results.collection
            tokens = Tokens.of(texts.tokens(), WORD_UNIT) if texts.passages.height else None
            made = score(
                results.contexts, results.judgments, lacking, ratings=results.ratings, tokens=tokens, complete=False
            )
            frame = pl.concat([frame, made.frame.select(frame.columns)])
        return frame.filter(pl.col("metric").is_in(wanted))

    def _answers(self, eta: float) -> AnswerCoverage:
        """What answers cover: from their ratings, else as it was graded at this threshold."""
        found, given = answer_coverage(self.case.results, eta), graded_coverage(self.case.results, eta)
        return AnswerCoverage(*(one if one.height else other for one, other in zip(found, given, strict=True)))

    @property
    def how(self) -> dict[str, Any]:
        return {"level": self.study.level, "resamples": self.study.resamples, "seed": self.study.seed}

    @cached_property
    def measures(self) -> dict[str, pl.DataFrame]:
        """Everything that a system has a mean of."""
        named = zip(ANSWERS.values(), self.answers, strict=True)
        return {
            **{name: self.contexts[name] for name in self.metrics},
            **{name: one for name, one in named if one.height},
        }

    def grids(self, context: pl.DataFrame, answer: pl.DataFrame) -> tuple[Floats, Floats]:
        """A measure of contexts and one of answers, queries × systems."""
        first, second = (matrix(values, self.systems, self.queries) for values in (context, answer))
        return first, second

    @cached_property
    def common(self) -> list[str]:
        """The queries of all means: where answers have values, those that contexts and answers have both."""
        if not self.answers.coverage.height:
            return self.queries
        both = common_grid(*self.grids(self.contexts[self.metrics[0]], self.answers.coverage))
        return [query for query, there in zip(self.queries, both.queries, strict=True) if there]

    @cached_property
    def means(self) -> dict[str, dict[str, ArmMean]]:
        systems = list(self.roles)
        return {
            name: dict(
                zip(
                    systems,
                    arm_means(matrix(values, systems, self.common), self.study, value_bounds(name)),
                    strict=True,
                )
            )
            for name, values in self.measures.items()
        }

    def table(self) -> pl.DataFrame:
        """A row for each system, a column for each measure, as the paper has it; bounds last."""
        order_ = sorted(self.roles, key=lambda name: ("system", "upper bound", "lower bound").index(self.roles[name]))
        counts = {"queries of contexts": self.metrics[0], "queries of answers": ANSWERS["coverage"]}
        made = [
            {"case": self.case.name, "system": system, "role": self.roles[system]}
            | {name: each[system].value for name, each in self.means.items()}
            | {what: self.means[name][system].n if name in self.means else 0 for what, name in counts.items()}
            for system in order_
        ]
        schema = {"case": pl.String, "system": pl.String, "role": pl.String, **dict.fromkeys(self.means, pl.Float64)}
        return pl.DataFrame(made, schema={**schema, **dict.fromkeys(counts, pl.Int64)})

    def intervals(self) -> Iterator[tuple[str, str, str, float | None, float | None, float | None, int]]:
        for name, each in self.means.items():
            for system, one in each.items():
                if one.value is not None:
                    ends = (one.span.low, one.span.high) if one.span else (None, None)
                    yield self.case.name, system, name, one.value, *ends, one.n

    def ranked(self, name: str, answer: pl.DataFrame) -> SystemOrder:
        return compare_orders(*self.grids(self.contexts[name], answer), **self.how)

    @cached_property
    def orders(self) -> list[tuple[str, str, SystemOrder]]:
        """Each measure of contexts against the coverage of answers; density against density too."""
        pairs = [(name, "coverage") for name in self.metrics] + [
            (name, "density") for name in self.metrics if name.startswith("Den")
        ]
        return [(name, of, self.ranked(name, getattr(self.answers, of))) for name, of in pairs] if self.answers else []

    @cached_property
    def sweep(self) -> list[Threshold]:
        """Coverage of contexts and answers of the systems, and how they rank them, at each threshold."""
        results, made = self.case.results, []
        shown = results.contexts
        most = results.manifest.get("settings", {}).get("k")
        shown = shown.cut(most) if self.case.design.width < 2 and isinstance(most, int) and most > 0 else shown
        names = {eta: at_threshold("Cov", eta) for eta in THRESHOLDS}
        found = score(shown, None, list(names.values()), ratings=results.ratings, complete=False).frame
        for eta, name in names.items():
            rows = found.filter((pl.col("metric") == name) & (pl.col("status") == OK))
            answers = self._answers(eta).coverage
            contexts, answered = self.grids(rows, answers)
            both = common_grid(contexts, answered)
            alike = compare_orders(contexts, answered, **self.how) if answers.height else None
            if both.of(contexts).size:
                contexts, answered = both.of(contexts), both.of(answered)
            else:  # nothing of both: contexts alone
                answered = answered[:, :0]
            made.append(
                Threshold(eta, arm_means(contexts, self.study, SHARE), arm_means(answered, self.study, SHARE), alike)
            )
        return made

    @property
    def unsaid(self) -> str:
        """Why nothing is said of answers."""
        outcomes = self.case.results.outcomes
        if outcomes is None or not (outcomes.frame["aspect"] == "coverage").any():
            return "the answers were not graded for coverage"
        return f"nothing says what the answers cover from a rating of {self.study.eta:g} on, only from another"

    def sentences(self) -> Iterator[str]:
        name = self.case.name
        known = [(metric, of, one) for metric, of, one in self.orders if one.value is not None]
        if not self.answers:
            yield f"{name}: {self.unsaid}, so nothing is said of them."
        elif not known:
            yield f"{name}: systems cannot be ranked by what their answers cover: {self.orders[0][2].reason}."
        else:
            metric, of, one = max(known, key=lambda each: round(each[2].value or 0.0, 12))
            yield (
                f"{name}: {metric} ranks the systems most as the {of} of their answers does, Kendall τ-b "
                f"{signed(one.value or 0.0)} {between(one.span)} over {format_count(one.systems, 'system')} and "
                f"{format_count(one.queries, 'query', 'queries')}."
            )
        yield from self._bounds()
        rows = [
            (each.eta, each.alike) for each in self.sweep if each.alike is not None and each.alike.value is not None
        ]
        if len(rows) > 1:
            said = [f"{signed(one.value or 0.0)} at η = {eta:g}" for eta, one in rows]
            yield f"{name}: by Cov, τ-b is {format_list(said, 5)}."

    def _bounds(self) -> Iterator[str]:
        words = ANSWERS["coverage"] if self.answers.coverage.height else self.metrics[0]
        each = self.means[words]
        values = {system: one.value for system, one in each.items() if one.value is not None}
        mine = {system: value for system, value in values.items() if system in self.systems}
        if not mine:
            return
        best = max(mine, key=lambda system: mine[system])
        same = len(mine) > 1 and max(mine.values()) == min(mine.values())
        first = f"all systems have the same {words}," if same else f"{best} has the highest {words},"
        said = f"{self.case.name}: {first} {signed(mine[best])} {between(each[best].span)}"
        bounds = [
            f"the {role} {system} {signed(values[system])}"
            for system, role in self.roles.items()
            if role != "system" and system in values
        ]
        yield said + (f"; {format_list(bounds)}." if bounds else ".")


@dataclass
class LongFormSummary:
    """All cases together."""

    study: LongForm
    cases: Sequence[Case]

    def findings(self) -> Findings:
        self.every = [LongFormCase(self.study, case) for case in self.cases]
        table = pl.concat([one.table() for one in self.every], how="diagonal")
        intervals = pl.DataFrame(
            [row for one in self.every for row in one.intervals()],
            schema=dict.fromkeys(("case", "system", "measure"), pl.String)
            | dict.fromkeys(("mean", "low", "high"), pl.Float64)
            | {"queries": pl.Int64},
            orient="row",
        )
        ranks, sweep = self._ranks(), self._sweep()
        note = f"contexts and answers from a rating of {self.study.eta:g} on, over the queries that have both"
        shown = [StudyTable("systems", "What systems and their answers cover, in the mean over queries", table, note)]
        if ranks.height:
            note = "Kendall τ-b of the systems' means; the bounds take no part; intervals are over queries"
            shown.append(StudyTable("ranking", "Whether contexts and answers rank the systems alike", ranks, note))
        note = "means and standard deviations are over systems; contexts and answers are of the same queries"
        shown += [
            StudyTable("thresholds", "Coverage from each rating on", sweep, note),
            StudyTable("intervals", "Means with intervals", intervals),
        ]
        return Findings(
            "Long-form: does what a context covers tell what the answer will cover?",
            " ".join(self._lead(one) for one in self.every),
            tuple(words for one in self.every for words in one.sentences()),
            tuple(shown),
            tuple(self._figures(intervals, sweep)),
            left_out_rows(self._left()),
        )

    def _lead(self, one: LongFormCase) -> str:
        return (
            f"{one.case.name}: {format_count(len(one.systems), 'system')} on "
            f"{format_count(len(one.queries), 'query', 'queries')} with rated sub-questions, answered from a rating of "
            f"{self.study.eta:g} on."
        )

    def _left(self) -> Iterator[tuple[str, str, int]]:
        for one in self.every:
            yield from ((one.case.name, reason, number) for reason, number in one.case.left_out.items())
            if lost := len(one.queries) - len(one.common):
                yield one.case.name, "some system has no value of its contexts or answers", lost

    def _ranks(self) -> pl.DataFrame:
        rows = [
            {"case": one.case.name, "context": name, "answer": of, "τ-b": each.value}
            | {"low": each.span.low if each.span else None, "high": each.span.high if each.span else None}
            | {"systems": each.systems, "queries": each.queries, "why": each.reason}
            for one in self.every
            for name, of, each in one.orders
        ]
        schema = dict.fromkeys(("case", "context", "answer"), pl.String) | dict.fromkeys(
            ("τ-b", "low", "high"), pl.Float64
        )
        return pl.DataFrame(rows, schema={**schema, "systems": pl.Int64, "queries": pl.Int64, "why": pl.String})

    def _sweep(self) -> pl.DataFrame:
        rows = []
        for one in self.every:
            for eta, contexts, answers, alike in one.sweep:
                row: dict[str, Any] = {"case": one.case.name, "η": eta}
                for name, some in (("contexts", contexts), ("answers", answers)):
                    known = np.array([each.value for each in some if each.value is not None])
                    row[name] = float(known.mean()) if len(known) else None
                    row[f"{name} ±"] = float(known.std(ddof=1)) if len(known) > 1 else None
                row |= {"τ-b": alike.value if alike else None, "low": alike.span.low if alike and alike.span else None}
                row |= {"high": alike.span.high if alike and alike.span else None}
                row |= {
                    "queries": max((each.n for each in contexts), default=0),
                    "why": alike.reason if alike else "no answers rated",
                }
                rows.append(row)
        numbers = ("η", "contexts", "contexts ±", "answers", "answers ±", "τ-b", "low", "high")
        return pl.DataFrame(
            rows,
            schema={"case": pl.String, **dict.fromkeys(numbers, pl.Float64), "queries": pl.Int64, "why": pl.String},
        )

    def _figures(self, intervals: pl.DataFrame, sweep: pl.DataFrame) -> Iterator[StudyFigure]:
        for number, one in enumerate(self.every, 1):
            where = "" if len(self.every) == 1 else f": {one.case.name}"
            wanted = [name for name in one.means if name.startswith("Cov")][:1] + [
                name for name in ANSWERS.values() if name in one.means
            ]
            mine = intervals.filter((pl.col("case") == one.case.name) & pl.col("measure").is_in(wanted))
            frame = mine.select(
                pl.col("system").alias("label"),
                pl.col("mean").alias("value"),
                "low",
                "high",
                pl.col("measure").alias("group"),
                pl.col("queries").alias("n"),
            )
            yield StudyFigure(
                f"systems-{number}",
                f"What contexts and answers cover{where}",
                f"Means with {self.study.level:.0%} intervals over queries.",
                dot_chart(frame, "mean", zero=True),
            )
        rows = self._pairs()
        if rows.height:
            yield StudyFigure(
                "scatter",
                "Systems by what their contexts and their answers cover",
                "A point for each system, with the line of least squares; bounds are left out.",
                point_chart(
                    rows if len(self.every) > 1 else rows.drop("group"), "coverage of the context", ANSWERS["coverage"]
                ),
            )
        lines = sweep.unpivot(
            ["contexts", "answers"], index=["case", "η"], variable_name="what", value_name="value"
        ).drop_nulls("value")
        named = pl.concat_str(["case", "what"], separator=", ") if len(self.every) > 1 else pl.col("what")
        yield StudyFigure(
            "thresholds",
            "Coverage from each rating on",
            "Mean over systems and queries, by the rating η from which on a sub-question counts as answered.",
            curve_chart(
                lines.select(named.alias("line"), pl.col("η").alias("place"), "value"), "η", "coverage", band=False
            ),
        )

    def _pairs(self) -> pl.DataFrame:
        rows = []
        for one in self.every:
            first = next((name for name in one.metrics if name.startswith("Cov")), None)
            other = one.means.get(ANSWERS["coverage"])
            if first is None or other is None:
                continue
            for system in one.systems:
                x, y = one.means[first][system].value, other[system].value
                if x is not None and y is not None:
                    rows.append((x, y, one.case.name, system))
        return pl.DataFrame(
            rows, schema={"x": pl.Float64, "y": pl.Float64, "group": pl.String, "label": pl.String}, orient="row"
        )
