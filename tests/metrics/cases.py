"""One small case, said briefly: what is shown, what is known, and the metric's answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

import ragworth
from ragworth.data import Contexts, Judgments, Ratings, Scores

Grades = Mapping[str, float | None]
"""Passage → value; None where judging failed."""


def shown(**contexts: str) -> Contexts:
    """Contexts of the query ``q``: each letter a passage, in the order shown; a blank is a rank not listed."""
    rows = [
        (system, "q", rank, passage)
        for system, passages in contexts.items()
        for rank, passage in enumerate(passages, 1)
        if passage != " "
    ]
    return Contexts(pl.DataFrame(rows, schema=["system", "query", "rank", "passage"], orient="row"))


def judged(relevance: Grades, abstention: Grades | None = None, query: str = "q", **aspects: Grades) -> Judgments:
    """Judgments of one query; other aspects by their names."""
    rows = [
        (query, passage, aspect, value, "ok" if value is not None else "refused")
        for aspect, grades in {"relevance": relevance, "abstention": abstention or {}, **aspects}.items()
        for passage, value in grades.items()
    ]
    names = {"query": pl.String, "passage": pl.String, "aspect": pl.String, "value": pl.Float64, "status": pl.String}
    return Judgments(pl.DataFrame(rows, schema=names, orient="row"))


def rated(query: str = "q", /, **ratings: Grades) -> Ratings:
    """Ratings by passage: ``rated(a={"s": 3})`` says that passage a answers sub-question s with 3."""
    return Ratings(
        [
            {
                "query": query,
                "passage": passage,
                "subquestion": question,
                "value": value,
                "status": "ok" if value is not None else "refused",
            }
            for passage, grades in ratings.items()
            for question, value in grades.items()
        ]
    )


def lengths(**tokens: int) -> dict[str, list[str] | list[int]]:
    return {"passage": list(tokens), "tokens": list(tokens.values())}


def answers(scores: Scores, system: str | None = None) -> list[float | str]:
    """The values in order; where there is none, the status."""
    frame = scores.frame if system is None else scores.frame.filter(pl.col("system") == system)
    return [status if value is None else value for value, status in frame.select("value", "status").rows()]


def statuses(scores: Scores) -> dict[str, str]:
    """Metric → status, for a single context."""
    return dict(scores.frame.select("metric", "status").rows())


def relevance_scores(context: str, judgments: Judgments, metrics: Iterable[str]) -> Scores:
    """One context scored with metrics that need judgments alone."""
    return ragworth.score(shown(A=context), judgments, list(metrics))
