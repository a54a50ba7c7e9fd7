"""Why an output ended, in one vocabulary for all endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragworth.llm.contract import CONTENT_FILTER, LENGTH, STOP, Failure
from ragworth.llm.openai.errors import EndpointError, one_line

UNKNOWN_FINISH = "unknown"

_NAMES = {
    **dict.fromkeys((STOP, "eos_token", "end_turn", "stop_sequence"), STOP),
    **dict.fromkeys((LENGTH, "max_tokens"), LENGTH),
    **dict.fromkeys((CONTENT_FILTER, "safety", "refusal"), CONTENT_FILTER),
}
"""The words of OpenAI and vLLM, and those of TGI, Anthropic and Gemini."""

_ABANDONED = frozenset(("error", "failed", "abort", "cancelled"))


def read_finish(choice: Mapping[str, Any]) -> str:
    """Why a choice ended: ``stop``, ``length``, ``content_filter``, or the endpoint's own word."""
    given = _given(choice)
    return _NAMES.get(given.strip().lower()) or one_line(given, 40) or UNKNOWN_FINISH


def refuse_abandoned(part: Mapping[str, Any]) -> None:
    """Raise if the endpoint gave up on a reply or choice, even if some of its text came."""
    given, error = _given(part), part.get("error")
    if isinstance(error, dict) and not any(error.values()):
        error = None  # a form that wasn't filled in
    is_abandoned = given.strip().lower() in _ABANDONED
    if error or is_abandoned:
        said = error.get("message") if isinstance(error, dict) else error
        reason = said if isinstance(said, str) else given if is_abandoned else "error"
        raise EndpointError(Failure("server-error", one_line(f"the endpoint gave up on the output: {reason}")))


def _given(part: Mapping[str, Any]) -> str:
    """The endpoint's word for how it ended."""
    return next((part[name] for name in ("finish_reason", "status") if isinstance(part.get(name), str)), "")
