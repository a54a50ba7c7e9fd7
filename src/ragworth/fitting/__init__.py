"""Learning from outcomes: the weights of UDCG_θ, and the best value of a parameter of any metric.

Nothing here asks a model: contexts, judgments and outcomes are tables that an evaluation or a study has made.
"""

from __future__ import annotations

from ragworth.fitting.ablation import AblationResult, ablate_tables, average_ablation
from ragworth.fitting.rows import FittingTables
from ragworth.fitting.sweep import SweepResult, sweep, sweep_tables
from ragworth.fitting.transfer import TransferResult, average_transfer, transfer, transfer_tables
from ragworth.fitting.udcg_weights import fit, fit_tables
from ragworth.formats.theta import Theta, Variant

__all__ = [
    "AblationResult",
    "FittingTables",
    "SweepResult",
    "Theta",
    "TransferResult",
    "Variant",
    "ablate_tables",
    "average_ablation",
    "average_transfer",
    "fit",
    "fit_tables",
    "sweep",
    "sweep_tables",
    "transfer",
    "transfer_tables",
]
