"""Learning from outcomes: the weights of UDCG_θ, and the best value of a parameter of any metric.

Nothing here asks a model: contexts, judgments and outcomes are tables that an evaluation or a study has made.
"""

from __future__ import annotations

from ragworth.fitting.rows import Tables
from ragworth.fitting.sweep import Swept, sweep, sweep_tables
from ragworth.fitting.transfer import Transfer, transfer, transfer_to
from ragworth.fitting.udcg_weights import fit, learn
from ragworth.formats.theta import Theta, Variant

__all__ = [
    "Swept",
    "Tables",
    "Theta",
    "Transfer",
    "Variant",
    "fit",
    "learn",
    "sweep",
    "sweep_tables",
    "transfer",
    "transfer_to",
]
