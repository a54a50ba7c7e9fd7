"""Set metrics for an unknown number of relevant passages (F, F_e, T, T_u).

K is the number of passages actually shown up to the cutoff, n_p of them relevant and n_n not. N_p is the number of
relevant passages in the whole collection. **Choice**: an empty context scores 0 in all four.
"""

from __future__ import annotations

import numpy as np

from ragworth.metrics.blocks import Block, Bools, Floats
from ragworth.metrics.classical import NEEDS, REL, ratio, unit_bounds
from ragworth.metrics.declaration import MetricResult, Parameter, declare

PAPER = "Schwartz, Vasilyev and Sawaya: How Important Is Recall for Measuring Retrieval Quality?"
CUT_RANKING = "cut-ranking"
"""Status of a context whose ranking is unknown below K."""
ALPHA = Parameter(
    "alpha", 0.5, "weight of precision against recall, or of junk against relevant passages", low=0, high=1
)


@declare(
    name="F",
    title="balance of precision and recall",
    formula="F(α)@k = n_p / (α·K + (1 − α)·N_p), β² = 1/α − 1",
    needs=NEEDS,
    range="0 to 1",
    bounds=unit_bounds,
    paper=PAPER,
    parameters=(ALPHA, REL),
    order_free=True,
)
def f(block: Block, k: float, alpha: float, rel: float) -> Floats:
    """Weighted harmonic mean of precision and recall over the K passages shown.

    Differs from F1@k if fewer than k passages were shown, because K counts those actually shown. An empty context, and
    one without relevant passages, scores 0.
    """
    return ratio(block.hits(rel).count(k), alpha * block.within(k) + (1 - alpha) * block.truth.relevant(rel))


@declare(
    name="F_e",
    title="F with an estimate in place of the number of relevant passages",
    formula="F_e(α)@k = n_p / (α·K + (1 − α)·N̂_p), N̂_p = relevant passages among the top 2K",
    needs=NEEDS,
    range="0 to 1",
    bounds=unit_bounds,
    paper=PAPER,
    parameters=(
        ALPHA,
        Parameter(
            "estimate",
            "double",
            "of N_p. double: relevant among the top 2K; pool: relevant found by any run; chapman: "
            "capture–recapture between this run and the others; growth: the count's growth from K to 2K, extrapolated",
            choices=("double", "pool", "chapman", "growth"),
        ),
        Parameter("depth", 10.0, "how far estimate=growth extrapolates, in multiples of K", low=2),
        Parameter("whole", False, "every list is all that the system retrieved, so nothing is missing below its end"),
        REL,
    ),
    order_free=True,
    whole_query=False,
    reach=2,
)
def f_e(block: Block, k: float, alpha: float, estimate: str, depth: float, whole: bool, rel: float) -> MetricResult:
    """F for collections with an unknown number of relevant passages.

    - ``double`` (the paper's): relevant passages among the top 2K of the same ranking.
    - ``pool``: relevant passages retrieved by any run. Needs two runs.
    - ``chapman``: this run and the other runs together as two catches of n₁ and n₂ relevant passages, m of
      them in both: (n₁ + 1)(n₂ + 1)/(m + 1) − 1. Needs two runs.
    - ``growth``: with c₁ relevant passages in the top K and c₂ in the top 2K, growth as a power of depth,
      c₂·(depth/2)^b with b = log2(c₂/c₁), at most 1; b = 1 if c₁ = 0. **Choice**: the paper mentions
      extrapolation without details.

    ``double`` and ``growth`` need the top 2K. A list that was cut before has no value (``cut-ranking``), because the
    passages below the cut are unknown. With ``@k``, a list is taken as cut if it is as long as the system's longest
    list, and as complete if it is shorter (**Choice**). Without ``@k``, K is everything shown and nothing is known
    below it. ``whole=true`` says that no list was cut.

    An empty context, and one without relevant passages, scores 0.
    """
    hits, shown = block.hits(rel), block.within(k)
    found, twice = hits.count(k), hits.count(2 * shown)
    missing: tuple[tuple[Bools, str], ...] = ()
    if estimate in ("double", "growth") and not whole:
        ended = block.ended if block.ended is not None and np.isfinite(k) else np.zeros(block.size, dtype=bool)
        missing = (((shown > 0) & (block.shown < 2 * shown) & ~ended, CUT_RANKING),)
    if estimate == "double":
        total = twice
    elif estimate == "growth":
        power = np.where(found > 0, np.log2(np.maximum(twice, 1) / np.maximum(found, 1)), 1.0)
        total = twice * (depth / 2) ** np.minimum(power, 1.0)
    else:
        pool = block.pools[rel]
        total = pool.union
        if estimate == "chapman":
            total = (pool.mine + 1) * (pool.others + 1) / (pool.shared + 1) - 1
    return MetricResult(ratio(found, alpha * shown + (1 - alpha) * total), missing)


@declare(
    name="T",
    title="relevant passages minus the share of junk",
    formula="T(α)@k = (1 − α)·n_p − α·n_n / K",
    needs=NEEDS,
    range="−α to (1 − α)·K",
    bounds=lambda values, shown: (-values["alpha"], (1 - values["alpha"]) * max(shown, 0)),
    paper=PAPER,
    parameters=(ALPHA, REL),
    order_free=True,
    whole_query=False,
)
def t(block: Block, k: float, alpha: float, rel: float) -> Floats:
    """Reward for each relevant passage, penalty for the share of irrelevant ones; needs no N_p.

    Grows with the number of relevant passages, so compare contexts of the same query, or use the same k. An empty
    context scores 0.
    """
    found, shown = block.hits(rel).count(k), block.within(k)
    return (1 - alpha) * found - alpha * ratio(shown - found, shown)


@declare(
    name="T_u",
    title="relevant passages minus irrelevant ones (T, not normalised)",
    formula="T_u(α)@k = (1 − α)·n_p − α·n_n",
    needs=NEEDS,
    range="−α·K to (1 − α)·K",
    bounds=lambda values, shown: (-values["alpha"] * shown, (1 - values["alpha"]) * shown),
    paper=PAPER,
    parameters=(ALPHA, REL),
    order_free=True,
    whole_query=False,
)
def t_u(block: Block, k: float, alpha: float, rel: float) -> Floats:
    """Reward for each relevant passage, penalty for each irrelevant one. An empty context scores 0."""
    found, shown = block.hits(rel).count(k), block.within(k)
    return (1 - alpha) * found - alpha * (shown - found)
