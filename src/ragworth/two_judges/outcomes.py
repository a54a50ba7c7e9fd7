"""Answers graded twice: by a cheap grader for all queries, and by a better one, such as people, for some of them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ragworth.answer_outcomes import GRADE, HUMAN, outcome_type
from ragworth.comparison import Comparable, summarise, to_scores
from ragworth.core.errors import InputError, MetricError, format_count, format_list, quote_short
from ragworth.data import OK, Scores
from ragworth.two_judges.corrections import correct_cheap
from ragworth.two_judges.estimates import EstimationResult, compare_estimates, estimate_means, estimate_warnings

KEYS = ["system", "query", "metric"]


def estimate_outcomes(
    cheap: Comparable,
    expensive: Comparable,
    outcomes: Sequence[str] = (),
    *,
    corrections: Comparable | None = None,
    baseline: str | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> EstimationResult:
    """Mean of each outcome as the expensive grader would have it for all queries, from a sample of them.

    Parameters
    ----------
    cheap: outcomes of all answers: a table, results or an evaluation.
    expensive: outcomes of the same systems for some queries, which must have been drawn at random. Labels called
        ``human`` that are 0 or 1 are compared with ``correct``.
    outcomes: those to estimate; all that both have by default.
    corrections: the expensive grader's outcomes of answers that were drawn independently of the sample, such as those
        on which graders disagree. They replace the cheap ones, so the cheap grader is closer to the expensive one.
    baseline, level, resamples, seed: as in `estimate`.
    """
    every, better = to_scores(cheap), to_scores(expensive)
    more = to_scores(corrections) if corrections is not None else Scores.concat([])
    names = _grader_names(Scores.concat([better, more]))
    better, more = _renamed(better, names), _renamed(more, names)
    shared = [name for name in every.distinct("metric") if name in better.distinct("metric")]
    wanted = list(outcomes) or shared
    if not wanted or not set(wanted) <= set(shared):
        strange = [name for name in wanted if name not in shared]
        raise MetricError(
            f"{format_list(strange)} {'is' if len(strange) == 1 else 'are'} not graded twice"
            if strange
            else "no outcome is graded twice",
            expected=f"outcomes that both have: {format_list(shared, 12) or 'none'} (cheap: "
            f"{format_list(every.distinct('metric'), 12)}; expensive: {format_list(better.distinct('metric'), 12)})",
        )
    every, better = every.having("metric", wanted), better.having("metric", wanted)
    notes = [*every.notes, *better.notes, *more.notes]
    if corrections is not None:
        corrected = correct_cheap(every.frame, more.having("metric", wanted).frame, KEYS)
        every = Scores.trusted(corrected.frame)
        notes.append(corrected.note)
    if baseline is not None and baseline not in every.distinct("system"):
        known = format_list(every.distinct("system"), 12)
        raise InputError(f"there is no system {quote_short(baseline)} to compare with", expected=known)
    both = _side_by_side(every, better)
    bought = both.filter(pl.col("use").is_not_null()).select(*KEYS, passage="system", aspect="metric")
    if not bought.height:
        raise InputError(
            "no answer that the expensive grader graded was graded by the cheap one",
            remedy="check that both write the ids of systems and queries the same way",
        )
    alone = summarise(Scores.trusted(both.select(list(Scores.schema))), level=level, resamples=resamples, seed=seed)
    frame = estimate_means(both, alone, {name: bought.filter(pl.col("metric") == name) for name in wanted}, level)
    if others := better.frame.join(every.frame, on=KEYS, how="anti").select("system", "query").n_unique():
        notes.append(f"{format_count(others, 'answer')} that only the expensive grader graded")
    return EstimationResult(frame, compare_estimates(both, baseline, level), (*notes, *estimate_warnings(frame)))


def _grader_names(scores: Scores) -> dict[str, str]:
    """The names that graders use for people's labels."""
    names = scores.distinct("metric")
    bare = {name: name.removeprefix(f"{HUMAN}-") for name in names}
    if HUMAN in bare:
        only = scores.having("metric", [HUMAN]).frame["value"].drop_nulls().is_in([0.0, 1.0]).all()
        bare[HUMAN] = "correct" if only and f"{HUMAN}-correct" not in names else GRADE
    elif (
        len(names) == 1
        and outcome_type(names[0]) is None
        and scores.frame["value"].drop_nulls().is_in([0.0, 1.0]).all()
    ):
        bare[names[0]] = "correct"  # the only label, and it says yes or no
    return bare


def _renamed(scores: Scores, names: dict[str, str]) -> Scores:
    return Scores.trusted(scores.frame.with_columns(pl.col("metric").replace(names)), scores.notes)


def _side_by_side(every: Scores, better: Scores) -> pl.DataFrame:
    """Every value of the cheap grader; ``dear`` is the expensive one's where ``use`` is ok, and null otherwise.

    ``use`` is null outside the sample, and says why a query in it is of no use.
    """
    dear = better.frame.select(*KEYS, dear="value", dear_status="status")
    both = every.frame.join(dear, on=KEYS, how="left", maintain_order="left")
    reason = pl.when(pl.col("status") != OK).then("status").otherwise("dear_status")
    both = both.with_columns(use=pl.when(pl.col("dear_status").is_not_null()).then(reason))
    return both.with_columns(dear=pl.when(pl.col("use") == OK).then("dear")).drop("dear_status")
