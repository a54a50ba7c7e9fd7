"""Which system answers better, and how sure that is: outcomes of answers, compared like metrics."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ragworth.answer_outcomes import (
    GRADE,
    HUMAN,
    SHARES,
    UNIT,
    given_outcomes,
    grader_of,
    main_outcome,
    outcome_direction,
    outcome_scores,
    outcome_type,
)
from ragworth.comparison import Comparison, compare, is_different, score_matrices, summarise
from ragworth.comparison.score_matrix import rank_matrix
from ragworth.core.errors import format_list
from ragworth.data import Outcomes, Scores
from ragworth.judging.answers import ORACLE_SYSTEM
from ragworth.report.page.answer_sentences import AnswerSentences, OutcomeScale, join_names
from ragworth.report.page.rankings import (
    ALPHA,
    LEVEL,
    RESAMPLES,
    TEST,
    MetricMean,
    Ranking,
    chosen_baseline,
    rank_systems,
    read_means,
    wanted_baseline,
)
from ragworth.results import Results
from ragworth.stats.paired import holm


@dataclass(frozen=True)
class AnswerStanding:
    """One system: its means by outcome, its group, and a sentence."""

    system: str
    means: Mapping[str, MetricMean]
    group: str
    sentence: str


@dataclass(frozen=True)
class AnswerOverview:
    """All systems with graded answers, best first.

    Attributes
    ----------
    main: the outcome that systems are ordered by.
    outcomes: all that are shown, the main one first.
    scales: how the values of each are written: shares in percent.
    comparison: every outcome of every system against the baseline's; None with a single system.
    notes: what to know of the numbers.
    """

    main: str
    outcomes: list[str]
    scales: Mapping[str, OutcomeScale]
    headline: str
    standings: list[AnswerStanding]
    ranking: Ranking
    baseline: str
    comparison: Comparison | None
    notes: list[str]

    def headline_in(self, folder: str) -> str:
        """The headline with the folder of the results in its command, if it has one."""
        return self.headline.replace("RESULTS", folder)


def build_answers(results: Results, seed: int) -> AnswerOverview | None:
    """Compare the outcomes of answers; None if there are none."""
    if results.outcomes is None or not len(results.outcomes):
        return None
    scores = outcome_scores(results.outcomes, results.said, results.answers)
    names = shown_outcomes(scores, results.outcomes)
    if not names:
        return None
    main = names[0]
    scores = scores.having("metric", names)
    turns = results.conversations
    summary = summarise(scores, level=LEVEL, resamples=RESAMPLES, seed=seed, conversations=turns)
    means = read_means(summary, results.answers.distinct("system") if results.answers is not None else ())
    matrices = score_matrices(scores)
    scales = {matrix.metric: OutcomeScale(_is_share(matrix.metric, matrix.values)) for matrix in matrices}
    ranking = rank_systems(scores, means, main, seed, baseline=wanted_baseline(results.manifest), conversations=turns)
    rivals = [system for system in ranking.order if system != ORACLE_SYSTEM] or ranking.order
    baseline = chosen_baseline(results.manifest, rivals)
    written = AnswerSentences(ranking, means, main, scales[main], grader_of(results.outcomes, main))
    standings = [
        AnswerStanding(system, means[system], ranking.groups.of.get(system, "–"), written.of(system, baseline))
        for system in ranking.order
    ]
    comparison = _comparison(scores, ranking, baseline, seed, turns)
    return AnswerOverview(
        main,
        names,
        scales,
        written.headline(rivals) + _objections(comparison, written, rivals, given_outcomes(results.outcomes)),
        standings,
        ranking,
        baseline,
        comparison,
        _notes(results, main, names, ranking),
    )


def shown_outcomes(scores: Scores, outcomes: Outcomes | None) -> list[str]:
    """The outcomes that the report shows, the main one first; none if no outcome says which system is better."""
    names = [name for name in scores.distinct("metric") if _is_shown(name)]
    given = given_outcomes(outcomes) if outcomes is not None else frozenset()
    ranked = {
        matrix.metric: len(rank_matrix(matrix).order) for matrix in score_matrices(scores.having("metric", names))
    }
    most = max(ranked.values(), default=0)
    main = main_outcome([name for name in names if ranked[name] == most], given) or main_outcome(names, given)
    return [main, *(name for name in names if name != main)] if main is not None else []


def _is_shown(name: str) -> bool:
    """Whether an outcome says something of answers; how sure the model is doesn't."""
    return outcome_direction(name) != 0 or name.endswith("abstained")


def _is_share(name: str, values: Any) -> bool:
    kind = outcome_type(name)
    if kind is not None and kind.bounds != UNIT:
        return False
    known = ~np.isnan(values)
    if not ((values[known] >= 0) & (values[known] <= 1)).all():
        return False  # a scale of its own, such as 1 to 5
    return name.rpartition("-")[2] in SHARES or bool(np.isin(values[known], (0, 1)).all())


def _comparison(
    scores: Scores, ranking: Ranking, baseline: str, seed: int, turns: Mapping[str, str]
) -> Comparison | None:
    """Every outcome against the baseline's; the main one's p and detectable difference allow for all pairs."""
    if len(scores.distinct("system")) < 2:
        return None
    found = compare(scores, baseline=baseline, test=TEST, level=LEVEL, seed=seed, changes=0, conversations=turns)
    known = {system: row for system in ranking.order if (row := ranking.difference(baseline, system)) is not None}
    main = pl.col("metric") == ranking.metric
    over_all = (
        pl.when(main)
        .then(pl.col("system").replace_strict({s: row[name] for s, row in known.items()}, default=None))
        .otherwise(name)
        .cast(pl.Float64)
        .alias(name)
        for name in ("p_holm", "detectable")
    )
    return found._replace(differences=found.differences.with_columns(over_all))


def _objections(
    comparison: Comparison | None, verdict: AnswerSentences, systems: Sequence[str], given: Container[str]
) -> str:
    """Return sentences that contradict the verdict by the main outcome, each by the outcomes of one source.

    Outcomes of a source that counts less than that of the main one don't speak against it.
    """
    if comparison is None or not verdict.ranking.ranked.order:
        return ""
    words = _wrong_answers(comparison, verdict, systems)
    for source in range(_source(verdict.main, given) + 1):
        names = [name for name in comparison.differences["metric"].unique() if _source(name, given) == source]
        words += _better_by_others(comparison.differences, verdict.main, systems, names, SOURCES[source])
    return words


def _source(name: str, given: Container[str]) -> int:
    """Who says what an outcome says, as a place: people, whoever graded the data, then our graders."""
    return 0 if HUMAN in name.lower() else 1 if name in given else 2


SOURCES = (" of people", " in the data", " as computed here")


def _better_by_others(
    differences: pl.DataFrame, main: str, systems: Sequence[str], names: Sequence[str], source: str
) -> str:
    """Systems that are significantly better than the first by other outcomes, also corrected for the number of all."""
    grader, hyphen, last = main.rpartition("-")
    family = (*SHARES, GRADE)  # they all come from one grade
    own = {main, *(f"{grader}{hyphen}{name}" for name in family if last in family)}
    rows = [row for row in differences.iter_rows(named=True) if row["metric"] not in own]
    level = ALPHA / max(1, len({row["metric"] for row in rows}))
    found: dict[str, list[str]] = {}
    for row in rows:
        direction = outcome_direction(row["metric"]) if row["metric"] in names else 0
        if not direction or not {row["system"], row["baseline"]} <= set(systems) or not is_different(row, level):
            continue
        better, worse = (row["system"], row["baseline"])[:: 1 if direction * row["difference"] > 0 else -1]
        if worse == systems[0]:
            found.setdefault(better, []).append(row["metric"])
    return "".join(
        f" By {join_names(several)}{source}, {better} is significantly better than {systems[0]}."
        for better, several in list(found.items())[:2]
    )


def _wrong_answers(comparison: Comparison, verdict: AnswerSentences, systems: Sequence[str]) -> str:
    """Who gives wrong answers more often without having fewer correct ones, as a sentence after the verdict by these.

    An answer that declines is better than a wrong one, and neither is correct. As for correct answers, p is corrected
    over all pairs of systems.
    """
    main, pairs = verdict.main, verdict.ranking.pairs
    grader, hyphen, last = main.rpartition("-")
    if last != "correct":
        return ""
    by = {name: comparison.differences.filter(pl.col("metric") == name) for name in (main, f"{grader}{hyphen}wrong")}
    correct, wrong = by.values()
    fewer = {row["system"]: row["difference"] for row in correct.iter_rows(named=True) if is_different(row, ALPHA)}
    p = np.append(wrong["p"].fill_null(float("nan")).to_numpy(), np.ones(max(pairs - wrong.height, 0)))
    wrong = wrong.with_columns(p_holm=pl.Series(holm(p)[: wrong.height], dtype=pl.Float64).fill_nan(None))
    found = [
        row
        for row in wrong.iter_rows(named=True)
        if is_different(row, ALPHA)
        and row["system"] in systems
        and row["difference"] * fewer.get(row["system"], 0.0) >= 0
    ]
    found.sort(key=lambda row: -abs(row["difference"]))
    words = ""
    for row in found[:2]:
        first, second = (row["system"], row["baseline"])[:: 1 if row["difference"] > 0 else -1]
        points = f"{100 * abs(row['difference']):.0f} points"
        words += f" {first} gives wrong answers significantly more often than {second}{verdict.by or ''}, by {points}."
    return words


def _notes(
    results: Results,
    main: str,
    names: Sequence[str],
    ranking: Ranking,
) -> list[str]:
    notes = []
    if ranking.shared_means:
        notes.append(f"The systems have grades for different questions. {ranking.note}")
    aspects = results.outcomes.distinct("aspect") if results.outcomes is not None else []
    if hidden := [name for name in aspects if outcome_type(name) is None and not outcome_direction(name)]:
        notes.append(f"Not shown, because nothing says which way they are better: {format_list(hidden, 6)}.")
    given = given_outcomes(results.outcomes) if results.outcomes is not None else frozenset()
    best = main_outcome(list(names), given)
    if best is not None and _source(best, given) < _source(main, given):
        whose = "People's grades" if HUMAN in best else f"The grades in the data ({best})"
        notes.append(f"{whose} cover only some systems or questions, so systems are ordered by {main}.")
    grades = (
        results.outcomes.having("aspect", ["grade"]).frame["value"] if results.outcomes is not None else pl.Series()
    )
    if "correct" in names and (grades == 0.5).any():
        notes.append("Correct includes answers that people called partially correct.")
    return notes
