"""What a backend gives back, checked before it is kept: every number is one, and within its bounds.

A backend may be anybody's, and an endpoint's numbers come from somewhere else. A response whose values are impossible
becomes the failure ``malformed``. One whose cost can't be true is kept, since it was paid for, at an unknown cost: 0.
A budget counts an estimate instead (`ragworth.calls.budget.unreported_tokens`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import inf, isfinite

from ragworth.llm.contract import MAX_PROBABILITY_MASS, Choose, Chosen, Failure, Request, Response, Scored, Trace

_IMPOSSIBLE = Failure("malformed", "a number in the response is not finite, or no probability")
_TOO_MUCH = Failure("malformed", "the probabilities of the labels sum to more than 1")


def check_outcome(request: Request, outcome: Response | Failure) -> Response | Failure:
    """The outcome, or the failure that it amounts to."""
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
    """Whether no label begins another: of two that do, both may come."""
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
