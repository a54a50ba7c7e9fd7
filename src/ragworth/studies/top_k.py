"""``top-k``: which metric predicts the answers when few or many passages are shown?

The rankings of the systems are cut at several K, answered and graded. Contexts are pooled by how K compares with N_p,
the number of relevant passages: narrow if K < N_p, wide if not, and in cells of the ratio K/N_p. In each, every metric
is correlated with the outcome, over all contexts. In the results of an evaluation, K is what was shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl

from ragworth.core.errors import InputError, format_count, format_list
from ragworth.data import Scores
from ragworth.fitting.alpha_sweep import AlphaSweep
from ragworth.fitting.context_pools import PARTS, PooledContexts, Segment
from ragworth.fitting.parameter_choice import CorrelationOptions
from ragworth.judging.contract import option
from ragworth.metrics.cutoffs import bare_name
from ragworth.metrics.parsing import parse, try_parse
from ragworth.prediction.correlations import MIN_SHARE_OF_QUERIES, Prediction
from ragworth.report.study.page import Row, StudyPage, TableText, columns
from ragworth.report.study.table_charts import heat_figure
from ragworth.report.wording import MEASURE_NAMES, best_words, count_queries, few_queries_hint, signed, with_interval
from ragworth.score_rows import ScoreRows, outcome_name, rows_of
from ragworth.scoring import score_at_sizes
from ragworth.stats.bins import bin_values
from ragworth.stats.correlation import correlation
from ragworth.stats.estimate import Estimate
from ragworth.stats.paired import correct_alike, correct_by_holm, is_reliable
from ragworth.studies.bench import Bench
from ragworth.studies.candidates import ContextLists, contexts_from_lists, lists_by_system, no_queries_error
from ragworth.studies.contract import MEASURES, Case, Published, Study, parse_numbers
from ragworth.studies.contrast import KINDS

METRICS = ("F", "F_e", "T", "T_u", "P", "R", "F1", "nDCG(ideal=retrieved)")
"""What is compared by default, each at its context's own K."""
PLACES = dict(zip(PARTS, ("narrow contexts (K < N_p)", "wide contexts (K ≥ N_p)", "all contexts"), strict=True))
RATIO = "K/N_p"
SCALES = {"ideal": (1.0, 2.0, 3.0, 4.0, 5.0)}
GRADES = {value: name for name, value in KINDS.items()}
Found = tuple[Segment, Prediction, dict[int, float]]


@dataclass(frozen=True)
class TopK(Study):
    """Which metric predicts the answers when few or many passages are shown, relative to the number of relevant ones.

    The ranking of each system is cut at each of the sizes; if it is shorter, that context is left out and counted.
    Metrics have no cutoff: each context is scored at its own K, and N_p counts what the metrics count as relevant.
    Contexts are pooled by system and by K/N_p, rounded to one decimal. Cells with fewer than `least` contexts are
    counted and left out. Intervals are over queries. The best α of F, F_e, T and T_u is chosen in-sample, as in the
    paper, and cross-validated. In results of an evaluation, systems are one if their names differ only in what `same`
    matches.
    """

    sizes: str = option("1,3,5,10", "numbers of passages shown, such as 1,3,5 or 2-15")
    least: int = option(300, "contexts that a cell needs", low=2)
    level_relevant: float = option(1.0, "lowest label that counts as relevant")
    measure: str = option("spearman", "correlation over the contexts of a part or cell", choices=MEASURES)
    outcome: str | None = option(None, "outcome to predict; by default the grade. ideal: 1 to 5, as in the paper")
    compare: str = option("T-F,T_u-T,nDCG-F,F_e-F,T-nDCG", "pairs of metrics whose correlations are subtracted")
    same: str | None = option(None, "regular expression: what to ignore in names of systems, so that they are one")
    alpha: str = option("fixed", "α in parts and cells: the metric's, or the best in each", choices=("fixed", "best"))
    folds: int = option(5, "folds of the queries for the cross-validated α", low=2, high=100)

    kind: ClassVar[str] = "top-k"
    title: ClassVar[str] = "which metric predicts the answers when few or many passages are shown"
    question: ClassVar[str] = "Top-k: which metric predicts the answers when few or many passages are shown?"
    published: ClassVar[Mapping[str, Published]] = {
        "paper": Published(
            "Schwartz, Vasilyev and Sawaya, How Important Is Recall for Measuring Retrieval Quality?, Figures 2–20",
            {"sizes": "2-15", "least": 300, "measure": "spearman", "outcome": "ideal", "alpha": "best"},
            ("F", "F_e", "T", "T_u", "nDCG(ideal=retrieved)"),
            tasks={"answers": {"prompt": "papers/answer-complete"}, "ideal": {"prompt": "papers/ideal"}},
            differences=(
                "N_p and the number of candidates are those of the collection; the paper varies both",
                "K ends at 15, also for queries with 15 relevant passages, for which the paper goes on to 20",
                'candidates are those of the systems; dense(among="judged") ranks labelled passages, as in the paper',
            ),
        )
    }
    why_ours: ClassVar[str] = (
        "It predicts the workspace's grade, at fewer sizes, since each is answered anew, and keeps α fixed, since the "
        "best α of a cell flatters its metric."
    )

    def check(self) -> None:
        parse_numbers(self.sizes, "sizes")
        self.pairs()
        try:
            re.compile(self.same or "")
        except re.error as error:
            raise InputError(f"same is {self.same!r}, which is no regular expression: {error}") from error

    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of metrics to compare."""
        found = [tuple(each.strip().split("-")) for each in self.compare.split(",") if each.strip()]
        if any(len(each) != 2 or not all(each) for each in found):
            raise InputError(f"compare is {self.compare!r}", expected="pairs of metrics, such as T-F,nDCG-F")
        return found  # type: ignore[return-value]

    def run(self, bench: Bench) -> Case:
        names = self._metric_names(bench)
        found = bench.retrieve()
        shown, design, left = self._cut(bench, lists_by_system(found))
        contexts = contexts_from_lists(shown)
        bench.judge_for(names, contexts)
        bench.answer(contexts)
        case = bench.case(contexts, design, (), left)
        # Over the whole ranking: F_e looks at twice as many passages as are shown.
        how = {"ratings": bench.all_ratings, "complete": False}
        scores = score_at_sizes(found, bench.all_judgments, names, parse_numbers(self.sizes, "sizes"), **how)
        mine = scores.join(contexts.frame, on=["system", "query"], how="semi", maintain_order="left")
        return case.with_tables(scores=Scores.trusted(mine))

    def _metric_names(self, bench: Bench) -> list[str]:
        """The metrics, at the level of the study if they don't say what counts as relevant."""
        made = []
        for metric in map(parse, bench.metrics or (self.design.metrics if self.design is not None else METRICS)):
            if metric.cutoff:
                why = f"{metric} has a cutoff, and here every context has its own"
                raise InputError(why, remedy=f"write {replace(metric, cutoff=None)}")
            level = {"rel": self.level_relevant} if "rel" in metric.values else {}
            made.append(str(metric.declaration.bind(None, **level | dict(metric.parameters))))
        self._check_levels(made)
        return made

    def _check_levels(self, names: Sequence[str], where: str = "") -> None:
        """Refuse metrics for which other passages are relevant than those that N_p counts."""
        known = {name: metric.values.get("rel") for name in names if (metric := try_parse(name)) is not None}
        wrong = {name: level for name, level in known.items() if level not in (None, self.level_relevant)}
        if wrong:
            (first, level), mine = next(iter(wrong.items())), f"{self.level_relevant:g}"
            found = f"{where}{format_list(list(wrong))}: relevant from {level:g} on, and N_p counts from {mine} on"
            other = f"-m '{parse(first).name}(rel={mine})'"
            raise InputError(found, remedy=f"give --level-relevant {level:g}, or metrics at that level: {other}")

    def _cut(self, bench: Bench, lists: ContextLists) -> tuple[ContextLists, pl.DataFrame, Counter[str]]:
        """Contexts by system and size; what they are, with how many are too short; and queries left out."""
        queries, labels = bench.material.step_context.ids, bench.material.step_context.labels
        everything = bench.space.answers is not None and bench.space.answers.everything
        answered = set() if everything else set(bench.collection.answers["query"])
        asked = [query for query in queries if not answered or query in answered]
        good = [q for q in asked if any(label >= self.level_relevant for label in labels.get(q, {}).values())]
        lost = {"no accepted answers": len(queries) - len(asked), "no relevant passage": len(asked) - len(good)}
        left = +Counter(lost)  # without those of which there are none
        shown: ContextLists = {}
        good, design = good[: bench.limit], []
        for system, found in lists.items():
            for k in parse_numbers(self.sizes, "sizes"):
                mine = {query: found[query][:k] for query in good if len(found.get(query, ())) >= k}
                shown |= {f"{system}@{k}": mine} if mine else {}
                design.append({"system": f"{system}@{k}", "retriever": system, "k": k, "short": len(good) - len(mine)})
        if not shown:
            raise no_queries_error(left, "retrieve more passages, or give more labels")
        return shown, pl.DataFrame(design), left

    def take(self, case: Case) -> Case:
        names = rows_of(case.results, self.outcome, name=case.name).metrics
        if case.results.judgments is None or not case.results.judgments.of("relevance").height:
            why = f"{case.name}: there are no relevance labels, so N_p is unknown"
            raise InputError(why, remedy="name qrels under [collection]")
        self._check_levels(names, f"{case.name}: ")
        return case

    def tables(self) -> Mapping[str, TableText]:
        words = MEASURE_NAMES[self.measure]
        best = "; α: the best in this part or cell, in-sample" if self.alpha == "best" else ""
        return {
            "correlations": TableText(
                f"{words} with the outcome, in parts and in cells of K/N_p",
                "narrow: K < N_p; wide: K ≥ N_p; low, high and p are of the first correlation, over queries; p_holm "
                f"corrected by Holm over the metrics in the parts of a system, or in its cells{best}",
            ),
            "differences": TableText(
                f"{words} of one metric minus that of another",
                "p by a paired bootstrap over queries, p_holm corrected by Holm over the parts and cells of a pair",
            ),
            "alpha": TableText(
                f"The best α, by {words} with the outcome",
                "in-sample: α chosen and tested on all contexts of the part; cross-validated, with its interval: "
                f"chosen on all but one of {self.folds} folds of the queries and tested on that one, mean over folds",
            ),
            "cells": TableText(
                "Contexts in each cell, and shares of their outcomes", f"used: cells of {self.least:,} or more", True
            ),
        }

    def examine(self, case: Case, page: StudyPage) -> None:
        every = rows_of(case.results, self.outcome, name=case.name)
        known = dict(case.design.select("system", "retriever").iter_rows()) if case.is_designed else {}
        names = {name: known.get(name) or re.sub(self.same or "$", "", name) or name for name in every.systems}
        most = None if case.is_designed else case.results.manifest.get("settings", {}).get("k")
        pool = PooledContexts(case.results, every, self.level_relevant, names, most)
        rows, (parts, every_cell), sweeps = pool.rows, pool.segments(), pool.sweeps()
        if not parts:
            why = f"{case.name}: no context with an outcome is of a query with a relevant passage"
            raise InputError(why, remedy="give more labels, or lower what counts as relevant (--level-relevant)")
        cells = [each for each in every_cell if each.contexts >= self.least]
        queries = count_queries(len(set(rows.queries)))
        contexts, systems = format_count(len(rows.queries), "context"), format_count(len(pool.retrievers), "system")
        parts_of = f"{int((~pool.wide).sum()):,} narrow and {int(pool.wide.sum()):,} wide"
        large = f"{format_count(len(cells), 'cell')} of {self.least:,} contexts or more"
        outcome = outcome_name(rows.aspect)
        page.lead(case, f"{contexts} of {queries} and {systems} with the outcome {outcome}, {parts_of}; {large}.")
        page.leave_out(case, {"no relevant passage": pool.without})
        if "short" in case.design.columns:
            short = case.design.group_by("k", maintain_order=True).agg(pl.sum("short")).iter_rows()
            page.leave_out(case, {f"fewer than {k} passages found": n for k, n in short}, "contexts")
        nowhere = ~np.any([np.zeros_like(pool.wide), *(cell.keep for cell in cells)], axis=0)
        page.leave_out(case, {f"in no cell of {self.least:,} contexts or more": int(nowhere.sum())}, "contexts")
        found = [self._predict(rows, each, sweeps) for each in (*parts, *cells)]
        table = page.add("correlations", case, self._correlations(found, sweeps))
        gaps = page.add("differences", case, self._gaps(found, self._known_pairs(rows.metrics)))
        best = [
            {**part.columns, "metric": rows.metrics[at]} | sweep.summary(part.keep, self._options)
            for part in parts
            for at, sweep in sweeps.items()
        ]
        alpha = page.add("alpha", case, best)
        page.say(case, *self._sentences(parts[0].system, table, gaps, alpha))
        place, kinds = bin_values(rows.outcome_as_given, SCALES.get(rows.aspect, ()), GRADES)
        counts = [
            {**cell.columns, "contexts": cell.contexts, "used": cell.contexts >= self.least}
            | {name: float((place[cell.keep] == at).mean()) for at, name in enumerate(kinds)}
            for cell in every_cell
        ]
        used = page.add("cells", case, counts).filter("used")
        if cells:
            self._draw(page, case, table, gaps, used.unpivot(kinds[::-1], index=["system", RATIO, "contexts"]))

    @property
    def _options(self) -> CorrelationOptions:
        return CorrelationOptions(self.measure, self.folds, *self.plan)  # type: ignore[arg-type]

    def _known_pairs(self, metrics: Sequence[str]) -> list[tuple[int, int]]:
        """The pairs to compare, by column; if none of those named is there, the first metric with some others."""
        known = {bare_name(name): at for at, name in reversed(list(enumerate(metrics)))}
        known |= {name: at for at, name in enumerate(metrics)}
        named = [(known[a], known[b]) for a, b in self.pairs() if a in known and b in known]
        return named or [(at, 0) for at in range(1, min(5, len(metrics)))]

    def _predict(self, rows: ScoreRows, segment: Segment, sweeps: Mapping[int, AlphaSweep]) -> Found:
        """A part or cell, its metrics against the outcome, and the α of each metric whose best α is taken."""
        mine, alpha = rows.only(segment.keep), {}
        for at, sweep in sweeps.items() if self.alpha == "best" else ():
            best = sweep.best(segment.keep, self._options)
            mine.values[:, at], alpha[at] = sweep.values[segment.keep, best], sweep.grid.values[best]
        return segment, Prediction(mine, self.measure, self.plan), alpha

    def _correlations(self, found: Sequence[Found], sweeps: Mapping[int, AlphaSweep]) -> Iterator[Row]:
        """Every metric in every part and cell, by the chosen correlation with its interval, and by all four."""
        tested = self._tested(found, sweeps)
        for segment, prediction, alpha in found:
            rows = prediction.rows
            for at, name in enumerate(rows.metrics):
                one = tested[segment.system, segment.place, at]
                row = {**segment.columns, "metric": name} | ({"α": alpha.get(at)} if self.alpha == "best" else {})
                for measure, words in MEASURE_NAMES.items():
                    row[words] = correlation(rows.values[:, at], rows.outcome, measure).value  # type: ignore[arg-type]
                yield row | columns(one, "correlation", "p", "p_holm", "counts", "left out", unit="contexts")

    @staticmethod
    def _tested(found: Sequence[Found], sweeps: Mapping[int, AlphaSweep]) -> dict[tuple[str, str, int], Estimate]:
        """The chosen correlations by system, place and metric, with their p.

        Holm's correction is over the metrics in all parts of a system, or in all of its cells. An α that was chosen on
        the same contexts counts as many times as there were values to choose from.
        """
        families: dict[tuple[str, bool], dict[tuple[str, str, int], Estimate]] = {}
        for segment, prediction, alpha in found:
            family = families.setdefault((segment.system, segment.place in PARTS), {})
            for at, one in enumerate(prediction.pooled):
                tries = len(sweeps[at].grid.values) if at in alpha else 1
                p = None if one.p is None else min(1.0, tries * one.p)
                family[segment.system, segment.place, at] = one._replace(p=p)
        tests: dict[tuple[str, str, int], Estimate] = {}
        for family in families.values():
            tests |= zip(family, correct_alike(list(family.values())), strict=True)
        return tests

    def _gaps(self, found: Sequence[Found], pairs: list[tuple[int, int]]) -> Iterator[Row]:
        """One metric's correlation minus another's, in every part and cell; Holm over those of a pair."""
        every = [prediction.gaps(pairs, pooled=True) for _, prediction, _ in found]
        for number, (a, b) in enumerate(pairs):
            for at, one in correct_by_holm({at: gaps[number] for at, gaps in enumerate(every)}).items():
                segment, prediction, _ = found[at]
                names = {"first": prediction.rows.metrics[a], "second": prediction.rows.metrics[b]}
                yield segment.columns | names | columns(one, "difference", "p", "p_holm", "counts", unit="contexts")

    def _sentences(self, system: str, table: pl.DataFrame, gaps: pl.DataFrame, alpha: pl.DataFrame) -> Iterator[str]:
        """Which metric predicts the outcome best in each part, what differs significantly, and what α is worth."""
        for place, words in PLACES.items():
            known = _at(table, system, place).drop_nulls("correlation").with_columns(pl.col("correlation").round(12))
            if not known.height and not _at(table, system, place)["contexts"].sum():
                yield f"{words}: there are none."
                continue
            if not known.height:
                yield f"{words}: no metric has a correlation with the outcome."
                continue
            top, verdict = _best(known, self.plan.alpha)
            best = top.row(0, named=True)
            one = Estimate(best["correlation"], best["low"], best["high"])
            tuned = " with α chosen on the same contexts," if self.alpha == "best" else ""
            n = f"{format_count(best['contexts'], 'context')} of {count_queries(best['queries'])}"
            sure = [
                f"{row['first']} {'above' if row['difference'] > 0 else 'below'} {row['second']} by "
                f"{signed(abs(row['difference']))}"
                for row in _at(gaps, system, place).iter_rows(named=True)
                if row["p_holm"] is not None and row["p_holm"] < self.plan.alpha
            ]
            compared = _at(gaps, system, place).drop_nulls("p_holm").height
            more = " No difference between metrics is significant." if compared else ""
            more = f" Significantly different: {format_list(sure, 9)}." if sure else more
            more += few_queries_hint(best["queries"])
            yield f"{words}: {verdict},{tuned} {MEASURE_NAMES[self.measure]} {with_interval(one)} over {n}.{more}"
        told = [
            f"{row['metric']} {with_interval(Estimate(row['cross-validated'], row['low'], row['high']))} (in-sample "
            f"{signed(row['in-sample'])} at α = {row['best α']:g})"
            for row in _at(alpha, system, "all").iter_rows(named=True)
            if row["cross-validated"] is not None
        ]
        yield f"with the best α, cross-validated, over all contexts: {format_list(told, 9)}." if told else ""

    def finish(self, page: StudyPage) -> None:
        parts, words = page.table("correlations").filter(pl.col(RATIO).is_in(PARTS[:2])), MEASURE_NAMES[self.measure]
        names = ["case", "system", RATIO] if page.several else ["system", RATIO]
        named = parts.with_columns(part=pl.concat_str(names, separator=", "))
        spec = heat_figure(named, "part", "metric", "correlation", words)
        caption = f"{words} with the outcome; narrow is K < N_p."
        page.draw("parts", "Metrics when few and when many passages are shown", caption, spec)

    def _draw(self, page: StudyPage, case: Case, table: pl.DataFrame, gaps: pl.DataFrame, shares: pl.DataFrame) -> None:
        """The heatmaps of one case: cells of K/N_p along, systems down."""
        words = MEASURE_NAMES[self.measure]
        order = {name: at for at, name in enumerate(shares["system"].unique(maintain_order=True))}
        rows = shares.sort(pl.col("system").replace_strict(order), maintain_order=True)
        rows = rows.with_columns(row=pl.col("system") + ": " + pl.col("variable"))
        spec = heat_figure(rows, "row", RATIO, "value", "share", share=True, numeric=True)
        caption = "Share of the contexts of a system and cell; those of one system and one K/N_p add up to 1."
        page.draw("outcomes", "Outcomes of the answers", caption, spec, case)
        used = pl.col(RATIO).is_in(shares[RATIO].to_list())
        for number, ((name,), part) in enumerate(table.filter(used).group_by("metric", maintain_order=True), 1):
            title, caption = f"How well {name} predicts the answers", f"{words} with the outcome in each cell."
            spec = heat_figure(part, "system", RATIO, "correlation", words, numeric=True)
            page.draw(f"correlation-{number}", title, caption, spec, case)
        pairs = gaps.filter(used).group_by("first", "second", maintain_order=True) if gaps.height else ()
        for number, ((first, second), part) in enumerate(pairs, 1):
            caption = f"Difference of their {words} with the outcome: above 0, {first} predicts better."
            spec = heat_figure(part, "system", RATIO, "difference", "difference", numeric=True)
            page.draw(f"difference-{number}", f"{first} minus {second}", caption, spec, case)


def _best(known: pl.DataFrame, alpha: float) -> tuple[pl.DataFrame, str]:
    """The rows of the metrics that predict the outcome best, and that in words.

    What a metric says of fewer than half of the contexts is no reason to prefer it. A perfect correlation has no
    interval.
    """
    enough = known.filter(pl.col("contexts") >= MIN_SHARE_OF_QUERIES * pl.max("contexts"))
    perfect = enough.filter(pl.col("correlation") == 1)
    if perfect.height:
        who, s = format_list(perfect["metric"].to_list(), 20), "s" if perfect.height == 1 else ""
        return perfect, f"{who} rank{s} the contexts exactly as the outcome does"
    kinds = ("correlation", "low", "high", "p", "p_holm")
    reliable = [is_reliable(Estimate(*row), alpha) for row in enough.select(kinds).iter_rows()]
    sure = enough.filter(pl.Series(reliable, dtype=pl.Boolean))
    some = sure if sure.height else enough
    top = some.filter(pl.col("correlation") == pl.max("correlation"))
    surest = bool(top["correlation"][0] < enough["correlation"].max())
    names = top["metric"].to_list()
    return top, best_words(names, sure=bool(sure.height), how="the outcome best", surest=surest)


def _at(table: pl.DataFrame, system: str, place: str) -> pl.DataFrame:
    return table.filter((pl.col("system") == system) & (pl.col(RATIO) == place)) if table.height else table
