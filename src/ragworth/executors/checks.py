"""Check the numbers a backend returns before they are stored.

A backend may be third-party, and an endpoint's numbers come from elsewhere. A response with impossible values becomes
the failure ``malformed``. A response with an impossible cost was still paid for, so it is stored with an unknown cost
of 0; a budget counts an estimate instead (`ragworth.calls.budget.unreported_tokens`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import inf, isfinite

from ragworth.llm.contract import MAX_PROBABILITY_MASS, Choose, Chosen, Failure, Request, Response, Scored, Trace

_IMPOSSIBLE = Failure("malformed", "a number in the response is not finite, or no probability")
_TOO_MUCH = Failure("malformed", "the probabilities of the labels sum to more than 1")


def check_outcome(request: Request, outcome: Response | Failure) -> Response | Failure:
    """Return the outcome, or a failure if its numbers are impossible."""
    if isinstance(outcome, Failure):
        return outcome
    if isinstance(outcome, Chosen):
        if not all(0 <= value <= 1 + 1e-6 for part in outcome[:3] for value in part):
            return _IMPOSSIBLE
        if outcome.mass > MAX_PROBABILITY_MASS and isinstance(request, Choose) and _exclude_each_other(request.labels):
            return _TOO_MUCH
    else:
        traces = [outcome.trace] if isinstance(outcome, Scored) else [output.trace for output in outcome.outputs]
        if not all(_is_possible(trace) for trace in traces if trace):
            return _IMPOSSIBLE
    usage = outcome.usage.bounded()
    return outcome if usage is outcome.usage else outcome._replace(usage=usage)


def _exclude_each_other(labels: tuple[str, ...]) -> bool:
    """Whether no label is a prefix of another; if one is, both may occur."""
    ordered = sorted(labels)
    return not any(after.startswith(before) for before, after in pairwise(ordered))


def _is_possible(trace: Trace) -> bool:
    bounds = (value for pair in trace.bounds or () for value in pair)
    return (
        all(-inf < value <= 0.01 for value in trace.logprobs)
        and _all_finite(trace.entropies or ())
        and _all_finite(bounds)
    )


def _all_finite(values: Iterable[float]) -> bool:
    return all(map(isfinite, values))
