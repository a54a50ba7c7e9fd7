"""Write requests for texts, and leave out parameters that an endpoint refuses.

Newer models take no temperature, gateways forbid what they don't know, and some chat templates have no system turn. An
endpoint says so in its own words. The request is sent again without the parameter that an error names, and later
requests leave it out, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from ragworth.llm.contract import Generate, Prompt, PromptMessage, Span
from ragworth.llm.openai.replies import EndpointError

TEMPERATURE, STOP_FIELD, SYSTEM_TURN, ZERO_TEMPERATURE = "temperature", "stop", "system", "temperature 0"
"""Parts of a request that some endpoints refuse."""

LOWEST_TEMPERATURE = 0.01
"""Instead of 0, for endpoints that refuse 0."""

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

T = TypeVar("T")


class SendRequest(Protocol):
    """Sends a JSON body and returns the reader's result for the reply. A path from / is outside the /v1 part."""

    async def __call__(self, path: str, body: dict[str, Any] | None, read: Callable[[Any], T]) -> T: ...


class RequestFormat(NamedTuple):
    """How a server expects requests."""

    chat: bool
    limit: str = "max_tokens"
    """The field that limits the output length; newer OpenAI models have another one."""
    top: int = 0
    """How many of the likeliest tokens to request at each position; 0 requests no log-probabilities."""
    more: Mapping[str, Any] = {}
    """Fields that only this kind of server knows."""
    without: frozenset[str] = frozenset()
    """Parameters to leave out."""


def request_body(model: str, request: Generate, form: RequestFormat, *, seed: int, n: int) -> dict[str, Any]:
    """The JSON of a request to continue a prompt."""
    fields: dict[str, Any] = {"model": model, **form.more, form.limit: request.max_tokens}
    sampling: dict[str, Any] = {TEMPERATURE: request.temperature}
    if request.temperature > 0:
        sampling |= {"seed": seed, "top_p": request.top_p}
    elif ZERO_TEMPERATURE in form.without:
        sampling[TEMPERATURE] = LOWEST_TEMPERATURE
    if request.stop:
        sampling[STOP_FIELD] = list(request.stop)
    fields |= {name: value for name, value in sampling.items() if name not in form.without}
    if n > 1:
        fields["n"] = n
    if form.chat:
        fields["messages"] = chat_messages(adapt_system_turn(request.prompt, form.without))
        if form.top:
            fields |= {"logprobs": True, "top_logprobs": form.top}
        if request.schema:
            schema = {"name": "answer", "strict": True, "schema": json.loads(request.schema)}
            fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    else:
        fields["prompt"] = joined_text(request.prompt)
        if form.top:
            fields["logprobs"] = form.top
    return fields


def is_text(prompt: Prompt) -> bool:
    """Return whether a prompt is a plain text to continue, not a chat."""
    return prompt.messages[0].role == "text"


def chat_messages(prompt: Prompt) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in prompt.messages]


def adapt_system_turn(prompt: Prompt, without: frozenset[str]) -> Prompt:
    """Put the instructions at the beginning of the user's turn if the endpoint refuses a system turn."""
    first, *others = prompt.messages
    if SYSTEM_TURN not in without or first.role != "system" or not others:
        return prompt
    before = f"{first.content}\n\n"
    messages = (others[0]._replace(content=before + others[0].content), *others[1:])
    moved = (
        one if one.message == 0 else Span(one.message - 1, one.start + shift, one.end + shift)
        for one in prompt.passages
        for shift in (len(before) if one.message == 1 else 0,)
    )
    return Prompt(messages, tuple(moved), prompt.version)


def as_text_prompt(prompt: Prompt) -> Prompt:
    """Convert a prompt to plain text. A chat becomes paragraphs, as for any model without a chat template."""
    if is_text(prompt):
        return prompt
    starts = [0]
    for message in prompt.messages:
        starts.append(starts[-1] + len(message.content) + 2)
    spans = (Span(0, starts[one.message] + one.start, starts[one.message] + one.end) for one in prompt.passages)
    text = "".join(f"{message.content}\n\n" for message in prompt.messages)
    return Prompt((PromptMessage("text", text),), tuple(spans), prompt.version)


def joined_text(prompt: Prompt) -> str:
    return as_text_prompt(prompt).messages[0].content


class RefusedParameters:
    """The parameters that one endpoint refuses, as far as known."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        self.several = False
        """Whether it refuses several outputs per request."""

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for name, note in _NOTES.items() if name in self.names)


def find_refused(error: EndpointError, body: dict[str, Any]) -> str:
    """The parameter of a request that an error names first; empty if it names none.

    A temperature above 0 that is out of range stays: the user chose it, and has to choose another.
    """
    detail = error.failure.detail
    present = set(body)
    if any(message["role"] == "system" for message in body.get("messages", ())):
        present.add(SYSTEM_TURN)
    if error.status == 500 and SYSTEM_TURN in present and _ROLES.search(detail):
        return SYSTEM_TURN
    if error.status not in REFUSAL_STATUSES or error.failure.reason != "refused":
        return ""
    matches = {name: pattern.search(detail) for name, pattern in _NAMED.items() if name in present}
    places = {name: match.start() for name, match in matches.items() if match}
    if TEMPERATURE in places and body[TEMPERATURE] > LOWEST_TEMPERATURE and _RANGE.search(detail):
        del places[TEMPERATURE]
    if TEMPERATURE in places and body[TEMPERATURE] == 0 and _ABOVE_0.search(detail):
        return ZERO_TEMPERATURE
    if {TEMPERATURE, "top_p"} <= places.keys() and _CANNOT_BOTH.search(detail):
        return "top_p"
    return min(places, key=lambda name: places[name], default="")
