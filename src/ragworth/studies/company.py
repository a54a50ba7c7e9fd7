"""``company``: do judgments of single passages say what passages do in the company of others?

UDCG and its like add up what each passage is worth alone. Here contexts are drawn, the log-probability of an accepted
answer is split among their passages, and both are compared: within each context, and as predictors of the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np
import polars as pl

from ragworth.core.errors import InputError, format_count
from ragworth.data import OK, Scores
from ragworth.judging.contract import option
from ragworth.judging.contribution.rows import context_rows, passage_rows
from ragworth.prediction.correlations import Prediction
from ragworth.report.study.charts import dot_chart
from ragworth.report.study.page import StudyPage, TableText, estimate_rows
from ragworth.report.wording import MEASURE_NAMES, count_queries, signed, with_interval
from ragworth.results import Results
from ragworth.score_rows import NO_GRADES_REMEDY, rows_of
from ragworth.stats.correlation import Measure, correlation
from ragworth.stats.estimate import Estimate, mean_estimates
from ragworth.stats.range_intervals import Bounds
from ragworth.studies.bench import Bench
from ragworth.studies.candidates import draw_contexts
from ragworth.studies.contract import MEASURES, Case, PoolStudy
from ragworth.workspace.config import TaskConfig, Workspace

JUDGED = ("1 − p_abstain", "relevance", "utility", "alone")
"""What is known of a passage without the others."""
OUTCOMES = ("gain", "contributing", "harm", "effective", "redundancy")
"""What the contributions of a context amount to."""


def judged_passages(results: Results, frame: pl.DataFrame) -> pl.DataFrame:
    """The passages of an annotator's frame that have a contribution, with `JUDGED`; null where it isn't known."""
    known = passage_rows(frame).filter(pl.col("status") == OK, pl.col("passage").is_not_null())
    for aspect in ("abstention", "relevance"):
        judged = results.judgments.of(aspect) if results.judgments is not None else None
        if judged is None or not judged.height:
            known = known.with_columns(pl.lit(None, pl.Float64).alias(aspect))
            continue
        values = judged.filter(pl.col("status") == OK).select("query", "passage", pl.col("value").alias(aspect))
        known = known.join(values, on=["query", "passage"], how="left", maintain_order="left")
    sign = pl.when(pl.col("relevance").fill_null(0) >= 1).then(1.0).otherwise(-1.0)
    known = known.join(_singles(frame), on=["system", "query", "passage"], how="left", maintain_order="left")
    return known.with_columns(
        (1 - pl.col("abstention")).alias("1 − p_abstain"), (sign * (1 - pl.col("abstention"))).alias("utility")
    )


def _singles(frame: pl.DataFrame) -> pl.DataFrame:
    """What each passage adds to the answer if it is the only one."""
    known = context_rows(frame).filter(pl.col("single").is_not_null() & (pl.col("passages").list.len() > 0))
    rows = known.select("system", "query", pl.col("passages").alias("passage"), pl.col("single").alias("alone"))
    return rows.explode("passage", "alone")


def single_correlations(passages: pl.DataFrame, name: str, measure: Measure) -> dict[str, float]:
    """By query, the mean over contexts of the correlation of a judgment with contributions; NaN where there is none."""
    by_query: dict[str, list[float]] = {}
    for (_, query), mine in passages.group_by("system", "query", maintain_order=True):
        both = mine.select(name, "contribution").drop_nulls()
        one = correlation(both[name].to_numpy(), both["contribution"].to_numpy(), measure)
        by_query.setdefault(str(query), []).extend([] if one.value is None else [one.value])
    return _means(by_query)


def overlaps(contexts: pl.DataFrame) -> dict[str, float]:
    """By query, the mean share of what passages add alone that is lost if all are shown; contexts of `context_rows`."""
    by_query: dict[str, list[float]] = {}
    for row in contexts.filter(pl.col("single").is_not_null()).iter_rows(named=True):
        alone = float(np.maximum(row["single"], 0).sum())
        if alone > 0:
            gain = row["logprob"] - row["logprob_alone"]
            by_query.setdefault(row["query"], []).append((alone - gain) / alone)
    return _means(by_query)


def outcome_means(frame: pl.DataFrame, aspect: str) -> dict[str, float]:
    """By query, the mean over contexts of one of `OUTCOMES`."""
    mine = frame.filter(pl.col("aspect") == aspect, pl.col("status") == OK)
    return dict(mine.group_by("query", maintain_order=True).agg(pl.col("value").mean()).iter_rows())


def _means(by_query: Mapping[str, list[float]]) -> dict[str, float]:
    return {query: float(np.mean(values)) if values else float("nan") for query, values in by_query.items()}


def outcomes_as_scores(results: Results, frame: pl.DataFrame) -> Results:
    """Results whose scores have `OUTCOMES` beside the metrics."""
    said = frame.filter(pl.col("aspect").is_in(OUTCOMES))
    more = said.select("system", "query", pl.col("aspect").alias("metric"), "value", "status")
    both = pl.concat([results.scores.frame.select(more.columns), more])
    return replace(results, scores=Scores.trusted(both))


KIND = "contribution"
REMEDY = 'evaluate with contribution = {answer = "accepted"} under [judgments], or name a workspace'


@dataclass(frozen=True)
class Company(PoolStudy):
    """Whether judgments of single passages predict what they contribute next to others.

    Contexts are drawn as in alignment. For each passage of a context there is its contribution to an accepted answer
    (Shapley value of the answer's log-probability) and what was judged of it alone: 1 − p_abstain, relevance, the
    utility u, and what it adds to the answer if it is the only passage. Correlations are within contexts, averaged over
    the contexts of a query, then over queries. Overlap is the share of what passages do alone that is lost in company.
    """

    contexts: int = option(4, "contexts drawn for each query", low=1)
    k: int = option(4, "passages of a context", low=2, high=20)
    sampling: str = option("balanced", "how contexts are drawn", choices=("balanced", "plain"))
    measure: str = option("spearman", "correlation within contexts", choices=MEASURES)

    kind: ClassVar[str] = "company"
    title: ClassVar[str] = "whether judgments of single passages predict what they contribute next to others"
    question: ClassVar[str] = "Company: do passages do next to others what they do alone?"
    judges: ClassVar[tuple[str, ...]] = ("abstention", KIND)
    design_column: ClassVar[str] = "size"

    def check(self) -> None:
        if self.depth < self.k:
            raise InputError(f"contexts of {self.k} passages can't be drawn from {self.depth}", expected="depth ≥ k")

    def fit(self, space: Workspace) -> Workspace:
        """Contributions are to accepted answers: what a model answered may be wrong."""
        task = space.judgments.get(KIND, TaskConfig())
        own = replace(task, settings={**task.settings, "answer": "accepted"})
        return replace(space, judgments={**space.judgments, KIND: own})

    def run(self, bench: Bench) -> Case:
        pool = bench.pool(self.depth, self.retriever)
        drawn = draw_contexts([pool], self.contexts, self.k, sampling=self.sampling)
        bench.judge(list(bench.space.judgments), drawn.contexts)
        bench.answer(drawn.contexts)
        design = pl.DataFrame({"system": list(drawn.shown), "size": [self.k] * self.contexts})
        return bench.case(drawn.contexts, design, bench.metrics_at(self.k), drawn.left)

    def take(self, case: Case) -> Case:
        said = case.results.said.get(KIND)
        if said is None or "gain" not in said["aspect"].to_list():
            raise InputError(f"{case.name}: there are no contributions to accepted answers", remedy=REMEDY)
        return case

    def tables(self) -> Mapping[str, TableText]:
        measure = MEASURE_NAMES[self.measure]
        return {
            "single": TableText(
                f"Mean {measure} of what is judged of single passages with their contribution, within contexts",
                "averaged over the contexts of a query, then over queries; left out: queries in none of whose contexts "
                "both differ between passages",
            ),
            "independence": TableText(
                "What becomes of single passages in company",
                "overlap: of what passages add to the answer alone, the share that is lost when all are shown; "
                "redundancy: of the contributions, the share that others would make up for",
            ),
            "prediction": TableText(
                f"Mean {measure} with the outcome, within queries",
                "metrics of single judgments, and what contributions amount to; gain and harm know an accepted answer",
            ),
            "differences": TableText("The best against the others", "p by a paired bootstrap over queries, then Holm"),
        }

    def examine(self, case: Case, page: StudyPage) -> None:
        frame = case.results.said[KIND]
        contexts = context_rows(frame)
        known = contexts.filter(pl.col("contributions").is_not_null()).height
        queries = count_queries(contexts["query"].n_unique())
        page.lead(case, f"{known:,} of {format_count(contexts.height, 'context')} of {queries} have contributions.")
        passages, measure = judged_passages(case.results, frame), cast(Measure, self.measure)
        judged = {name: single_correlations(passages, name, measure) for name in JUDGED}
        single = self._means(case, judged, (-1.0, 1.0))
        page.add("single", case, estimate_rows(("judgment",), single, "correlation", "left out"))
        others = {name: outcome_means(frame, name) for name in ("redundancy", "effective", "contributing", "harm")}
        lost = self._means(case, {"overlap": overlaps(contexts), **others})
        page.add("independence", case, estimate_rows(("what",), lost, "mean"))
        page.say(case, _single_sentence(single, MEASURE_NAMES[self.measure]), _overlap_sentence(lost))
        self._predict(case, page)

    def _means(
        self, case: Case, each: Mapping[str, Mapping[str, float]], bounds: Bounds | None = None
    ) -> dict[str, Estimate]:
        """The mean over queries of each of these, by query; without those that no query has."""
        found = {}
        for name, by_query in each.items():
            values = np.array(list(by_query.values()), dtype=np.float64)
            if not np.isnan(values).all():
                (found[name],) = mean_estimates(values[:, None], self.plan, bounds, case.clusters(by_query))
        return found

    def _predict(self, case: Case, page: StudyPage) -> None:
        """Which metric goes with the answers, among those of single judgments and of contributions."""
        results = outcomes_as_scores(case.results, case.results.said[KIND])
        rows = rows_of(results, self.outcome, name=case.name)
        if not rows.queries:
            raise InputError(f"{case.name}: no context has an outcome {rows.aspect!r}", remedy=NO_GRADES_REMEDY)
        found = Prediction(rows, self.measure, self.plan)
        page.say(case, found.sentence())
        page.add("prediction", case, found.within_rows())
        page.add("differences", case, found.gap_rows())

    def finish(self, page: StudyPage) -> None:
        measure = MEASURE_NAMES[self.measure]
        caption = f"Mean {measure} with contributions, within contexts, with {self.level:.0%} intervals over queries."
        if page.table("single").height:
            spec = dot_chart(page.dots("single", "judgment", "correlation"), measure, zero=True)
            page.draw("single", "What single judgments say of contributions", caption, spec)


def _single_sentence(found: Mapping[str, Estimate], measure: str) -> str:
    if not found:
        return "no judgment of single passages can be compared with contributions."
    sure = {name: each for name, each in found.items() if each.low is not None and each.low > 0}
    # One that is sure comes before one from few queries, however high.
    name, best = max((sure or found).items(), key=lambda each: _correlation(each[1]))
    figures = f"{measure} {with_interval(best)} over {count_queries(best.n)}"
    others = ", ".join(
        f"{each} {'unknown' if one.value is None else signed(one.value)}" for each, one in found.items() if each != name
    )
    tail = f" (others: {others})" if others else ""
    if not sure:
        none = "no judgment of single passages reliably goes with contributions"
        return f"{none}; {name} comes closest, {figures}{tail}."
    if all(_correlation(each) <= _correlation(best) for each in found.values()):
        verb = "goes best with"
    elif len(sure) == 1:
        verb = "is the only one that reliably goes with"
    else:
        verb = f"goes best, among the {len(sure)} that reliably do, with"
    return f"of single judgments, {name} {verb} what passages contribute: {figures}{tail}."


def _correlation(found: Estimate) -> float:
    """The value, to compare; below all others if unknown."""
    return -2.0 if found.value is None else found.value


def _overlap_sentence(found: Mapping[str, Estimate]) -> str:
    one = found.get("overlap")
    if one is None or one.value is None:
        return ""
    known = one.low is not None and one.high is not None
    figures = f"{one.value:.0%}" + (f" [{one.low:.0%}, {one.high:.0%}]" if known else "")
    if one.low is not None and one.low > 0:
        return f"passages don't add up: {figures} of what they do for the answer alone is lost in company."
    if one.high is not None and one.high < 0:
        return f"passages don't add up: together they do more for the answer than alone (overlap {figures})."
    return f"it can't be told whether passages add up: overlap {figures} over {count_queries(one.n)}."
