"""``noise``: do random or retrieved passages hurt more beside the relevant one, and is the model aware of it?

For each query the same relevant passage stands at the same position among n random passages, and among n that were
retrieved and don't have the answer. If only one of the two answers is correct, a useful confidence is higher in that
one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from ragworth.comparison import higher_is_better
from ragworth.core.errors import format_count
from ragworth.data import ANSWERED_STATUSES
from ragworth.judging.annotators.confidence import MEASURES
from ragworth.judging.contract import option
from ragworth.judging.text_lookup import TextLookup
from ragworth.report.study.charts import dot_chart
from ragworth.report.study.page import StudyPage, TableText, estimate_rows
from ragworth.report.study.table_charts import outcome_figure
from ragworth.report.wording import count_queries, p_words, with_interval
from ragworth.results import Results
from ragworth.stats.concordance import concordance, macro_f1
from ragworth.stats.estimate import Estimate, mean_estimates
from ragworth.studies import confidences, contrast
from ragworth.studies.bench import Bench
from ragworth.studies.candidates import SPARE, Unusable
from ragworth.studies.cases import matrix
from ragworth.studies.confidences import KIND, RELEVANCE
from ragworth.studies.contract import Case, PoolStudy, Published
from ragworth.studies.contrast import SHARE, Floats
from ragworth.text_match.overlap import token_f1
from ragworth.workspace.config import Workspace

RANDOM, RETRIEVED = "with random", "with retrieved"
ARMS = [RANDOM, RETRIEVED]
REMEDY = "ask for fewer passages (--n), retrieve more, or give accepted answers and labels"


@dataclass(frozen=True)
class Noise(PoolStudy):
    """What random and retrieved passages beside the relevant one do to the answer, and whether the model is aware.

    Both contexts of a query have the same relevant passage at the same position. The retrieved passages are the first
    that aren't relevant, the random ones were neither found nor labelled; none contains an accepted answer. The
    confidence is that of the very answer that is graded, which is greedy. Over queries of which one answer alone is
    correct, τ = (C − D)/(C + D) says how often a confidence is higher in that one.
    """

    n: int = option(4, "passages beside the relevant one", low=1, high=100)
    correct: float = option(1.0, "lowest outcome that counts as a correct answer", low=0, high=100)

    kind: ClassVar[str] = "noise"
    title: ClassVar[str] = "whether random or retrieved passages hurt more, and whether the model is aware"
    question: ClassVar[str] = "Noise: do random or retrieved passages hurt more, and is the model aware?"
    published: ClassVar[Mapping[str, Published]] = {
        "paper": Published(
            f"{confidences.PAPER}, Tables 2, 3 and 10",
            {"n": 4},
            queries=2889,
            tasks=confidences.TASKS,
            differences=(
                "the paper doesn't say where the relevant passage stands: here at a random position, the same in both",
                "answers are graded by the workspace's graders",
            ),
        )
    }
    design_column: ClassVar[str] = "skipped"
    why_ours: ClassVar[str] = "It is the published design, on all queries and with the workspace's settings."
    judges: ClassVar[tuple[str, ...]] = (KIND,)

    def fit(self, space: Workspace) -> Workspace:
        return confidences.with_confidence(space)

    def run(self, bench: Bench) -> Case:
        pool = bench.pool(self.depth, self.retriever)

        def build(query: str) -> dict[str, list[str]]:
            gold, rng = pool.gold(query), pool.rng("noise", query)
            at = rng.randrange(self.n + 1)
            others = {
                RANDOM: pool.random(RANDOM, query, self.n, rng, self.n + SPARE),
                RETRIEVED: pool.without_answer(RETRIEVED, query, pool.others(query), self.n),
            }
            for arm, some in reversed(others.items()):
                if len(some) < self.n:
                    raise Unusable(f"fewer than {self.n} {arm.removeprefix('with ')} passages without the answer")
            return {arm: [*some[:at], gold, *some[at:]] for arm, some in others.items()}

        drawn = pool.draw(ARMS, build, REMEDY)
        judged = [kind for kind in ("abstention",) if kind in bench.space.judgments]
        bench.judge(judged, drawn.contexts)
        bench.answer_with_confidence(drawn.contexts)
        design = pl.DataFrame({"system": ARMS, "n": [self.n] * 2, "skipped": [pool.held[arm] for arm in ARMS]})
        metrics = [f"UDCG@{self.n + 1}"] if judged else []
        return bench.case(bench.with_scores(drawn.contexts, self.retriever), design, metrics, drawn.left)

    def tables(self) -> Mapping[str, TableText]:
        wins = "wins: queries in which this context alone has a correct answer; f1: token F1 with the accepted answers"
        tests = "p by a sign test for correct answers, by randomisation for token F1"
        note = (
            "over queries in which one of the two answers is correct; even: other queries; tied: in neither count; p "
            "by a sign test, p_holm corrected by Holm for the rows of a case; right: share of the untied ones; macro "
            f"F1: of predicting by the confidence which of the two is correct; metrics and {RELEVANCE} (mean of "
            "the retriever's own scores) are for comparison only, so without p_holm"
        )
        return {
            "answers": TableText("What became of the answers", wins),
            "differences": TableText("Random minus retrieved", f"{contrast.CONTRAST_NOTE}; {tests}"),
            "concordance": TableText("Is the confidence higher in the correct answer?", note),
        }

    def examine(self, case: Case, page: StudyPage) -> None:
        grid = contrast.outcome_grid(case, ARMS, self.outcome, page)
        n, queries = int(case.design["n"][0]), count_queries(len(grid.queries))
        same = f"and at the same position among {n:,} retrieved ones without the answer"
        page.lead(case, f"for {queries}, a relevant passage among {format_count(n, 'random passage')}, {same}.")
        correct = (grid.values >= self.correct).astype(np.float64)
        f1, turns = matrix(answer_f1(case.results), ARMS, grid.queries), grid.clusters
        found = contrast.compare_arms({"correct": (correct, SHARE)}, ARMS, self.plan, "sign", [(0, 1)], clusters=turns)
        found |= contrast.compare_arms(
            {"token F1": (f1, SHARE)}, ARMS, self.plan, "randomisation", [(0, 1)], clusters=turns
        )
        page.add("differences", case, contrast.contrast_rows(found))
        gap, rows = found["correct", RANDOM, RETRIEVED], contrast.arm_rows(grid, "context", self.plan)
        means = mean_estimates(f1, self.plan, SHARE, turns)
        for row, wins, mean in zip(rows, ("wins", "losses"), means, strict=True):
            row |= {"wins": gap.counts[wins], "ties": gap.counts["ties"]}
            row |= {"f1": mean.value, "f1 low": mean.low, "f1 high": mean.high}
        page.add("answers", case, rows)
        sure = contrast.confidence_grids(case, grid)
        for name, values in contrast.metric_grids(case, grid).items():
            sure[name] = values if higher_is_better(name) else -values
        scores = case.results.contexts.frame.group_by("system", "query").agg(
            value=pl.when(pl.col("score").null_count() == 0).then(pl.col("score").mean())
        )
        if not np.isnan(relevance := matrix(scores, ARMS, grid.queries)).any(axis=1).all():
            sure[RELEVANCE] = relevance
        how = {**self.plan.options, "clusters": turns}
        taus = {name: concordance(each, correct, **how) for name, each in sure.items()}
        # Metrics and the retriever's score are shown for comparison: they are no confidence of the model.
        taus |= confidences.correct_rivals({name: taus[name] for name in MEASURES if name in taus})
        rows = estimate_rows(("confidence",), taus, "tau", "p", "p_holm", "counts")
        for row, (name, one) in zip(rows, taus.items(), strict=True):
            row |= {"right": one.counts["concordant"] / one.n if one.n else None}
            row |= {"macro F1": macro_f1(sure[name], correct), "missing": one.n_left_out, "why": one.reason}
        page.add("concordance", case, rows)
        page.say(case, self._hurt(gap, correct.mean(axis=0)), self._aware(taus, gap))
        page.note(case, confidences.skipped_words(case))

    def finish(self, page: StudyPage) -> None:
        spec = outcome_figure(page.table("answers"), "context", "mean outcome")
        page.draw("answers", "What became of the answers", "Share of the answers of each kind.", spec)
        caption = f"τ = (C − D)/(C + D) over queries of which one answer is correct, {self.level:.0%} intervals."
        shown = page.dots("concordance", "confidence", "tau")
        if shown.height:
            page.draw("concordance", "Is the model aware?", caption, dot_chart(shown, "τ", zero=True))

    def _hurt(self, gap: Estimate, shares: Floats) -> str:
        """Which passages hurt more."""
        value, verdict = gap.value or 0.0, "the difference may be chance"
        if not gap.counts["wins"] and not gap.counts["losses"]:
            verdict = "there is no difference"
        if gap.p is not None and gap.p < self.plan.alpha:
            verdict = f"{'retrieved' if value > 0 else 'random'} passages hurt more, by {abs(100 * value):.1f} points"
        return (
            f"{100 * shares[0]:.1f} % of the answers are correct with random passages, {100 * shares[1]:.1f} % with "
            f"retrieved ones: {verdict} ({p_words(gap.p)}; random better in {gap.counts['wins']:,}, retrieved in "
            f"{gap.counts['losses']:,}, same in {gap.counts['ties']:,})."
        )

    def _aware(self, taus: Mapping[str, Estimate], gap: Estimate) -> str:
        """Which confidence is higher in the correct answer."""
        queries = count_queries(gap.counts["wins"] + gap.counts["losses"])
        mine, counts = {name: taus[name] for name in MEASURES if name in taus}, ("concordant", "discordant")
        best = confidences.best_measure(mine, counts, self.plan.alpha, "predict", "the correct one")
        if best is None:
            why = next((one.reason for one in taus.values()), "there is none")
            return f"no confidence can be compared with the answers to {queries} with only one correct answer: {why}."
        one = taus[best[1]]
        figures = f"τ = {with_interval(one)} ({p_words(one.p_holm)} after Holm)"
        return f"of {queries} with only one correct answer, {best[0]}: {figures}."


def answer_f1(results: Results) -> pl.DataFrame:
    """system, query and value for each answer that has a text and accepted ones to compare it with."""
    rows = []
    if results.answers is not None:
        texts = TextLookup(results.collection)
        written = results.answers.frame.filter(pl.col("status").is_in(ANSWERED_STATUSES)).drop_nulls("text")
        rows = [
            (system, query, token_f1(text, accepted))
            for system, query, text in written.select("system", "query", "text").iter_rows()
            if (accepted := texts.known_answers(query))
        ]
    return pl.DataFrame(rows, {"system": pl.String, "query": pl.String, "value": pl.Float64}, orient="row")
