"""Leave out parameters that an endpoint refuses.

Newer models take no temperature, gateways forbid what they don't know, and some chat templates have no system turn. An
endpoint says so in its own words. The request is sent again without the parameter that an error names, and later
requests leave it out, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from ragworth.llm.openai.errors import EndpointError
from ragworth.llm.openai.exact_scores import SendRequest
from ragworth.llm.openai.protocol import (
    LOWEST_TEMPERATURE,
    STOP_FIELD,
    SYSTEM_TURN,
    TEMPERATURE,
    ZERO_TEMPERATURE,
    RequestFormat,
)

T = TypeVar("T")

REFUSAL_STATUSES = (400, 404, 415, 422)
"""Statuses of errors that may name a parameter."""

_NAMED = {
    TEMPERATURE: re.compile(r"\btemperature\b", re.I),
    "top_p": re.compile(r"\btop[ _-]?p\b|\bnucleus sampling\b", re.I),
    "seed": re.compile(r"(?<![a-z])(?:random_)?seed(?![a-z])", re.I),
    STOP_FIELD: re.compile(r"(?<![a-z_])stop(?:[ _-]?(?:sequences?|words?|strings?))?(?![a-z_])", re.I),
    SYSTEM_TURN: re.compile(
        r"\b(?:system|developer)\W+(?:\w+\W+){0,3}(?:roles?|messages?|prompts?|instructions?|turns?)\b"
        r"|\b(?:roles?|messages?)\b.{0,60}\b(?:system|developer)\b"
        r"|\broles? must alternate\b|\bonly user and assistant\b",
        re.I,
    ),
}
_ROLES = re.compile(r"\bsystem role\b|\broles? must alternate\b|\bonly user and assistant\b", re.I)
"""What a chat template says without a system turn, if the server reports its errors as its own."""
_CANNOT_BOTH = re.compile(r"\bboth\b|\bonly one\b|\btogether\b|\bsimultaneous", re.I)
_RANGE = re.compile(
    r"\bbetween\b|\brange\b|\b(?:less|lower|greater) than\b|\bat most\b|\bmaximum\b|\bexceeds?\b|<=|≤", re.I
)

_ABOVE_0 = re.compile(
    r"\bpositive\b|\b(?:greater|larger|higher|more) than\b|\babove\b|>(?!=)|\bnot (?:be )?(?:0|zero)\b|\(0(?:\.0)?,",
    re.I,
)

_NOTES = {
    ZERO_TEMPERATURE: "refuses the temperature 0: greedy texts are asked for with 0.01, and may differ by call",
    TEMPERATURE: "refuses the parameter temperature, which is left out: texts come at the endpoint's own temperature, "
    "also where a greedy one was wanted, and may differ from call to call",
    "top_p": "refuses the parameter top_p, which is left out: the endpoint's own applies",
    "seed": "refuses the parameter seed, which is left out: samples can't be repeated",
    STOP_FIELD: "refuses the parameter stop, which is left out: texts are cut when they have come",
    SYSTEM_TURN: "refuses a system turn: instructions are sent at the beginning of the user's turn",
}


class RefusedParameters:
    """The parameters that one endpoint refuses, as far as known."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        self.several = False
        """Whether it refuses several outputs per request."""

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for name, note in _NOTES.items() if name in self.names)

    async def ask(
        self,
        send: SendRequest,
        path: str,
        manner: RequestFormat,
        body: Callable[[RequestFormat], dict[str, Any]],
        read: Callable[[Any], T],
    ) -> T:
        """Send a request without the parameters that the endpoint refuses.

        A parameter is remembered if the request succeeds without it; an error that stays the same didn't mean it.
        """
        without, innocent, last = self.names, frozenset[str](), ("", "")
        while True:
            fields = body(manner._replace(without=without))
            try:
                found = await send(path, fields, read)
            except EndpointError as trouble:
                name, detail = last
                if detail == trouble.failure.detail:
                    without, innocent = without - {name}, innocent | {name}
                refused = find_refused(trouble, body(manner._replace(without=without)), innocent)
                if not refused:
                    raise
                without, last = without | {refused}, (refused, trouble.failure.detail)
            else:
                self.names |= without
                return found


def find_refused(trouble: EndpointError, fields: dict[str, Any], innocent: frozenset[str] = frozenset()) -> str:
    """The parameter of a request that an error names first; empty if it names none.

    A temperature above 0 that is out of range stays: the user chose it, and has to choose another.
    """
    detail = trouble.failure.detail
    if trouble.status == 500 and _ROLES.search(detail) and _has(fields, SYSTEM_TURN) and SYSTEM_TURN not in innocent:
        return SYSTEM_TURN
    if trouble.status not in REFUSAL_STATUSES or trouble.failure.reason != "refused":
        return ""
    places = {
        name: match.start()
        for name, pattern in _NAMED.items()
        if name not in innocent and _has(fields, name) and (match := pattern.search(detail))
    }
    if TEMPERATURE in places and fields[TEMPERATURE] > LOWEST_TEMPERATURE and _RANGE.search(detail):
        del places[TEMPERATURE]
    is_zero = TEMPERATURE in places and fields[TEMPERATURE] == 0 and ZERO_TEMPERATURE not in innocent
    if is_zero and _ABOVE_0.search(detail):
        return ZERO_TEMPERATURE
    if {TEMPERATURE, "top_p"} <= places.keys() and _CANNOT_BOTH.search(detail):
        return "top_p"
    return min(places, key=lambda name: places[name], default="")


def _has(fields: dict[str, Any], name: str) -> bool:
    if name == SYSTEM_TURN:
        return any(message["role"] == "system" for message in fields.get("messages", ()))
    return name in fields
