"""What a backend gives back, checked before it is kept: every number is one, and within its bounds.

A backend may be anybody's, and an endpoint's numbers come from somewhere else. A response whose values are impossible
becomes the failure ``malformed``. One whose cost can't be true is kept, since it was paid for, at an unknown cost: 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import inf, isfinite
from typing import Any

from ragworth.llm.contract import Choose, Chosen, Failure, Request, Response, Scored, Trace, Usage

MOST = 10**9
"""Tokens or characters of one call, at most. Sums over billions of calls still fit into the store's 64 bits."""

MOST_SECONDS = 1e9

MOST_MASS = 1.05
"""What the probabilities of labels that exclude each other may sum to, since models round."""

_IMPOSSIBLE = Failure("malformed", "a number in the response is not finite, or no probability")
_TOO_MUCH = Failure("malformed", "the probabilities of the labels sum to more than 1")


def checked(request: Request, outcome: Response | Failure) -> Response | Failure:
    """The outcome, or the failure that it amounts to."""
    if isinstance(outcome, Failure):
        return outcome
    if isinstance(outcome, Chosen):
        if not all(0 <= value <= 1 + 1e-6 for part in outcome[:3] for value in part):
            return _IMPOSSIBLE
        if outcome.mass > MOST_MASS and isinstance(request, Choose) and _exclude_each_other(request.labels):
            return _TOO_MUCH
    else:
        traces = [outcome.trace] if isinstance(outcome, Scored) else [output.trace for output in outcome.outputs]
        if not all(_possible(trace) for trace in traces if trace):
            return _IMPOSSIBLE
    return outcome if _plausible(outcome.usage) else outcome._replace(usage=_corrected(outcome.usage))


def _exclude_each_other(labels: tuple[str, ...]) -> bool:
    """Whether no label begins another: of two that do, both may come."""
    ordered = sorted(labels)
    return not any(after.startswith(before) for before, after in pairwise(ordered))


def _possible(trace: Trace) -> bool:
    bounds = (value for pair in trace.bounds or () for value in pair)
    return all(-inf < value <= 0.01 for value in trace.logprobs) and _finite(trace.entropies or ()) and _finite(bounds)


def _finite(values: Iterable[float]) -> bool:
    return all(map(isfinite, values))


def _plausible(usage: Usage) -> bool:
    prompt, new, seconds, *rest = usage
    is_time = isinstance(seconds, int | float) and 0 <= seconds <= MOST_SECONDS
    return is_time and all(type(one) is int and 0 <= one <= MOST for one in (prompt, new, *rest))


def _corrected(usage: Usage) -> Usage:
    """The same without what can't be true."""
    prompt, new, seconds, *rest = usage
    return Usage(_amount(prompt), _amount(new), _seconds(seconds), *map(_amount, rest))


def _amount(value: Any) -> int:
    try:
        found = int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return found if 0 <= found <= MOST else 0


def _seconds(value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return found if 0 <= found <= MOST_SECONDS else 0.0
