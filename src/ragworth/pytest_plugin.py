"""A pytest plug-in: compare an evaluation with a stored baseline, and fail with the table if it is worse.

::

    def test_answers(ragworth_baseline):
        ragworth_baseline.check(ragworth.evaluate("gate"), "correct", "UDCG@5")

``pytest --ragworth-update`` stores the results as the new baseline of each test; commit that folder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ragworth.comparison import Comparison
    from ragworth.results import Results

DEFAULT_FOLDER = "ragworth-baseline"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ragworth")
    group.addoption("--ragworth-baseline", metavar="FOLDER", help="Folder of stored results to compare with.")
    group.addoption("--ragworth-update", action="store_true", help="Store results as the new baseline; nothing fails.")
    parser.addini("ragworth_baseline", "Folder of stored results to compare with.", default=DEFAULT_FOLDER)


@pytest.fixture
def ragworth_baseline(request: pytest.FixtureRequest) -> BaselineGate:
    """The stored results of this test."""
    given = request.config.getoption("--ragworth-baseline") or request.config.getini("ragworth_baseline")
    name = re.sub(r"[^\w.-]+", "-", f"{request.path.stem}-{request.node.name}").strip("-")
    return BaselineGate(request.config.rootpath / given / name, bool(request.config.getoption("--ragworth-update")))


@dataclass(frozen=True)
class BaselineGate:
    """Compares results with those stored in a folder, or stores them there."""

    folder: Path
    update: bool = False

    def check(self, evaluation: Any, *names: str, alpha: float = 0.05) -> Comparison | None:
        """Fail if a system is significantly worse than in the baseline by one of these metrics or outcomes.

        ``evaluation``: an evaluation, results, or the path of a results folder. Returns the comparison, or None if the
        baseline was updated.
        """
        __tracebackhide__ = True
        from ragworth.comparison import compare, to_scores
        from ragworth.core.errors import format_list
        from ragworth.results import Results

        results = _results(evaluation)
        if self.update:
            results.write(self.folder)
            return None
        if not names:
            pytest.fail("name at least one metric or outcome to check, such as 'correct'", pytrace=False)
        if not (self.folder / "manifest.json").is_file():
            pytest.fail(f"no baseline in {self.folder}: run pytest --ragworth-update and commit it", pytrace=False)
        baseline = Results.read(self.folder)
        now = to_scores(results).distinct("system")
        if lost := [system for system in to_scores(baseline).distinct("system") if system not in now]:
            words = f"the baseline has {format_list(lost)}, and the evaluation hasn't"
            pytest.fail(f"{words}: if that is meant, run pytest --ragworth-update", pytrace=False)
        compared = compare({"baseline": baseline, "now": results})
        lacking = [name for name in names if compared.lacking(name).height]
        if lacking:
            pytest.fail(
                _describe(compared, lacking, "too few values of the same queries as in the baseline for"), pytrace=False
            )
        worse = [name for name in names if compared.worse(name, alpha).height]
        if worse:
            pytest.fail(_describe(compared, worse, "significantly worse than the baseline by"), pytrace=False)
        return compared


def _results(found: Any) -> Results:
    from ragworth.results import Results

    if isinstance(found, str | Path):
        return Results.read(found)
    results = found if isinstance(found, Results) else getattr(found, "results", None)
    if not isinstance(results, Results):
        raise TypeError(f"{type(found).__name__} has no results: pass an evaluation, results or a results folder")
    return results


def _describe(compared: Comparison, names: Sequence[str], problem: str) -> str:
    """What is wrong by these metrics, with their differences as a table."""
    import polars as pl

    from ragworth.report.render import render
    from ragworth.report.summary_tables import difference_table

    shown = compared._replace(differences=compared.differences.filter(pl.col("metric").is_in(list(names))))
    return f"{problem} {', '.join(names)}:\n\n" + render(difference_table(shown), "text").decode()
