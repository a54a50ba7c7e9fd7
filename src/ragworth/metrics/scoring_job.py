"""Run metrics over the contexts of all systems, block by block; notes on how well runs, judgments and metrics match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.core.errors import TableError, format_count, format_list, quote_short
from ragworth.data import OK, Judgments, Ratings
from ragworth.metrics.block_builder import BlockBuilder, KnownTruth, ShownContexts
from ragworth.metrics.blocks import Block, Floats
from ragworth.metrics.declaration import Metric, format_number
from ragworth.metrics.ground_truth import ASPECT_SCALES, Tokens, aspect_values, judged_values, rating_matrices
from ragworth.metrics.sets import CUT_RANKING

LEFT_OUT = "left-out"
"""Status of a judged query that a system has no context for, if such queries are left out."""


class UnlabelledCount(NamedTuple):
    """Passages shown without a relevance label, and all passages shown."""

    passages: int
    shown: int

    def plus(self, block: Block, metric: Metric) -> UnlabelledCount:
        assert block.abstention is not None
        cutoff = np.inf if metric.cutoff is None else metric.cutoff
        filled, end = block.filled(cutoff), block.upto(cutoff)
        unknown = filled & np.isnan(block.relevance[:, :end]) & ~np.isnan(block.abstention[:, :end])
        if block.failed is not None:
            unknown &= ~block.failed[:, :end]
        return UnlabelledCount(self.passages + int(unknown.sum()), self.shown + int(filled.sum()))


class ScoringJob:
    """The metrics over one set of queries, and their inputs."""

    def __init__(
        self,
        shown: ShownContexts,
        metrics: list[Metric],
        judgments: Judgments | None,
        ratings: Ratings | None,
        tokens: Tokens | None,
        universe: str,
    ) -> None:
        truth = judgments.of(universe) if universe != "ratings" and judgments is not None else None
        truth = ratings.frame if truth is None and ratings is not None else truth
        assert truth is not None  # needs were checked
        self.shown, self.metrics, self.universe = shown, metrics, universe
        self.unlabelled: dict[tuple[str, str], UnlabelledCount] = {}
        self.judged = truth.select("query", "passage")
        self.queries = truth["query"].unique(maintain_order=True)
        needs = {need for metric in metrics for need in metric.needs}
        self.known = KnownTruth(
            self.queries,
            judged=judged_values(truth, self.queries) if "relevance" in needs else None,
            aspects={a: aspect_values(judgments, a, self.queries) for a in ASPECT_SCALES if a in needs and judgments},
            rated=rating_matrices(ratings, self.queries) if "ratings" in needs and ratings else None,
            lengths=tokens.frame if "tokens" in needs and tokens else None,
        )
        self.blocks = BlockBuilder(
            shown, self.known, self._depth(), {float(m.values["rel"]) for m in metrics if "runs" in m.needs}
        )

    def _depth(self) -> int:
        """The deepest rank that any metric reads."""
        deepest = int(self.shown.size.max(initial=0))
        reach = [
            m.cutoff * m.declaration.reach if m.cutoff is not None and "runs" not in m.needs else deepest
            for m in self.metrics
        ]
        return min(deepest, max(reach))

    def scores(self, complete: bool) -> dict[tuple[str, str], pl.DataFrame]:
        """Scores by system and metric, one row per query."""
        parts = {}
        names = [str(metric) for metric in self.metrics]
        n = len(self.queries)
        for i, system in enumerate(self.shown.systems):
            values = np.empty((len(names), n))
            status = np.zeros((len(names), n), dtype=np.uint16)  # numbers in `statuses`: texts take 8 bytes each
            statuses = {OK: 0, LEFT_OUT: 1}
            for low, high, block in self.blocks.of(i):
                for j, metric in enumerate(self.metrics):
                    values[j, low:high], status[j, low:high] = _compute_metric(metric, block, statuses)
                    if {"relevance", "abstention"} <= metric.needs:
                        before = self.unlabelled.get((system, names[j]), UnlabelledCount(0, 0))
                        self.unlabelled[system, names[j]] = before.plus(block, metric)
            if not complete:
                status[:, self.blocks.context[i] < 0] = statuses[LEFT_OUT]
            words = pl.Series(statuses.keys(), dtype=pl.String)
            for j, name in enumerate(names):
                reasons = words.gather(status[j]) if status[j].any() else None
                parts[system, name] = _score_frame(self.queries, values[j], reasons, system, name)
        return parts


def _score_frame(
    queries: pl.Series, values: Floats, status: pl.Series | None, system: str, metric: str
) -> pl.DataFrame:
    """Scores of one system by one metric, with constant columns stored once; without ``status``, all are OK."""
    frame = pl.DataFrame({"query": queries, "value": values})
    if status is not None:
        frame = frame.with_columns(pl.when(status == OK).then(pl.col("value")).alias("value"))
    return frame.select(
        pl.lit(system, pl.String).alias("system"),
        "query",
        pl.lit(metric, pl.String).alias("metric"),
        "value",
        pl.lit(OK, pl.String).alias("status") if status is None else status.alias("status"),
    )


def _compute_metric(metric: Metric, block: Block, statuses: dict[str, int]) -> tuple[Floats, npt.NDArray[np.uint16]]:
    """Compute values of one metric over one block, and numbers of their statuses, to which it adds new ones.

    Failed judgments that it depends on give missing values.
    """
    result = metric.compute(block)
    status = np.zeros(block.size, dtype=np.uint16)
    missing = list(result.missing)
    if block.failed is not None and metric.declaration.minds_failures and "relevance" in metric.needs:
        reach = np.inf if metric.cutoff is None else metric.cutoff * metric.declaration.reach
        missing.append((np.asarray(block.failed[:, : block.upto(reach)].any(axis=1)), "unjudged"))
        if metric.whole_query:
            missing.append((block.truth.failed > 0, "unjudged"))
    missing.append((~np.isfinite(result.values), "overflow"))
    for where, reason in reversed(missing):
        status[where] = statuses.setdefault(reason, len(statuses))
    return result.values, status


MAX_PASSAGES = 50_000
"""Number of passages, over all systems and from the first ranks on, whose ids are compared."""

SPELLING = (
    pl.col("id")
    .str.normalize("NFC")
    .str.strip_chars()
    .str.to_lowercase()
    .str.replace_all(r"(^|[^0-9.])0+([0-9])", "$1$2")
    .str.replace(r"^([0-9]+)\.0$", "$1")
    .alias("key")
)


def spelling_hint(unknown: pl.Series, known: pl.Series, what: str, noun: tuple[str, str] = ("query", "queries")) -> str:
    """Say how many unknown ids are known ones in another spelling; empty if none is."""
    return _hint(unknown.rename("id").to_frame(), known.rename("id").to_frame(), what, *noun)


def passage_hint(shown: pl.DataFrame, judged: pl.DataFrame, what: str) -> str:
    """Say how many passages without a judgment have one in another spelling; empty if none has.

    Both tables have query and passage. An id that both have, be it for other queries, isn't misspelt.
    """
    near = judged.select("query", "passage").join(shown.select("query").unique(), on="query", how="semi").unique()
    unknown, missed = shown.join(judged, on="passage", how="anti"), near.join(shown, on="passage", how="anti")
    return _hint(unknown.rename({"passage": "id"}), missed.rename({"passage": "id"}), what, "passage", "passages")


def _hint(unknown: pl.DataFrame, known: pl.DataFrame, what: str, one: str, several: str) -> str:
    frames = [frame.with_columns(SPELLING) for frame in (unknown, known)]
    keys = [name for name in unknown.columns if name != "id"]
    pairs = frames[0].join(frames[1], on=[*keys, "key"], maintain_order="left")
    same = pairs.unique([*keys, "id"], maintain_order=True)
    if not same.height:
        return ""
    mine, theirs = (quote_short(each, 24) for each in same.select("id", "id_right").row(0))
    differ = "differs" if same.height == 1 else "differ"
    return (
        f"{format_count(same.height, one, several)} {differ} from {what} ones only "
        f"in leading zeros, spaces, case, a final .0 or Unicode form ({mine} and {theirs}); write the ids the same way"
    )


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
