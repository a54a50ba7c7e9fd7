"""Compare arms: retrieval metrics, answers, and properties of the rewrites, turn by turn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.answer_outcomes import outcome_scores
from ragworth.collection import Collection
from ragworth.conversations import Turn
from ragworth.errors import InputError, MissingInputError, format_count, format_list, give_input
from ragworth.metrics.engine import score_tables
from ragworth.metrics.parsing import parse_all
from ragworth.retrieval.steps.reorder import Top
from ragworth.rewriting.contexts import check_pipeline, retrieve_by_text
from ragworth.rewriting.evaluation.arms import LAST, Arm
from ragworth.rewriting.evaluation.measures import is_unchanged, leaks_answer, word_count
from ragworth.stats.estimate import Estimate, Resampling, mean_estimates
from ragworth.stats.paired import Test, correct_by_holm, difference
from ragworth.stats.range_intervals import Bounds
from ragworth.tables import OK, Contexts, Outcomes

DEFAULT_METRICS = ("RR", "nDCG@3", "R@10", "R@20", "R@100")
DEFAULT_PIPELINE = "bm25 % 100"
ANSWER_METRICS = ("correct", "wrong", "abstained")
WORDS, UNCHANGED, LEAKS = "words", "unchanged", "leaks an answer"
PROPERTIES = (WORDS, UNCHANGED, LEAKS)
"""Measures of the rewrites themselves, which are reported and not tested."""

VALUES: dict[str, Any] = {
    "arm": pl.String,
    "query": pl.String,
    "conversation": pl.String,
    "measure": pl.String,
    "value": pl.Float64,
}
MEANS: dict[str, Any] = {"arm": pl.String, "measure": pl.String, **dict.fromkeys(("value", "low", "high"), pl.Float64)}
MEANS |= dict.fromkeys(("n", "left_out", "conversations"), pl.Int64)
DIFFERENCES: dict[str, Any] = {"arm": pl.String, "against": pl.String, "measure": pl.String}
DIFFERENCES |= dict.fromkeys(("difference", "low", "high", "p", "p_holm", "detectable"), pl.Float64)
DIFFERENCES |= dict.fromkeys(("wins", "ties", "losses", "n", "left_out", "conversations"), pl.Int64)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RewritingEvaluation:
    """Values of every arm, turn and measure; means and differences over them.

    ``failed`` are arms without a single rewrite: they search every turn as it is, which says nothing about them.
    """

    values: pl.DataFrame
    means: pl.DataFrame
    differences: pl.DataFrame
    rewrites: pl.DataFrame
    notes: tuple[str, ...]
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ArmComparison:
    """Arms to compare on turns of a collection.

    Attributes
    ----------
    against: arms that all others are compared with.
    tested: measures to test; Holm's correction is over all arms compared with one arm by one measure.
    """

    turns: Sequence[Turn]
    collection: Collection
    arms: Sequence[Arm]
    pipeline: str = DEFAULT_PIPELINE
    metrics: Sequence[str] = DEFAULT_METRICS
    against: Sequence[str] = (LAST,)
    test: Test = "randomisation"
    plan: Resampling = field(default_factory=Resampling)

    def __post_init__(self) -> None:
        names = [arm.name for arm in self.arms]
        if again := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise InputError(f"several arms are called {format_list(again)}", expected="a name for each")
        if unknown := [name for name in self.against if name not in names]:
            raise InputError(f"there is no arm {format_list(unknown)} to compare with", expected=format_list(names, 20))
        if self.collection.relevance is None:
            raise MissingInputError(
                "the evaluation of rewrites", "relevance labels", "there are none", give_input("qrels")
            )
        if not self.collection.passages.height:
            raise MissingInputError("the evaluation of rewrites", "passages", "there are none", give_input("passages"))
        check_pipeline(self.pipeline)
        parse_all(list(self.metrics))

    @cached_property
    def _bounds(self) -> dict[str, Bounds]:
        """The lowest and highest possible value of each measure."""
        shares = dict.fromkeys((*ANSWER_METRICS, UNCHANGED, LEAKS), (0.0, 1.0))
        return {str(metric): metric.bounds(math.inf) for metric in parse_all(list(self.metrics))} | shares

    @cached_property
    def contexts(self) -> Contexts:
        """What each arm retrieves for each turn."""
        shown = retrieve_by_text(
            [text for arm in self.arms for text in arm.texts.values()], self.collection, self.pipeline
        )
        rows, empty = [], []
        for arm in self.arms:
            for turn in self.turns:
                passages = shown.get(arm.texts[turn.query], ())
                rows += [(arm.name, turn.query, rank, passage, None) for rank, passage in enumerate(passages, 1)]
                empty += [] if passages else [(arm.name, turn.query)]
        contexts = Contexts.trusted(pl.DataFrame(rows, schema=dict(Contexts.schema), orient="row"))
        contexts.empty = frozenset(empty)
        return contexts

    def evaluate(self, outcomes: Outcomes | None = None) -> RewritingEvaluation:
        """Measure and compare all arms; ``outcomes`` are grades of answers from their contexts."""
        relevance = self.collection.relevance
        assert relevance is not None
        scores = score_tables(self.contexts, relevance, parse_all(list(self.metrics)), complete=False)
        tables = [scores.frame.filter(pl.col("status") == OK)]
        measures = [*scores.frame["metric"].unique(maintain_order=True)]
        if outcomes is not None:
            graded = outcome_scores(outcomes).frame
            tables.append(graded.filter((pl.col("status") == OK) & pl.col("metric").is_in(ANSWER_METRICS)))
            measures += ANSWER_METRICS
        values = self._values(pl.concat([table.select("system", "query", "metric", "value") for table in tables]))
        found = _Values(values, [turn.query for turn in self.turns], [turn.conversation for turn in self.turns])
        names = [arm.name for arm in self.arms]
        means = [self._mean(found, arm, measure) for arm in names for measure in (*measures, *PROPERTIES)]
        return RewritingEvaluation(
            values,
            pl.DataFrame(means, schema=MEANS, orient="row"),
            pl.DataFrame(self._differences(found, names, measures), schema=DIFFERENCES, orient="row"),
            self._rewrites(),
            (*scores.notes, *self._notes()),
            tuple(arm.name for arm in self.arms if sum(arm.fallbacks.values()) == len(self.turns)),
        )

    def _values(self, scored: pl.DataFrame) -> pl.DataFrame:
        """Values of metrics and of the rewrites themselves, in one table."""
        answers: dict[str, list[str]] = {}
        for query, text in self.collection.answers.iter_rows():
            answers.setdefault(query, []).append(text)
        rows: list[tuple[str, str, str, float | None]] = []
        for arm in self.arms:
            for turn in self.turns:
                text = arm.texts[turn.query]
                leak = leaks_answer(text, turn, answers.get(turn.query, ()))
                rows.append((arm.name, turn.query, WORDS, float(word_count(text))))
                rows.append((arm.name, turn.query, UNCHANGED, float(is_unchanged(text, turn))))
                rows.append((arm.name, turn.query, LEAKS, None if leak is None else float(leak)))
        own = pl.DataFrame(rows, schema=["system", "query", "metric", "value"], orient="row").drop_nulls()
        every = pl.concat([scored, own.cast({"value": pl.Float64})]).rename({"system": "arm", "metric": "measure"})
        conversations = {turn.query: turn.conversation for turn in self.turns}
        named = pl.col("query").replace_strict(conversations, return_dtype=pl.String).alias("conversation")
        return every.filter(pl.col("query").is_in(list(conversations))).with_columns(named).select(list(VALUES))

    def _mean(self, found: _Values, arm: str, measure: str) -> Sequence[object]:
        values, bounds = found.of(arm, measure), self._bounds.get(measure)
        (one,) = mean_estimates(values[:, None], self.plan, bounds, found.clusters)
        return (arm, measure, one.value, one.low, one.high, one.n, one.n_left_out, _conversations(one))

    def _differences(self, found: _Values, arms: Sequence[str], measures: Sequence[str]) -> list[Sequence[object]]:
        rows: list[Sequence[object]] = []
        for base in self.against:
            others = [arm for arm in arms if arm != base]
            for measure in measures:
                bounds, against = self._bounds.get(measure), found.of(base, measure)
                moved = {
                    arm: difference(found.of(arm, measure), against, self.test, self.plan, bounds, found.clusters)
                    for arm in others
                }
                rows += [_difference_row(arm, base, measure, one) for arm, one in correct_by_holm(moved).items()]
        return rows

    def _rewrites(self) -> pl.DataFrame:
        rows = [
            (arm.name, turn.query, turn.question, arm.texts[turn.query]) for arm in self.arms for turn in self.turns
        ]
        return pl.DataFrame(rows, schema=["arm", "query", "turn", "text"], orient="row")

    def _notes(self) -> list[str]:
        """Turns without a rewrite, and metrics that look deeper than the pipeline does."""
        notes = [
            f"{arm.name}: {sum(arm.fallbacks.values()):,} of {len(self.turns):,} turns are searched as they are "
            f"({', '.join(f'{reason} {number:,}' for reason, number in arm.fallbacks.items())})"
            for arm in self.arms
            if arm.fallbacks
        ]
        last = check_pipeline(self.pipeline).steps[-1]
        deeper = [
            str(metric)
            for metric in parse_all(list(self.metrics))
            if isinstance(last, Top) and metric.cutoff is not None and metric.cutoff > last.k
        ]
        if deeper and isinstance(last, Top):
            seen = format_count(last.k, "passage")
            notes.append(f"{self.pipeline} retrieves at most {seen}: {format_list(deeper)} can't see more of them")
        return notes


class _Values:
    """Values by arm and measure, as arrays over the turns; NaN where there is none."""

    def __init__(self, frame: pl.DataFrame, queries: Sequence[str], conversations: Sequence[str]) -> None:
        self.clusters = np.array(conversations)
        self._places = {query: number for number, query in enumerate(queries)}
        self._arrays: dict[tuple[str, str], Floats] = {}
        for arm, query, measure, value in frame.select("arm", "query", "measure", "value").iter_rows():
            self.of(arm, measure)[self._places[query]] = value

    def of(self, arm: str, measure: str) -> Floats:
        return self._arrays.setdefault((arm, measure), np.full(len(self._places), np.nan))


def _conversations(one: Estimate) -> int:
    """How many conversations an estimate is from; where none has several turns, they are as many as turns."""
    return one.n if one.clusters is None else one.clusters


def _difference_row(arm: str, base: str, measure: str, one: Estimate) -> Sequence[object]:
    counts: Mapping[str, int] = one.counts
    tallies = (counts.get(name) for name in ("wins", "ties", "losses"))
    sizes = (one.n, one.n_left_out, _conversations(one))
    return (arm, base, measure, one.value, one.low, one.high, one.p, one.p_holm, one.detectable, *tallies, *sizes)
