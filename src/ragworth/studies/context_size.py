"""``context-size``: does a metric keep predicting the answers when more passages are shown?

Contexts of each size are drawn as in ``alignment``, and metrics are correlated with the outcome at each size. Contexts
of an evaluation are cut at each size; the outcome may then be a metric, so that no model is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import polars as pl

from ragworth.errors import InputError, RagworthError, format_count, format_list
from ragworth.metrics.declaration import Metric
from ragworth.metrics.parsing import parse
from ragworth.report.study.charts import curve_chart
from ragworth.results import Results
from ragworth.scoring import passage_tokens, score
from ragworth.stats.bootstrap import bootstrap_means
from ragworth.stats.correlation import Measure
from ragworth.stats.estimate import Estimate, correct_by_holm, difference, mean_estimates
from ragworth.stats.resampling import expanded_interval
from ragworth.stats.systems import FEWEST, correlate_systems
from ragworth.stats.within_query import query_correlations
from ragworth.studies.alignment import RELEVANCE_METRICS, draw_contexts
from ragworth.studies.bench import Bench
from ragworth.studies.contract import MEASURES, Case, PoolStudy, Published
from ragworth.studies.contrast import KINDS, SHARE, Floats, is_grade, outcome_figure
from ragworth.studies.page import StudyPage, TableText, columns, make_table
from ragworth.studies.pool import DrawnContexts
from ragworth.studies.prediction import Prediction
from ragworth.studies.score_rows import ScoreRows, aspect_of, rows_of
from ragworth.studies.wording import MEASURE_NAMES, between, p_words, parse_numbers, signed
from ragworth.tables import OK, Contexts, Outcomes, Scores
from ragworth.tasks.options import option

LINES, BANDS = 8, 4
"""Curves in a figure, and up to how many have their intervals drawn; the table has them all."""


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
        )
    }
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
        if self.depth < largest:
            raise InputError(
                f"contexts of {largest} passages can't be drawn from {self.depth}", expected="depth ≥ the largest size"
            )
        drawn = self._draw(bench)
        bench.judge(list(bench.space.judgments), drawn.contexts)
        if self.against is None:
            bench.answer(drawn.contexts)
        sizes = [size for size in self.cuts for _ in range(self.contexts)]
        case = bench.case(drawn.contexts, pl.DataFrame({"system": list(drawn.shown), "size": sizes}), (), drawn.left)
        families = {family: None for name in bench.metrics_at(largest) if (family := metric_family(name))}
        parts = [_score(case.results, of, families, size) for size, of in _cut_contexts(case, self.cuts).items()]
        return replace(case, results=replace(case.results, scores=Scores.trusted(pl.concat([p.frame for p in parts]))))

    def _draw(self, bench: Bench) -> DrawnContexts:
        """Contexts of every size, of the queries that have enough passages for the largest."""
        pool = bench.pool(self.depth, self.retriever)
        drawn = {}
        for size in reversed(self.cuts):
            try:
                drawn[size] = draw_contexts([pool], self.contexts, size, sampling=self.sampling)
            except InputError as error:
                remedy = f"retrieve more passages, or show fewer: --sizes below {size}"
                raise InputError(error.found, remedy=remedy) from error
            pool = replace(pool, found={q: pool.found[q] for q in next(iter(drawn[size].shown.values()))})
        shown = {f"k{size:02d}-{arm}": rows for size in self.cuts for arm, rows in drawn[size].shown.items()}
        return DrawnContexts(shown, drawn[max(self.cuts)].left)

    def take(self, case: Case) -> Case:
        if case.is_designed and "size" not in case.design.columns:
            raise InputError(
                f"{case.name}: another study made these contexts, and they have no size",
                remedy=f"name the workspace, an evaluation's results, or what ragworth study {self.kind} wrote before",
            )
        SizedCase(self, case)  # refuses what can't be cut and scored
        return case

    def tables(self) -> Mapping[str, TableText]:
        return {
            "correlation": TableText(
                f"{MEASURE_NAMES[self.measure]} with the outcome, by context size",
                "over queries: mean of the correlations within queries; deviation: their standard deviation; n: "
                "queries that have one. Over systems: of the systems' means; n: systems",
            ),
            "spread": TableText(
                "How much it varies over the sizes", "deviation: standard deviation of the correlation over the sizes"
            ),
            "change": TableText(
                "From the smallest size to the largest",
                "correlation within queries at the largest size minus that at the smallest, over queries that have "
                "both; p by a paired bootstrap, p_holm corrected by Holm for the metrics of a case",
            ),
            "outcomes": TableText(
                "What became of the contexts, by size",
                "shares and means over queries; low and high: of the share of correct answers, or of the mean",
            ),
        }

    def examine(self, case: Case, page: StudyPage) -> None:
        sized = SizedCase(self, case)
        page.note(case, *sized.notes)
        page.lead(case, sized.lead())
        page.add("correlation", case, sized.correlation_rows())
        spread = page.add("spread", case, sized.spread_rows())
        changes = sized.changes()
        sizes = list(sized.rows)
        page.add(
            "change",
            case,
            [
                {"metric": metric, "from": sizes[0], "to": sizes[-1]} | columns(one, "difference", "p", "p_holm")
                for metric, one in changes.items()
            ],
        )
        outcomes = page.add("outcomes", case, sized.outcome_rows())
        for over in sized.ways:
            page.say(case, *sized.best_sentences(over, spread))
        best = next(iter(sized.ranked("queries")), "")
        if (one := changes.get(best)) is not None and one.value is not None and one.p_holm is not None:
            sure = "" if one.is_significant(self.plan.alpha) else ", which may be chance"
            page.say(
                case,
                f"from k = {sizes[0]} to k = {sizes[-1]} the correlation of {best} changes by {signed(one.value)} "
                f"{between(one.interval)}, {p_words(one.p_holm)} after Holm{sure}, over "
                f"{format_count(one.n, 'query', 'queries')}.",
            )
        page.say(case, sized.answer_sentence())
        for (over, metric, k), one in sized.found.items():
            if over == "queries" and metric == best and one.n_left_out:
                page.leave_out(case, {f"{one.reason} ({metric}, k = {k})": one.n_left_out})
        self._figures(page, case, sized, outcomes)

    def _figures(self, page: StudyPage, case: Case, sized: SizedCase, outcomes: pl.DataFrame) -> None:
        words = MEASURE_NAMES[self.measure]
        for over in sized.ways:
            drawn, more = sized.lines(over)
            if not drawn.height:
                continue
            band = drawn["line"].n_unique() <= BANDS
            of = "within queries, over their contexts" if over == "queries" else "over systems, of their means"
            ends = f"; {self.level:.0%} intervals over queries" if band else "; intervals are in the table"
            caption = f"{words} {of}{ends}. Metrics that agree share a line."
            caption += f" {format_count(more, 'more metric')} in the table." if more else ""
            title = f"How well metrics predict, by context size{'' if over == 'queries' else ', over systems'}"
            below = drawn.filter(pl.min_horizontal("value", "low") < 0).height > 0
            spec = curve_chart(drawn, "passages shown", words, zero=below, band=band)
            page.draw(f"correlation-{over}", title, caption, spec, case)
        if not sized.moves:
            return
        if "correct" in outcomes.columns:
            caption = "Every other context has a relevant passage." if self.sampling == "balanced" else ""
            spec = outcome_figure(outcomes.with_columns(pl.format("k = {}", "k").alias("k")), "k", "accuracy")
            page.draw("answers", "What became of the answers, by context size", caption, spec, case)
        else:
            line = outcomes.select(
                pl.lit(sized.aspect).alias("line"),
                pl.col("k").alias("place"),
                pl.col("mean").alias("value"),
                "low",
                "high",
            )
            caption = f"Mean with its {self.level:.0%} interval over queries."
            page.draw(
                "outcome", f"{sized.aspect} by context size", caption, curve_chart(line, "passages shown", "mean"), case
            )


def metric_family(name: str) -> Metric | None:
    """A metric without its cutoff; with it if its weights are learned for one size; None for another tool's."""
    try:
        metric = parse(name)
    except RagworthError:
        return None
    return metric if metric.files else replace(metric, cutoff=None)


def _score(
    results: Results, contexts: Contexts, families: Mapping[Metric, object] | Sequence[Metric], k: int
) -> Scores:
    """Scores of contexts by metrics cut at k; those learned for another size are left out."""
    tokens = passage_tokens(results.collection)
    cut = [str(replace(metric, cutoff=k)) for metric in families if metric.cutoff in (None, k)]
    return score(contexts, results.judgments, cut, ratings=results.ratings, tokens=tokens, complete=False)


def _cut_contexts(case: Case, cuts: Sequence[int]) -> dict[int, Contexts]:
    """The contexts of each size: those made of that size, or all, which metrics cut there."""
    contexts = case.results.contexts
    if not case.is_designed:
        deepest = int(contexts.frame["rank"].max() or 0) if contexts.frame.height else 0  # type: ignore[arg-type]
        return {k: contexts for k in cuts if k <= deepest}
    sizes = {k: case.design.filter(pl.col("size") == k)["system"].to_list() for k in cuts}
    return {
        k: Contexts.trusted(contexts.frame.filter(pl.col("system").is_in(systems)))
        for k, systems in sizes.items()
        if systems
    }


class SizedCase:
    """One case, by context size."""

    def __init__(self, study: ContextSize, case: Case) -> None:
        self.study, self.case = study, case
        self.measure: Measure = study.measure  # type: ignore[assignment]
        self.notes: list[str] = []
        self.against = parse(study.against) if study.against is not None else None
        self.families = self._families()
        self.contexts = _cut_contexts(case, study.cuts)
        if not self.families:
            raise InputError(
                f"{case.name}: there are no scores of a metric that can be cut", remedy="name metrics: -m nDCG@5"
            )
        if not self.contexts:
            raise InputError(
                f"{case.name}: no context has one of the sizes {study.sizes}", remedy="name others: --sizes"
            )
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
        if fixed := [name for name, metric in found.items() if metric is None]:
            self.notes.append(f"{format_list(fixed, 12)} can't be cut at other sizes, so left out")
        if learned := [name for name, metric in found.items() if metric is not None and metric.cutoff]:
            self.notes.append(
                f"{format_list(learned, 12)} is learned for one size, so it has a value at that size only"
            )
        own = replace(self.against, cutoff=None) if self.against is not None else None
        return list(dict.fromkeys(metric for metric in found.values() if metric is not None and metric != own))

    @cached_property
    def rows(self) -> dict[int, ScoreRows]:
        return {size: self._rows(size) for size in self.contexts}

    def _rows(self, size: int) -> ScoreRows:
        """Scores cut at a size beside the outcome."""
        results, contexts = self.case.results, self.contexts[size]
        mine = [metric for metric in self.families if metric.cutoff in (None, size)]
        scores = _score(results, contexts, mine, size)
        outcome = self.study.outcome
        if self.against is not None:
            target = _score(results, contexts, [replace(self.against, cutoff=None)], self.against.cutoff or size)
            outcome, results = self.aspect, replace(results, outcomes=_as_outcomes(target, self.aspect))
        names = [str(replace(metric, cutoff=size)) for metric in mine]
        rows = rows_of(replace(results, scores=scores), outcome, names, self.case.name)
        if not rows.queries:
            raise InputError(f"{self.case.name}: no context of {size} passages has both an outcome and scores")
        return rows._replace(metrics=[str(metric) for metric in mine])

    @cached_property
    def queries(self) -> list[str]:
        """All queries of the case, in one order for every size."""
        return sorted({query for rows in self.rows.values() for query in rows.queries})

    @cached_property
    def by_query(self) -> dict[tuple[str, int], Floats]:
        """The correlation within each query of the case, by metric and size; NaN where there is none."""
        place, made = {query: at for at, query in enumerate(self.queries)}, {}
        for size, rows in self.rows.items():
            found = query_correlations(rows.values, rows.outcome, rows.units, measure=self.measure).values
            at = [place[query] for query in sorted(set(rows.queries))]
            for metric, column in zip(rows.metrics, found.T, strict=True):
                made[metric, size] = np.full(len(self.queries), np.nan)
                made[metric, size][at] = column
        return made

    @cached_property
    def found(self) -> dict[tuple[str, str, int], Estimate]:
        """What each metric predicts, over queries or systems, at each size."""
        made = {}
        for size, rows in self.rows.items():
            for metric, one in zip(rows.metrics, Prediction(rows, self.measure, self.study.plan).within, strict=True):
                made["queries", metric, size] = one
            if "systems" in self.ways:
                made |= {("systems", metric, size): self._over_systems(metric, [size]) for metric in rows.metrics}
        return made

    def _over_systems(self, metric: str, sizes: Sequence[int]) -> Estimate:
        """The correlation of systems' means by a metric with those of the outcome, averaged over sizes."""
        sides = [self._sides(metric, size) for size in sizes]
        one = correlate_systems(sides, self.measure, self.study.plan)
        return one._replace(reason=one.reason or ("a system has no value" if one.n_left_out else ""))

    def _sides(self, metric: str, size: int) -> tuple[Floats, Floats]:
        """A metric and the outcome as queries × systems, with all queries of the case."""
        rows = self.rows[size]
        place = {query: at for at, query in enumerate(self.queries)}
        at = [place[query] for query in sorted(set(rows.queries))]
        made = []
        for values in (rows.values[:, rows.metrics.index(metric)], rows.outcome):
            mine = rows.grid(values)
            whole = np.full((len(self.queries), mine.shape[1]), np.nan)
            whole[at] = mine
            made.append(whole)
        return made[0], made[1]

    def line(self, over: str, metric: str) -> dict[int, float]:
        """The correlations of a metric by size, where it has one."""
        return {
            k: one.value for (o, m, k), one in self.found.items() if (o, m) == (over, metric) and one.value is not None
        }

    def ranked(self, over: str) -> dict[str, dict[int, float]]:
        """Metrics with a correlation, the highest mean over the sizes first; those that lack sizes last."""
        lines = {str(metric): self.line(over, str(metric)) for metric in self.families}
        known = [(-len(line), -_average(line), name) for name, line in lines.items() if line]
        order = sorted(known, key=lambda each: each[:2])
        return {name: lines[name] for _, _, name in order}

    def mean(self, over: str, metric: str, line: Mapping[int, float]) -> Estimate:
        """A metric's correlation averaged over the sizes at which it has one, with its interval over queries."""
        if over == "systems":
            return self._over_systems(metric, list(line))._replace(value=_average(line))
        each = np.stack([self.by_query[metric, size] for size in line], axis=1)
        each = each[~np.isnan(each).all(axis=1)]
        # A size at which no resampled query has a correlation gives none for the resample.
        draws = bootstrap_means(each, self.study.resamples, self.study.seed).mean(axis=1)
        span = expanded_interval(draws, len(each), self.study.level)
        low, high = span if span is not None else (None, None)
        return Estimate(_average(line), low, high, n=len(each))

    def changes(self) -> dict[str, Estimate]:
        """By metric, the correlation within queries at the largest size minus that at the smallest."""
        first, last = min(self.rows), max(self.rows)
        both = [m for m in self.rows[first].metrics if m in self.rows[last].metrics] if first != last else []
        found = [
            difference(self.by_query[m, last], self.by_query[m, first], "bootstrap", self.study.plan, (-1.0, 1.0))
            for m in both
        ]
        tested = [one if one.n > 1 else one._replace(p=None) for one in found]
        return dict(zip(both, correct_by_holm(tested), strict=True))

    def correlation_rows(self) -> Iterator[dict[str, object]]:
        for (over, metric, k), one in self.found.items():
            each = self.by_query[metric, k]
            known = each[~np.isnan(each)]
            spread = float(known.std(ddof=1)) if over == "queries" and len(known) > 1 else None
            row = {"over": over, "metric": metric, "k": k} | columns(one, "correlation", "left out", unit="n")
            yield row | {"deviation": spread}

    def spread_rows(self) -> Iterator[dict[str, object]]:
        for over in self.ways:
            for metric, line in self.ranked(over).items():
                values = np.array(list(line.values()))
                low, high = min(line, key=lambda k: line[k]), max(line, key=lambda k: line[k])
                yield {
                    "over": over,
                    "metric": metric,
                    "mean": float(values.mean()),
                    "deviation": float(values.std(ddof=1)) if len(values) > 1 else None,
                    "lowest": line[low],
                    "lowest at k": low,
                    "highest": line[high],
                    "highest at k": high,
                    "sizes": len(line),
                }

    @cached_property
    def graded(self) -> bool:
        values = np.concatenate([rows.outcome for rows in self.rows.values()])
        return self.against is None and is_grade(self.aspect, values)

    def share(self, size: int, kind: str) -> Floats:
        """By query of the case, the share of contexts of a size with this grade; NaN without contexts."""
        rows = self.rows[size]
        return np.asarray(np.nanmean(rows.grid((rows.outcome == KINDS[kind]).astype(np.float64)), axis=1))

    def worth(self, size: int) -> Floats:
        """By query, the share of correct answers, or the mean outcome."""
        rows = self.rows[size]
        return self.share(size, "correct") if self.graded else np.asarray(np.nanmean(rows.grid(rows.outcome), axis=1))

    def outcome_rows(self) -> Iterator[dict[str, object]]:
        """What became of the contexts of each size, every query counting the same; one row if all have one outcome."""
        for size, rows in list(self.rows.items())[: None if self.moves else 1]:
            bounds = SHARE if self.graded else None
            (mean,) = mean_estimates(self.worth(size)[:, None], self.study.plan, bounds)
            row: dict[str, object] = {"k": size if self.moves else None}
            row |= {k: float(self.share(size, k).mean()) for k in KINDS} if self.graded else {"mean": mean.value}
            yield row | {"low": mean.low, "high": mean.high, "queries": mean.n, "contexts": len(rows.queries)}

    def lead(self) -> str:
        sizes = format_list([str(k) for k in self.rows], 20)
        queries = format_count(len(self.queries), "query", "queries")
        if self.case.is_designed:
            number = format_count(sum(len(rows.queries) for rows in self.rows.values()), "context")
            return f"{number} of {queries}, {sizes} passages each, with the outcome {self.aspect!r}."
        whole = "" if self.moves else " of the whole context"
        systems = format_count(len(self.case.results.contexts.systems), "system")
        cut = f"the contexts of {systems} for {queries}, cut at {sizes} passages"
        return f"{cut}, with the outcome {self.aspect!r}{whole}."

    def best_sentences(self, over: str, spread: pl.DataFrame) -> Iterator[str]:
        """Which metric predicts best over all sizes, and which varies least."""
        where, ranked = "" if over == "queries" else "over systems, ", self.ranked(over)
        if not ranked:
            yield f"{where}no metric has a correlation with the outcome."
            return
        best = _alike(list(ranked), {name: (len(line), _average(line)) for name, line in ranked.items()})
        line, one = ranked[best[0]], self.mean(over, best[0], ranked[best[0]])
        who, many = format_list(best, 20), len(best) > 1
        what = f"{who} {'predict' if many else 'predicts'} best"
        if one.low is None or one.low <= 0:
            what = f"no metric reliably predicts the outcome; {who} {'come' if many else 'comes'} closest"
        unit = format_count(one.n, "query", "queries") if over == "queries" else format_count(one.n, "system")
        figure = f"{MEASURE_NAMES[self.measure]} {signed(one.value or 0.0)} {between(one.interval)} over {unit}"
        low, high = min(line, key=lambda k: line[k]), max(line, key=lambda k: line[k])
        if len(line) == 1:
            yield f"{where}{what}: {figure} (k = {low})."
            return
        same = all(ranked[name] == line for name in best)
        ends = f", from {signed(line[low])} (k = {low}) to {signed(line[high])} (k = {high})" if same else ""
        yield f"{where}{what} over all sizes: mean {figure}{ends}."
        rows = spread.filter(pl.col("over") == over).drop_nulls("deviation").select("metric", "deviation").rows()
        known = {metric: round(value, 12) for metric, value in rows}
        if len(set(known.values())) > 1:
            order = sorted(known, key=lambda name: known[name])
            least, most = _alike(order, known), _alike(order[::-1], known)
            yield (
                f"{where}{format_list(least, 20)} {'varies' if len(least) == 1 else 'vary'} least over the sizes "
                f"(standard deviation {known[least[0]]:.3f}), {format_list(most, 20)} most ({known[most[0]]:.3f})."
            )

    def answer_sentence(self) -> str:
        """What more passages do to the outcome."""
        sizes = list(self.rows)
        if not self.moves or len(sizes) < 2:
            return ""
        place = [
            {query: at for at, query in enumerate(sorted(set(self.rows[k].queries)))} for k in (sizes[0], sizes[-1])
        ]
        both = sorted(set(place[0]) & set(place[1]))
        a, b = (
            self.worth(k)[[at[query] for query in both]] for k, at in zip((sizes[0], sizes[-1]), place, strict=True)
        )
        one = difference(b, a, "wilcoxon", self.study.plan, SHARE if self.graded else None)
        if one.value is None:
            return ""
        scale, unit, digits = (100, " points", 1) if self.graded else (1, "", 2)
        ends = [f"{100 * float(x.mean()):.1f} %" if self.graded else signed(float(x.mean())) for x in (a, b)]
        span = one.interval
        between_ = (
            f"[{signed(scale * span.low, digits)}, {signed(scale * span.high, digits)}]" if span else "(no interval)"
        )
        what = "accuracy" if self.graded else f"mean {self.aspect}"
        return (
            f"{what} goes from {ends[0]} at k = {sizes[0]} to {ends[1]} at k = {sizes[-1]}, a difference of "
            f"{signed(scale * one.value, digits)}{unit} {between_}, Wilcoxon {p_words(one.p or 0.0)}."
        )

    def lines(self, over: str) -> tuple[pl.DataFrame, int]:
        """Curves to draw, the best first, those of equal metrics as one; and how many metrics are not drawn."""
        same: dict[tuple[tuple[int, float], ...], list[str]] = {}
        ranked = self.ranked(over)
        for metric, line in ranked.items():
            same.setdefault(tuple((k, round(value, 9)) for k, value in line.items()), []).append(metric)
        groups = list(same.values())[:LINES]
        rows = [
            {
                "line": format_list(group, 4),
                "place": k,
                "value": one.value,
                "low": one.low,
                "high": one.high,
                "n": one.n,
            }
            for group in groups
            for (o, metric, k), one in self.found.items()
            if (o, metric) == (over, group[0]) and one.value is not None
        ]
        return make_table(rows), len(ranked) - sum(map(len, groups))


def _alike(order: Sequence[str], figures: Mapping[str, object]) -> list[str]:
    """The first, with all whose figure is the same."""
    return [name for name in order if figures[name] == figures[order[0]]]


def _average(line: Mapping[int, float]) -> float:
    return round(float(np.mean(list(line.values()))), 12)


def _as_outcomes(scores: Scores, aspect: str) -> Outcomes:
    """The scores of a metric, as the outcome to predict."""
    frame = scores.frame.filter(pl.col("status") == OK).with_columns(
        pl.lit(aspect).alias("aspect"), pl.lit("score").alias("source")
    )
    return Outcomes.trusted(frame.select(list(Outcomes.schema)))
