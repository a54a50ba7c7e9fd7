"""What long answers cover at any threshold, from the ratings that were given once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from ragworth.metrics.required_passages import REQUIRED, required
from ragworth.results import Results
from ragworth.tables import OK, Ratings

VALUES = {"system": pl.String, "query": pl.String, "value": pl.Float64}
NOTHING = pl.DataFrame(schema=VALUES)

WEIGHT = 0.5
"""Of density, as for contexts."""
THRESHOLD = r"(?:^| · )eta ([0-9.]+)(?: · |$)"
"""How the source of a grade tells its threshold."""


class AnswerCoverage(NamedTuple):
    """Coverage and density of answers at one threshold: tables of system, query and value."""

    coverage: pl.DataFrame
    density: pl.DataFrame

    def __bool__(self) -> bool:
        return any(each.height for each in self)


def answerable(ratings: Ratings, eta: float) -> dict[str, frozenset[str]]:
    """Sub-questions that some passage answers, by query; queries with a failed rating are left out."""
    frame = ratings.frame
    failed = set(frame.filter(pl.col("status") != OK)["query"])
    best = frame.group_by("query", "subquestion", maintain_order=True).agg(pl.col("value").max())
    good = best.filter((pl.col("value") >= eta) & ~pl.col("query").is_in(list(failed)))
    found = good.group_by("query", maintain_order=True).agg("subquestion")
    return {query: frozenset(names) for query, names in found.iter_rows()}


def answer_coverage(results: Results, eta: float) -> AnswerCoverage:
    """What the answers cover. Nothing where they were not rated for all that is answerable at this threshold."""
    said = results.said.get("coverage")
    if said is None or results.ratings is None or "ratings" not in said.columns:
        return AnswerCoverage(NOTHING, NOTHING)
    wanted, lengths = answerable(results.ratings, eta), _required_tokens(results, eta)
    shares: dict[tuple[str, str], list[float]] = {}
    dense: dict[tuple[str, str], list[float]] = {}
    rows = said.filter((pl.col("aspect") == "coverage") & (pl.col("status") == OK))
    for system, query, names, values, tokens in rows.select(
        "system", "query", "subquestions", "ratings", "tokens"
    ).iter_rows():
        rated = dict(zip(names or [], values or [], strict=True))
        asked = wanted.get(query)
        if not asked or not asked <= rated.keys():
            continue
        share = sum(rated[name] >= eta for name in asked) / len(asked)
        shares.setdefault((system, query), []).append(share)
        if not share:
            dense.setdefault((system, query), []).append(0.0)
        elif tokens and lengths.get(query):
            dense.setdefault((system, query), []).append((share * lengths[query] / tokens) ** WEIGHT)
    made = ([(*pair, sum(some) / len(some)) for pair, some in each.items()] for each in (shares, dense))
    return AnswerCoverage(*(pl.DataFrame(each, schema=VALUES, orient="row") for each in made))


def graded_coverage(results: Results, eta: float) -> AnswerCoverage:
    """What graders said that tell their threshold, and had this one; others may have had any."""
    if results.outcomes is None:
        return AnswerCoverage(NOTHING, NOTHING)
    rows = results.outcomes.frame.filter(pl.col("status") == OK)
    mine = rows.filter(pl.col("source").str.extract(THRESHOLD).cast(pl.Float64, strict=False) == eta)
    return AnswerCoverage(
        *(mine.filter(pl.col("aspect") == aspect).select(list(VALUES)) for aspect in AnswerCoverage._fields)
    )


def _required_tokens(results: Results, eta: float) -> Mapping[str, int]:
    """Tokens of each query's required subset, where the texts of all its passages are known."""
    assert results.ratings is not None
    frame = results.ratings.frame
    failed = frame.filter(pl.col("status") != OK)["query"].unique()
    classes = required(Ratings.trusted(frame.filter(~pl.col("query").is_in(failed.to_list()))), eta)
    chosen = classes.filter(pl.col("class") == REQUIRED).join(results.collection.tokens(), on="passage", how="left")
    sums = chosen.group_by("query").agg(pl.col("tokens").sum(), pl.col("tokens").is_null().any().alias("unknown"))
    return {query: tokens for query, tokens, unknown in sums.iter_rows() if not unknown}
