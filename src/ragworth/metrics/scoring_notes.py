"""Notes on how well runs, judgments and metrics match."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ragworth.core.errors import TableError, format_count, format_list, quote_short
from ragworth.metrics.declaration import Metric, format_number
from ragworth.metrics.id_spelling import MAX_PASSAGES, passage_hint, spelling_hint
from ragworth.metrics.scoring_job import ScoringJob, UnlabelledCount
from ragworth.metrics.sets import CUT_RANKING

NOT_IN_RUN = "are not in the run and are left out"
"""End of the note on judged queries that a system has no context for, if such queries are left out."""


KNOW_UNLABELLED = ("Judged", "Bpref")
"""Metrics that don't take a passage without a label for one that isn't relevant."""
LABELLED_SHARE = 0.9
"""Share of the passages down to the deepest label that have one, if people labelled everything to a depth."""
FEWEST_DEEPER = 5
"""Contexts that are longer than that, from which on a note says so."""


def check_overlap(job: ScoringJob, complete: bool) -> list[str]:
    """Note where runs and judgments don't match; raise if they have nothing in common."""
    notes: list[tuple[str, str]] = []
    total, query = len(job.queries), job.blocks.query
    what = "rated" if job.universe == "ratings" else "judged"
    cells = job.blocks.cells(job.universe)
    for i, system in enumerate(job.shown.systems):
        mine = job.shown.system == i
        asked = job.shown.query.filter(pl.Series(mine))
        known = int((query[mine] >= 0).sum())
        if known == 0:
            hint = spelling_hint(asked, job.queries, what)
            raise TableError(
                f"{system}: none of its {format_count(len(asked), 'query', 'queries')} is {what}",
                more=(
                    f"the run has {_first_ids(asked)}",
                    f"the {what} queries are {_first_ids(job.queries)}",
                    *((hint,) if hint else ()),
                ),
                remedy="check that both belong to the same collection and use the same ids",
            )
        if known < total:
            fate = "are not in the run and count as empty contexts" if complete else NOT_IN_RUN
            notes.append((system, f"{total - known:,} of {total:,} {what} queries {fate}"))
        if extra := len(asked) - known:
            unknown = job.shown.query.filter(pl.Series(mine & (query < 0)))
            queries = format_count(extra, "query", "queries")
            notes.append((system, f"{queries} not {what} and so not scored ({_first_ids(unknown)})"))
            if hint := spelling_hint(unknown, job.queries.filter(~job.queries.is_in(asked.implode())), what):
                notes.append((system, hint))
        unmatched = cells is not None and cells.bounds[i] == cells.bounds[i + 1] and bool(job.shown.size[mine].any())
        if hint := passage_hint(job.shown.top(i, MAX_PASSAGES // len(job.shown.systems)), job.judged, what):
            notes.append((system, hint))
        elif unmatched and not job.blocks.any_known(i, job.universe):
            words = f"none of the passages it shows is {what}; check that passage ids are written the same way"
            notes.append((system, words))
    return [*merge_notes(notes), *_relevance_notes(job), *_rating_notes(job)]


def _relevance_notes(job: ScoringJob) -> list[str]:
    """Note judged queries without a relevant passage, by the level that each metric counts as relevant."""
    judged = job.known.judged
    if judged is None or judged.failed.any():
        return []
    by_level: dict[float | None, list[Metric]] = {}
    for metric in job.metrics:
        if "relevance" in metric.needs:
            by_level.setdefault(metric.values.get("rel"), []).append(metric)
    notes: list[str] = []
    counts: set[int] = set()
    for level, metrics in by_level.items():
        relevant = judged.value > 0 if level is None else judged.value >= level
        words = "above 0" if level is None else f"of {format_number(level)} or more"
        without = len(job.queries) - len(np.unique(judged.query[relevant]))
        if without == len(job.queries):
            notes.append(
                f"no judged passage has a relevance {words} (the highest is "
                f"{format_number(judged.value.max())}), so nothing counts as relevant for "
                f"{format_list([str(metric) for metric in metrics], 4)}"
            )
        elif without and without not in counts:
            counts.add(without)
            queries = f"{without:,} of {len(job.queries):,} judged queries"
            notes.append(
                f"{queries} {'has' if without == 1 else 'have'} no passage with a relevance {words}; like "
                "trec_eval, means include them"
            )
    return notes


def unlabelled_notes(job: ScoringJob) -> list[str]:
    """Note passages shown that count as harmful because nobody said whether they are relevant."""
    metrics: dict[tuple[str, UnlabelledCount], list[str]] = {}
    for (system, metric), counts in job.unlabelled.items():
        if counts.passages:
            metrics.setdefault((system, counts), []).append(metric)
    return merge_notes(
        [
            (
                system,
                f"{n:,} of {format_count(shown, 'passage')} shown {'has' if n == 1 else 'have'} no relevance label "
                f"and count{'s' if n == 1 else ''} as irrelevant for {format_list(names, 4)}",
            )
            for (system, (n, shown)), names in metrics.items()
        ]
    )


def depth_notes(job: ScoringJob) -> list[str]:
    """Note metrics that read further down than people labelled, such as the first k passages of each system."""
    metrics = [m for m in job.metrics if "relevance" in m.needs and "abstention" not in m.needs]
    metrics = [m for m in metrics if m.name not in KNOW_UNLABELLED]
    if job.blocks.relevance is None or job.known.judged is None or not metrics:
        return []
    notes = [(system, _depth_note(job, i, metrics)) for i, system in enumerate(job.shown.systems)]
    return merge_notes([(system, note) for system, note in notes if note])


def _depth_note(job: ScoringJob, i: int, metrics: Sequence[Metric]) -> str:
    """The same for one system. Labels of relevant passages alone don't say to which depth anybody looked."""
    cells, judged = job.blocks.relevance, job.known.judged
    assert cells is not None and judged is not None
    own = slice(cells.bounds[i], cells.bounds[i + 1])
    ranks, sizes = cells.rank[own], job.shown.size[(job.shown.system == i) & (job.blocks.query >= 0)]
    deepest = int(ranks.max(initial=0))
    deeper = int((sizes > deepest).sum())
    names = [str(m) for m in metrics if m.cutoff is None or m.cutoff > deepest]
    if not names or deeper < FEWEST_DEEPER or len(ranks) < LABELLED_SHARE * np.minimum(sizes, deepest).sum():
        return ""
    if np.nanmin(judged.value[cells.row[own]], initial=1.0) > 0:
        return ""
    return (
        f"labels end at rank {deepest:,}, and {deeper:,} of {format_count(len(sizes), 'context')} go on; what comes "
        f"after counts as not relevant for {format_list(names, 4)}, so cut them at {deepest:,}"
    )


def _rating_notes(job: ScoringJob) -> list[str]:
    """Note ratings outside the scale of 0 to 5, and thresholds that no rating reaches."""
    if job.known.rated is None:
        return []
    values = job.known.rated.value[np.isfinite(job.known.rated.value)]
    low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
    notes = [
        f"{metric}: no rating reaches eta={format_number(metric.values['eta'])}, the highest is "
        f"{format_number(high)}; "
        f"use {metric.name}(eta={format_number(high)})"
        for metric in job.metrics
        if len(values) and "eta" in metric.values and high < metric.values["eta"] and high > 0
    ]
    if len(values) and (low < 0 or high > 5):
        notes.append(f"ratings go from {format_number(low)} to {format_number(high)}; the usual scale is 0 to 5")
    return notes


def cut_ranking_notes(parts: dict[tuple[str, str], pl.DataFrame], metrics: Sequence[Metric]) -> list[str]:
    """Note how many contexts were cut above the depth that a metric needs."""
    notes = []
    for metric in (metric for metric in metrics if metric.declaration.reach > 1):
        mine = [part for (_, name), part in parts.items() if name == str(metric)]
        if cut := sum(int((part["status"] == CUT_RANKING).sum()) for part in mine):
            notes.append(
                f"{metric}: the top 2K are unknown for {format_count(cut, 'context')}, which may have been cut; "
                "give longer rankings and a cutoff, or add whole=true if the lists were not cut"
            )
    return notes


def merge_notes(notes: list[tuple[str, str]]) -> list[str]:
    """Prefix notes with their systems; systems with the same note share it."""
    about: dict[str, list[str]] = {}
    for system, words in notes:
        about.setdefault(words, []).append(system)
    return [f"{format_list(systems, 3)}: {words}" for words, systems in about.items()]


def _first_ids(ids: pl.Series) -> str:
    """List the first three ids and count the rest."""
    shown = ", ".join(quote_short(each, 24) for each in ids.head(3))
    return f"{shown} and {len(ids) - 3:,} more" if len(ids) > 3 else shown
