"""Results small enough to count by hand: two systems, two queries, three passages each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

import ragworth
from ragworth.data import Contexts, Judgments, Outcomes, Scores
from ragworth.results import Results

# r is relevant, h a hard distractor, w a weak one, x was not judged for abstention.
LABELS = {"r": 1.0, "h": 0.0, "w": 0.0, "x": 0.0}
DECLINES = {"r": 0.1, "h": 0.1, "w": 0.95}
SHOWN = {"one": {"q1": "whr", "q2": "rhx"}, "two": {"q1": "rwx", "q2": "hwr"}}


def judged() -> Judgments:
    rows: list[dict[str, Any]] = []
    for query in ("q1", "q2"):
        for aspect, values in (("relevance", LABELS), ("abstention", DECLINES)):
            rows += [{"query": query, "passage": p, "aspect": aspect, "value": v} for p, v in values.items()]
    return Judgments(rows)


def results(metrics: list[str], grades: Mapping[tuple[str, str], float | None], **more: Any) -> Results:
    """Three passages each of two systems for two queries."""
    rows = [
        {"system": system, "query": query, "passage": passage, "rank": rank}
        for system, queries in SHOWN.items()
        for query, passages in queries.items()
        for rank, passage in enumerate(passages, 1)
    ]
    contexts, judgments = Contexts(rows), judged()
    graded = [
        (system, query, "grade", value, "ok" if value is not None else "empty-answer", "given")
        for (system, query), value in grades.items()
    ]
    return Results(
        ragworth.Collection(),
        contexts,
        judgments,
        None,
        None,
        Outcomes(pl.DataFrame(graded, schema=dict(Outcomes.schema), orient="row")) if graded else None,
        ragworth.score(contexts, judgments, metrics),
        **more,
    )


def with_values(scores: Scores, outcomes: Outcomes) -> Results:
    """Results with these scores and outcomes."""
    return replace(results(["nDCG@3"], {}), scores=scores, outcomes=outcomes)


GRADES: dict[tuple[str, str], float | None] = {
    ("one", "q1"): -1.0, ("one", "q2"): 0.0, ("two", "q1"): 0.5, ("two", "q2"): None,
}  # fmt: skip
