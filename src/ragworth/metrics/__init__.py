"""Metrics, which turn judgments into scores without a model, a store or files.

A metric is one declared function in a module here, plus a line in :data:`METRICS`. Other packages add theirs
through entry points in the group ``ragworth.metrics``.
"""

from __future__ import annotations

from ragworth.core.registry import Registry
from ragworth.metrics.declaration import Declaration

METRICS: Registry[Declaration] = Registry(
    "metric",
    "ragworth.metrics",
    {
        "P": "ragworth.metrics.classical:precision",
        "R": "ragworth.metrics.classical:recall",
        "F1": "ragworth.metrics.classical:f1",
        "AP": "ragworth.metrics.classical:average_precision",
        "RR": "ragworth.metrics.classical:reciprocal_rank",
        "nDCG": "ragworth.metrics.classical:ndcg",
        "Success": "ragworth.metrics.classical:success",
        "Rprec": "ragworth.metrics.classical:r_precision",
        "Bpref": "ragworth.metrics.classical:bpref",
        "Judged": "ragworth.metrics.classical:judged_share",
        "F": "ragworth.metrics.sets:f",
        "F_e": "ragworth.metrics.sets:f_e",
        "T": "ragworth.metrics.sets:t",
        "T_u": "ragworth.metrics.sets:t_u",
        "UDCG": "ragworth.metrics.utility:udcg",
        "Utility": "ragworth.metrics.utility:mean_utility",
        "Distraction": "ragworth.metrics.utility:distraction",
        "eRAG": "ragworth.metrics.downstream:downstream",
        "eRAG_nDCG": "ragworth.metrics.downstream:downstream_ndcg",
        "eRAG_AP": "ragworth.metrics.downstream:downstream_ap",
        "Likelihood": "ragworth.metrics.downstream:likelihood",
        "Cov": "ragworth.metrics.coverage:coverage",
        "alpha_nDCG": "ragworth.metrics.coverage:alpha_ndcg",
        "Den": "ragworth.metrics.coverage:density",
    },
)
