"""The generated pages say what they must; tests/test_project.py compares them with what is checked in."""

from __future__ import annotations

import pytest

from ragworth.metrics import METRICS
from ragworth.report.reference_pages import metric_page


@pytest.mark.parametrize("name", METRICS.names())
def test_every_metric_says_all_that_must_be_said(name: str) -> None:
    metric = METRICS.get(name)
    page = metric_page(metric)
    assert metric.formula in page.replace("\\|", "|")
    words = " ".join(metric.doc.lower().split())
    assert "empty context" in words or "is empty" in words
    for parameter in metric.parameters:
        assert f"`{parameter.name}`" in page
