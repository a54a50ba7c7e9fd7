"""How utility goes with the relevance of contexts, case by case: tables, sentences and figures of ``propagation``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ragworth.comparison import higher_is_better
from ragworth.errors import MetricError, format_count, format_list
from ragworth.metrics.parsing import parse
from ragworth.report.study import StudyFigure
from ragworth.report.study.charts import curve_chart, dot_chart, point_chart
from ragworth.stats.correlation import Measure
from ragworth.stats.paired import PairedComparison, compare_paired, holm
from ragworth.stats.pooled import PooledCorrelation, pooled_correlations
from ragworth.stats.power import detectable_difference
from ragworth.studies.arms import Floats, arm_means, matrix
from ragworth.studies.contract import Case, Study
from ragworth.studies.sentences import between, measure_words, signed
from ragworth.tables import OK

UTILITY = "utility"
"""The outcome, as its grader calls it."""

SAID = 4
"""Systems of a case that have a sentence of their own."""

ALL = "all contexts"
"""What all contexts of a size together are called."""

UTILITIES = {"case": pl.String, "k": pl.Int64, "context": pl.String} | {
    **dict.fromkeys(("utility", "low", "high"), pl.Float64),
    "marks": pl.String,
    **dict.fromkeys(("less oracle", "p_oracle", "detectable", "less reversal", "p_reversal"), pl.Float64),
    "queries": pl.Int64,
    "missing": pl.Int64,
}
CORRELATIONS = {"case": pl.String, "k": pl.Int64, "context": pl.String, "metric": pl.String} | {
    **dict.fromkeys(("correlation", "low", "high"), pl.Float64),
    **dict.fromkeys(("contexts", "queries", "missing"), pl.Int64),
    "why": pl.String,
}


class ContextComparison(NamedTuple):
    """A context held against another: the difference of their means, and p after Holm."""

    found: PairedComparison
    p: float
    detectable: float | None


class SizedContexts:
    """The contexts of one size."""

    def __init__(self, study: Study, case: Case, size: int) -> None:
        self.study, self.size = study, size
        design = case.design.filter(pl.col("size") == size)
        self.names = design["system"].to_list()
        self.labels, self.roles, self.of = (design[name].to_list() for name in ("context", "role", "of"))
        assert case.results.outcomes is not None
        mine = (pl.col("aspect") == UTILITY) & pl.col("system").is_in(self.names)
        frame = case.results.outcomes.frame.filter(mine)
        self.queries = frame["query"].unique(maintain_order=True).to_list()
        self.asked = dict(frame.group_by("system").agg(pl.len()).iter_rows())
        self.values = matrix(frame.filter(pl.col("status") == OK), self.names, self.queries)
        scores = case.results.scores.frame.filter(pl.col("system").is_in(self.names) & (pl.col("status") == OK))
        self.metrics = {
            name: (1.0 if higher_is_better(name) else -1.0) * matrix(part, self.names, self.queries)
            for name, part in _metrics(scores, size)
        }

    def against_oracle(self) -> dict[int, ContextComparison]:
        """Every other context against the oracle, by its place."""
        best = next((at for at, role in enumerate(self.roles) if role == "oracle"), None)
        return {} if best is None else self._against({at: best for at in range(len(self.names)) if at != best})

    def against_reversal(self) -> dict[int, ContextComparison]:
        """Every system against its reversal."""
        back = {self.of[at]: at for at, role in enumerate(self.roles) if role == "reversed"}
        systems = [at for at, role in enumerate(self.roles) if role == "system" and self.of[at] in back]
        return self._against({at: back[self.of[at]] for at in systems})

    def _against(self, pairs: dict[int, int]) -> dict[int, ContextComparison]:
        found, how = {}, {"level": self.study.level, "resamples": self.study.resamples, "seed": self.study.seed}
        for at, other in pairs.items():
            first, second = self.values[:, other], self.values[:, at]
            least = detectable_difference(second - first, alpha=1 - self.study.level).value
            found[at] = (compare_paired(first, second, "t", **how), least)  # type: ignore[arg-type]
        p = holm(np.array([one.p if one.value is not None else np.nan for one, _ in found.values()]))
        return {
            at: ContextComparison(one, float(each), least)
            for (at, (one, least)), each in zip(found.items(), p, strict=True)
        }


def _metrics(scores: pl.DataFrame, size: int) -> Iterator[tuple[str, pl.DataFrame]]:
    """The metrics of contexts of a size: with this cutoff or none; where there are no such, all."""
    parts = {str(name): part for (name,), part in scores.group_by("metric", maintain_order=True)}
    fitting = [name for name in parts if split_cutoff(name)[1] in (None, size)] or list(parts)
    return ((name, parts[name]) for name in fitting)


def split_cutoff(written: str) -> tuple[str, int | None]:
    """A metric without its cutoff, and the cutoff."""
    try:
        metric = parse(written)
    except MetricError:  # one of ir_measures
        return written, None
    return str(replace(metric, cutoff=None)), metric.cutoff


class PropagationCase:
    """One case, by size."""

    def __init__(self, study: Study, case: Case, measure: Measure) -> None:
        self.study, self.case, self.measure = study, case, measure
        self.sizes = [SizedContexts(study, case, size) for size in case.design["size"].unique().sort()]
        self.oracle = {each.size: each.against_oracle() for each in self.sizes}
        self.reversal = {each.size: each.against_reversal() for each in self.sizes}
        self._rows = [row for each in self.sizes for row in self._correlations(each)]

    @property
    def lead(self) -> str:
        queries = len({query for each in self.sizes for query in each.queries})
        number = len(self.case.design["context"].unique())
        sizes = format_list([str(each.size) for each in self.sizes], 20)
        kinds, whose = format_count(number, "kind"), format_count(queries, "query", "queries")
        words = f"{self.case.name}: {kinds} of contexts, k = {sizes}, of {whose}"
        bare = self._bare()
        return f"{words}; mean P without a context {bare:.3f}." if bare is not None else f"{words}."

    def _bare(self) -> float | None:
        """How close answers without a context come, on average over queries, where that is known."""
        frame = self.case.results.said.get(UTILITY)
        if frame is None or "p_without" not in frame.columns:
            return None
        value = frame.drop_nulls("p_without").unique("query")["p_without"].mean()
        return float(value) if isinstance(value, float) else None

    def utilities(self) -> pl.DataFrame:
        """A row for each context of each size."""
        rows = []
        for each in self.sizes:
            for at, mean in enumerate(arm_means(each.values, self.study)):
                best, back = self.oracle[each.size].get(at), self.reversal[each.size].get(at)
                marks = "†" * self._differs(best) + "‡" * self._differs(back)
                ends = mean.span if mean.span is not None else (None, None)
                sides = (*_side(best), best.detectable if best else None, *_side(back))
                gone = each.asked.get(each.names[at], 0) - mean.n
                rows.append(
                    (self.case.name, each.size, each.labels[at], mean.value, *ends, marks, *sides, mean.n, gone)
                )
        return pl.DataFrame(rows, schema=UTILITIES, orient="row")

    def _differs(self, one: ContextComparison | None) -> bool:
        return one is not None and one.found.value is not None and one.p < 1 - self.study.level

    def _correlations(self, each: SizedContexts) -> Iterator[tuple[int, str, str, PooledCorrelation]]:
        for metric, values in each.metrics.items():
            for at, role in enumerate(each.roles):
                if role in ("system", "reversed"):
                    yield each.size, each.labels[at], metric, self._correlated(values[:, [at]], each.values[:, [at]])
            if (~np.isnan(values)).any(axis=0).sum() > 1:
                yield each.size, ALL, metric, self._correlated(values, each.values)

    def _correlated(self, values: Floats, utility: Floats) -> PooledCorrelation:
        study, units = self.study, np.repeat(np.arange(len(values)), values.shape[1])
        there = ~np.isnan(utility.ravel())  # a context without utility is counted elsewhere
        return pooled_correlations(
            values.ravel()[there],
            utility.ravel()[there],
            units[there],
            measure=self.measure,
            level=study.level,
            resamples=study.resamples,
            seed=study.seed,
        )[0]

    def correlations(self) -> pl.DataFrame:
        """A row for each context of each size and metric."""
        rows = []
        for size, label, metric, one in self._rows:
            ends = one.interval if one.interval is not None else (None, None)
            counts = (one.n, one.queries, one.missing)
            rows.append((self.case.name, size, label, metric, one.value, *ends, *counts, one.reason))
        return pl.DataFrame(rows, schema=CORRELATIONS, orient="row")

    def cloud(self) -> pl.DataFrame:
        """The first metric beside utility for each query, as systems show it."""
        rows = []
        for each in self.sizes:
            name = next(iter(each.metrics), None)
            for at, role in enumerate(each.roles):
                if role == "system" and name is not None:
                    x, y = each.metrics[name][:, at], each.values[:, at]
                    rows += [
                        (a, b, f"k = {each.size}", f"{each.labels[at]}: {query}")
                        for a, b, query in zip(x.tolist(), y.tolist(), each.queries, strict=True)
                        if not np.isnan(a + b)
                    ]
        schema = {"x": pl.Float64, "y": pl.Float64, "group": pl.String, "label": pl.String}
        return pl.DataFrame(rows, schema=schema, orient="row")

    @property
    def first(self) -> str:
        """The metric that figures show, without its cutoff; empty where there is none."""
        name = next((name for each in self.sizes for name in each.metrics), "")
        base, cutoff = split_cutoff(name) if name else ("", None)
        return f"{base}@k" if cutoff is not None else base

    def sentences(self) -> list[str]:
        """A sentence for each of the first systems; the tables have them all."""
        if all(np.isnan(each.values).all() for each in self.sizes):
            why = ", ".join(f"{reason}: {number:,}" for _, reason, number in self.left()) or "there are no contexts"
            return [f"{self.case.name}: no context has a utility ({why}); compare texts otherwise: bertscore."]
        systems = dict.fromkeys(
            label
            for each in self.sizes
            for label, role in zip(each.labels, each.roles, strict=True)
            if role == "system"
        )
        made = [f"{self.case.name}: {label}: {words}." for label in systems if (words := self._said(label))]
        more = f"{self.case.name}: {format_count(len(made) - SAID, 'more system')} in the tables."
        return made[:SAID] + ([more] if len(made) > SAID else [])

    def _said(self, label: str) -> str:
        """How the first metric goes with utility, where the system falls short of the oracle, whether order matters."""
        parts = [self._carried(label)]
        for sides, other in ((self.oracle, "relevant passages only"), (self.reversal, "its reversal")):
            tested = [(each, sides[each.size].get(at)) for each in self.sizes for at in _at(each, label)]
            known = [(each.size, one) for each, one in tested if one is not None and one.found.value is not None]
            where = [f"{size} ({signed(one.found.value or 0.0)})" for size, one in known if self._differs(one)]
            if known:
                differs = f"its utility differs from that of {other} at k = {format_list(where, 20)}"
                parts.append(differs if where else f"its utility cannot be told from that of {other}")
        return "; ".join(filter(None, parts))

    def _carried(self, label: str) -> str:
        """The correlations of the first metric, size by size."""
        parts, sure, seen = [], [], set[int]()
        for size, name, _, one in self._rows:
            if name != label or size in seen:
                continue
            seen.add(size)
            sure.append(one.interval is not None and one.interval.low > 0)
            value = "none" if one.value is None else f"{signed(one.value)} {between(one.interval)}"
            parts.append(f"{value} at k = {size}" + (f" ({one.reason})" if one.reason else ""))
        if not parts:
            return ""
        verdict = "relevance carries over to the answer" if all(sure) else "relevance does not surely carry over"
        if any(sure) and not all(sure):
            verdict = "relevance carries over at some sizes"
        return f"{verdict}, {measure_words(self.measure)} of {self.first} with utility {', '.join(parts)}"

    def left(self) -> list[tuple[str, str, int]]:
        rows = [(self.case.name, reason, number) for reason, number in self.case.left_out.items()]
        assert self.case.results.outcomes is not None
        frame = self.case.designed(self.case.results.outcomes.frame).filter(pl.col("status") != OK)
        why = frame.group_by("status", maintain_order=True).agg(pl.col("query").n_unique())
        return rows + [(self.case.name, f"no utility in some context: {status}", n) for status, n in why.iter_rows()]


def _at(each: SizedContexts, label: str) -> list[int]:
    """Where a system's context is among those of a size."""
    return [at for at, name in enumerate(each.labels) if name == label and each.roles[at] == "system"]


def _side(one: ContextComparison | None) -> tuple[float | None, float | None]:
    if one is None or one.found.value is None:
        return None, None
    return one.found.value, one.p


def figures(
    every: Sequence[PropagationCase], utility: pl.DataFrame, correlations: pl.DataFrame, words: str
) -> tuple[StudyFigure, ...]:
    """Utility by size, the metric beside utility, and their correlation by size."""
    several = len(every) > 1
    level = f"{every[0].study.level:.0%} intervals"
    made, known = list[StudyFigure](), utility.drop_nulls("utility")
    if known.height:
        spec = _by_size(known, "utility", "mean utility", several, zero=True)
        made.append(StudyFigure("utility", "What contexts are worth", f"Mean utility, {level}; 0 is no context.", spec))
    for number, each in enumerate(every, 1):
        cloud = each.cloud()
        if cloud.height:
            title = f"{each.first} and utility" + (f": {each.case.name}" if several else "")
            caption = "A point for each query of each system, with lines of least squares."
            made.append(StudyFigure(f"scatter-{number}", title, caption, point_chart(cloud, each.first, "utility")))
    base = every[0].first.removesuffix("@k")
    shown = correlations.filter(
        pl.col("metric").map_elements(lambda name: split_cutoff(name)[0] == base, return_dtype=pl.Boolean)
    )
    shown = shown.drop_nulls("correlation")
    if shown.height:
        spec = _by_size(shown, "correlation", words, several, zero=True)
        made.append(StudyFigure("correlation", f"How utility goes with {every[0].first}", f"{words}, {level}.", spec))
    return tuple(made)


def _by_size(table: pl.DataFrame, value: str, title: str, several: bool, zero: bool = False) -> dict[str, Any]:
    """A curve for each context over sizes; a row for each where there is one size."""
    name = pl.concat_str("case", pl.lit(": "), "context") if several else pl.col("context")
    frame = table.select(
        name.alias("line"),
        pl.col("k").alias("place"),
        pl.col(value).alias("value"),
        "low",
        "high",
        pl.col("queries").alias("n"),
    )
    if table["k"].n_unique() == 1:
        return dot_chart(frame.rename({"line": "label"}), title, zero=True)
    return curve_chart(frame, "k", title, zero=zero)
