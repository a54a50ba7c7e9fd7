"""Metrics at every cutoff, computed anew from the tables: what showing fewer passages would be worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from ragworth.collection import Collection
from ragworth.diagnosis import all_queries
from ragworth.errors import InputError, RagworthError
from ragworth.metrics.declaration import Metric
from ragworth.metrics.parsing import parse
from ragworth.report.page.depths import listed_depth
from ragworth.report.page.survey import select_queries
from ragworth.results import Results
from ragworth.scoring import score
from ragworth.tables import Scores

MOST_METRICS, MOST_CUTS = 6, 10

MOST_QUERIES = 100_000
"""Queries that curves are computed from; where there are more, so many of them, evenly spaced."""


class CutoffCurves(NamedTuple):
    """metric, system, place (the cutoff), mean, n and of; metrics left out, with the reason; and the sample of queries.

    ``of`` are the queries that the system's reported mean is from, and ``n`` those that its curve is from.
    """

    frame: pl.DataFrame
    left: list[str]
    sample: str = ""


def cutoff_curves(results: Results, metrics: list[str], systems: list[str]) -> CutoffCurves | str:
    """Means at k = 1 … depth for metrics that take a cutoff.

    A metric is drawn only if the tables give the very scores that were reported, at the cutoff that was asked for.
    All points of a curve are from the same queries. A query without a value at some cutoff, as where its passages
    weren't judged so far down, is left out; so is a cutoff at which half of the queries or more have none.
    """
    families = _families(metrics)
    results, sample = _sampled(results, families)
    deepest = max((part.select(pl.col("rank").max()).item() or 0 for part in results.contexts.parts), default=0)
    depth = min(int(deepest), listed_depth(results, metrics))
    if depth < 2:
        return "contexts have fewer than two passages"
    if not families:
        return "no metric here takes a cutoff"
    cuts = sorted({int(k) for k in np.unique(np.linspace(1, depth, min(depth, MOST_CUTS)).round())})
    parts, left = [], []
    for asked in families[:MOST_METRICS]:
        own = sorted({*cuts, *([asked.cutoff] if asked.cutoff is not None and asked.cutoff <= depth else [])})
        try:
            scores = _rescore(results, [asked, *(_at_cutoff(asked, k) for k in own)])
        except RagworthError as error:
            why = error.more[0] if isinstance(error, InputError) and error.more else str(error).splitlines()[0]
            left.append(f"{asked} ({why})")
            continue
        if not _same_scores(scores, results.scores, str(asked)):
            left.append(f"{asked} (the tables kept do not give the scores reported)")
            continue
        tables = scores.having("system", systems).by("metric")
        parts.append(_curves(tables, asked, own))
    if more := ", ".join(map(str, families[MOST_METRICS:])):
        left.append(f"{more} (only {MOST_METRICS} metrics are drawn)")
    if not parts:
        return "; ".join(left)
    rank = {system: i for i, system in enumerate(systems)}
    frame = pl.concat(parts)
    place = {metric: i for i, metric in enumerate(frame["metric"].unique(maintain_order=True))}
    order = [
        pl.col("metric").replace_strict(place, return_dtype=pl.Int64),
        pl.col("system").replace_strict(rank, return_dtype=pl.Int64),
        "place",
    ]
    return CutoffCurves(frame.sort(order), left, sample)


def _sampled(results: Results, metrics: list[Metric]) -> tuple[Results, str]:
    """What metrics need of at most `MOST_QUERIES` queries, and a sentence that says so where there are more."""
    queries = pl.Series("query", all_queries(results.contexts), dtype=pl.String)
    if len(queries) <= MOST_QUERIES:
        return results, ""
    places = np.linspace(0, len(queries) - 1, MOST_QUERIES).round().astype(np.int64)
    collection = results.collection if _need_tokens(metrics) else Collection()
    results = replace(results, collection=collection, answers=None, outcomes=None, said={})
    return select_queries(results, queries.gather(places)), f"From {MOST_QUERIES:,} of {len(queries):,} queries."


def _need_tokens(metrics: list[Metric]) -> bool:
    return any("tokens" in metric.needs for metric in metrics)


def _families(metrics: list[str]) -> list[Metric]:
    """Metrics that take a cutoff, each family with the same parameters once."""
    found: dict[tuple[object, ...], Metric] = {}
    for written in metrics:
        try:
            metric = parse(written)
        except RagworthError:
            continue
        if metric.declaration.takes_cutoff:
            found.setdefault((metric.name, metric.parameters), metric)
    return list(found.values())


def _at_cutoff(metric: Metric, k: int) -> Metric:
    return replace(metric, cutoff=k, held=())


def _rescore(results: Results, metrics: list[Metric]) -> Scores:
    tokens = results.collection.tokens() if _need_tokens(metrics) else None
    return score(results.contexts, results.judgments, metrics, ratings=results.ratings, tokens=tokens)


def _same_scores(made: Scores, reported: Scores, metric: str) -> bool:
    """Whether scores computed anew are those that were reported."""
    keys = ["system", "query"]
    mine, theirs = (table.having("metric", [metric]).frame.select(*keys, "value") for table in (made, reported))
    if mine.select(keys).equals(theirs.select(keys)):  # nearly always; a join takes more time and memory
        both = theirs.with_columns(value_right=mine["value"]).drop_nulls("value")
        return not both["value_right"].null_count() and _near(both)
    theirs = theirs.drop_nulls("value")
    both = theirs.join(mine.drop_nulls("value"), on=keys)
    return both.height == theirs.height and _near(both)


def _near(both: pl.DataFrame) -> bool:
    return bool(((both["value"] - both["value_right"]).abs() < 1e-9).all())


def _curves(tables: Mapping[str, Scores], metric: Metric, cuts: list[int]) -> pl.DataFrame:
    """Means of each system at each cutoff. The tables of all metrics have the same systems and queries in one order."""
    at = {str(k): tables[str(_at_cutoff(metric, k))].frame["value"] for k in cuts}
    reported = tables[str(metric)].frame.select("system", "value", **at).drop_nulls("value")
    rows = []
    for (system,), part in reported.group_by("system", maintain_order=True):
        known = [k for k in cuts if 2 * part[str(k)].count() > part.height]
        judged = part.drop_nulls([str(k) for k in known])
        rows += [(system, k, judged[str(k)].mean(), judged.height, part.height) for k in known if judged.height]
    schema = {"system": pl.String, "place": pl.Int64, "mean": pl.Float64, "n": pl.Int64, "of": pl.Int64}
    name = pl.lit(str(replace(metric, cutoff=None))).alias("metric")
    return pl.DataFrame(rows, schema=schema, orient="row").select(name, *schema)
