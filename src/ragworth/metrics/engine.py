"""Score contexts by judgments.

Unknown metrics and missing judgments are reported together before anything is computed. Then each system's contexts
become padded blocks of queries, and each metric runs over the blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ragworth.core.errors import InputError, MetricError, TableError, format_count
from ragworth.data import OK, Contexts, Judgments, Ratings, Scores
from ragworth.metrics.block_builder import ShownContexts
from ragworth.metrics.declaration import UNIVERSES, Metric
from ragworth.metrics.ground_truth import ASPECT_SCALES, Tokens, query_numbers
from ragworth.metrics.parsing import Metrics, parse_all
from ragworth.metrics.scoring_job import (
    ScoringJob,
    check_overlap,
    cut_ranking_notes,
    depth_notes,
    merge_notes,
    unlabelled_notes,
)
from ragworth.metrics.utility import READER_JUDGED, READER_REASON, abstention_notes, reader_judged


def score_tables(
    contexts: Contexts,
    judgments: Judgments | None,
    metrics: Metrics,
    *,
    ratings: Ratings | None = None,
    tokens: Tokens | None = None,
    complete: bool = True,
    judged_only: bool = False,
    max_rank: int | None = None,
) -> Scores:
    """Score checked tables with our own metrics; :func:`ragworth.score` accepts any input."""
    wanted = parse_all(metrics)
    shown = cut_contexts(ShownContexts.of(contexts), max_rank)
    _check_needs(wanted, judgments, ratings, tokens, shown)
    notes = [
        *contexts.notes,
        *(judgments.notes if judgments is not None else ()),
        *(ratings.notes if ratings is not None else ()),
        *shown.notes(),
    ]
    parts: dict[tuple[str, str], pl.DataFrame] = {}
    for universe in UNIVERSES:
        group = [metric for metric in wanted if metric.declaration.universe == universe]
        if not group:
            continue
        mine = shown
        if judged_only:
            mine, left_out = drop_unjudged(shown, judgments, ratings, universe)
            notes += left_out
        job = ScoringJob(mine, group, judgments, ratings, tokens, universe)
        notes += check_overlap(job, complete)
        parts |= job.scores(complete)
        notes += [*unlabelled_notes(job), *depth_notes(job)]
    notes += _withdraw_reader_judged(parts, contexts, judgments, wanted, max_rank)
    notes += cut_ranking_notes(parts, wanted)
    if any("abstention" in metric.needs for metric in wanted):
        notes += abstention_notes(judgments)
    if tokens is not None and any("tokens" in metric.needs for metric in wanted):
        notes.append(f"tokens counted by: {tokens.counter}")
    ordered = [parts[system, str(metric)] for system in shown.systems for metric in wanted]
    return Scores.trusted(pl.concat(ordered), tuple(dict.fromkeys(notes)))


def _withdraw_reader_judged(
    parts: dict[tuple[str, str], pl.DataFrame],
    contexts: Contexts,
    judgments: Judgments | None,
    metrics: Sequence[Metric],
    max_rank: int | None,
) -> list[str]:
    """Replace values that say nothing, because the reader judged a passage shown itself, by the reason; with notes."""
    mine = [metric for metric in metrics if not metric.declaration.reader_may_judge]
    pairs = reader_judged(judgments) if mine else pl.DataFrame()
    if not pairs.height:
        return []
    notes: list[str] = []
    for metric in mine:
        depths = [depth for depth in (metric.cutoff, max_rank) if depth is not None]
        near = contexts.cut(min(depths)) if depths else contexts
        hit = near.frame.join(pairs, on=["query", "passage"], how="semi").select("system", "query").unique()
        withdrawn = 0
        for (system, name), part in parts.items():
            if name != str(metric):
                continue
            queries = hit.filter(pl.col("system") == system)["query"].implode()
            mark = pl.col("query").is_in(queries) & (pl.col("status") == OK)
            withdrawn += part.select(mark.sum()).item()
            parts[system, name] = part.with_columns(
                value=pl.when(~mark).then("value"), status=pl.when(mark).then(pl.lit(READER_JUDGED)).otherwise("status")
            )
        if withdrawn:
            notes.append(f"{metric} of {format_count(withdrawn, 'context')} {READER_REASON}")
    return notes


def cut_contexts(shown: ShownContexts, max_rank: int | None) -> ShownContexts:
    """Keep the first passages of every context, like trec_eval -M."""
    if max_rank is None:
        return shown
    if isinstance(max_rank, bool) or not isinstance(max_rank, int) or max_rank < 1:
        raise InputError(f"max_rank is {max_rank!r}", expected="a whole number from 1")
    return shown.first(max_rank)


def drop_unjudged(
    shown: ShownContexts, judgments: Judgments | None, ratings: Ratings | None, universe: str
) -> tuple[ShownContexts, list[str]]:
    """Remove unjudged passages, like trec_eval -J, and note how many.

    A passage is judged if it has a value or a failed judgment among those that determine which queries are evaluated.
    Negative relevance counts as unjudged, as in trec_eval.
    """
    truth = judgments.of(universe) if judgments is not None and universe != "ratings" else None
    truth = ratings.frame if truth is None and ratings is not None else truth
    assert truth is not None  # needs were checked
    if universe == "relevance":
        truth = truth.filter((pl.col("status") != OK) | (pl.col("value") >= 0))
    kept = shown.only(truth.select("query", "passage"))
    scored = query_numbers(shown.query, truth["query"].unique()) >= 0
    before, after = (
        np.bincount(shown.system[scored], np.diff(each.starts)[scored], len(shown.systems)).astype(int)
        for each in (shown, kept)
    )
    what = "rated" if universe == "ratings" else "judged"
    notes = []
    for system, all_, left in zip(shown.systems, before, after, strict=True):
        if all_ and not left:
            words = (
                f"none of the passages it shows is {what}, so nothing is left; check that ids are written the same way"
            )
            notes.append((system, words))
        elif left < all_:
            notes.append((system, f"{all_ - left:,} of {all_:,} passages are not {what} and were removed"))
    return kept, merge_notes(notes)


def _check_needs(
    metrics: list[Metric],
    judgments: Judgments | None,
    ratings: Ratings | None,
    tokens: Tokens | None,
    shown: ShownContexts,
) -> None:
    """Reject all metrics whose judgments are missing, at once."""
    aspects = set(judgments.distinct("aspect")) if judgments is not None else set()
    have = {
        **{aspect: aspect in aspects for aspect in ("relevance", *ASPECT_SCALES)},
        "ratings": ratings is not None and len(ratings) > 0,
        "tokens": tokens is not None,
        "runs": len(shown.systems) > 1,
    }
    remedy = {
        "relevance": "relevance judgments (--qrels FILE, or judgments with aspect 'relevance')",
        "abstention": "abstention probabilities (--judgments FILE, aspect 'abstention')",
        "downstream": "downstream scores of passages (--judgments FILE, aspect 'downstream')",
        "likelihood": "answer likelihoods (--judgments FILE, aspect 'likelihood')",
        "ratings": "ratings of sub-questions (--ratings FILE)",
        "tokens": "passage lengths (--passages FILE, tokens=… in Python)",
        "runs": "at least two runs",
    }
    lacking = [(metric, need) for metric in metrics for need in sorted(metric.needs) if not have[need]]
    if lacking:
        raise MetricError(
            ("a metric lacks its input" if len(lacking) == 1 else "some metrics lack their input"),
            more=tuple(f"{metric} needs {remedy[need]}" for metric, need in lacking[:12]),
            remedy="provide it, or choose other metrics (ragworth metrics lists them with their needs)",
        )
    if not shown.systems:
        raise TableError("there are no contexts to score", expected="at least one run with at least one passage")
