"""The generated documentation is what is checked in, and says what it must."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragworth.cli import main
from ragworth.metrics import METRICS
from ragworth.report.reference_pages import all_pages, metric_page

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("path", all_pages(main))
def test_pages_are_up_to_date(path: str) -> None:
    assert (DOCS / path).read_text(encoding="utf-8") == all_pages(main)[path], "run `make docs`"


def test_no_page_is_left_over() -> None:
    on_disk = {f"metrics/{p.name}" for p in (DOCS / "metrics").iterdir()}
    assert on_disk == {path for path in all_pages(main) if path.startswith("metrics/")}


@pytest.mark.parametrize("name", METRICS.names())
def test_every_metric_says_all_that_must_be_said(name: str) -> None:
    metric = METRICS.get(name)
    page = metric_page(metric)
    assert metric.formula in page.replace("\\|", "|")
    assert "empty context" in metric.doc.lower() or "is empty" in metric.doc
    for parameter in metric.parameters:
        assert f"`{parameter.name}`" in page
