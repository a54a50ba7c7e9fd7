"""``long-form``: does what a context covers tell what the long answer will cover?

What the systems show is scored by coverage, ranked coverage and density of the sub-questions of a request; the model
writes a long answer from each, which is rated for the same sub-questions. Bounds are the required subset, the least
that answers everything, and no retrieval at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import polars as pl

from ragworth.config import AnswerConfig, TaskConfig, Workspace
from ragworth.errors import InputError, MetricError, format_count
from ragworth.generation.writer import NO_CONTEXT_SYSTEM
from ragworth.metrics.parsing import parse
from ragworth.metrics.required_passages import REQUIRED, required
from ragworth.report.study import Findings
from ragworth.studies.arms import no_queries_error
from ragworth.studies.bench import Bench, PlanComplete
from ragworth.studies.contract import Case, Study
from ragworth.studies.long_form_coverage import answerable
from ragworth.studies.pool import contexts_from_lists
from ragworth.tables import OK, Contexts, Ratings
from ragworth.tasks.options import option

BOUND = "(required)"
"""The system that shows the required subset."""
THRESHOLDS = (1.0, 2.0, 3.0, 4.0, 5.0)


@dataclass(frozen=True)
class LongForm(Study):
    """Whether what a context covers tells what the long answer written from it will cover.

    Queries with rated sub-questions take part; those without, with a failed rating, or with nothing that is answerable
    are left out and counted. Systems are ranked by the mean of a measure of contexts and of a measure of answers, over
    the queries that have both for every system; the bounds take no part. η is swept from 1 to 5.
    """

    eta: float = option(3.0, "lowest rating that counts as answered", low=1, high=5)
    k: int = option(0, "passages of a context; 0 for the workspace's k", low=0)
    tie: bool = option(False, "as many passages as the required subset has, and answers no longer than it")
    prompt: str = option("answer-long", "prompt for answers")
    length: int = option(256, "most tokens of an answer", low=1)

    kind: ClassVar[str] = "long-form"
    title: ClassVar[str] = "whether what a context covers tells what a long answer will cover"
    paper: ClassVar[str] = (
        "Ju et al., Controlled Retrieval-augmented Context Evaluation for Long-form RAG, Tables 1 to 3"
    )
    labels: ClassVar[bool] = False

    def fit(self, space: Workspace) -> Workspace:
        writing = space.answers or AnswerConfig()
        how = {"prompt": self.prompt, "length": self.length, "tie_length": self.tie, "eta": self.eta}
        task = replace(writing.task, settings={**writing.task.settings, **how})
        # Rated from the lowest threshold on, so that every η can be had from the same ratings.
        grader = space.grades.get("coverage", TaskConfig())
        grader = replace(grader, settings={**grader.settings, "eta": THRESHOLDS[0]})
        return replace(
            space,
            judgments={kind: each for kind, each in space.judgments.items() if kind == "ratings"},
            answers=replace(writing, task=task, everything=True, without=True),
            grades={"coverage": grader},
        )

    def run(self, bench: Bench) -> Case:
        found = bench.retrieved()
        k = self.k or bench.space.k
        ratings = self._ratings(bench, found, k)
        subsets, left = self._subsets(bench, ratings)
        rows = self._contexts(found, subsets, k)
        contexts = contexts_from_lists(rows)
        parts = {query: len(names) for query, names in answerable(ratings, THRESHOLDS[0]).items()}
        self._answer(bench, rows, parts)
        names = [at_threshold(name, self.eta) for name in ("Cov", "alpha_nDCG", "Den")]
        known = bench.all_judgments()
        names += ["nDCG", "AP", "R", "P"] if known is not None and known.of("relevance").height else []
        roles = {BOUND: "upper bound", NO_CONTEXT_SYSTEM: "lower bound"}
        systems = [*rows, NO_CONTEXT_SYSTEM]
        design = pl.DataFrame({"system": systems, "role": [roles.get(each, "system") for each in systems]})
        return bench.case(contexts, design, names, left)

    def _ratings(self, bench: Bench, found: Contexts, k: int) -> Ratings:
        """The ratings of the collection; else those that the model gives."""
        if bench.collection.ratings is not None:
            return bench.collection.ratings
        if "ratings" not in bench.space.judgments:
            raise InputError(
                "there are no ratings of sub-questions",
                file=str(bench.space.file),
                remedy="name ratings under [collection], or set ratings = true under [judgments]",
            )
        bench.judge(["ratings"], found.cut(k))
        if bench.ratings is None:
            self._plan(bench, found, k)
            raise PlanComplete
        bench.material = replace(bench.material, collection=replace(bench.collection, ratings=bench.ratings))
        return bench.ratings

    def _answer(self, bench: Bench, rows: dict[str, dict[str, list[str]]], parts: Mapping[str, int]) -> None:
        """Have contexts answered and graded; a plan tells how many ratings that takes, not only how many answers."""
        bench.answer(contexts_from_lists(rows), without=True)
        if bench.plan:
            most = sum(parts.get(query, 0) for shown in (*rows.values(), rows[BOUND]) for query in shown)
            assert bench.space.answers is not None
            most *= int(bench.space.answers.task.settings.get("repeats", 1))
            stage = bench.plan.pop()
            words = f"{stage.words}: {format_count(most, 'request')} at most, one for each sub-question of an answer"
            bench.plan.append(stage._replace(words=words))

    def _plan(self, bench: Bench, found: Contexts, k: int) -> None:
        """What answers will take before it is known which passages are required: k of the last found stand for them."""
        parts = dict(bench.collection.subquestions.group_by("query").len().iter_rows())
        last = found.frame.sort("rank", descending=True).group_by("query", maintain_order=True)
        some = dict(last.agg(pl.col("passage").unique(maintain_order=True).head(k)).iter_rows())
        subsets = {query: some.get(query, []) for query in bench.material.setting.ids if query in parts}
        self._answer(bench, self._contexts(found, subsets, k), parts)

    def _subsets(self, bench: Bench, ratings: Ratings) -> tuple[dict[str, list[str]], Counter[str]]:
        """The required subset of each query, and queries left out."""
        frame = ratings.frame
        failed = set(frame.filter(pl.col("status") != OK)["query"])
        classes = required(Ratings.trusted(frame.filter(~pl.col("query").is_in(list(failed)))), self.eta)
        chosen: dict[str, list[str]] = {}
        rows = classes.filter(pl.col("class") == REQUIRED).sort("place").select("query", "passage")
        for query, passage in rows.iter_rows():
            chosen.setdefault(query, []).append(passage)
        asked, rated = set(bench.collection.subquestions["query"]), set(frame["query"])
        subsets: dict[str, list[str]] = {}
        left: Counter[str] = Counter()
        for query in bench.material.setting.ids:
            if query not in asked:
                left["no sub-questions"] += 1
            elif query not in rated:
                left["no ratings"] += 1
            elif query in failed:
                left["a rating failed"] += 1
            elif query not in chosen:
                left[f"no sub-question is answered with {self.eta:g} or more"] += 1
            else:
                subsets[query] = chosen[query]
        if not subsets:
            raise no_queries_error(left, "give sub-questions and ratings of them")
        return subsets, left

    def _contexts(self, found: Contexts, subsets: dict[str, list[str]], k: int) -> dict[str, dict[str, list[str]]]:
        rows: dict[str, dict[str, list[str]]] = {system: {query: [] for query in subsets} for system in found.systems}
        for system, query, passage in found.frame.sort("rank").select("system", "query", "passage").iter_rows():
            most = (len(subsets[query]) if self.tie else k) if query in subsets else 0
            if len(shown := rows[system].get(query, [])) < most:
                shown.append(passage)
        return {**rows, BOUND: subsets}

    def take(self, case: Case) -> Case:
        if case.results.ratings is None:
            raise InputError(
                f"{case.name}: there are no ratings of sub-questions", remedy="name ratings, or have them judged"
            )
        if not any(
            name.startswith(("Cov", "alpha_nDCG", "Den")) for name in case.results.scores.frame["metric"].unique()
        ):
            raise InputError(f"{case.name}: there are no scores of coverage", remedy="add -m Cov -m alpha_nDCG")
        return case

    def find(self, cases: Sequence[Case]) -> Findings:
        from ragworth.studies.long_form_results import LongFormSummary

        return LongFormSummary(self, cases).findings()


def at_threshold(name: str, eta: float) -> str:
    """A metric of sub-questions with this threshold; any other as it is."""
    try:
        metric = parse(name)
    except MetricError:
        return name  # a measure of another package
    if "eta" not in metric.values:
        return name
    return str(metric.declaration.bind(metric.cutoff, **{**dict(metric.parameters), "eta": eta}))
