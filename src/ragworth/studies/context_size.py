"""``context-size``: does a metric keep predicting the answers when more passages are shown?

Contexts of each size are drawn as in ``alignment``, and metrics are correlated with the outcome at each size. Contexts
of an evaluation are cut at each size; the outcome may then be a metric, so that no model is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import polars as pl

from ragworth.core.errors import InputError, format_count, format_list
from ragworth.data import Contexts, Outcomes, Scores
from ragworth.judging.contract import option
from ragworth.metrics.cutoffs import cut_names, metric_family
from ragworth.metrics.declaration import Metric
from ragworth.metrics.parsing import parse
from ragworth.prediction.correlations import Prediction
from ragworth.prediction.sizes import SizedPredictions, spread_over_sizes
from ragworth.prediction.system_order import order_notes
from ragworth.report.study.charts import curve_chart
from ragworth.report.study.page import Row, StudyPage, TableText, estimate_rows
from ragworth.report.study.table_charts import outcome_curve, outcome_figure, shared_lines
from ragworth.report.wording import (
    MEASURE_NAMES,
    best_words,
    count_queries,
    few_queries_hint,
    p_words,
    signed,
    with_interval,
)
from ragworth.score_rows import (
    GRADE,
    NO_GRADES_REMEDY,
    PARTIAL_GRADE,
    ScoreRows,
    aspect_of,
    outcome_name,
    rows_of_aspect,
)
from ragworth.stats.estimate import mean_estimates
from ragworth.stats.paired import difference, is_reliable
from ragworth.stats.systems import FEWEST
from ragworth.studies.alignment import RELEVANCE_METRICS
from ragworth.studies.bench import Bench
from ragworth.studies.candidates import draw_sizes
from ragworth.studies.contract import MEASURES, Case, PoolStudy, Published, parse_numbers
from ragworth.studies.contrast import KINDS, Floats, OutcomeGrid

LINES, BANDS = 8, 4
"""Curves in a figure, and up to how many have their intervals drawn; the table has them all."""
OVER_SYSTEMS = "over systems, of their means", ", over systems"


@dataclass(frozen=True)
class ContextSize(PoolStudy):
    """How well metrics predict what the model makes of contexts of each size.

    For each size k contexts are drawn as in alignment, of the same queries for every size: those with enough passages
    for the largest. Metrics are cut at k. Within each query the metric is correlated with the outcome over the contexts
    of one size. Contexts of an evaluation are cut at each k: metrics are computed again, and the outcome stays that of
    the whole context, or is a metric (against). Then the means of the systems are correlated too.
    """

    sizes: str = option("1-5,10,15", "numbers of passages shown, such as 1-5,10,15")
    contexts: int = option(10, "contexts of each size drawn for each query", low=2, high=1000)
    sampling: str = option("balanced", "how contexts are drawn", choices=("balanced", "plain"))
    measure: str = option("spearman", "correlation of metrics with the outcome", choices=MEASURES)
    against: str | None = option(
        None, "metric to predict instead of an outcome: Cov is cut at each size, Cov@20 stays as it is"
    )

    kind: ClassVar[str] = "context-size"
    title: ClassVar[str] = "whether metrics keep predicting the answers when more is shown"
    question: ClassVar[str] = "Context size: do metrics keep predicting the answers when more is shown?"
    published: ClassVar[Mapping[str, Published]] = {
        "paper": Published(
            "Trappolini et al., Redefining Retrieval Evaluation in the Era of LLMs, Figures 2 and 3",
            {"sizes": "1-10", "contexts": 10, "depth": 25, "sampling": "balanced", "measure": "spearman"},
            RELEVANCE_METRICS,
            queries=50,
            differences=("the same queries are used for every size: those with enough passages for the largest",),
            partial=True,
        )
    }
    design_column: ClassVar[str] = "size"
    why_ours: ClassVar[str] = "It goes up to 15 passages, with the metrics that an evaluation shows."
    judges: ClassVar[tuple[str, ...]] = ("abstention",)

    def check(self) -> None:
        parse_numbers(self.sizes, "sizes")
        if self.against is not None:
            parse(self.against)
            if self.outcome is not None:
                raise InputError("both an outcome and a metric are to be predicted", expected="outcome or against")

    @property
    def cuts(self) -> list[int]:
        return parse_numbers(self.sizes, "sizes")

    def run(self, bench: Bench) -> Case:
        largest = max(self.cuts)
        self.check_learned(bench.metrics)
        if self.depth < largest:
            found = f"contexts of {largest} passages can't be drawn from {self.depth}"
            raise InputError(found, expected="depth ≥ the largest size")
        drawn = draw_sizes(bench.pool(self.depth, self.retriever), self.contexts, self.cuts, sampling=self.sampling)
        bench.judge(list(bench.space.judgments), drawn.contexts)
        if self.against is None:
            bench.answer(drawn.contexts)
        sizes = [size for size in self.cuts for _ in range(self.contexts)]
        case = bench.case(drawn.contexts, pl.DataFrame({"system": list(drawn.shown), "size": sizes}), (), drawn.left)
        families = dict.fromkeys(family for name in bench.metrics_at(largest) if (family := metric_family(name)))
        every = _contexts(case, self.cuts).items()
        scores = [case.results.score([*cut_names(families, k)], contexts).frame for k, contexts in every]
        return case.with_tables(scores=Scores.trusted(pl.concat(scores)))

    def check_learned(self, metrics: Iterable[str]) -> None:
        """Refuse metrics that are learned for a size that isn't studied."""
        for name in metrics:
            if (metric := metric_family(name)) is not None and metric.cutoff not in (None, *self.cuts):
                found = f"{name} is learned for {metric.cutoff} passages, and the sizes are {self.sizes}"
                raise InputError(found, remedy=f"add {metric.cutoff} to --sizes, or leave the metric out")

    def take(self, case: Case) -> Case:
        if case.is_designed:
            super().take(case)
        SizedCase(self, case)  # refuses what can't be cut and scored
        return case

    def tables(self) -> Mapping[str, TableText]:
        return {
            "correlation": TableText(
                f"{MEASURE_NAMES[self.measure]} with the outcome, by context size",
                "over queries: mean of the correlations within queries; deviation: their standard deviation; n: "
                "queries that have one. Over systems: of the systems' means; n: systems",
            ),
            "spread": TableText("How much it varies over the sizes", "deviation: standard deviation over the sizes"),
            "outcomes": TableText(
                "What became of the contexts, by size",
                "shares and means over queries; low and high: of the share of correct answers, or of the mean",
            ),
        }

    def examine(self, case: Case, page: StudyPage) -> None:
        sized = SizedCase(self, case)
        found = sized.predictions.found
        page.note(case, *sized.notes, *sized.order_notes())
        page.lead(case, sized.lead())
        rows = estimate_rows(("over", "metric", "k"), found, "correlation", "left out", unit="n")
        for row, key in zip(rows, found, strict=True):
            row["deviation"] = sized.predictions.deviation(*key)
            if sized.partial:
                row[f"with {PARTIAL_GRADE}"] = sized.partial.get(key)
        correlations = page.add("correlation", case, rows)
        spread = page.add("spread", case, spread_over_sizes(correlations))
        outcomes = page.add("outcomes", case, sized.outcome_rows())
        ranked = {over: spread.filter(pl.col("over") == over) for over in sized.ways}
        for over, part in ranked.items():
            page.say(case, *sized.best_sentences(over, part.to_dicts()))
        best = next(iter(ranked["queries"]["metric"]), "")
        page.say(case, sized.answer_sentence())
        for (over, metric, k), one in found.items():
            if over == "queries" and metric == best:
                page.leave_out(case, {f"{why} ({metric}, k = {k})": number for why, number in one.reasons.items()})
        for over, part in ranked.items():
            order = part.select("over", "metric")
            table = order.join(correlations, on=["over", "metric"], maintain_order="left_right")
            if table.height:
                self._draw_correlations(page, case, over, table)
        if sized.moves and "correct" in outcomes.columns:
            caption = "Every other context has a relevant passage." if self.sampling == "balanced" else ""
            spec = outcome_figure(outcomes.with_columns(pl.format("k = {}", "k").alias("k")), "k", "accuracy")
            page.draw("answers", "What became of the answers, by context size", caption, spec, case)
        elif sized.moves:
            caption = f"Mean with its {self.level:.0%} interval over queries."
            spec = curve_chart(outcome_curve(outcomes, "k", pl.lit(sized.aspect)), "passages shown", "mean")
            page.draw("outcome", f"{sized.aspect} by context size", caption, spec, case)

    def _draw_correlations(self, page: StudyPage, case: Case, over: str, table: pl.DataFrame) -> None:
        lines, more = shared_lines(table, "k", "correlation", LINES)
        band, words = lines["line"].n_unique() <= BANDS, MEASURE_NAMES[self.measure]
        of, end = ("within queries, over their contexts", "") if over == "queries" else OVER_SYSTEMS
        ends = f"{self.level:.0%} intervals over queries" if band else "intervals are in the table"
        below = lines.filter(pl.min_horizontal("value", "low") < 0).height > 0
        spec = curve_chart(lines, "passages shown", words, zero=below, band=band)
        caption = f"{words} {of}; {ends}. Metrics that agree share a line.{more}"
        page.draw(f"correlation-{over}", f"How well metrics predict, by context size{end}", caption, spec, case)


def _contexts(case: Case, cuts: Sequence[int]) -> dict[int, Contexts]:
    """The contexts of each size: those made of that size, or all, which metrics cut there."""
    contexts = case.results.contexts
    if not case.is_designed:
        deepest = cast(int, contexts.frame["rank"].max() or 0)
        return {k: contexts for k in cuts if k <= deepest}
    sizes = {k: case.design.filter(pl.col("size") == k)["system"].to_list() for k in cuts}
    return {k: contexts.having("system", systems) for k, systems in sizes.items() if systems}


class SizedCase:
    """One case, by context size."""

    def __init__(self, study: ContextSize, case: Case) -> None:
        self.study, self.case = study, case
        self.against = parse(study.against) if study.against is not None else None
        self.notes: list[str] = []
        self.families = self._families()
        self.contexts = _contexts(case, study.cuts)
        if not self.families:
            found = f"{case.name}: there are no scores of a metric that can be cut"
            raise InputError(found, remedy="name metrics: -m nDCG@5")
        if not self.contexts:
            found = f"{case.name}: no context has one of the sizes {study.sizes}"
            raise InputError(found, remedy="name others: --sizes")
        if lost := [str(k) for k in study.cuts if k not in self.contexts]:
            self.notes.append(f"no context has {format_list(lost, 20)} passages")
        given = self.against is None
        self.aspect = aspect_of(case.results.outcomes, study.outcome, case.name) if given else str(self.against)
        self.moves = case.is_designed or (self.against is not None and self.against.cutoff is None)
        """Whether each size has an outcome of its own."""
        few = case.is_designed or len(case.results.contexts.systems) < FEWEST
        self.ways = ["queries"] if few else ["queries", "systems"]

    def _families(self) -> list[Metric]:
        names = self.case.results.scores.frame["metric"].unique(maintain_order=True).to_list()
        found = {name: metric_family(name) for name in names}
        self.study.check_learned(names)
        if fixed := [name for name, metric in found.items() if metric is None]:
            self.notes.append(f"{format_list(fixed, 12)} can't be cut at other sizes, so left out")
        if learned := format_list([name for name, metric in found.items() if metric and metric.cutoff], 12):
            self.notes.append(f"{learned} is learned for one size, so it has a value at that size only")
        own = self.against and replace(self.against, cutoff=None)
        return list(dict.fromkeys(metric for metric in found.values() if metric and metric != own))

    @cached_property
    def rows(self) -> dict[int, ScoreRows]:
        return {size: self._rows(size, contexts, self.aspect) for size, contexts in self.contexts.items()}

    @cached_property
    def partial(self) -> dict[tuple[str, str, int], float | None]:
        """The correlations within queries with `PARTIAL_GRADE`, by the keys of the others; empty without it."""
        if self.aspect != GRADE or not self.case.results.outcomes_of(PARTIAL_GRADE).height:
            return {}
        every = {size: self._rows(size, contexts, PARTIAL_GRADE) for size, contexts in self.contexts.items()}
        study = self.study
        return {
            ("queries", metric, size): one.value
            for size, rows in every.items()
            for metric, one in zip(rows.metrics, Prediction(rows, study.measure, study.plan).within, strict=True)
        }

    def _rows(self, size: int, contexts: Contexts, aspect: str) -> ScoreRows:
        """Scores cut at a size beside an outcome."""
        results, cut = self.case.results, cut_names(self.families, size)
        if self.against is not None:
            target = str(replace(self.against, cutoff=self.against.cutoff or size))
            frame = results.score([target], contexts).frame
            frame = frame.with_columns(aspect=pl.lit(aspect), source=pl.lit("score"))
            results = replace(results, outcomes=Outcomes.trusted(frame.select(list(Outcomes.schema))))
        results = replace(results, scores=results.score(list(cut), contexts))
        rows = rows_of_aspect(results, aspect, list(cut), self.case.name)
        if not rows.queries:
            found = f"{self.case.name}: no context of size {size} has both an outcome and scores"
            raise InputError(found, remedy=NO_GRADES_REMEDY)
        return rows._replace(metrics=list(cut.values()))

    @cached_property
    def predictions(self) -> SizedPredictions:
        return SizedPredictions(
            self.rows, self.study.measure, self.study.plan, self.ways, self.case.results.conversations
        )

    @cached_property
    def outcome(self) -> OutcomeGrid:
        """The outcomes of all contexts: what they are called, and how they are written."""
        values = np.concatenate([rows.outcome_as_given for rows in self.rows.values()])
        return OutcomeGrid([], self.predictions.queries, values, self.aspect, self.predictions.clusters)

    def _query_means(self, size: int, kind: str = "correct") -> Floats:
        """By query that a size has, the share of contexts with this grade; the mean outcome if it isn't a grade."""
        rows = self.rows[size]
        values = (rows.outcome == KINDS[kind]).astype(np.float64) if self.outcome.graded else rows.outcome_as_given
        return np.asarray(np.nanmean(rows.grid(values), axis=1))

    def outcome_rows(self) -> Iterator[Row]:
        """What became of the contexts of each size, every query counting the same; one row if all have one outcome."""
        for size, rows in list(self.rows.items())[: None if self.moves else 1]:
            means = self._query_means(size)[:, None]
            (mean,) = mean_estimates(means, self.study.plan, self.outcome.bounds, rows.query_clusters)
            kinds = {kind: float(self._query_means(size, kind).mean()) for kind in KINDS if self.outcome.graded}
            row: dict[str, object] = {"k": size if self.moves else None, **(kinds or {"mean": mean.value})}
            row |= {"low": mean.low, "high": mean.high, "queries": mean.n, "contexts": len(rows.queries)}
            yield row | ({"conversations": mean.clusters} if mean.clusters is not None else {})

    def order_notes(self) -> list[str]:
        """How sure the order of the systems is, where metrics are compared with it; by the largest contexts."""
        rows = self.rows[max(self.rows)]
        known = "systems" in self.ways
        return order_notes(rows.grid(rows.outcome), self.aspect, self.study.plan, rows.query_clusters) if known else []

    def lead(self) -> str:
        sizes, queries = format_list([str(k) for k in self.rows], 20), self.outcome.number
        systems = format_count(len(self.case.results.contexts.systems), "system")
        lead = f"the contexts of {systems} for {queries}, cut at {sizes} passages"
        if self.case.is_designed:
            number = format_count(sum(len(rows.queries) for rows in self.rows.values()), "context")
            lead = f"{number} of {queries}, of {sizes} passages"
        return f"{lead}, with the outcome {outcome_name(self.aspect)}{'' if self.moves else ' of the whole context'}."

    def best_sentences(self, over: str, ranked: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Which metric predicts best over all sizes, and which varies least. ``ranked``: rows of the spread."""
        where = "" if over == "queries" else "over systems, "
        if not ranked:
            yield f"{where}no metric has a correlation with the outcome."
            return
        means = {row["metric"]: self.predictions.means[over, row["metric"]] for row in ranked}
        sure = [row for row in ranked if is_reliable(means[row["metric"]], self.study.plan.alpha)]
        best = _alike(sure or ranked, "sizes", "mean")
        first, surest = best[0], bool(sure) and sure[0] is not ranked[0]
        one = means[first["metric"]]
        what = best_words([row["metric"] for row in best], sure=bool(sure), surest=surest)
        unit = count_queries(one.n) if over == "queries" else format_count(one.n, "system")
        measure = MEASURE_NAMES[self.study.measure]
        figure = f"{measure} {with_interval(one)} over {unit}"
        hint = few_queries_hint(one.n) if over == "queries" else ""
        if first["sizes"] == 1:
            yield f"{where}{what}: {figure} (k = {first['lowest at k']}).{hint}"
            return
        low, high = (f"{signed(first[end])} (k = {first[f'{end} at k']})" for end in ("lowest", "highest"))
        same = len(_alike(best, "lowest", "lowest at k", "highest", "highest at k")) == len(best)
        yield f"{where}{what} over all sizes: mean {figure}{f', from {low} to {high}' if same else ''}.{hint}"

    def answer_sentence(self) -> str:
        """What more passages do to the outcome."""
        first, last = min(self.rows), max(self.rows)
        if not self.moves or first == last:
            return ""
        a, b = (self.predictions.aligned(k, self._query_means(k)) for k in (first, last))
        both, words = ~np.isnan(a + b), self.outcome
        one = difference(b, a, "wilcoxon", self.study.plan, words.bounds, words.clusters)
        if one.value is None:
            return ""
        start, end = (words.say(float(side[both].mean())) for side in (a, b))
        test = f"{words.interval(one)}, Wilcoxon {p_words(one.p)}"
        ends = f"from {start} at k = {first} to {end} at k = {last}"
        return f"{words.what} goes {ends}, a difference of {words.change(one.value)} {test}."


def _alike(rows: Sequence[Mapping[str, Any]], *figures: str) -> list[Mapping[str, Any]]:
    """The rows whose figures are those of the first."""
    return [row for row in rows if all(round(row[name] - rows[0][name], 12) == 0 for name in figures)]
