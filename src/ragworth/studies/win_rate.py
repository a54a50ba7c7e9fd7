"""``win-rate``: is the model surer with the passage that has the answer than with one that only looks like it?

For each query a relevant passage stands against the best-placed passage that does not have the answer, and against one
at random, each shown alone. A confidence that is worth anything is higher with the relevant one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import polars as pl

from ragworth.config import Workspace
from ragworth.errors import InputError
from ragworth.report.study import Findings, StudyFigure, StudyTable
from ragworth.report.study.charts import dot_chart
from ragworth.studies.arms import no_queries_error, of_design
from ragworth.studies.bench import Bench
from ragworth.studies.confidence_judgments import KIND, SPARE, DistractorPool, gold, unsuited_reason, with_confidence
from ragworth.studies.contract import Case, Study
from ragworth.studies.pool import PassagePool, contexts_from_lists, interleaved
from ragworth.studies.sentences import left_out_rows
from ragworth.studies.win_rate_results import AGAINST, DISTRACTOR, GOLD, NAMES, NOUNS, RANDOM, WinRateCase, judged
from ragworth.tables import OK
from ragworth.tasks.options import option

KEY_NOTE = "win rate of the first less that of the second, over the queries that both have; p by a sign test"


@dataclass(frozen=True)
class WinRate(Study):
    """How often the model is surer with a relevant passage than with a distractor, and than with a random one.

    The relevant passage of a query is that with the highest label; the distractor is the first passage found that is
    not relevant and in which no accepted answer is found by its words; the random one is neither found nor labelled.
    Each is a context of its own. Ties count half. Besides the four measures of confidence, abstention (1 − p) and
    likelihood take part where the workspace has them judged. A query without accepted answers or relevant passage is
    left out and counted.
    """

    depth: int = option(25, "passages from the top among which the distractor is looked for", low=1)

    kind: ClassVar[str] = "win-rate"
    title: ClassVar[str] = "whether the model is surer with the passage that has the answer"
    paper: ClassVar[str] = "Hua et al., Evaluating the Utility of Grounding Documents, Tables 1 and 9"
    judges: ClassVar[tuple[str, ...]] = (KIND,)
    answers: ClassVar[bool] = False

    def fit(self, space: Workspace) -> Workspace:
        return with_confidence(space, each=True)

    def run(self, bench: Bench) -> Case:
        chosen = choose(bench.pool(self.depth))
        contexts = contexts_from_lists(chosen.shown)
        bench.judge([KIND, *(kind for kind in ("abstention", "likelihood") if kind in bench.space.judgments)], contexts)
        return bench.case(contexts, chosen.design, (), chosen.left)

    def take(self, case: Case) -> Case:
        return of_design(case, self.kind, "passed over") if case.design.width > 1 else evaluation_passages(case)

    def find(self, cases: Sequence[Case]) -> Findings:
        every = [WinRateCase(self, case) for case in cases]
        rates, gaps = pl.concat([each.table() for each in every]), pl.concat([each.gaps() for each in every])
        return Findings(
            "Win rate: is the model surer with the passage that has the answer?",
            " ".join(each.lead for each in every),
            tuple(each.sentence() for each in every) + tuple(filter(None, (each.keyed() for each in every))),
            (
                StudyTable(
                    "win-rate",
                    "How often each confidence is higher with the relevant passage",
                    rates,
                    "ties count half; p by a sign test over queries against 50 %, p_holm corrected by Holm over the "
                    "rows of a case; missing: queries in which one of the two passages has no value",
                ),
                *([StudyTable("key-tokens", "What key tokens add", gaps, KEY_NOTE)] if gaps.height else []),
            ),
            (self._figure(rates),),
            left_out_rows(row for each in every for row in each.left()),
            tuple(each.note for each in every if each.note),
        )

    def _figure(self, rates: pl.DataFrame) -> StudyFigure:
        words = pl.col("against").replace_strict(AGAINST, return_dtype=pl.String)
        group = words if rates["case"].n_unique() == 1 else pl.concat_str("case", pl.lit(": "), words)
        shown = rates.select(
            pl.col("confidence").alias("label"),
            pl.col("win rate").alias("value"),
            "low",
            "high",
            pl.col("queries").alias("n"),
            group.alias("group"),
        )
        caption = f"Share of the queries, ties counted half, with {self.level:.0%} intervals; 0.5 is chance."
        return StudyFigure("win-rate", "Who is surer with the relevant passage", caption, dot_chart(shown, "win rate"))


class WinRatePassages(NamedTuple):
    """Passages by what they are and query, queries left out by reason, and how many passages held an answer."""

    shown: dict[str, dict[str, list[str]]]
    left: Counter[str]
    held: dict[str, int]

    @property
    def design(self) -> pl.DataFrame:
        columns = {"system": list(self.shown), "passed over": [self.held.get(name, 0) for name in self.shown]}
        return pl.DataFrame(columns, schema={"system": pl.String, "passed over": pl.Int64})


def choose(pool: PassagePool, *, drawn: bool = True) -> WinRatePassages:
    """The passages of each query; ``drawn``: with one at random."""
    shown: dict[str, dict[str, list[str]]] = {GOLD: {}, DISTRACTOR: {}, RANDOM: {}}
    near, far = DistractorPool(pool.collection), DistractorPool(pool.collection)
    left: Counter[str] = Counter()
    for query in pool.queries:
        best, why = gold(pool, query), unsuited_reason(pool, query)
        if why or best is None:
            left[why] += 1
            continue
        others = {DISTRACTOR: near.first(query, pool.others(query), 1)}
        if drawn:
            others[RANDOM] = far.first(query, pool.random(query, SPARE, pool.dice("win-rate", query)), 1)
        if not any(others.values()):
            left["nothing to compare the relevant passage with"] += 1
            continue
        shown[GOLD][query] = [best]
        for name, found in others.items():
            if found:
                shown[name][query] = found
            else:
                left[f"not compared with {NOUNS[name]}, for want of one"] += 1
    if not shown[GOLD]:
        raise no_queries_error(left, "retrieve more passages, or give accepted answers and more labels")
    kinds = {name: rows for name, rows in shown.items() if rows}
    return WinRatePassages(kinds, left, {DISTRACTOR: near.held, RANDOM: far.held})


def evaluation_passages(case: Case) -> Case:
    """The passages that an evaluation has judged, as a case: relevant ones against distractors."""
    results = case.results
    values = judged(results)
    if not values or results.judgments is None:
        raise InputError(
            f"{case.name}: no passage has a confidence",
            expected=f"judgments of {', '.join(NAMES)}",
            remedy="name the workspace; or have passages judged: confidence = { each = true } under [judgments]",
        )
    known = {pair for some in values.values() for pair in some}
    labels: dict[str, dict[str, float]] = {}
    rows = results.judgments.of("relevance").filter(pl.col("status") == OK).select("query", "passage", "value")
    for query, passage, value in rows.iter_rows():
        if (query, passage) in known:
            labels.setdefault(query, {})[passage] = value
    lists: dict[str, dict[str, list[str]]] = {}
    for query, system, passage in results.contexts.frame.select("query", "system", "passage").iter_rows():
        if (query, passage) in known:
            lists.setdefault(query, {}).setdefault(system, []).append(passage)
    found = {query: interleaved(list(some.values())) for query, some in lists.items()}
    without = frozenset(found) - set(results.collection.answers["query"])
    chosen = choose(PassagePool(results.collection, found, labels, without_answers=without), drawn=False)
    return replace(
        case,
        results=replace(results, contexts=contexts_from_lists(chosen.shown)),
        design=chosen.design,
        left_out=dict(chosen.left),
    )
