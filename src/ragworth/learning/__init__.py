"""Learning from outcomes: the weights of UDCG_θ, and the best value of a parameter of any metric.

Nothing here asks a model: contexts, judgments and outcomes are tables that an evaluation or a study has made.
"""

from __future__ import annotations

from ragworth.formats.theta import Theta, Variant
from ragworth.learning.cases import Tables
from ragworth.learning.fitting import fit, learn
from ragworth.learning.sweeping import Swept, sweep, sweep_tables
from ragworth.learning.transferring import Transfer, transfer, transfer_to

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
