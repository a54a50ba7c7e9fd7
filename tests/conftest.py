"""What all tests share: markers, how hypothesis runs, where files are written, and where real data is."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.tiers import FIXTURES, PACKAGES, PROFILES, example_count, is_deselected, missing_package
from tests.unbuilt import UndrawnCharts, write_unbuilt

# Machines differ in speed, so no single example is timed.
for profile in PROFILES:
    settings.register_profile(profile, deadline=None, print_blob=True, max_examples=example_count(100, profile))
settings.load_profile("full")

# Workers share the cores, and threads that wait for each other spend CPU time.
for threads in ("OMP_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(threads, "1")

# Models are built once for all tests and all workers, apart from the user's own cache.
os.environ.setdefault("RAGWORTH_CACHE", str(Path(__file__).parents[1] / ".pytest_cache" / "ragworth"))

# What a user has allowed is never looked for in their own settings, nor written there.
os.environ["RAGWORTH_CONFIG"] = str(Path(__file__).parents[1] / ".pytest_cache" / "settings")

Save = Callable[[str, str | bytes], Path]

REPORTS = Path(__file__).parent / "report"
WHOLE_REPORT = {"whole_report", "browser"}
"""Fixtures of tests for which `evaluate` writes the whole report."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files without a test to run aren't imported: PyTorch alone takes seconds, in each worker."""
    return True if is_deselected(collection_path, config.option.markexpr) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they use, and skip those whose marker needs a package that isn't installed."""
    for item in items:
        for fixture in FIXTURES.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(FIXTURES[fixture])
        for marker in PACKAGES.keys() & {mark.name for mark in item.iter_markers()}:
            if package := missing_package(marker):
                reason = f"marked {marker}: {package} is not installed (make test-all installs it)"
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Collected tests stay to the end, so the garbage collector need not go through them again and again."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Charts are drawn and checked, and reports written, only in ``tests/report``: it takes most of an evaluation.

    Elsewhere a report is built when a test looks at the page, and tests that read its files use the fixture
    ``whole_report``. With the profile ``quick`` nothing is drawn, and tests that look at a drawing are marked ``slow``.
    """
    quick = settings.get_current_profile_name() == "quick"
    inside = REPORTS in item.path.parents
    with pytest.MonkeyPatch.context() as patch:
        if quick or not inside:
            patch.setattr("ragworth.report.charts.drawing._PROCESS", UndrawnCharts())
        if quick:
            patch.setattr("ragworth.report.renderers.html.bundle_vega", lambda *_: "window.drawChart = () => {};")
        if not inside and "altair.utils.schemapi" in sys.modules:
            patch.setattr("altair.utils.schemapi.DEBUG_MODE", False)
        if not inside and not WHOLE_REPORT.intersection(getattr(item, "fixturenames", ())):
            patch.setattr("ragworth.report.page.write", write_unbuilt)
        return (yield)


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write a small file and give its path; text goes out as UTF-8, line ends as they are."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def whole_report() -> None:
    """Have `evaluate` write the whole report."""


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for property tests, which cannot have a fresh one for every example."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="session")
def unasked(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The written form of a model for checks that ask none: `make test` doesn't install the embedded one's weights."""
    script = tmp_path_factory.mktemp("unasked") / "script.json"
    script.write_text("{}", encoding="utf-8")
    return f"scripted:{script}"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data. Nothing of it is part of the project, so tests that read it may be skipped."""
    folder = os.environ.get("RAGWORTH_DATA")
    if not folder:
        pytest.skip("RAGWORTH_DATA is not set: it names the folder of real data")
    if not Path(folder).is_dir():
        pytest.fail(f"RAGWORTH_DATA names no folder: {folder}")
    return Path(folder)
