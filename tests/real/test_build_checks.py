"""The checks of questions on two published sets: the figures of docs/build-questions.md, from rules and BM25 alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.published_sets import SETS

from ragworth.build.checks import CHECKS
from ragworth.build.checks.run import CheckSettings, run_checks
from ragworth.build.checks.summary import CheckSummary, summarise_checks

PAGE = Path(__file__).parents[2] / "docs" / "build-questions.md"
ROW = re.compile(r"\| ([a-z-]+)(?: \(flag\))? \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|")


def documented() -> dict[str, dict[str, tuple[str, str]]]:
    """By set and check: failures and interval, as the page has them."""
    table = PAGE.read_text(encoding="utf-8").split("### Two published sets")[1].split("\n## ")[0]
    found: dict[str, dict[str, tuple[str, str]]] = {name: {} for name in SETS}
    for check, *cells in ROW.findall(table):
        if check in CHECKS.names():
            found["ClapNQ"][check], found["MuSiQue"][check] = (cells[0], cells[1]), (cells[2], cells[3])
    return found


def in_words(each: CheckSummary) -> tuple[str, str]:
    number = each.passed + each.failed + each.unknown
    if each.share is None:
        return ("unknown" if each.unknown else "n/a"), "–"
    most = f" to {each.failed + each.unknown}" if each.unknown else ""
    return f"{each.failed}{most} of {number}", each.share.interval


@pytest.mark.real
@pytest.mark.parametrize("name", SETS)
def test_the_page_has_what_the_checks_find(data: Path, name: str) -> None:
    result = run_checks(SETS[name](data), CheckSettings(encoder="none"))
    found = {each.check: in_words(each) for each in summarise_checks(result)}
    assert found == documented()[name]


@pytest.mark.real
@pytest.mark.parametrize("name", SETS)
def test_people_wrote_them_so_few_fail(data: Path, name: str) -> None:
    """At most one in twenty fails a check that drops questions, without a model: the rate of false alarms is low."""
    settings = CheckSettings(("verbatim", "self-contained", "language", "copied", "duplicate"), "none")
    for each in summarise_checks(run_checks(SETS[name](data), settings)):
        assert each.share is None or each.share.least <= 0.05, each
