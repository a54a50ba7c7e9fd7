"""How well learned weights do on another collection, or with another model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ragworth.fitting.estimates import average_figure
from ragworth.fitting.rows import FittingTables, Floats, build_fitting_rows
from ragworth.fitting.udcg_weights import udcg_metric
from ragworth.formats.theta import Theta, digest_query
from ragworth.metrics import METRICS
from ragworth.scoring import bind_theta
from ragworth.stats.estimate import Estimate
from ragworth.stats.within_query import query_correlations, within_query_correlations, within_query_gaps
from ragworth.tables import Contexts, Judgments, Outcomes


class TransferResult(NamedTuple):
    """Mean rank correlations with the outcome within queries, of learned weights and of UDCG(γ = 1/3).

    ``gap`` is the first less the second, over the same queries; ``contexts`` and ``left_out`` count rows. ``by_query``
    has the two correlations of each query, NaN if undefined. ``seen`` counts the queries whose id is one that the
    weights were learned from.
    """

    name: str
    learned: Estimate
    udcg: Estimate
    gap: Estimate
    contexts: int
    left_out: dict[str, int]
    by_query: Floats
    seen: int


def transfer(
    theta: Theta,
    contexts: Contexts,
    judgments: Judgments,
    outcomes: Outcomes,
    *,
    outcome: str = "grade",
    **settings: Any,
) -> TransferResult:
    """How learned weights and UDCG(γ = 1/3) go with outcomes that they were not learned from."""
    return transfer_tables(theta, FittingTables(contexts, judgments, outcomes), outcome=outcome, **settings)


def transfer_tables(
    theta: Theta,
    tables: FittingTables,
    *,
    outcome: str = "grade",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> TransferResult:
    """The same, for the tables of a folder of results."""
    learned = bind_theta(METRICS.get("UDCG").bind(theta.k, rel=theta.rel, theta="theta"), theta)
    rows = build_fitting_rows(tables, [learned, udcg_metric(theta.k, theta.rel)], outcome)
    facts: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    mine, plain = within_query_correlations(rows.values, rows.outcome, rows.query, **facts)
    gap = within_query_gaps(rows.values, rows.outcome, rows.query, pairs=[(0, 1)], **facts)[0]
    each = query_correlations(rows.values, rows.outcome, rows.query).values
    seen = sum(digest_query(str(query)) in theta.trained_on for query in rows.ids)
    return TransferResult(tables.name, mine, plain, gap, len(rows.outcome), dict(rows.left_out), each, seen)


def average_transfer(transfers: Sequence[TransferResult], **settings: Any) -> dict[str, dict[str, Any]]:
    """``learned``, ``udcg`` and ``gap``, each averaged over the cases; see :func:`average_figure`."""
    sides = {
        "learned": [each.by_query[:, 0] for each in transfers],
        "udcg": [each.by_query[:, 1] for each in transfers],
        "gap": [each.by_query[:, 0] - each.by_query[:, 1] for each in transfers],
    }
    return {name: average_figure(cases, **settings, difference=name == "gap") for name, cases in sides.items()}
