"""Studies on disk, and the browser of the report's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.report.page.conftest import browser

__all__ = ["browser", "study"]


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a study, written once, inside the folder of results."""
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    from ragworth.report.study import write_study
    from tests.report.study import samples

    made: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in made:
            results = tmp_path_factory.mktemp(name)
            made[name] = results / "studies" / name
            write_study(getattr(samples, name)(), made[name], back=results / "report.html")
        return made[name]

    return folder
