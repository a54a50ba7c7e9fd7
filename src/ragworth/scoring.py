"""``ragworth.score``: our metrics, and by name those of ir_measures that we do not have."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import polars as pl

from ragworth.doors import Data
from ragworth.errors import MetricError
from ragworth.metrics import engine
from ragworth.metrics.declare import Metric, parse
from ragworth.metrics.engine import Metrics, Tokens
from ragworth.tables import Contexts, Judgments, Ratings, Scores


def split(metrics: Metrics) -> tuple[list[Metric], list[Any]]:
    """Metrics of ours, and measures of ir_measures; what neither knows is an error."""
    given = [metrics] if isinstance(metrics, (str, Metric)) else list(metrics)
    ours: list[str | Metric] = []
    theirs: list[Any] = []
    for item in given:
        measure = _foreign(item) if isinstance(item, str) else None
        if measure is None:
            ours.append(item)
        elif measure not in theirs:
            theirs.append(measure)
    return (engine.parse_all(ours) if ours or not theirs else []), theirs


def _foreign(text: str) -> Any | None:
    """A measure that only ir_measures has, if it is installed."""
    try:
        parse(text)
    except MetricError:
        if find_spec("ir_measures") is None:
            return None
        from ragworth.interop.ir_measures import foreign

        return foreign(text)
    return None


def score(
    contexts: Contexts | Data,
    judgments: Judgments | Data | None = None,
    metrics: Metrics = ("nDCG@10",),
    *,
    ratings: Ratings | Data | None = None,
    tokens: Tokens | Data | None = None,
    complete: bool = True,
) -> Scores:
    """Score every context of every system with every metric.

    Parameters
    ----------
    contexts: what the systems show: a :class:`Contexts` table or several of them, a data frame with scores or
        ranks, or a dict ``{query: {passage: score}}``.
    judgments: relevance, abstention, downstream, …: a :class:`Judgments` table, a data frame, or a dict
        ``{query: {passage: relevance}}``.
    metrics: written forms, such as ``["nDCG@10", "UDCG(gamma=0.33)@5"]``; with ir_measures installed also
        those of its measures that we do not have.
    ratings: of sub-questions, for ``Cov``, ``alpha_nDCG`` and ``Den``.
    tokens: passage lengths, for ``Den``.
    complete: judged queries that a system has nothing for count as empty contexts; False leaves them out.

    Returns
    -------
    Scores with one row for each system, metric and judged query. A score that cannot be had has a status
    that says why, and no value. ``notes`` tells what did not match.
    """
    ours, theirs = split(metrics)
    if isinstance(contexts, (list, tuple)) and contexts and all(isinstance(each, Contexts) for each in contexts):
        contexts = Contexts.concat(list(contexts))
    contexts = contexts if isinstance(contexts, Contexts) else Contexts(contexts)
    if judgments is not None and not isinstance(judgments, Judgments):
        judgments = Judgments(judgments)
    if ratings is not None and not isinstance(ratings, Ratings):
        ratings = Ratings(ratings)
    if tokens is not None and not isinstance(tokens, Tokens):
        tokens = Tokens.of(tokens)
    parts: list[Scores] = []
    if ours:
        parts.append(engine.score(contexts, judgments, ours, ratings=ratings, tokens=tokens, complete=complete))
    if theirs:
        from ragworth.interop.ir_measures import score_foreign

        parts.append(score_foreign(contexts, judgments, theirs, complete=complete))
    if len(parts) == 1:
        return parts[0]
    systems = pl.col("system").replace_strict(
        {name: i for i, name in enumerate(contexts.systems)}, return_dtype=pl.Int64
    )
    frame = pl.concat([part.frame for part in parts]).sort(systems, maintain_order=True)
    return Scores.trusted(frame, tuple(dict.fromkeys(note for part in parts for note in part.notes)))
