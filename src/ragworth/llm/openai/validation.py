"""Check the bounds of numbers that an endpoint returns.

JSON has numbers of any size. One that is far too large would overflow elsewhere: in the store, whose integers have
64 bits, or in a float. Impossible probabilities would give wrong results.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ragworth.llm.contract import MAX_PROBABILITY_MASS
from ragworth.llm.openai.errors import malformed_reply

MAX_ID = 2**31 - 1
MIN_LOGPROB = -1e39
"""Some servers write the lowest 32-bit float, -3.4e38, for minus infinity; none writes less."""

MIN_TOP_LOGPROB = -math.log(1e7)
"""The likeliest token of a distribution has at least the probability 1 / vocabulary."""


def bounded_int(value: Any, least: int, most: int) -> int | None:
    """Return a whole number within bounds, or None."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and least <= value <= most else None


def read_logprob(value: Any) -> float:
    """Return a log-probability, which may be minus infinity, or slightly above 0 by rounding."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise malformed_reply(f"a log-probability is {json_kind(value)}, not a number below 0")
    if not (MIN_LOGPROB <= value <= 0.01 or value == -math.inf):
        raise malformed_reply("a log-probability is out of range, not a number below 0")
    return min(float(value), 0.0)


def read_own_logprob(value: Any) -> float:
    """Return the log-probability of a generated token, which can't be minus infinity."""
    found = read_logprob(value)
    if found == -math.inf:
        raise malformed_reply("the log-probability of a token that came is minus infinity")
    return found


def check_top(top: Iterable[tuple[str, float, int | None]]) -> None:
    """Raise if no distribution has these likeliest tokens: their text, log-probability and id.

    A server may list a token twice, which counts once. A list of one may be the generated token, likely or not.
    """
    values = [value for _, value, _ in set(top)]
    if math.fsum(map(math.exp, values)) > MAX_PROBABILITY_MASS:
        raise malformed_reply("the probabilities of the likeliest tokens sum to more than 1")
    if len(values) > 1 and max(values) < MIN_TOP_LOGPROB:
        raise malformed_reply("the likeliest tokens have next to no probability")


def json_kind(value: Any) -> str:
    """Describe the type of a JSON value."""
    return _KINDS.get(type(value), "a number")


_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "a truth value", type(None): "missing or null"}
