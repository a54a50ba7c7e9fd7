"""Evaluations of real data that several files look at."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import workspaces

from ragworth.evaluation.run import Evaluation, evaluate
from ragworth.report.page.building import write as write_page


@pytest.fixture(scope="session")
def aragog(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    """ARAGOG, evaluated once. Tests only read it."""
    folder = tmp_path_factory.mktemp("aragog")
    workspaces.MADE["aragog"](data, folder)
    return evaluate_with_report(folder)


def evaluate_with_report(folder: Path) -> Evaluation:
    """Evaluate for several tests, some of which read the report."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragworth.report.page.write", write_page)
        return evaluate(folder)
