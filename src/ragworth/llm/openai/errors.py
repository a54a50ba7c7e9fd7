"""What it means when an endpoint does not reply as it should: its status, its words, and whether to try again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ragworth.llm.contract import Failure

MAX_DETAIL = 300
"""How many characters of an endpoint's words are passed on."""

MAX_ERROR_TEXT = 1 << 20
"""Characters of an error in which its words are looked for."""

MAX_VALUES = 3_000_000
"""Values in a reply, at most: a few bytes each, they become objects of some hundred, and take a second to read."""

_TOO_LONG = ("context length", "context size", "context window", "context_length", "exceed_context", "too many tokens")
_OVERLOAD_REASONS = {408: "timed-out", 429: "rate-limited", 503: "server-error", 529: "server-error"}


class EndpointError(Exception):
    """A request came to nothing. ``status`` is the endpoint's, where it answered at all."""

    def __init__(self, failure: Failure, status: int = 0) -> None:
        self.failure = failure
        self.status = status
        super().__init__(failure.reason)


def malformed_reply(found: str) -> EndpointError:
    """The trouble with a reply that is not what it should be. The next one may be."""
    return EndpointError(Failure("malformed", found))


def parse_reply(text: str, clean: Callable[[str], str]) -> Any:
    """The JSON of a reply that came with success. An error in disguise is treated as what it is.

    ``clean`` takes keys out of what is quoted.
    """
    if sum(text.count(sign) for sign in ",[{") > MAX_VALUES:
        raise malformed_reply(f"the reply has more than {MAX_VALUES:,} values")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        start = text.lstrip()[:1]
        what = "a web page" if start == "<" else "nothing" if not start else "broken or cut short"
        raise malformed_reply(f"the reply is {what}, not JSON: {one_line(clean(text), 80)}") from None
    error = value.get("error") if isinstance(value, dict) and "choices" not in value else None
    if isinstance(error, dict | str):
        code = error.get("code") if isinstance(error, dict) else None
        raise error_for_status(code if isinstance(code, int) and 400 <= code < 600 else 500, text, clean)
    return value


def error_for_status(status: int, text: str, clean: Callable[[str], str]) -> EndpointError:
    """What an endpoint means by a status other than success. ``clean`` takes keys out of its words."""
    words = clean(_error_message(text))
    detail = one_line(f"HTTP {status}: {words}" if words else f"HTTP {status}")
    low = words.lower()
    reason, again = "refused", False
    if status in (401, 403):
        reason = "unauthorised"
    elif status == 413 or (status in (400, 422, 500) and any(sign in low for sign in _TOO_LONG)):
        reason = "too-long"
    elif status in _OVERLOAD_REASONS:
        reason, again = _OVERLOAD_REASONS[status], True
    elif status >= 500 and status != 501:
        reason, again = "server-error", True
    elif status < 400:
        detail = f"HTTP {status}: the endpoint sends elsewhere; name the address where it really is"
    return EndpointError(Failure(reason, detail, again), status)


def is_overload(status: int) -> bool:
    """Whether asking less at a time may help."""
    return status in _OVERLOAD_REASONS


def is_quota_exhausted(text: str) -> bool:
    """Whether "too many requests" means that the account is empty, which waiting does not change."""
    return "insufficient_quota" in text


def one_line(text: str, most: int = MAX_DETAIL) -> str:
    """Somebody else's words on one line, printable, and not too many of them."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text[: 4 * most]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _error_message(text: str) -> str:
    """The words of an error, out of whichever form it is in. A very long one has none that are worth the search."""
    if len(text) > MAX_ERROR_TEXT:
        return text[:MAX_ERROR_TEXT]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for _ in range(3):
        if isinstance(value, dict):
            value = next((value[name] for name in ("error", "message", "detail") if name in value), text)
    return value if isinstance(value, str) else text
