"""Evaluations of real data that several files look at."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import workspaces

from ragworth.evaluation.run import Evaluation, evaluate


@pytest.fixture(scope="session")
def aragog(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    """ARAGOG, evaluated once. Tests only read it."""
    folder = tmp_path_factory.mktemp("aragog")
    workspaces.MADE["aragog"](data, folder)
    return evaluate(folder)
