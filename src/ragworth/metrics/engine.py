"""Score contexts by judgments.

Unknown metrics and missing judgments are reported together before anything is computed. Then each system's contexts
become padded blocks of queries, and each metric runs over the blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.errors import InputError, MetricError, TableError, format_count, format_list, quote_short
from ragworth.metrics.block_builder import BlockBuilder, KnownTruth, ShownContexts
from ragworth.metrics.blocks import Block, Floats
from ragworth.metrics.declaration import UNIVERSES, Metric, format_number
from ragworth.metrics.ground_truth import ASPECT_SCALES, aspect_values, judged_values, query_numbers, rating_matrices
from ragworth.metrics.id_spelling import MAX_PASSAGES, passage_hint, spelling_hint
from ragworth.metrics.parsing import parse
from ragworth.metrics.reader_judgments import READER_JUDGED, READER_REASON, reader_judged
from ragworth.metrics.sets import CUT_RANKING
from ragworth.tables import OK, Contexts, Judgments, Ratings, Scores, coercion
from ragworth.tables.coercion import Data
from ragworth.tables.duplicates import duplicate_rows

LEFT_OUT = "left-out"
"""Status of a judged query that a system has no context for, if such queries are left out."""

NOT_IN_RUN = "are not in the run and are left out"
"""End of the note on such queries."""

Metrics = str | Metric | Sequence[str | Metric]


@dataclass(frozen=True, eq=False)
class Tokens:
    """Passage lengths, and what counted them; a column ``counter`` of the lengths says so itself."""

    frame: pl.DataFrame
    counter: str = "given"

    def __post_init__(self) -> None:
        if "counter" in self.frame.columns and self.frame.height:
            object.__setattr__(self, "counter", self.frame["counter"][0])

    @classmethod
    def of(cls, data: Data, counter: str = "given", source: str = "") -> Tokens:
        """Read lengths from a table with passage and tokens."""
        frame = coercion.to_frame(data, source=source)
        passage = coercion.id_column(frame, "passage", table="token counts", source=source)
        if "tokens" not in frame.columns:
            raise TableError("no 'tokens' column", expected="passage, tokens", file=source)
        tokens = coercion.to_numbers(frame["tokens"], source=source)
        checked = pl.DataFrame([passage, tokens, *([frame["counter"]] if "counter" in frame.columns else [])])
        if tokens.null_count() or bool((tokens < 0).any()) or len(duplicate_rows(checked, ["passage"])):
            raise TableError(
                "each passage needs one token count that isn't negative",
                file=source,
                expected="passage, tokens",
            )
        return cls(checked, counter)


def parse_all(metrics: Metrics) -> list[Metric]:
    """Parse metrics from their written forms, dropping repetitions and reporting all errors together."""
    given = [metrics] if isinstance(metrics, (str, Metric)) else list(metrics)
    for item in given:
        if not isinstance(item, (str, Metric)):
            raise MetricError(f"{item!r} is not a metric", expected="a form like nDCG@10")
    parsed: list[Metric] = []
    problems: list[InputError] = []
    for item in given:
        try:
            metric = parse(item) if isinstance(item, str) else item
        except MetricError as error:
            problems.append(error)
            continue
        if metric not in parsed:
            parsed.append(metric)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise MetricError(
            f"{len(problems)} metrics can't be parsed", more=tuple(str(p).replace("\n", "\n  ") for p in problems)
        )
    if not parsed:
        raise MetricError("no metrics given", remedy="see: ragworth metrics")
    return parsed


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
        notes += job.check_overlap(complete)
        parts |= job.scores(complete)
        notes += job.unlabelled_notes()
    notes += _withdraw_reader_judged(parts, contexts, judgments, wanted, max_rank)
    notes += _cut_ranking_notes(parts, wanted)
    if tokens is not None and any("tokens" in metric.needs for metric in wanted):
        notes.append(f"tokens counted by: {tokens.counter}")
    ordered = [parts[system, str(metric)] for system in shown.systems for metric in wanted]
    return Scores.of_parts(ordered, tuple(dict.fromkeys(notes)))


def _cut_ranking_notes(parts: dict[tuple[str, str], pl.DataFrame], metrics: Sequence[Metric]) -> list[str]:
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
    return kept, _merge_notes(notes)


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


class _Unlabelled(NamedTuple):
    """Passages shown without a relevance label, and all passages shown."""

    passages: int
    shown: int

    def plus(self, block: Block, metric: Metric) -> _Unlabelled:
        assert block.abstention is not None
        cutoff = np.inf if metric.cutoff is None else metric.cutoff
        filled, end = block.filled(cutoff), block.upto(cutoff)
        unknown = filled & np.isnan(block.relevance[:, :end]) & ~np.isnan(block.abstention[:, :end])
        if block.failed is not None:
            unknown &= ~block.failed[:, :end]
        return _Unlabelled(self.passages + int(unknown.sum()), self.shown + int(filled.sum()))


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
        self.unlabelled: dict[tuple[str, str], _Unlabelled] = {}
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

    def check_overlap(self, complete: bool) -> list[str]:
        """Note where runs and judgments don't match; raise if they have nothing in common."""
        notes: list[tuple[str, str]] = []
        total, query = len(self.queries), self.blocks.query
        what = "rated" if self.universe == "ratings" else "judged"
        cells = self.blocks.cells(self.universe)
        for i, system in enumerate(self.shown.systems):
            mine = self.shown.system == i
            asked = self.shown.query.filter(pl.Series(mine))
            known = int((query[mine] >= 0).sum())
            if known == 0:
                hint = spelling_hint(asked, self.queries, what)
                raise TableError(
                    f"{system}: none of its {format_count(len(asked), 'query', 'queries')} is {what}",
                    more=(
                        f"the run has {_first_ids(asked)}",
                        f"the {what} queries are {_first_ids(self.queries)}",
                        *((hint,) if hint else ()),
                    ),
                    remedy="check that both belong to the same collection and use the same ids",
                )
            if known < total:
                fate = "are not in the run and count as empty contexts" if complete else NOT_IN_RUN
                notes.append((system, f"{total - known:,} of {total:,} {what} queries {fate}"))
            if extra := len(asked) - known:
                unknown = self.shown.query.filter(pl.Series(mine & (query < 0)))
                queries = format_count(extra, "query", "queries")
                notes.append((system, f"{queries} not {what} and so not scored ({_first_ids(unknown)})"))
                if hint := spelling_hint(unknown, self.queries.filter(~self.queries.is_in(asked.implode())), what):
                    notes.append((system, hint))
            unmatched = (
                cells is not None and cells.bounds[i] == cells.bounds[i + 1] and bool(self.shown.size[mine].any())
            )
            if hint := passage_hint(self.shown.top(i, MAX_PASSAGES // len(self.shown.systems)), self.judged, what):
                notes.append((system, hint))
            elif unmatched and not self.blocks.any_known(i, self.universe):
                words = f"none of the passages it shows is {what}; check that passage ids are written the same way"
                notes.append((system, words))
        return [*_merge_notes(notes), *self._without_relevant(), *self._thresholds()]

    def _without_relevant(self) -> list[str]:
        """Note judged queries without a relevant passage, by the level that each metric counts as relevant."""
        judged = self.known.judged
        if judged is None or judged.failed.any():
            return []
        by_level: dict[float | None, list[Metric]] = {}
        for metric in self.metrics:
            if "relevance" in metric.needs:
                by_level.setdefault(metric.values.get("rel"), []).append(metric)
        notes: list[str] = []
        counts: set[int] = set()
        for level, metrics in by_level.items():
            relevant = judged.value > 0 if level is None else judged.value >= level
            words = "above 0" if level is None else f"of {format_number(level)} or more"
            without = len(self.queries) - len(np.unique(judged.query[relevant]))
            if without == len(self.queries):
                notes.append(
                    f"no judged passage has a relevance {words} (the highest is "
                    f"{format_number(judged.value.max())}), so nothing counts as relevant for "
                    f"{format_list([str(metric) for metric in metrics], 4)}"
                )
            elif without and without not in counts:
                counts.add(without)
                queries = f"{without:,} of {len(self.queries):,} judged queries"
                notes.append(
                    f"{queries} {'has' if without == 1 else 'have'} no passage with a relevance {words}; like "
                    "trec_eval, means include them"
                )
        return notes

    def unlabelled_notes(self) -> list[str]:
        """Note passages shown that count as harmful because nobody said whether they are relevant."""
        metrics: dict[tuple[str, _Unlabelled], list[str]] = {}
        for (system, metric), counts in self.unlabelled.items():
            if counts.passages:
                metrics.setdefault((system, counts), []).append(metric)
        return _merge_notes(
            [
                (
                    system,
                    f"{n:,} of {format_count(shown, 'passage')} shown {'has' if n == 1 else 'have'} no relevance label "
                    f"and count{'s' if n == 1 else ''} as irrelevant for {format_list(names, 4)}",
                )
                for (system, (n, shown)), names in metrics.items()
            ]
        )

    def _thresholds(self) -> list[str]:
        """Note ratings outside the scale of 0 to 5, and thresholds that no rating reaches."""
        if self.known.rated is None:
            return []
        values = self.known.rated.value[np.isfinite(self.known.rated.value)]
        low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
        notes = [
            f"{metric}: no rating reaches eta={format_number(metric.values['eta'])}, the highest is "
            f"{format_number(high)}; "
            f"use {metric.name}(eta={format_number(high)})"
            for metric in self.metrics
            if len(values) and "eta" in metric.values and high < metric.values["eta"] and high > 0
        ]
        if len(values) and (low < 0 or high > 5):
            notes.append(f"ratings go from {format_number(low)} to {format_number(high)}; the usual scale is 0 to 5")
        return notes

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
                        before = self.unlabelled.get((system, names[j]), _Unlabelled(0, 0))
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


def _merge_notes(told: list[tuple[str, str]]) -> list[str]:
    """Prefix notes with their systems; systems with the same note share it."""
    about: dict[str, list[str]] = {}
    for system, words in told:
        about.setdefault(words, []).append(system)
    return [f"{format_list(systems, 3)}: {words}" for words, systems in about.items()]


def _first_ids(ids: pl.Series) -> str:
    """List the first three ids and count the rest."""
    shown = ", ".join(quote_short(each, 24) for each in ids.head(3))
    return f"{shown} and {len(ids) - 3:,} more" if len(ids) > 3 else shown


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
