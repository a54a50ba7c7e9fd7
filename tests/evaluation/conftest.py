"""Models that are counted in place of all others, and reports that are built but not drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragworth.report.page.figures import FigureSet
from ragworth.results import Results
from tests.evaluation.samples import Models
from tests.unbuilt import UnbuiltPage, write_unbuilt


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    found = Models()
    monkeypatch.setattr("ragworth.evaluation.model_pool.llm", found)
    return found


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Drawing takes seconds: only what a report is built with is noted."""
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    built: list[dict[str, Any]] = []

    def write(results: Results, path: Path, **given: Any) -> UnbuiltPage:
        built.append(given)
        return write_unbuilt(results, path, **given)

    monkeypatch.setattr("ragworth.report.page.write", write)
    monkeypatch.setattr("ragworth.report.page.building.build_figures", lambda *sources: FigureSet([], {}))
    return built
