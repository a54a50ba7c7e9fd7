"""``ideal``: if passages could be chosen by the best possible judgment, by which judgment should it be?

All of the first d passages of a query are judged; an oracle for each kind of judgment shows the model the k best; the
answers are graded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import polars as pl

from ragworth.errors import InputError, format_count
from ragworth.report.study import Findings, StudyFigure, StudyTable
from ragworth.studies.arms import (
    CONTRASTED,
    SHARE,
    Arms,
    Contrast,
    arms_figure,
    arms_of,
    arms_table,
    contrast,
    contrasts,
    corrected,
    left_out_rows_of,
    no_queries_error,
    of_design,
    p_words,
)
from ragworth.studies.bench import Bench, PlanComplete
from ragworth.studies.contract import Case, Study
from ragworth.studies.plan_gaps import has_unasked
from ragworth.studies.pool import PassagePool, contexts_from_lists
from ragworth.studies.sentences import left_out_rows
from ragworth.tasks.options import option

ORACLES = {
    "relevance": "relevant passages, in the order found, then others",
    "erag": "the downstream score (eRAG), highest first",
    "utility": "the utility u = R·(1 − p_abstain), highest first",
}
NEEDS = {"relevance": "", "erag": "downstream", "utility": "abstention"}
"""The aspect that each oracle reads besides relevance."""

Values = dict[tuple[str, str], float]


@dataclass(frozen=True)
class IdealStudy(Study):
    """Which kind of judgment makes the best oracle.

    The first d passages that were found are judged, and for each kind of judgment an oracle picks the k best: by
    binary relevance (relevant ones in the order found, then others), by the downstream score (eRAG), by utility;
    equals stay in the order found. All oracles pick from the same passages: one that could not be judged by some
    kind is no candidate for any. Queries without accepted answers, or with no more than k candidates, are left out
    and counted; those without a relevant passage stay, since a good context then makes the model abstain.
    """

    k: int = option(5, "passages that an oracle picks", low=1, high=1000)
    depth: int = option(25, "passages from the top that it picks from", low=2, high=10_000)
    erag: bool = option(True, "an oracle by the downstream score too: an answer from each passage alone")
    outcome: str | None = option(None, "which outcome to compare; the grade where there is one")

    kind: ClassVar[str] = "ideal"
    title: ClassVar[str] = "which judgment makes the best oracle"
    paper: ClassVar[str] = "Trappolini et al., Redefining Retrieval Evaluation in the Era of LLMs, Tables 2 and 6"
    judges: ClassVar[tuple[str, ...]] = ("abstention", "downstream")

    def check(self) -> None:
        if self.depth <= self.k:
            raise InputError(f"{self.k} of {self.depth} passages is no choice", expected="depth > k")

    @property
    def oracles(self) -> list[str]:
        return [name for name in ORACLES if name != "erag" or self.erag]

    def run(self, bench: Bench) -> Case:
        pool = bench.pool(self.depth)
        left: Counter[str] = Counter()
        found = {query: self._found(pool, query, left) for query in pool.queries}
        found = {query: passages for query, passages in found.items() if passages}
        if not found:
            raise no_queries_error(left, "retrieve more passages, or give accepted answers")
        aspects = [NEEDS[name] for name in self.oracles if NEEDS[name]]
        bench.judge(aspects, contexts_from_lists({"pool": found}))
        pairs = [(query, passage) for query, passages in found.items() for passage in passages]
        if bench.plan is not None and any(has_unasked(bench, aspect, pairs) for aspect in aspects):
            # What would be picked is not known before; how many contexts at most is.
            some = {
                name: {q: shown[at : at + self.k] for q, shown in found.items()} for at, name in enumerate(self.oracles)
            }
            bench.answer(contexts_from_lists(some), "answered-at-most")
            raise PlanComplete
        values = {aspect: bench.known(aspect) for aspect in aspects}
        picked = self._picked(pool, found, values, left)
        contexts = contexts_from_lists(picked)
        bench.answer(contexts)
        design = pl.DataFrame({"system": self.oracles, "oracle": [ORACLES[name] for name in self.oracles]})
        return bench.case(contexts, design, bench.default_metrics(self.k), left)

    def _found(self, pool: PassagePool, query: str, left: Counter[str]) -> list[str]:
        why = "no accepted answers" if query in pool.without_answers else ""
        if not why and len(pool.found[query]) <= self.k:
            why = f"no more than {format_count(self.k, 'passage')} found"
        left.update([why] if why else [])
        return [] if why else pool.found[query]

    def _picked(
        self, pool: PassagePool, found: dict[str, list[str]], values: dict[str, Values], left: Counter[str]
    ) -> dict[str, dict[str, list[str]]]:
        """What each oracle shows for each query."""
        picked: dict[str, dict[str, list[str]]] = {name: {} for name in self.oracles}
        for query, passages in found.items():
            judged = [each for each in passages if all((query, each) in known for known in values.values())]
            if len(judged) <= self.k:
                left[f"no more than {format_count(self.k, 'passage')} that could be judged"] += 1
                continue
            for name in self.oracles:
                worth = _worth(name, pool, query, values.get(NEEDS[name], {}))
                picked[name][query] = sorted(judged, key=worth, reverse=True)[: self.k]
        if not any(picked.values()):
            raise no_queries_error(left, "see why passages could not be judged: ragworth judge")
        return picked

    def take(self, case: Case) -> Case:
        return of_design(case, self.kind, "oracle")

    def find(self, cases: Sequence[Case]) -> Findings:
        every = [_OracleCase(self, case) for case in cases]
        tables = [each.table() for each in every]
        queries = sum(len(each.arms.queries) for each in every)
        return Findings(
            "Ideal: which judgment makes the best oracle?",
            f"The model answered {format_count(queries, 'query', 'queries')} from the "
            f"{format_count(_shown(cases), 'passage')} "
            "that an oracle picked by each kind of judgment.",
            tuple(sentence for each in every for sentence in each.sentences()),
            (
                StudyTable(
                    "outcomes",
                    "What became of the answers",
                    pl.concat(tables, how="diagonal"),
                    "low and high: of the share of correct answers, or of the mean; with_relevant: share of the "
                    "contexts that hold a relevant passage",
                ),
                StudyTable(
                    "differences",
                    "Oracles against each other",
                    pl.concat([contrasts(each.case, each.contrasts) for each in every]),
                    f"{CONTRASTED}; p_holm: corrected by Holm for the pairs of oracles of a case, for each measure",
                ),
            ),
            (
                StudyFigure(
                    "outcomes",
                    "What became of the answers, by oracle",
                    "Each oracle picks from the same passages; what it goes by is all that differs.",
                    arms_figure(tables, "oracle", every[0].arms.what),
                ),
            ),
            left_out_rows([row for each in every for row in left_out_rows_of(each.case, each.arms)]),
        )


def _shown(cases: Sequence[Case]) -> int:
    """Passages of a context."""
    return max(int(case.results.contexts.frame["rank"].max() or 0) for case in cases)  # type: ignore[arg-type]


def _worth(name: str, pool: PassagePool, query: str, values: Values) -> Callable[[str], float]:
    """What a passage is worth to an oracle."""
    if name == "relevance":
        return lambda passage: float(pool.is_relevant(query, passage))
    if name == "erag":
        return lambda passage: values[query, passage]
    return lambda passage: (1 if pool.is_relevant(query, passage) else -1) * (1 - values[query, passage])


class _OracleCase:
    """The oracles of one case."""

    def __init__(self, study: IdealStudy, case: Case) -> None:
        self.study, self.case = study, case
        self.arms: Arms = arms_of(case, case.design["system"].to_list(), study.outcome)
        arms = self.arms
        measures = {"grade": arms.values} if arms.graded else {arms.aspect: arms.values}
        if arms.graded:
            measures |= {kind: arms.of(kind) for kind in ("correct", "wrong")}
        bounds = {"grade": (-1.0, 1.0), "correct": SHARE, "wrong": SHARE} if arms.graded else {}
        self.contrasts: list[Contrast] = [
            contrast(measure, (arms.names[a], values[:, a]), (arms.names[b], values[:, b]), study, bounds.get(measure))
            for measure, values in measures.items()
            for b, a in combinations(range(len(arms.names)), 2)
        ]

    def table(self) -> pl.DataFrame:
        arms = self.arms
        table = arms_table(self.case, "oracle", arms, self.study, {name: name for name in arms.names})
        share = pl.Series("with_relevant", [self._with_relevant(name) for name in arms.names], dtype=pl.Float64)
        return table.with_columns(share)

    def _with_relevant(self, name: str) -> float | None:
        """Share of an oracle's contexts that hold a relevant passage; None where there are no labels."""
        if self.case.results.judgments is None:
            return None
        shown = self.case.results.contexts.frame.filter(
            (pl.col("system") == name) & pl.col("query").is_in(self.arms.queries)
        )
        labels = self.case.results.judgments.frame.filter((pl.col("aspect") == "relevance") & (pl.col("value") >= 1))
        hits = shown.join(labels, on=["query", "passage"], how="semi")["query"].n_unique()
        return hits / len(self.arms.queries)

    def sentences(self) -> list[str]:
        """Which oracle is best, then every pair of them."""
        arms = self.arms
        average = [round(float(each), 12) for each in arms.worth.mean(axis=0)]
        best = [name for name, each in zip(arms.names, average, strict=True) if each == max(average)]
        who = f"the {best[0]} oracle has" if len(best) == 1 else f"the oracles {' and '.join(best)} have"
        who = "all oracles have" if len(best) == len(arms.names) else who
        what = f"the same {arms.what}" if len(best) == len(arms.names) else f"the highest {arms.what}"
        over = format_count(len(arms.queries), "query", "queries")
        words = [f"{self.case.name}: {who} {what}, {arms.say(max(average))} over {over}."]
        told = ("correct", "wrong") if arms.graded else (arms.aspect,)
        found = dict(zip(((one.measure, one.first, one.second) for one in self.contrasts), self._said(), strict=True))
        pairs = dict.fromkeys((one.first, one.second) for one in self.contrasts)
        for first, second in pairs:
            said = "; ".join(found[measure, first, second] for measure in told)
            words.append(f"{self.case.name}: {first} against {second}: {said}.")
        return words

    def _said(self) -> list[str]:
        """Each contrast in a few words."""
        words = []
        for one, p in zip(self.contrasts, corrected(self.contrasts), strict=True):
            value = one.found.value or 0.0
            if not one.found.wins and not one.found.losses:
                words.append(f"{one.measure} the same for every query")
                continue
            gap = f"{'−' if value < 0 else '+' if value > 0 else ''}{self.arms.gap(value)}"
            sure = "" if p < 1 - self.study.level else ", which may be chance"
            words.append(
                f"{one.measure} {gap} {self.arms.span(one.found.interval)}, Wilcoxon {p_words(p)} after Holm{sure}"
            )
        return words
