"""Numbers that an endpoint tells: within bounds, or not believed.

JSON has numbers of any size. One that is far too large would end in an overflow somewhere else: in the store, whose
integers have 64 bits, or in a float. Probabilities that no distribution can have would end in wrong results.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ragworth.llm.contract import MAX_PROBABILITY_MASS
from ragworth.llm.openai.errors import malformed_reply

MAX_ID = 2**31 - 1
MIN_LOGPROB = -1e39
"""Some servers write the least 32-bit float, -3.4e38, where they mean minus infinity; nobody means less."""

MIN_TOP_LOGPROB = -math.log(1e7)
"""The likeliest token of a distribution has at least the probability 1 / vocabulary."""


def bounded_int(value: Any, least: int, most: int) -> int | None:
    """A whole number within bounds, or None."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and least <= value <= most else None


def read_logprob(value: Any) -> float:
    """A log-probability, minus infinity included. Rounding may have brought it above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise malformed_reply(f"a log-probability is {json_kind(value)}, not a number below 0")
    if not (MIN_LOGPROB <= value <= 0.01 or value == -math.inf):
        raise malformed_reply("a log-probability is out of range, not a number below 0")
    return min(float(value), 0.0)


def read_own_logprob(value: Any) -> float:
    """The log-probability of a token that did come: it can't be impossible."""
    found = read_logprob(value)
    if found == -math.inf:
        raise malformed_reply("the log-probability of a token that came is minus infinity")
    return found


def check_top(top: Iterable[tuple[str, float, int | None]]) -> None:
    """Trouble if no distribution has these likeliest tokens: their text, log-probability and id.

    A server may list a token twice, which counts once. A list of one may be the token that came, likely or not.
    """
    values = [value for _, value, _ in set(top)]
    if math.fsum(map(math.exp, values)) > MAX_PROBABILITY_MASS:
        raise malformed_reply("the probabilities of the likeliest tokens sum to more than 1")
    if len(values) > 1 and max(values) < MIN_TOP_LOGPROB:
        raise malformed_reply("the likeliest tokens have next to no probability")


def json_kind(value: Any) -> str:
    """What a value of JSON is, in words."""
    return _KINDS.get(type(value), "a number")


_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "a truth value", type(None): "missing or null"}
