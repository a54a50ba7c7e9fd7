"""Check a response: when a model gave it, before it is stored, and whenever it is read from a store.

A backend may be third-party, an endpoint's numbers come from elsewhere, and a store may be damaged. A response that no
model can give becomes the failure ``malformed``. A response with an impossible cost was still paid for, so it is stored
with an unknown cost of 0; a budget counts an estimate instead (`ragworth.calls.budget.unreported_tokens`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from itertools import pairwise
from math import inf, isfinite

from ragworth.calls.serialization import DECODE_ERRORS, REQUEST_KINDS, response_from_json
from ragworth.core.errors import format_count, quote_short
from ragworth.llm.contract import (
    MAX_PROBABILITY_MASS,
    Choose,
    Chosen,
    Failure,
    Generate,
    Generated,
    Model,
    Request,
    Response,
    Score,
    Scored,
    Trace,
)

RESPONSE_TYPES: dict[type, type] = {Generate: Generated, Score: Scored, Choose: Chosen}
"""The type of response for each type of request."""

TYPE_PROBLEM = "a value in the response has the wrong type"
NUMBER_PROBLEM = "a number in the response is not finite, or no probability"
MASS_PROBLEM = "the probabilities of the labels sum to more than 1"
LENGTH_PROBLEM = "lists in the response have the wrong length"


def call_model(model: Model, requests: Sequence[Request]) -> list[Response | Failure]:
    """Call a model with a batch of requests of one kind, and check the outcomes. A wrong number is a ValueError."""
    outcomes = getattr(model, REQUEST_KINDS[type(requests[0])])(requests)
    if len(outcomes) != len(requests):
        wrong = f"{format_count(len(outcomes), 'response')} to {format_count(len(requests), 'request')}"
        raise ValueError(f"the backend {model.card.backend!r} gave {wrong}")
    return [check_outcome(request, outcome) for request, outcome in zip(requests, outcomes, strict=True)]


def read_stored_response(kind: object, text: str, request: Request | None) -> Response | Failure:
    """Read a stored response, checked like a model's; the failure ``malformed`` if it is damaged."""
    try:
        response = response_from_json(str(kind), text)
    except DECODE_ERRORS:
        return Failure("malformed", f"it can't be read as an answer of the kind {quote_short(kind)}")
    return check_outcome(request, response)


def check_outcome(request: Request | None, outcome: Response | Failure) -> Response | Failure:
    """Return the outcome, or a failure if no model can give it. ``request``: None if it is unknown."""
    if isinstance(outcome, Failure):
        return outcome
    try:
        problem = _find_problem(request, outcome)
    except (TypeError, ValueError, AttributeError):
        problem = TYPE_PROBLEM
    if problem:
        return Failure("malformed", problem)
    usage = outcome.usage.bounded()
    return outcome if usage is outcome.usage else outcome._replace(usage=usage)


def _find_problem(request: Request | None, response: Response) -> str:
    """Describe the problem with a response; empty if there is none."""
    if request is not None and not isinstance(response, RESPONSE_TYPES[type(request)]):
        return TYPE_PROBLEM
    if isinstance(response, Chosen):
        return _find_choice_problem(request if isinstance(request, Choose) else None, response)
    if isinstance(response, Scored):
        return _find_trace_problem(response.trace) if response.trace.tokens else LENGTH_PROBLEM
    return _find_text_problem(request if isinstance(request, Generate) else None, response)


def _find_choice_problem(request: Choose | None, chosen: Chosen) -> str:
    probabilities, low, high, estimator, _ = chosen
    if not isinstance(estimator, str) or any(bool in map(type, part) for part in (probabilities, low, high)):
        return TYPE_PROBLEM
    if not len(probabilities) == len(low) == len(high) == len(request.labels if request else probabilities):
        return LENGTH_PROBLEM
    if not all(0 <= value <= 1 + 1e-6 for part in (probabilities, low, high) for value in part):
        return NUMBER_PROBLEM
    too_much = chosen.mass > MAX_PROBABILITY_MASS and request is not None and _exclude_each_other(request.labels)
    return MASS_PROBLEM if too_much else ""


def _exclude_each_other(labels: tuple[str, ...]) -> bool:
    """Return whether no label is a prefix of another; if one is, both may occur."""
    ordered = sorted(labels)
    return not any(after.startswith(before) for before, after in pairwise(ordered))


def _find_text_problem(request: Generate | None, generated: Generated) -> str:
    outputs = generated.outputs
    if not all(isinstance(output.text, str) and isinstance(output.finish, str) for output in outputs):
        return TYPE_PROBLEM
    if not 1 <= len(outputs) <= (request.n if request else len(outputs)):
        return LENGTH_PROBLEM
    traces = [output.trace for output in outputs]
    if request is not None and request.detail != "text" and None in traces:
        return TYPE_PROBLEM
    return next(filter(None, (_find_trace_problem(trace) for trace in traces if trace is not None)), "")


def _find_trace_problem(trace: Trace) -> str:
    tokens, logprobs, entropies, bounds, ids = trace
    numbers = (logprobs, entropies or (), *(bounds or ()), ids or ())
    if not all(isinstance(token, str) for token in tokens) or any(bool in map(type, part) for part in numbers):
        return TYPE_PROBLEM
    columns: Iterable[Sized | None] = (logprobs, entropies, bounds, ids)
    if any(column is not None and len(column) != len(tokens) for column in columns):
        return LENGTH_PROBLEM
    possible = (
        all(-inf < value <= 0.01 for value in logprobs)
        and all(map(isfinite, entropies or ()))
        and all(isfinite(value) for pair in bounds or () for value in pair)
        and all(number >= 0 for number in ids or ())
    )
    return "" if possible else NUMBER_PROBLEM
