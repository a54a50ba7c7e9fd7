"""How far down contexts go: what the model is shown, what metrics look at, and what the page lists."""

from __future__ import annotations

from collections.abc import Sequence

from ragworth.errors import RagworthError
from ragworth.metrics.parsing import parse
from ragworth.report.page.rankings import evaluation_settings
from ragworth.results import Results

DEEPEST = 20
"""How far the page goes where nothing else says it."""


def shown_depth(results: Results) -> int | None:
    """How many passages the model is shown; metrics may look deeper. None where the settings do not say."""
    k = evaluation_settings(results.manifest).get("k")
    return k if isinstance(k, int) and not isinstance(k, bool) and k > 0 else None


def listed_depth(results: Results, metrics: Sequence[str]) -> int:
    """How many passages of a context the page lists: as far as the model and cutoffs go."""
    deepest = shown_depth(results) or DEEPEST
    for written in metrics:
        try:
            deepest = max(deepest, parse(written).cutoff or 0)
        except RagworthError:
            continue  # a measure of another package
    return deepest
