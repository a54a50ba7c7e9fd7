"""``propagation``: does the relevance of what is retrieved carry over to the answer?

Contexts of several sizes: what the workspace's systems show, the same reversed, relevant passages only (the oracle) and
passages that are not relevant only (the adversary). What a context is worth is how much closer the answer from it comes
to the relevant passages than the answer without any context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import polars as pl

from ragworth.annotators import ANNOTATORS
from ragworth.config import TaskConfig, Workspace
from ragworth.errors import InputError, MetricError, format_list, quote_short
from ragworth.generation.writer import NO_CONTEXT_SYSTEM, ORACLE_SYSTEM
from ragworth.graders.utility import NO_ZERO_SHOT, ZERO_SHOT_WORTHLESS
from ragworth.metrics.parsing import parse
from ragworth.report.study import Findings, StudyTable
from ragworth.stats.correlation import Measure
from ragworth.studies.arms import no_queries_error, of_design
from ragworth.studies.bench import Bench
from ragworth.studies.contract import MEASURES, Case, Study
from ragworth.studies.number_lists import numbers
from ragworth.studies.pool import PassagePool, contexts_from_lists
from ragworth.studies.propagation_results import UTILITY, PropagationCase, figures
from ragworth.studies.score_rows import aspect_of
from ragworth.studies.sentences import left_out_rows, measure_words
from ragworth.tables import OK, Contexts, Outcomes
from ragworth.tasks.options import option

SYSTEM, REVERSED, RELEVANT, OTHERS = "system", "reversed", "oracle", "adversary"
LABELS = {RELEVANT: "relevant only", OTHERS: "non-relevant only"}
DEEPEST = 100
"""The largest size, and how far down the adversary looks for passages."""

DESIGN = {"system": pl.String, "context": pl.String, "role": pl.String, "of": pl.String, "size": pl.Int64}


@dataclass(frozen=True)
class Propagation(Study):
    """Whether better retrieval makes better answers, by context size.

    The oracle draws relevant passages (all, where there are fewer than k), the adversary such as are labelled not
    relevant, and where these are too few such as were found and have no label. Utility is that of the grader
    ``utility``: U = (P(with) − P(without)) / P(without). Paired t-tests, corrected by Holm among the contexts of one
    size: † against the oracle, ‡ of a system against its reversal. A query without relevant passage is left out and
    counted.
    """

    sizes: str = option("2,5,10,15", "sizes of contexts, such as 2,5,10,15")
    relevant: float = option(1.0, "lowest label that counts as relevant", low=0)
    similarity: str | None = option(
        None,
        "how answers are compared; by default as the workspace's grader utility does",
        choices=("bertscore", "rouge-l", "f1"),
    )
    measure: str = option("pearson", "correlation over queries", choices=MEASURES)
    outcome: str | None = option(None, "of an evaluation: which outcome to go by, with and without a context")

    kind: ClassVar[str] = "propagation"
    title: ClassVar[str] = "whether the relevance of a context carries over to the answer"
    paper: ClassVar[str] = (
        "Tian et al., Is Relevance Propagated from Retriever to Generator in RAG, Table 1, Figures 4–5"
    )

    def check(self) -> None:
        self.depths()

    def depths(self) -> list[int]:
        """The sizes, ascending."""
        return numbers(self.sizes, "sizes", DEEPEST)

    def fit(self, space: Workspace) -> Workspace:
        task = space.grades.get(UTILITY, TaskConfig())
        more = {"level": self.relevant} | ({"similarity": self.similarity} if self.similarity is not None else {})
        assert space.answers is not None
        return replace(
            space,
            grades={UTILITY: replace(task, settings={**task.settings, **more})},
            graded=(),
            answers=replace(space.answers, without=True, everything=True),
        )

    def run(self, bench: Bench) -> Case:
        shown = bench.retrieved()
        sizes = self.depths()
        drawn = draw(PassagePool.of(bench.material, shown, DEEPEST, self.relevant), lists_of(shown), sizes)
        contexts = contexts_from_lists(drawn.shown)
        wanted = at_sizes(bench.metrics or ("nDCG",), sizes)
        bench.judge(needed_judgments(bench, wanted), contexts)
        bench.answer(contexts, without=True)
        bench.metrics = tuple(wanted)
        return bench.case(contexts, drawn.design, wanted, drawn.left)

    def take(self, case: Case) -> Case:
        return of_design(case, self.kind, "role") if case.design.width > 1 else evaluation_case(case, self.outcome)

    def find(self, cases: Sequence[Case]) -> Findings:
        measure: Measure = self.measure  # type: ignore[assignment]
        every = [PropagationCase(self, case, measure) for case in cases]
        utility = pl.concat([each.utilities() for each in every])
        correlations = pl.concat([each.correlations() for each in every])
        tables = [
            StudyTable(
                "utility",
                "What each context is worth: mean utility",
                utility,
                "† differs from the oracle, ‡ from its reversal: paired t-tests over queries, corrected by Holm among "
                "the contexts of one size; detectable: the smallest true difference from the oracle that so many "
                "queries show with probability 0.8",
            )
        ]
        if correlations.height:
            note = "over the queries of a context; all contexts: over all those of a size, whole queries resampled"
            title = f"How utility goes with the metric: {measure_words(measure)}"
            tables.append(StudyTable("correlations", title, correlations, note))
        return Findings(
            "Propagation: does the relevance of a context carry over to the answer?",
            " ".join(each.lead for each in every),
            tuple(sentence for each in every for sentence in each.sentences()),
            tuple(tables),
            figures(every, utility, correlations, measure_words(measure)),
            left_out_rows(row for each in every for row in each.left()),
        )


class PropagationContexts(NamedTuple):
    """Contexts by name and query, what they are, and queries left out by reason."""

    shown: dict[str, dict[str, list[str]]]
    design: pl.DataFrame
    left: Counter[str]


def lists_of(contexts: Contexts) -> dict[str, dict[str, list[str]]]:
    """What each system shows for each query, in its order."""
    found: dict[str, dict[str, list[str]]] = {system: {} for system in contexts.systems}
    rows = contexts.frame.sort("rank", maintain_order=True).select("system", "query", "passage")
    for system, query, passage in rows.iter_rows():
        found[system].setdefault(query, []).append(passage)
    return found


def draw(pool: PassagePool, lists: dict[str, dict[str, list[str]]], sizes: Sequence[int]) -> PropagationContexts:
    """All contexts of all sizes; a larger one begins like a smaller one, but for the reversals."""
    rows: dict[str, dict[str, list[str]]] = {}
    design: list[tuple[str, str, str, str, int]] = []
    whole, left = _lists(pool, lists)
    for size in sizes:
        for role, label, of in _roles(list(lists)):
            name = f"{label} @{size}"
            if name in rows:
                raise InputError(
                    f"two contexts would be called {quote_short(label)}", remedy="give that system another name"
                )
            source = whole[of] if role in (SYSTEM, REVERSED) else whole[role]
            cut = {query: each[:size] for query, each in source.items()}
            rows[name] = {query: each[::-1] for query, each in cut.items()} if role == REVERSED else cut
            design.append((name, label, role, of, size))
    return PropagationContexts(rows, pl.DataFrame(design, schema=DESIGN, orient="row"), left)


def _roles(systems: list[str]) -> list[tuple[str, str, str]]:
    """Role, label and system of each context of a size."""
    made = [
        (role, f"{name}{' reversed' if role == REVERSED else ''}", name)
        for name in systems
        for role in (SYSTEM, REVERSED)
    ]
    return [*made, *((role, label, role) for role, label in LABELS.items())]


def _lists(
    pool: PassagePool, lists: dict[str, dict[str, list[str]]]
) -> tuple[dict[str, dict[str, list[str]]], Counter[str]]:
    """The whole lists that contexts are cut from, by system or role, for the queries that can be studied."""
    whole: dict[str, dict[str, list[str]]] = {name: {} for name in (*lists, *LABELS)}
    left: Counter[str] = Counter()
    for query in pool.queries:
        relevant = [each for each in pool.relevant(query) if pool.has_text(each)]
        if not relevant:
            left["no relevant passage"] += 1
            continue
        chance = pool.dice("propagation", query)
        labels = pool.labels.get(query, {})
        judged = sorted(each for each in labels if not pool.is_relevant(query, each) and pool.has_text(each))
        more = [each for each in pool.others(query) if each not in labels and pool.has_text(each)]
        whole[RELEVANT][query] = chance.sample(relevant, len(relevant))
        whole[OTHERS][query] = [*chance.sample(judged, len(judged)), *more]
        if not whole[OTHERS][query]:
            del whole[OTHERS][query]
            left["not in the adversary: no passage that is not relevant"] += 1
        for system, found in lists.items():
            whole[system][query] = found.get(query, [])
    if not whole[RELEVANT]:
        raise no_queries_error(left, "give more relevance labels, or lower what counts as relevant (--relevant)")
    return whole, left


def at_sizes(metrics: Sequence[str], sizes: Sequence[int]) -> list[str]:
    """Metrics with a cutoff as they are; those without one at each size."""
    found: list[str] = []
    for written in metrics:
        try:
            metric = parse(written)
        except MetricError:  # one of ir_measures
            found.append(written)
            continue
        free = metric.cutoff is None and metric.declaration.takes_cutoff
        found += [str(replace(metric, cutoff=size)) for size in sizes] if free else [str(metric)]
    return list(dict.fromkeys(found))


def needed_judgments(bench: Bench, metrics: Sequence[str]) -> list[str]:
    """The kinds of judgment that metrics need besides labels; refuses what nobody has judged or is to judge."""
    known = {aspect for table in bench.material.given for aspect in table.frame["aspect"].unique()}
    wanted: set[str] = set()
    for written in metrics:
        try:
            wanted |= {str(need) for need in parse(written).needs}
        except MetricError:
            continue
    kinds = [kind for kind in bench.space.judgments if wanted & set(ANNOTATORS.get(kind).aspects) - known]
    given = (
        known | {aspect for kind in kinds for aspect in ANNOTATORS.get(kind).aspects} | {"tokens", "ratings", "runs"}
    )
    if lacking := sorted(wanted - given):
        raise InputError(f"metrics need {format_list(lacking)}", remedy="name it under [judgments], or other metrics")
    return kinds


def evaluation_case(case: Case, wanted: str | None) -> Case:
    """An evaluation's systems as contexts of one size, with their utility: as it is, or against no context."""
    results = case.results
    known = results.outcomes.frame["aspect"].unique().to_list() if results.outcomes is not None else []
    aspect = UTILITY if wanted is None and UTILITY in known else aspect_of(results.outcomes, wanted, case.name)
    assert results.outcomes is not None
    frame = results.outcomes.frame.filter(pl.col("aspect") == aspect)
    bare = dict(frame.filter(pl.col("system") == NO_CONTEXT_SYSTEM).select("query", "value").iter_rows())
    if aspect != UTILITY:
        if not bare:
            raise InputError(
                f"{case.name}: there is no outcome {aspect!r} without a context",
                expected=f"outcomes {UTILITY!r}, or outcomes of answers without a context",
                remedy="have answers written without one (without = true under [answers]) and graded by utility",
            )
        frame = _gains(frame.filter(pl.col("system") != NO_CONTEXT_SYSTEM), bare)
    ranks = results.contexts.frame["rank"].to_list()
    size = results.manifest.get("settings", {}).get("k") or max(ranks, default=1)
    design = [
        (
            system,
            "oracle" if system == ORACLE_SYSTEM else system,
            RELEVANT if system == ORACLE_SYSTEM else SYSTEM,
            system,
            size,
        )
        for system in frame["system"].unique(maintain_order=True)
        if system != NO_CONTEXT_SYSTEM
    ]
    outcomes = Outcomes.trusted(frame.select(list(Outcomes.schema)))
    return replace(
        case, results=replace(results, outcomes=outcomes), design=pl.DataFrame(design, schema=DESIGN, orient="row")
    )


def _gains(frame: pl.DataFrame, bare: dict[str, float | None]) -> pl.DataFrame:
    """Outcomes as relative gains over those without a context."""
    rows = []
    for row in frame.iter_rows(named=True):
        base = bare.get(row["query"])
        status = (
            row["status"]
            if row["status"] != OK
            else NO_ZERO_SHOT
            if base is None
            else OK
            if base > 0
            else ZERO_SHOT_WORTHLESS
        )
        value = (row["value"] - base) / base if status == OK and base is not None else None
        rows.append({**row, "aspect": UTILITY, "value": value, "status": status})
    return pl.DataFrame(rows, schema=frame.schema)
