"""How well learned weights do on another collection, or with another model."""

from __future__ import annotations

from typing import Any, NamedTuple

from ragworth.fitting.rows import Tables, rows_of
from ragworth.fitting.udcg_weights import udcg
from ragworth.formats.theta import Theta
from ragworth.metrics import METRICS
from ragworth.scoring import bound
from ragworth.stats.pooled import Gap
from ragworth.stats.within_query import Averaged, within, within_gaps
from ragworth.tables import Contexts, Judgments, Outcomes


class Transfer(NamedTuple):
    """Mean rank correlations with the outcome within queries, of learned weights and of UDCG(γ = 1/3).

    ``gap`` is the first less the second, over the same queries; ``contexts`` and ``left_out`` count rows.
    """

    name: str
    learned: Averaged
    udcg: Averaged
    gap: Gap
    contexts: int
    left_out: dict[str, int]


def transfer(
    theta: Theta,
    contexts: Contexts,
    judgments: Judgments,
    outcomes: Outcomes,
    *,
    outcome: str = "grade",
    **settings: Any,
) -> Transfer:
    """How learned weights and UDCG(γ = 1/3) go with outcomes that they were not learned from."""
    return transfer_to(theta, Tables(contexts, judgments, outcomes), outcome=outcome, **settings)


def transfer_to(
    theta: Theta,
    tables: Tables,
    *,
    outcome: str = "grade",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Transfer:
    """The same, for the tables of a folder of results."""
    learned = bound(METRICS.get("UDCG").bind(theta.k, rel=theta.rel, theta="theta"), theta)
    rows = rows_of(tables, [learned, udcg(theta.k, theta.rel)], outcome)
    facts: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    mine, plain = within(rows.values, rows.outcome, rows.query, **facts)
    gap = within_gaps(rows.values, rows.outcome, rows.query, pairs=[(0, 1)], **facts)[0]
    return Transfer(tables.name, mine, plain, gap, len(rows.outcome), dict(rows.left_out))
