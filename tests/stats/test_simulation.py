"""The simulation of benchmarks/coverage.py, in little: intervals cover, and tests do not find what is not there."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ragworth.stats.correlation import Measure

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "coverage.py"


@pytest.fixture(scope="module")
def simulation() -> ModuleType:
    if not SCRIPT.exists():
        pytest.skip("the benchmarks are not part of this copy")
    spec = spec_from_file_location("coverage_benchmark", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def near(hits: list[bool], share: float, errors: float = 4.0) -> bool:
    """Whether the share of hits is within so many standard errors."""
    return bool(abs(np.mean(hits) - share) <= errors * np.sqrt(share * (1 - share) / len(hits)) + 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("measure", ["pearson", "spearman", "kendall"])
@pytest.mark.parametrize(("form", "rows"), [("pooled", 1), ("pooled", 4), ("within", 8)])
def test_correlations(
    simulation: ModuleType, form: str, rows: int, measure: Measure, ties: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "LARGE", 20_000)
    held, apart = simulation.correlated(form, measure, 30, rows, ties, 160, 200, 1)
    assert len(held) >= 150
    assert near(held, 0.95)
    assert np.mean(apart) <= 0.15  # few queries make it careful, so there is no lower bound here


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mean", "difference"])
def test_predicted(simulation: ModuleType, kind: str) -> None:
    held, length, saved = simulation.cover_predicted(kind, 40, 400, 0.8, False, 400, 1)
    assert near(held, 0.95)
    assert length < 0.75
    assert saved > 0.5
