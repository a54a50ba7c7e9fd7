"""Scoring: contexts and judgments in, a table of scores out.

Everything is checked first: unknown metrics and missing judgments are reported together before
anything is computed. Then each system's contexts become padded blocks of queries, and each metric runs
over the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from ragworth import doors, ordering
from ragworth.doors import Data
from ragworth.errors import InputError, MetricError, TableError, counted, listed, quoted
from ragworth.metrics.blocks import Block, Bools, Floats, Ints, Pool, Truth
from ragworth.metrics.declare import Metric, parse
from ragworth.metrics.facts import Matrices, Values, matrices_of, number, probabilities, truth_of, values_of
from ragworth.metrics.lookup import Found, Lookup
from ragworth.tables import OK, Contexts, Judgments, Ratings, Scores

CELLS = 1 << 20
"""Cells (queries × depth) of a block. Large enough to amortise calls, small enough for the cache."""

Metrics = str | Metric | Sequence[str | Metric]


@dataclass(frozen=True, eq=False)
class Tokens:
    """How long passages are, and who counted."""

    frame: pl.DataFrame
    counter: str = "given"

    @classmethod
    def of(cls, data: Data, counter: str = "given", source: str = "") -> Tokens:
        """From a table with passage and tokens."""
        frame = doors.to_frame(data, source=source)
        passage = doors.id_column(frame, "passage", table="token counts", source=source)
        if "tokens" not in frame.columns:
            raise TableError("no 'tokens' column", expected="passage, tokens", file=source)
        tokens = doors.numbers(frame["tokens"], source=source)
        checked = pl.DataFrame([passage, tokens])
        if tokens.null_count() or bool((tokens < 0).any()) or bool(passage.is_duplicated().any()):
            raise TableError(
                "token counts must be there once for each passage and not negative", file=source, expected="passage, tokens"
            )
        return cls(checked, counter)


def parse_all(metrics: Metrics) -> list[Metric]:
    """Metrics from their written forms, each once; all that cannot be read are reported together."""
    given = [metrics] if isinstance(metrics, (str, Metric)) else list(metrics)
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
        raise MetricError(f"{len(problems)} metrics cannot be read", more=tuple(str(p).replace("\n", "\n  ") for p in problems))
    if not parsed:
        raise MetricError("no metric was asked for", remedy="see: ragworth metrics")
    return parsed


def score(
    contexts: Contexts | Data,
    judgments: Judgments | Data | None = None,
    metrics: Metrics = ("nDCG@10",),
    *,
    ratings: Ratings | Data | None = None,
    tokens: Tokens | Data | None = None,
    complete: bool = True,
) -> Scores:
    """Score contexts with metrics of ours; :func:`ragworth.score` says what the parameters are."""
    wanted = parse_all(metrics)
    contexts = contexts if isinstance(contexts, Contexts) else Contexts(contexts)
    if judgments is not None and not isinstance(judgments, Judgments):
        judgments = Judgments(judgments)
    if ratings is not None and not isinstance(ratings, Ratings):
        ratings = Ratings(ratings)
    if tokens is not None and not isinstance(tokens, Tokens):
        tokens = Tokens.of(tokens)
    shown = Shown.of(contexts)
    _check_needs(wanted, judgments, ratings, tokens, shown)
    notes = [*contexts.notes, *(judgments.notes if judgments else ()), *(ratings.notes if ratings else ()), *shown.notes()]
    parts: list[pl.DataFrame] = []
    for universe in ("relevance", "ratings"):
        group = [metric for metric in wanted if metric.declaration.universe == universe]
        if not group:
            continue
        truth = judgments.of("relevance") if universe == "relevance" and judgments else ratings.frame  # type: ignore[union-attr]
        queries = truth["query"].unique(maintain_order=True)
        job = Job(shown, queries, group, judgments, ratings, tokens, universe)
        notes += job.check_overlap(complete)
        parts.append(job.scores(complete))
    if tokens is not None and any("tokens" in metric.needs for metric in wanted):
        notes.append(f"tokens counted by: {tokens.counter}")
    order = pl.DataFrame({"metric": [str(m) for m in wanted]}).with_row_index("_metric")
    systems = pl.DataFrame({"system": shown.systems}).with_row_index("_system")
    frame = pl.concat(parts).join(order, on="metric", maintain_order="left")
    frame = frame.join(systems, on="system", maintain_order="left").sort("_system", "_metric", maintain_order=True)
    return Scores.trusted(frame, tuple(dict.fromkeys(notes)))


def _check_needs(
    metrics: list[Metric], judgments: Judgments | None, ratings: Ratings | None, tokens: Tokens | None, shown: Shown
) -> None:
    """Refuse, all at once, metrics whose judgments were not given."""
    aspects = set(judgments.frame["aspect"].unique()) if judgments is not None else set()
    have = {
        "relevance": "relevance" in aspects,
        "abstention": "abstention" in aspects,
        "ratings": ratings is not None and len(ratings) > 0,
        "tokens": tokens is not None,
        "runs": len(shown.systems) > 1,
    }
    remedy = {
        "relevance": "relevance judgments (--qrels FILE, or judgments with aspect 'relevance')",
        "abstention": "abstention probabilities (--judgments FILE, aspect 'abstention')",
        "ratings": "ratings of sub-questions (--ratings FILE)",
        "tokens": "passage lengths (--passages FILE, tokens=… in Python)",
        "runs": "at least two runs",
    }
    lacking = [(metric, need) for metric in metrics for need in sorted(metric.needs) if not have[need]]
    if lacking:
        raise MetricError(
            "what " + ("a metric needs" if len(lacking) == 1 else "some metrics need") + " was not given",
            more=tuple(f"{metric} needs {remedy[need]}" for metric, need in lacking[:12]),
            remedy="give it, or ask for other metrics (ragworth metrics lists them with their needs)",
        )
    if not shown.systems:
        raise TableError("there are no contexts to score", expected="at least one run with at least one passage")


class Shown(NamedTuple):
    """All contexts, grouped: system number, query id, size and rows of each."""

    frame: pl.DataFrame
    starts: Ints
    systems: list[str]
    system: Ints
    query: pl.Series
    size: Ints

    @classmethod
    def of(cls, contexts: Contexts) -> Shown:
        frame = contexts.frame
        groups = ordering.group(frame, ["system", "query"])
        if groups.order is not None:
            frame = frame[groups.order]
        heads = frame.select("system", "query")[groups.starts[:-1]]
        systems = heads["system"].unique(maintain_order=True)
        ranks = frame["rank"]
        size = ranks.gather(groups.starts[1:] - 1).to_numpy().astype(np.int64)
        return cls(frame, groups.starts, systems.to_list(), number(heads["system"], systems), heads["query"], size)

    def notes(self) -> list[str]:
        """Contexts in which some ranks were never listed."""
        gaps = self.size > np.diff(self.starts)
        return [
            f"{name}: {counted(int(gaps[self.system == i].sum()), 'context')} with ranks nobody listed; "
            "they count as passages shown and not judged"
            for i, name in enumerate(self.systems)
            if gaps[self.system == i].any()
        ]


class Cells(NamedTuple):
    """Values at (context, rank): sparse, by context number; ``row`` is the row of the table they came from."""

    context: Ints
    rank: Ints
    row: Ints


@dataclass(eq=False)
class Job:
    """One universe of queries: the metrics over it, and what they read."""

    shown: Shown
    queries: pl.Series
    metrics: list[Metric]
    judgments: Judgments | None
    ratings: Ratings | None
    tokens: Tokens | None
    universe: str

    def __post_init__(self) -> None:
        needs = {need for metric in self.metrics for need in metric.needs}
        self.query = number(self.shown.query, self.queries)
        self.depth = self._depth()
        self.judged: Values | None = None
        self.abstention: Values | None = None
        self.rated: Matrices | None = None
        if "relevance" in needs and self.judgments is not None:
            self.judged = values_of(self.judgments.of("relevance"), self.queries)
        if "abstention" in needs and self.judgments is not None:
            self.abstention = probabilities(self.judgments, self.queries)
        if "ratings" in needs and self.ratings is not None:
            self.rated = matrices_of(self.ratings, self.queries)
        self.lengths = self.tokens.frame if "tokens" in needs and self.tokens else None
        self.levels = {float(m.values["rel"]) for m in self.metrics if "runs" in m.needs}

    def _depth(self) -> int:
        """How far down any metric looks."""
        deepest = int(self.shown.size.max(initial=0))
        reach = [
            m.cutoff * m.declaration.reach if m.cutoff is not None and "runs" not in m.needs else deepest
            for m in self.metrics
        ]
        return min(deepest, max(reach))

    def check_overlap(self, complete: bool) -> list[str]:
        """What of runs and judgments does not match, in words; nothing in common is an error."""
        notes: list[str] = []
        total = len(self.queries)
        what = "judged" if self.universe == "relevance" else "rated"
        for i, system in enumerate(self.shown.systems):
            mine = self.shown.system == i
            known = int((self.query[mine] >= 0).sum())
            if known == 0:
                raise TableError(
                    f"{system}: none of its {counted(int(mine.sum()), 'query', 'queries')} is {what}",
                    more=(
                        f"the run has {listed([quoted(q, 24) for q in self.shown.query.filter(pl.Series(mine))[:3]], 3)}",
                        f"the {what} queries are {listed([quoted(q, 24) for q in self.queries[:3]], 3)}",
                    ),
                    remedy="check that both are of the same collection and write ids the same way",
                )
            if known < total:
                fate = "count as empty contexts" if complete else "are left out"
                notes.append(f"{system}: {total - known:,} of {total:,} {what} queries are not in the run and {fate}")
            if extra := int(mine.sum()) - known:
                strange = self.shown.query.filter(pl.Series(mine & (self.query < 0)))
                notes.append(
                    f"{system}: {counted(extra, 'query', 'queries')} of the run not {what} and not scored "
                    f"({listed([quoted(q, 24) for q in strange[:4]], 3)})"
                )
        return notes

    def scores(self, complete: bool) -> pl.DataFrame:
        """One row for each system, metric and query."""
        found = _Cells(self)
        parts = []
        names = [str(metric) for metric in self.metrics]
        n = len(self.queries)
        for i, system in enumerate(self.shown.systems):
            values = np.empty((len(names), n))
            status = np.full((len(names), n), OK, dtype=object)
            present = np.zeros(n, dtype=bool)
            present[self.query[(self.shown.system == i) & (self.query >= 0)]] = True
            for low, high, block in found.blocks(i):
                for j, metric in enumerate(self.metrics):
                    values[j, low:high], status[j, low:high] = _measured(metric, block)
            frame = pl.DataFrame(
                {
                    "system": pl.repeat(system, len(names) * n, eager=True),
                    "query": pl.concat([self.queries] * len(names)),
                    "metric": pl.Series(names).repeat_by(n).explode(empty_as_null=False) if n else [],
                    "value": values.ravel(),
                    "status": pl.Series(status.ravel().tolist(), dtype=pl.String),
                }
            ).with_columns(pl.when(pl.col("status") == OK).then(pl.col("value")).alias("value"))
            if not complete:
                frame = frame.filter(pl.Series(np.tile(present, len(names))))
            parts.append(frame)
        return pl.concat(parts)


def _measured(metric: Metric, block: Block) -> tuple[Floats, Bools]:
    """Values and statuses of one metric over one block; a failed judgment it depends on leaves no value."""
    result = metric.compute(block)
    status = np.full(block.size, OK, dtype=object)
    missing = list(result.missing)
    if block.failed is not None and "relevance" in metric.needs:
        reach = np.inf if metric.cutoff is None else metric.cutoff * metric.declaration.reach
        missing.append((block.failed[:, : block.upto(reach)].any(axis=1), "unjudged"))
        if metric.declaration.whole_query:
            missing.append((block.truth.failed > 0, "unjudged"))
    for where, reason in reversed(missing):
        status[where] = reason
    return result.values, status


class _Cells:
    """Where the judged passages are in the contexts of a job, found once for all systems."""

    def __init__(self, job: Job) -> None:
        self.job = job
        shown = job.shown
        self.relevance = self._find(job.judged.lookup) if job.judged else None
        self.abstention = self._find(job.abstention.lookup) if job.abstention else None
        self.rated = self._find(job.rated.lookup) if job.rated else None
        self.tokens: Cells | None = None
        self.rated_tokens: Floats | None = None
        if job.lengths is not None and job.rated is not None:
            lengths = Lookup(np.zeros(job.lengths.height, dtype=np.int64), job.lengths["passage"].rechunk())
            self.tokens = self._find(lengths, by_query=False)
            known = lengths.find(np.zeros(len(job.rated.query), dtype=np.int64), job.rated.passage)
            self.rated_tokens = np.full(len(job.rated.query), np.nan)
            self.rated_tokens[known.asked] = job.lengths["tokens"].to_numpy()[known.row]
        self.span = max(1, CELLS // max(job.depth, 1) // max(1, job.rated.value.shape[1] if job.rated else 1))
        self.truths: dict[int, Truth] = {}
        self.pools = {rel: self._pools(rel) for rel in job.levels}
        # Context number of (system, query), −1 where the system has none.
        self.context = np.full((len(shown.systems), len(job.queries)), -1, dtype=np.int64)
        mine = np.flatnonzero(job.query >= 0)
        self.context[shown.system[mine], job.query[mine]] = mine

    def _find(self, lookup: Lookup, by_query: bool = True) -> Cells:
        """Every shown passage, down to the depth needed, that the lookup knows."""
        shown, job = self.job.shown, self.job
        found: list[Cells] = []
        for low, high in ordering.blocks(shown.starts):
            begin, end = int(shown.starts[low]), int(shown.starts[high])
            context = np.repeat(np.arange(low, high), np.diff(shown.starts[low : high + 1]))
            rank = shown.frame["rank"].slice(begin, end - begin).to_numpy().astype(np.int64)
            passage = shown.frame["passage"].slice(begin, end - begin)
            use = (rank <= job.depth) & (job.query[context] >= 0)
            if not use.all():
                context, rank, passage = context[use], rank[use], passage.filter(pl.Series(use))
            asked: Found = lookup.find(job.query[context] if by_query else np.zeros(len(context), dtype=np.int64), passage)
            found.append(Cells(context[asked.asked], rank[asked.asked], asked.row))
        cells = Cells(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        order = np.argsort(cells.context, kind="stable")
        return Cells(cells.context[order], cells.rank[order], cells.row[order])

    def _pools(self, rel: float) -> tuple[Ints, Ints, Bools, Bools]:
        """Which relevant judged passages each system found: (query of each, order, systems × relevant)."""
        job = self.job
        assert job.judged is not None and self.relevance is not None
        relevant = job.judged.value >= rel
        found = np.zeros((len(job.shown.systems), len(relevant)), dtype=bool)
        found[job.shown.system[self.relevance.context], self.relevance.row] = True
        return job.judged.query, np.empty(0, dtype=np.int64), relevant, found & relevant

    def _pool(self, rel: float, system: int, low: int, high: int) -> Pool:
        query, _, _, found = self.pools[rel]
        mine, others = found[system], np.delete(found, system, axis=0).any(axis=0)

        def count(which: Bools) -> Floats:
            here = which & (query >= low) & (query < high)
            return np.bincount(query[here] - low, minlength=high - low).astype(np.float64)

        return Pool(count(mine | others), count(mine), count(others), count(mine & others))

    def blocks(self, system: int) -> Iterator[tuple[int, int, Block]]:
        """The contexts of one system as blocks of consecutive queries."""
        job = self.job
        total = len(job.queries)
        for low in range(0, total, self.span):
            high = min(low + self.span, total)
            if low not in self.truths:
                self.truths[low] = truth_of(low, high, job.judged, job.rated, self.rated_tokens)
            yield low, high, self._block(system, low, high)

    def _block(self, system: int, low: int, high: int) -> Block:
        job, n = self.job, high - low
        context = self.context[system, low:high]
        place = np.full(len(job.shown.size), -1, dtype=np.int64)
        place[context[context >= 0]] = np.flatnonzero(context >= 0)
        size = np.where(context >= 0, job.shown.size[context], 0)
        width = max(1, min(job.depth, int(size.max(initial=0))))
        relevance, failed = np.full((n, width), np.nan), None
        if job.judged is not None and self.relevance is not None:
            row, cells = self._placed(self.relevance, place, width)
            relevance[row, cells.rank - 1] = job.judged.value[cells.row]
            if job.judged.failed.any():
                failed = np.zeros((n, width), dtype=bool)
                failed[row, cells.rank - 1] = job.judged.failed[cells.row]
        abstention = ratings = tokens = None
        if job.abstention is not None and self.abstention is not None:
            row, cells = self._placed(self.abstention, place, width)
            abstention = np.full((n, width), np.nan)
            abstention[row, cells.rank - 1] = job.abstention.value[cells.row]
        if job.rated is not None and self.rated is not None:
            row, cells = self._placed(self.rated, place, width)
            ratings = np.zeros((n, width, job.rated.value.shape[1]))
            ratings[row, cells.rank - 1] = job.rated.value[cells.row]
        if self.tokens is not None and job.lengths is not None:
            row, cells = self._placed(self.tokens, place, width)
            tokens = np.full((n, width), np.nan)
            tokens[row, cells.rank - 1] = job.lengths["tokens"].to_numpy()[cells.row]
        pools = {rel: self._pool(rel, system, low, high) for rel in self.pools}
        return Block(self.truths[low], size, relevance, failed, abstention, ratings, tokens, pools)

    def _placed(self, cells: Cells, place: Ints, width: int) -> tuple[Ints, Cells]:
        """The cells of the contexts that have a place in the block, with that place."""
        row = place[cells.context]
        mine = (row >= 0) & (cells.rank <= width)
        return row[mine], Cells(cells.context[mine], cells.rank[mine], cells.row[mine])
