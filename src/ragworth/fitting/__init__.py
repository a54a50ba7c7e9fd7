"""Learning from outcomes: the weights of UDCG_θ, and the best value of a parameter of any metric.

Nothing here asks a model: contexts, judgments and outcomes are tables that an evaluation or a study has made.
"""

from __future__ import annotations

from ragworth.fitting.ablation import AblationResult, ablate_tables
from ragworth.fitting.rows import FittingTables
from ragworth.fitting.sweep import SweepResult, sweep, sweep_tables
from ragworth.fitting.udcg_weights import fit, fit_tables
from ragworth.metrics.theta import Theta, Variant

__all__ = [
    "AblationResult",
    "FittingTables",
    "SweepResult",
    "Theta",
    "Variant",
    "ablate_tables",
    "fit",
    "fit_tables",
    "sweep",
    "sweep_tables",
]
