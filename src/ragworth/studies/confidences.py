"""What the studies of the model's confidence share: how it is asked for, and which measure comes out best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from ragworth.judging.annotators.confidence import MEASURES
from ragworth.report.wording import best_words
from ragworth.stats.estimate import Estimate
from ragworth.stats.paired import correct_by_holm
from ragworth.studies.contract import Case
from ragworth.workspace.config import Workspace

K = TypeVar("K", str, tuple[str, str])

KIND = "confidence"
RELEVANCE = "relevance"
"""The retriever's own score, which the measures of confidence are compared with."""
PAPER = "Hua et al., Evaluating the Utility of Grounding Documents with Reference-Free LLM-based Metrics"
GREEDY: Mapping[str, Any] = {"temperature": 0.0, "repeats": 1}
TASKS: Mapping[str, Mapping[str, Any]] = {
    KIND: {"a": 0.05, "top": 0.1, "measures": ",".join(MEASURES)},
    "answers": GREEDY,
}
"""Settings of the paper."""


def with_confidence(space: Workspace, *, each: bool = False) -> Workspace:
    """The workspace with greedy answers and confidence in each context, or in ``each`` passage.

    The confidence without any context is the same for all contexts of a query, so it isn't asked for.
    """
    settings = {KIND: {"each": each, "relative": False}, "answers": GREEDY}
    return replace(space.with_settings(settings), graded=())


def correct_rivals(found: Mapping[K, Estimate]) -> dict[K, Estimate]:
    """The estimates with p corrected by Holm; the retriever's score is no candidate for the best measure."""
    rivals = {key: one for key, one in found.items() if RELEVANCE not in (key, key[0])}
    return {**found, **correct_by_holm(rivals)}


def best_measure(
    found: Mapping[str, Estimate], counts: tuple[str, str], alpha: float, verb: str, thing: str
) -> tuple[str, str] | None:
    """Which measure ``verb``s a ``thing`` best, in words, and its name; of equals the one with the highest p.

    It was picked by looking at all of them, so p after Holm counts; the first of the ``counts`` must be the larger one.
    None if no measure has a value.
    """
    values = {n: round(one.value, 12) for n, one in found.items() if one.value is not None and n != RELEVANCE}
    if not values:
        return None
    more, less = counts
    sure = [n for n in values if found[n].counts[more] > found[n].counts[less] and found[n].is_significant(alpha)]
    highest, top = max(values.values()), max(values[name] for name in sure or values)
    good, best = ([name for name in some if values[name] == top] for some in (sure, values))
    none = f"no confidence reliably {verb}s {thing}"
    how, surest = f"{thing} best", top < highest
    words = best_words(good or best, sure=bool(good), verb=verb, how=how, none=none, surest=surest)
    return words, max(good or best, key=lambda name: found[name].p_holm or 0.0)


def skipped_words(case: Case) -> str:
    """How many candidates were skipped, if any."""
    some = [f"{name}: {number:,}" for name, number in case.design.select("system", "skipped").iter_rows() if number]
    return f"passages skipped because they contain an accepted answer: {', '.join(some)}" if some else ""
