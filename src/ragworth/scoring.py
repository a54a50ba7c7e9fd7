"""``ragworth.score``: score with our metrics, or by name with those that only ir_measures has.

Metrics don't read files. Those with a file parameter, such as ``UDCG(theta=FILE)@5``, get its content here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from ragworth.core.errors import InputError, MetricError, format_count
from ragworth.data import Contexts, Judgments, Ratings, Scores
from ragworth.data.coercion import Data
from ragworth.data.collection import Collection
from ragworth.metrics import engine
from ragworth.metrics.declaration import Metric, format_number
from ragworth.metrics.ground_truth import Tokens
from ragworth.metrics.parsing import Metrics, parse, parse_all, try_parse
from ragworth.metrics.theta import Theta, digest_query
from ragworth.metrics.utility import UdcgWeights
from ragworth.workspace.arguments import to_contexts, to_judgments, to_ratings


def split_metrics(metrics: Metrics, folder: Path | None = None) -> tuple[list[Metric], list[Any]]:
    """Separate our metrics from measures of ir_measures; unknown names are an error.

    Paths of files that metrics name are relative to ``folder``, by default the current folder.
    """
    given = [metrics] if isinstance(metrics, (str, Metric)) else list(metrics)
    ours: list[str | Metric] = []
    theirs: list[Any] = []
    for item in given:
        measure = _ir_measure(item) if isinstance(item, str) else None
        if measure is None:
            ours.append(item)
        elif measure not in theirs:
            theirs.append(measure)
    return (_bind_files(parse_all(ours), folder) if ours or not theirs else []), theirs


def reads_file(metric: str) -> bool:
    """Whether a metric depends on a file."""
    known = try_parse(metric)  # None for a measure of another package
    return known is not None and bool(known.files)


def metric_file_digests(metrics: Metrics, folder: Path | None = None) -> dict[str, str]:
    """Hashes of the files that metrics name, by written form: scores depend on them besides the metric's name."""
    parts = split_metrics(metrics, folder)[0]
    return {str(metric): _read_theta(metric, folder).digest for metric in parts if "theta" in metric.files}


def _bind_files(metrics: list[Metric], folder: Path | None) -> list[Metric]:
    """Load the files that metrics name, reporting all errors together."""
    bound: list[Metric] = []
    problems: list[InputError] = []
    for metric in metrics:
        if "theta" not in metric.files or metric.held:
            bound.append(metric)
            continue
        try:
            bound.append(bind_theta(metric, _read_theta(metric, folder)))
        except InputError as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise MetricError(
            f"{len(problems)} metrics can't be computed", more=tuple(str(p).replace("\n", "\n  ") for p in problems)
        )
    return bound


def _read_theta(metric: Metric, folder: Path | None) -> Theta:
    return Theta.read((folder or Path()) / metric.files["theta"])


def bind_theta(metric: Metric, theta: Theta) -> Metric:
    """Bind learned weights to UDCG; weights learned for a different metric are an error."""
    right = replace(metric, cutoff=theta.k)
    if metric.cutoff != theta.k:
        asked = f"the first {metric.cutoff} passages are" if metric.cutoff else "no cutoff is"
        raise MetricError(
            f"{metric}: these weights are for the first {theta.k} passages, but {asked} requested",
            remedy=f"use {right}, or learn others: ragworth train udcg -k {metric.cutoff or 'K'}",
        )
    if "gamma" in dict(metric.parameters):
        raise MetricError(
            f"{metric}: learned weights don't use gamma",
            remedy=f"use {metric.declaration.bind(theta.k, **{**dict(metric.parameters), 'gamma': 1 / 3})}",
        )
    if metric.values["rel"] != theta.rel:
        raise MetricError(
            f"{metric}: these weights were learned with rel={format_number(theta.rel)}",
            remedy=f"use {metric.declaration.bind(theta.k, **{**dict(metric.parameters), 'rel': theta.rel})}",
        )
    return metric.given(theta=UdcgWeights(theta.alpha, theta.beta, theta.variant == "binary", theta.trained_on))


def training_overlap_notes(metrics: Sequence[Metric], contexts: Contexts) -> tuple[str, ...]:
    """A note for each metric whose learned weights have seen some of the queries.

    Queries are compared by id, because contexts have no texts. So a collection that happens to use the same ids is
    noted too.
    """
    known = {metric: weights.trained_on for metric in metrics if (weights := dict(metric.held).get("theta"))}
    if not any(known.values()):
        return ()
    digests = [digest_query(query) for query in contexts.distinct("query")]
    counts = {metric: sum(each in seen for each in digests) for metric, seen in known.items()}
    queries = format_count(len(digests), "query", "queries")
    return tuple(
        f"{metric}: {n:,} of {queries} {'has' if n == 1 else 'have'} the id of a query that its weights were learned "
        "from; unless this is another collection, its agreement with outcomes is in-sample, and too high"
        for metric, n in counts.items()
        if n
    )


def _ir_measure(text: str) -> Any | None:
    """Return a measure that only ir_measures has, if it is installed."""
    try:
        parse(text)
    except MetricError:
        if find_spec("ir_measures") is None:
            return None
        from ragworth.interop.ir_measures import find_measure

        return find_measure(text)
    return None


def score(
    contexts: Contexts | str | Path | Data,
    judgments: Judgments | str | Path | Data | None = None,
    metrics: Metrics = ("nDCG@10",),
    *,
    ratings: Ratings | str | Path | Data | None = None,
    tokens: Tokens | Data | None = None,
    complete: bool = True,
    judged_only: bool = False,
    max_rank: int | None = None,
    folder: Path | None = None,
) -> Scores:
    """Score every context of every system with every metric.

    Parameters
    ----------
    contexts: what the systems show: the path of a run or log, a :class:`Contexts` table, or several of them; a data
        frame with scores or ranks; or a dict ``{query: {passage: score}}``, or ``{system: {query: {passage: score}}}``.
    judgments: relevance, abstention, downstream, …: a path, a :class:`Judgments` table, or several of them; a data
        frame; or a dict ``{query: {passage: relevance}}``.
    metrics: written forms, such as ``["nDCG@10", "UDCG(gamma=0.33)@5"]``; with ir_measures installed, also
        those measures that only it has.
    ratings: of sub-questions, for ``Cov``, ``alpha_nDCG`` and ``Den``.
    tokens: passage lengths, for ``Den``.
    complete: judged queries that a system has no context for count as empty contexts; False leaves them out.
    judged_only: first remove unjudged (or unrated) passages, like trec_eval -J: the passages below them move up, then
        cutoffs apply. Negative relevance counts as unjudged.
    max_rank: use only this many passages from the top of each context, like trec_eval -M, before ``judged_only``.
    folder: base folder for paths in metrics, as in ``UDCG(theta=FILE)@5``; by default the current folder.

    Returns
    -------
    Scores with one row per system, metric and judged query. A score that can't be computed has no value, and its status
    gives the reason. ``notes`` lists mismatches between runs and judgments, and learned weights that are scored on the
    queries they were learned from.
    """
    ours, theirs = split_metrics(metrics, folder)
    contexts, judgments, ratings = to_contexts(contexts), to_judgments(judgments), to_ratings(ratings)
    if tokens is not None and not isinstance(tokens, Tokens):
        tokens = Tokens.of(tokens)
    parts: list[Scores] = []
    if ours:
        parts.append(
            engine.score_tables(
                contexts,
                judgments,
                ours,
                ratings=ratings,
                tokens=tokens,
                complete=complete,
                judged_only=judged_only,
                max_rank=max_rank,
            )
        )
    if theirs:
        from ragworth.interop.ir_measures import score_ir_measures

        parts.append(
            score_ir_measures(
                contexts, judgments, theirs, complete=complete, judged_only=judged_only, max_rank=max_rank
            )
        )
    seen = training_overlap_notes(ours, contexts)
    if len(parts) == 1:
        parts[0].notes += seen
        return parts[0]
    systems = pl.col("system").replace_strict(
        {name: i for i, name in enumerate(contexts.systems)}, return_dtype=pl.Int64
    )
    frame = pl.concat([part.frame for part in parts]).sort(systems, maintain_order=True)
    return Scores.trusted(frame, tuple(dict.fromkeys([note for part in parts for note in part.notes] + list(seen))))


def passage_tokens(texts: Collection) -> Tokens | None:
    """The lengths of a collection's passages, by its own counter; None if it has no texts."""
    return Tokens.of(texts.tokens()) if texts.passages.height else None


def score_at_sizes(
    contexts: Contexts, judgments: Judgments | None, metrics: Sequence[str], sizes: Sequence[int], **more: Any
) -> pl.DataFrame:
    """Scores of each ranking by metrics cut at each size; the systems are named SYSTEM@SIZE, the metrics stay."""
    parts = []
    for size in sizes:
        cut = {str(replace(parse(name), cutoff=size)): name for name in metrics}
        found = score(contexts, judgments, list(cut), **more).frame
        parts.append(found.with_columns(pl.col("system") + f"@{size}", pl.col("metric").replace_strict(cut)))
    return pl.concat(parts).select(list(Scores.schema))


def score_to_sizes(
    contexts: Contexts,
    judgments: Judgments | None,
    metrics: Sequence[str],
    sizes: Mapping[str, int],
    cutoff: str,
    **more: Any,
) -> pl.DataFrame:
    """Scores as in :func:`score`; metrics whose name ends in ``cutoff`` are cut at each query's own size."""
    plain = [name for name in metrics if not name.endswith(cutoff)]
    parts = [score(contexts, judgments, plain, **more).frame if plain else pl.DataFrame(schema=Scores.schema)]
    tied = [name for name in metrics if name.endswith(cutoff)]
    for size in sorted(set(sizes.values())) if tied else ():
        mine = {query for query, each in sizes.items() if each == size}
        cut = {f"{name.removesuffix(cutoff)}@{size}": name for name in tied}
        some = Contexts.trusted(contexts.frame.filter(pl.col("query").is_in(mine)))
        some.empty = frozenset(pair for pair in contexts.empty if pair[1] in mine)
        found = score(some, judgments, list(cut), **more).frame.filter(pl.col("query").is_in(mine))
        parts.append(found.with_columns(pl.col("metric").replace_strict(cut)).select(list(Scores.schema)))
    return pl.concat(parts)
