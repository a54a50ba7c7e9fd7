"""``top-k``: which metric predicts the answers when few or many passages are shown?

What the systems found is cut at several K, answered and graded. Contexts are pooled by how K compares with the number
of relevant passages, N_p: narrow where K < N_p, wide where not, and in cells of the ratio K/N_p. In each the metric is
correlated with what became of the answers, over all contexts. Of an evaluation's results, K is what was shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import polars as pl

from ragworth.errors import InputError, MetricError, format_list
from ragworth.metrics.parsing import parse
from ragworth.report.study import Findings
from ragworth.scoring import score
from ragworth.studies.arms import no_queries_error
from ragworth.studies.bench import Bench
from ragworth.studies.contract import MEASURES, Case, Study
from ragworth.studies.number_lists import numbers
from ragworth.studies.pool import contexts_from_lists
from ragworth.studies.score_rows import rows_of
from ragworth.tables import Contexts, Scores
from ragworth.tasks.options import option

METRICS = ("F", "F_e", "T", "T_u", "P", "R", "F1", "nDCG")
"""What is compared where nobody says what: each at its context's own K."""
CONTEXTS = " (contexts)"
"""How a reason ends whose number is one of contexts, not of queries."""


@dataclass(frozen=True)
class TopK(Study):
    """Which metric predicts the answers when few or many passages are shown, against the number of relevant ones.

    What each system found is cut at each of the sizes; where it found fewer, that context is left out and counted.
    Metrics are given without a cutoff: each context is scored at its own K, and what counts as relevant for N_p does so
    for them. Contexts are pooled by system and by K/N_p,
    rounded; cells of fewer contexts than `least` are left out and counted. Intervals are over queries.

    Systems of somebody's results that differ in K alone are one system where `same` matches what tells them apart.
    """

    sizes: str = option("1,3,5,10", "how many passages are shown: numbers, with commas between")
    least: int = option(300, "contexts that a cell needs", low=2)
    digits: int = option(1, "digits behind the point that K/N_p is rounded to", low=0, high=3)
    level_relevant: float = option(1.0, "lowest label that counts as relevant")
    measure: str = option("spearman", "correlation over the contexts of a part or cell", choices=MEASURES)
    outcome: str | None = option(None, "which outcome to predict; the grade where there is one")
    compare: str = option("T-F,T_u-T,nDCG-F,F_e-F", "pairs of metrics whose correlations are subtracted")
    same: str | None = option(None, "regular expression: what of systems' names is left out, so that they are one")

    kind: ClassVar[str] = "top-k"
    title: ClassVar[str] = "which metric predicts the answers when few or many passages are shown"
    paper: ClassVar[str] = "Schwartz, Vasilyev and Sawaya, How Important Is Recall for Measuring Retrieval Quality?"

    def check(self) -> None:
        self.shown()
        self.pairs()
        try:
            re.compile(self.same or "")
        except re.error as error:
            raise InputError(f"same is {self.same!r}, which cannot be read: {error}") from error

    def shown(self) -> list[int]:
        """The sizes as numbers."""
        return numbers(self.sizes, "sizes")

    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of metrics."""
        found = [tuple(each.strip().split("-")) for each in self.compare.split(",") if each.strip()]
        if any(len(each) != 2 or not all(each) for each in found):
            raise InputError(f"compare is {self.compare!r}", expected="pairs of metrics, such as T-F,nDCG-F")
        return found  # type: ignore[return-value]

    def run(self, bench: Bench) -> Case:
        names = self._names(bench)
        found = bench.retrieved()
        cut, left = self._cut(bench, found)
        contexts = contexts_from_lists(cut)
        needs = {need for name in names for need in parse(name).needs}
        bench.judge([kind for kind in bench.space.judgments if kind in needs], contexts)
        bench.answer(contexts)
        parts = [name.rpartition("@") for name in cut]
        design = pl.DataFrame(
            {"system": list(cut), "retriever": [part[0] for part in parts], "k": [int(part[2]) for part in parts]}
        )
        case = bench.case(contexts, design, (), left)
        return replace(case, results=replace(case.results, scores=self._scores(bench, found, cut, names)))

    def _names(self, bench: Bench) -> list[str]:
        names = list(bench.metrics or METRICS)
        if cut := [name for name in names if parse(name).cutoff]:
            raise InputError(
                f"{format_list(cut)} has a cutoff, and here every context has its own",
                remedy=f"write {parse(cut[0]).name}",
            )
        made = [self._levelled(name) for name in names]
        self._check_levels(made)
        return made

    def _levelled(self, name: str) -> str:
        """A metric that says nothing of what counts as relevant, at the level of the study."""
        metric = parse(name)
        if "rel" not in metric.values or "rel" in dict(metric.parameters):
            return name
        return str(metric.declaration.bind(metric.cutoff, **{**dict(metric.parameters), "rel": self.level_relevant}))

    def _check_levels(self, names: Sequence[str], where: str = "") -> None:
        """Refuse metrics for which other passages are relevant than those that N_p counts."""
        levels = {name: level for name in names if (level := level_of(name)) not in (None, self.level_relevant)}
        if levels:
            first = next(iter(levels))
            raise InputError(
                f"{where}{format_list(list(levels))}: relevant from {levels[first]:g} on, and N_p counts from "
                f"{self.level_relevant:g} on",
                remedy=f"give --level-relevant {levels[first]:g}, or metrics at that level: "
                f"-m '{parse(first).name}(rel={self.level_relevant:g})'",
            )

    def _cut(self, bench: Bench, found: Contexts) -> tuple[dict[str, dict[str, list[str]]], Counter[str]]:
        """Contexts by system and size, and queries left out."""
        left: Counter[str] = Counter()
        known, labels = set(bench.collection.answers["query"]), bench.material.setting.labels
        lists: dict[str, dict[str, list[str]]] = {system: {} for system in found.systems}
        for system, query, passage in found.frame.sort("rank").select("system", "query", "passage").iter_rows():
            lists[system].setdefault(query, []).append(passage)
        good = []
        for query in bench.material.setting.ids:
            if known and query not in known:
                left["no accepted answers"] += 1
            elif not any(label >= self.level_relevant for label in labels.get(query, {}).values()):
                left["no relevant passage"] += 1
            else:
                good.append(query)
        made_: dict[str, dict[str, list[str]]] = {}
        short: Counter[int] = Counter()
        for system, rows in lists.items():
            for k in self.shown():
                mine = {query: rows[query][:k] for query in good if len(rows.get(query, ())) >= k}
                short[k] += len(good) - len(mine)
                if mine:
                    made_[f"{system}@{k}"] = mine
        left |= Counter({f"fewer than {k} passages found{CONTEXTS}": n for k, n in short.items() if n})
        if not made_:
            raise no_queries_error(left, "retrieve more passages, or give more labels")
        return made_, left

    def _scores(self, bench: Bench, found: Contexts, cut: dict[str, dict[str, list[str]]], names: list[str]) -> Scores:
        """Each metric at each context's own K, over the whole ranking: some look further than what is shown."""
        frames = []
        for k in self.shown():
            at = {str(replace(parse(name), cutoff=k)): name for name in names}
            one = score(
                found,
                bench.all_judgments(),
                list(at),
                ratings=bench.ratings or bench.collection.ratings,
                complete=False,
            )
            named = one.frame.with_columns(
                (pl.col("system") + f"@{k}").alias("system"), pl.col("metric").replace_strict(at).alias("metric")
            )
            wanted = pl.DataFrame(
                [(name, query) for name, rows in cut.items() for query in rows],
                schema=["system", "query"],
                orient="row",
            )
            frames.append(named.join(wanted, on=["system", "query"], how="semi"))
        return Scores.trusted(pl.concat(frames).select(list(Scores.schema)))

    def take(self, case: Case) -> Case:
        rows_of(case.results, self.outcome, name=case.name)  # refuses results without scores or outcomes
        if case.results.judgments is None or not case.results.judgments.of("relevance").height:
            raise InputError(
                f"{case.name}: there are no relevance labels, so N_p is not known",
                remedy="name qrels under [collection]",
            )
        self._check_levels(case.results.scores.frame["metric"].unique(maintain_order=True).to_list(), f"{case.name}: ")
        return case

    def find(self, cases: Sequence[Case]) -> Findings:
        from ragworth.studies.top_k_results import TopKSummary

        return TopKSummary(self, cases).findings()


def level_of(name: str) -> float | None:
    """From which label on a metric takes a passage as relevant; None where it does not part them."""
    try:
        return parse(name).values.get("rel")
    except MetricError:
        return None  # a measure of another package


def sizes_of(case: Case) -> dict[tuple[str, str], int]:
    """How many passages were shown, by system and query: as many as there are, up to the k of an evaluation."""
    counts = case.results.contexts.frame.group_by("system", "query").len()
    most = case.results.manifest.get("settings", {}).get("k") if case.design.width < 2 else None
    cut = most if isinstance(most, int) and most > 0 else None
    return {(system, query): min(n, cut) if cut else n for system, query, n in counts.iter_rows()}


def relevant_of(case: Case, level: float) -> dict[str, int]:
    """How many relevant passages each query has."""
    assert case.results.judgments is not None
    labels = case.results.judgments.of("relevance").filter(pl.col("value") >= level)
    return dict(labels.group_by("query").len().iter_rows())


def retrievers_of(case: Case, same: str | None) -> dict[str, str]:
    """The retriever that each system is a cut of."""
    if "retriever" in case.design.columns:
        return dict(case.design.select("system", "retriever").iter_rows())
    systems = case.results.contexts.systems
    return {system: (re.sub(same, "", system) or system) if same else system for system in systems}
