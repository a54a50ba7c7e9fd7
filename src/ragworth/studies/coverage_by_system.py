"""The contexts and answers of systems, by what they cover: means, and how far both rank the systems alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from ragworth.comparison import value_bounds
from ragworth.core.errors import format_count, format_list
from ragworth.metrics.parsing import with_parameter
from ragworth.metrics.required_passages import REQUIRED
from ragworth.prediction.system_order import order_notes
from ragworth.report.study.charts import curve_chart, dot_chart, point_chart
from ragworth.report.study.page import StudyPage, columns, estimate_rows, make_table
from ragworth.report.wording import between, count_queries, signed, with_interval
from ragworth.stats.estimate import Estimate, Resampling, mean_estimates
from ragworth.stats.systems import common_grid, rank_systems, spread_of_means
from ragworth.studies.cases import matrix
from ragworth.studies.contract import Case
from ragworth.studies.contrast import Floats
from ragworth.studies.rated_coverage import AnswerCoverage, answer_coverage

THRESHOLDS = (1.0, 2.0, 3.0, 4.0, 5.0)
ANSWERS = {"coverage": "coverage of the answer", "density": "density of the answer"}
OUTCOMES = {words: name for name, words in ANSWERS.items()}


@dataclass(frozen=True, eq=False)
class CoverageBySystem:
    """Contexts of one size: measures of contexts and of answers, by system and query.

    Attributes
    ----------
    eta: lowest rating that counts as answered.
    systems: names of the systems by those of their contexts.
    bounds: roles of the other rows.
    contexts: scores by metric, those of sub-questions first.
    """

    case: Case
    eta: float
    plan: Resampling
    size: str
    systems: dict[str, str]
    bounds: dict[str, str]
    contexts: dict[str, pl.DataFrame]
    answers: AnswerCoverage

    @cached_property
    def roles(self) -> dict[str, str]:
        return {**dict.fromkeys(self.systems, "system"), **self.bounds}

    @cached_property
    def queries(self) -> list[str]:
        ratings, known = self.case.results.ratings, {q for each in self.contexts.values() for q in each["query"]}
        assert ratings is not None
        rated = known & set(ratings.frame["query"])
        return [query for query in self.case.results.collection.queries["query"] if query in rated] or sorted(rated)

    def grid(self, values: pl.DataFrame) -> Floats:
        """A measure of contexts or answers, queries × systems."""
        return matrix(values, list(self.systems), self.queries)

    @cached_property
    def common(self) -> list[str]:
        """The queries of all means: if answers have values, those that contexts and answers both have."""
        if not self.answers.coverage.height:
            return self.queries
        both = common_grid(self.grid(next(iter(self.contexts.values()))), self.grid(self.answers.coverage))
        return [query for query, there in zip(self.queries, both.queries, strict=True) if there]

    @cached_property
    def means(self) -> dict[str, dict[str, Estimate]]:
        """The mean of every measure for every system."""
        answers = {name: one for name, one in zip(ANSWERS.values(), self.answers, strict=True) if one.height}
        found = {}
        for name, values in {**self.contexts, **answers}.items():
            grid = matrix(values, list(self.roles), self.common)
            bounds = value_bounds(OUTCOMES.get(name, name))
            means = mean_estimates(grid, self.plan, bounds, self.case.clusters(self.common))
            found[name] = dict(zip(self.roles, means, strict=True))
        return found

    @cached_property
    def orders(self) -> dict[tuple[str, str], Estimate]:
        """Each measure of contexts against the coverage of answers; density against density too."""
        pairs = [(name, "coverage") for name in self.contexts]
        pairs += [(name, "density") for name in self.contexts if name.startswith("Den")]
        sides = {(name, of): (self.contexts[name], getattr(self.answers, of)) for name, of in pairs if self.answers}
        return {pair: self.rank(self.grid(context), self.grid(answer)) for pair, (context, answer) in sides.items()}

    def rank(self, contexts: Floats, answers: Floats) -> Estimate:
        """How far a measure of contexts and one of answers, queries × systems, rank the systems alike."""
        return rank_systems(contexts, answers, self.plan, self.case.clusters(self.queries))

    @property
    def k(self) -> dict[str, str]:
        return {"k": self.size} if self.size else {}

    def write(self, page: StudyPage) -> None:
        """The tables of one size."""
        counts, rows = {"queries of contexts": next(iter(self.contexts)), "queries of answers": ANSWERS["coverage"]}, []
        for arm, role in self.roles.items():
            values = {name: each[arm].value for name, each in self.means.items()}
            n = {what: self.means[name][arm].n if name in self.means else 0 for what, name in counts.items()}
            rows.append({**self.k, "system": self._name(arm), "role": role, **values, **n})
        page.add("systems", self.case, rows)
        ranked = estimate_rows(("context", "answer"), self.orders, "τ-b", "counts", "why")
        page.add("ranking", self.case, [{**self.k, **row} for row in ranked])
        page.note(self.case, *self._order_notes())
        page.add("intervals", self.case, self._intervals())

    def _order_notes(self) -> list[str]:
        size = f" (k = {self.size})" if self.size else ""
        grid, name = self.grid(self.answers.coverage), f"the coverage of their answers{size}"
        return order_notes(grid, name, self.plan, self.case.clusters(self.queries)) if self.answers else []

    def _name(self, arm: str) -> str:
        return self.systems.get(arm, arm)

    def _intervals(self) -> Iterator[dict[str, Any]]:
        for measure, each in self.means.items():
            known = {(self._name(arm), measure): one for arm, one in each.items() if one.value is not None}
            yield from ({**self.k, **row} for row in estimate_rows(("system", "measure"), known, "mean"))

    def sweep(self) -> Iterator[dict[str, Any]]:
        """Coverage of contexts and answers, and how they rank the systems, at each threshold."""
        results = self.case.results
        most = results.manifest.get("settings", {}).get("k")
        shown = results.contexts if self.case.is_designed or not isinstance(most, int) else results.contexts.cut(most)
        names = {eta: with_parameter("Cov", "eta", eta) for eta in THRESHOLDS}
        scores = results.score(list(names.values()), shown).frame
        for eta, name in names.items():
            answers = answer_coverage(results, eta).coverage
            contexts, answered = self.grid(scores.filter(pl.col("metric") == name)), self.grid(answers)
            none = Estimate(reason="no answers rated")
            one = self.rank(contexts, answered) if answers.height else none
            both = common_grid(contexts, answered)
            if both.of(contexts).size:
                contexts, answered = both.of(contexts), both.of(answered)
            else:  # contexts alone
                answered = answered[:, :0]
            parts = ("contexts", "contexts ±", "answers", "answers ±")
            spread = dict(zip(parts, (*spread_of_means(contexts), *spread_of_means(answered)), strict=True))
            queries = int((~np.isnan(contexts)).sum(axis=0).max(initial=0))
            yield {"η": eta, **spread, **columns(one, "τ-b"), "queries": queries, "why": one.reason}

    def ranking_sentence(self) -> str:
        number = "as many passages as the required subset" if self.size == REQUIRED else f"{self.size} passages"
        where = f"with {number}, " if self.size else ""
        if not self.answers:
            graded = self.case.results.outcomes_of("coverage").height > 0
            other = f"they were graded for coverage at another threshold than {self.eta:g}"
            return f"nothing is said about the answers: {other if graded else 'they were not graded for coverage'}."
        known = {key: one for key, one in self.orders.items() if one.value is not None}
        if not known:
            why = next(iter(self.orders.values())).reason
            return f"{where}systems can't be ranked by the coverage of their answers: {why}."
        some = {key: one for key, one in known.items() if key[1] == "coverage"} or known
        sure = {key: one for key, one in some.items() if (one.low or 0.0) > 0}
        values = {key: round(one.value or 0.0, 12) for key, one in some.items()}
        top = max(values[key] for key in sure or some)
        best = [key for key in sure or some if values[key] == top]
        one, of, s = known[best[0]], best[0][1], "s" if len(best) == 1 else ""
        metrics = format_list([metric for metric, _ in best], 20)
        verdict = f"{metrics} rank{s} the systems most like the {of} of their answers does"
        verdict += ", of the measures that reliably do" if top < max(values.values()) else ""
        if not sure:
            verdict = (
                f"no measure reliably ranks the systems as the {of} of their answers does; {metrics} come{s} closest"
            )
        over = f"{format_count(one.counts['systems'], 'system')} and {count_queries(one.n)}"
        return f"{where}{verdict}, Kendall τ-b {with_interval(one)} over {over}."

    def bounds_sentence(self) -> str:
        words = ANSWERS["coverage"] if self.answers.coverage.height else next(iter(self.contexts))
        means = {arm: one for arm, one in self.means[words].items() if one.value is not None}
        mine = {arm: one.value or 0.0 for arm, one in means.items() if arm in self.systems}
        if not mine:
            return ""
        best = max(mine, key=lambda arm: mine[arm])
        same = len(mine) > 1 and max(mine.values()) == min(mine.values())
        first = (
            f"all systems have the same {words}," if same else f"the highest {words} is that of {self.systems[best]},"
        )
        there = {arm: role for arm, role in self.bounds.items() if arm in means}
        bounds = format_list([f"the {role} {arm} {signed(means[arm].value or 0.0)}" for arm, role in there.items()])
        return f"{first} {signed(mine[best])} {between(means[best].interval)}{f'; {bounds}' if bounds else ''}."

    def draw(self, page: StudyPage, sweep: pl.DataFrame) -> None:
        main, answers = next((name for name in self.means if name.startswith("Cov")), ""), ANSWERS["coverage"]
        rows = make_table(row for row in self._intervals() if row["measure"] in (main, *ANSWERS.values()))
        if rows.height:
            frame = rows.select("low", "high", label="system", value="mean", group="measure", n="queries")
            caption = f"Means with {self.plan.level:.0%} intervals over queries."
            spec = dot_chart(frame, "mean", zero=True)
            page.draw("systems", "Coverage of contexts and answers", caption, spec, self.case)
        if main and answers in self.means:
            x, y = self.means[main], self.means[answers]
            points = [{"x": x[arm].value, "y": y[arm].value, "label": name} for arm, name in self.systems.items()]
            if (frame := make_table(points).drop_nulls()).height:
                title = "Systems by the coverage of contexts and answers"
                caption = "A point for each system, with the line of least squares; bounds are left out."
                page.draw("scatter", title, caption, point_chart(frame, "coverage of the context", answers), self.case)
        sides = (sweep.select(line=pl.lit(what), place="η", value=what) for what in ("contexts", "answers"))
        spec = curve_chart(pl.concat(sides).drop_nulls(), "η", "coverage", band=False)
        caption = "Mean over systems and queries, by the lowest rating η that counts as answered."
        page.draw("thresholds", "Coverage by threshold", caption, spec, self.case)
