"""Interpret an endpoint's errors: its status, its message, and whether to retry."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ragworth.llm.contract import Failure

MAX_DETAIL = 300
"""Maximum characters of an endpoint's message to pass on."""

MAX_ERROR_TEXT = 1 << 20
"""Characters of an error to search for its message."""

MAX_VALUES = 3_000_000
"""Maximum values in a reply: a few bytes each, they become objects of some hundred, and take a second to read."""

_TOO_LONG = (
    "context length",
    "context size",
    "context window",
    "context_length",
    "exceed_context",
    "too many tokens",
    "prompt is too long",
    "input is too long",
    "prompt length",
    "input token count",
    "input tokens exceed",
    "exceeds the maximum number of tokens",
    "reduce the length",
)
_NO_ROOM_FOR_OUTPUT = ("max_tokens or model output limit was reached", "max_completion_tokens is too small")
"""A model that reasons in secret has used up all tokens for that."""
_OVERLOAD_REASONS = {408: "timed-out", 429: "rate-limited", 503: "server-error", 529: "server-error"}


class EndpointError(Exception):
    """A request failed. ``status`` is the endpoint's, if it answered at all."""

    def __init__(self, failure: Failure, status: int = 0) -> None:
        self.failure = failure
        self.status = status
        super().__init__(failure.reason)


def malformed_reply(found: str) -> EndpointError:
    """The error for an invalid reply. The next one may be valid."""
    return EndpointError(Failure("malformed", found))


def parse_reply(text: str, clean: Callable[[str], str]) -> Any:
    """Parse the JSON of a successful reply; an error in disguise is raised as such.

    ``clean`` removes keys from quotations.
    """
    if sum(text.count(sign) for sign in ",[{") > MAX_VALUES:
        raise malformed_reply(f"the reply has more than {MAX_VALUES:,} values")
    text = text.removeprefix("\ufeff")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        start = text.lstrip()[:1]
        what = "a web page" if start == "<" else "nothing" if not start else "broken or cut short"
        raise malformed_reply(f"the reply is {what}, not JSON: {one_line(clean(text), 80)}") from None
    error = value.get("error") if isinstance(value, dict) and not value.get("choices") else None
    if error and isinstance(error, dict | str):
        raise error_for_status(_status_in(error), text, clean)
    return value


def _status_in(error: dict[str, Any] | str) -> int:
    """The status that an error with HTTP 200 has inside, as a number or its digits; 500 if none."""
    code = str(error.get("code")) if isinstance(error, dict) else ""
    return int(code) if code.isascii() and code.isdecimal() and len(code) == 3 and "400" <= code < "600" else 500


def error_for_status(status: int, text: str, clean: Callable[[str], str]) -> EndpointError:
    """Interpret a status other than success. ``clean`` removes keys from its message."""
    words = clean(_error_message(text))
    detail = one_line(f"HTTP {status}: {words}" if words else f"HTTP {status}")
    low = words.lower()
    reason, again = "refused", False
    if status in (401, 403):
        reason = "unauthorised"
    elif status == 402:
        reason, again = "rate-limited", True
    elif status == 400 and any(sign in low for sign in _NO_ROOM_FOR_OUTPUT):
        reason = "no-text"
    elif status == 413 or (status in (400, 422, 500) and any(sign in low for sign in _TOO_LONG)):
        reason = "too-long"
    elif status in _OVERLOAD_REASONS:
        reason, again = _OVERLOAD_REASONS[status], True
    elif status >= 500 and status != 501:
        reason, again = "server-error", True
    elif status < 400:
        detail = f"HTTP {status}: the endpoint redirects; use its final address"
    return EndpointError(Failure(reason, detail, again), status)


def is_overload(status: int) -> bool:
    """Whether fewer requests at a time may help."""
    return status in _OVERLOAD_REASONS


def is_quota_exhausted(status: int, text: str) -> bool:
    """Whether the account is empty, so that waiting doesn't help."""
    return status == 402 or "insufficient_quota" in text


def one_line(text: str, most: int = MAX_DETAIL) -> str:
    """Format untrusted text on one printable line of limited length."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text[: 4 * most]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _error_message(text: str) -> str:
    """The message of an error, in whichever form it is. Very long errors aren't searched."""
    if len(text) > MAX_ERROR_TEXT:
        return text[:MAX_ERROR_TEXT]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for _ in range(4):
        if isinstance(value, list) and len(value) == 1:  # Google's errors come in a list
            value = value[0]
        if isinstance(value, dict):
            value = next((value[name] for name in ("error", "message", "detail") if name in value), text)
    return value if isinstance(value, str) else text
