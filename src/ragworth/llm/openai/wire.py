"""What is sent to an OpenAI-compatible endpoint and what comes back: JSON to values, and nothing taken on trust.

Servers differ, and proxies between them and us differ more. Whatever a reply holds, it becomes a value of
this file or `Trouble` with a `Failure` in it. What is said of a reply that is not as it should be names
fields and types, never its content, which may be anything.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from ragworth.llm.contract import Failure, Generate, Message, Prompt, Span
from ragworth.llm.openai.trouble import Trouble, malformed, tidy


class Visible(NamedTuple):
    """A token that an endpoint shows, with its natural log-probability, and its id where it tells."""

    text: str
    logprob: float
    id: int | None = None


class Step(NamedTuple):
    """A token that was generated, and the likeliest ones at its place."""

    token: Visible
    top: tuple[Visible, ...]


class Choice(NamedTuple):
    """One text of a reply."""

    text: str
    finish: str
    steps: tuple[Step, ...] | None


class Counts(NamedTuple):
    """Tokens, as the endpoint counts them; 0 where it does not say."""

    prompt: int
    new: int


class Manner(NamedTuple):
    """How a server wants to be asked."""

    chat: bool
    limit: str = "max_tokens"
    """The field that limits the length of the output; newer models of OpenAI know another one."""
    top: int = 0
    """How many of the likeliest tokens to show at each place; 0 asks for no log-probabilities at all."""
    more: Mapping[str, Any] = {}
    """Fields that only this kind of server knows."""


def body(model: str, request: Generate, manner: Manner, *, seed: int, n: int) -> dict[str, Any]:
    """The JSON of a request to go on from a prompt."""
    fields: dict[str, Any] = {"model": model, **manner.more, manner.limit: request.max_tokens}
    fields["temperature"] = request.temperature
    if request.temperature > 0:
        fields |= {"seed": seed, "top_p": request.top_p}
    if n > 1:
        fields["n"] = n
    if request.stop:
        fields["stop"] = list(request.stop)
    if manner.chat:
        fields["messages"] = messages(request.prompt)
        if manner.top:
            fields |= {"logprobs": True, "top_logprobs": manner.top}
        if request.schema:
            form = {"name": "answer", "strict": True, "schema": json.loads(request.schema)}
            fields["response_format"] = {"type": "json_schema", "json_schema": form}
    else:
        fields["prompt"] = plain(request.prompt)
        if manner.top:
            fields["logprobs"] = manner.top
    return fields


def is_text(prompt: Prompt) -> bool:
    """Whether a prompt is a plain text to go on from, and no chat."""
    return prompt.messages[0].role == "text"


def messages(prompt: Prompt) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in prompt.messages]


def as_text(prompt: Prompt) -> Prompt:
    """The prompt as a plain text. A chat becomes paragraphs, as for any model without a chat template."""
    if is_text(prompt):
        return prompt
    starts = [0]
    for message in prompt.messages:
        starts.append(starts[-1] + len(message.content) + 2)
    spans = (Span(0, starts[one.message] + one.start, starts[one.message] + one.end) for one in prompt.passages)
    text = "".join(f"{message.content}\n\n" for message in prompt.messages)
    return Prompt((Message("text", text),), tuple(spans), prompt.version)


def plain(prompt: Prompt) -> str:
    return as_text(prompt).messages[0].content


def choices(value: Any) -> list[Choice]:
    """The texts of a reply. A refusal without any text is trouble of its own kind."""
    return [_choice(one) for one in raw_choices(value)]


def raw_choices(value: Any) -> list[dict[str, Any]]:
    found = _field(value, "choices", list)
    if not found:
        raise malformed("the reply has no choices")
    return [_object(one, "a choice") for one in found]


def _choice(choice: dict[str, Any]) -> Choice:
    finish = choice.get("finish_reason")
    finish = finish if isinstance(finish, str) else "unknown"
    message = choice if "text" in choice else _field(choice, "message", dict)
    text = message.get("text" if "text" in choice else "content")
    if not text and finish == "content_filter":
        raise Trouble(Failure("refused", "the endpoint's content filter held the output back", retry=False))
    if text is None and isinstance(message.get("refusal"), str):
        raise Trouble(Failure("refused", "the model refused to answer", retry=False))
    if text is None and (message.get("reasoning_content") or message.get("reasoning")):
        raise malformed(f"only reasoning and no text came (finish reason {_short(finish)}): allow more max_tokens")
    if not isinstance(text, str):
        raise malformed(f"the text of a choice is {_kind(text)}, not a string")
    return Choice(text, _short(finish), steps(choice))


def steps(choice: dict[str, Any]) -> tuple[Step, ...] | None:
    """The tokens of a choice with their log-probabilities, in either of the two forms in use; None without any."""
    found = choice.get("logprobs")
    if found is None:
        return None
    found = _object(found, "logprobs")
    if isinstance(found.get("content"), list):
        return tuple(step(one) for one in found["content"])
    if isinstance(found.get("tokens"), list):
        return _columns(found)
    return None


def step(value: Any) -> Step:
    """One token in the form of chats: an object with the likeliest ones in it."""
    one = _object(value, "a token")
    top = one.get("top_logprobs") or []
    if not isinstance(top, list):
        raise malformed(f"top_logprobs is {_kind(top)}, not a list")
    return Step(_visible(one), tuple(_visible(_object(other, "a token")) for other in top))


def _visible(one: dict[str, Any]) -> Visible:
    number = one.get("id")
    return _named(_field(one, "token", str), logprob(one.get("logprob")), number if isinstance(number, int) else None)


def _named(token: str, value: float, number: int | None = None) -> Visible:
    """A token whose name may be its id, which is how vLLM shows ids when asked to."""
    head, _, tail = token.partition(":")
    if head == "token_id" and tail.isdecimal():
        return Visible("", value, int(tail))
    return Visible(token, value, number)


def _columns(found: dict[str, Any]) -> tuple[Step, ...]:
    """The older form, of completions: one list of tokens, one of values, one of tables."""
    tokens, values = found["tokens"], _field(found, "token_logprobs", list)
    tops = found.get("top_logprobs") or [None] * len(tokens)
    if not isinstance(tops, list) or not len(tokens) == len(values) == len(tops):
        raise malformed("the lists in logprobs are not of one length")
    made = []
    for token, value, top in zip(tokens, values, tops, strict=True):
        if not isinstance(token, str):
            raise malformed(f"a token is {_kind(token)}, not a string")
        table = {} if top is None else _object(top, "top_logprobs")
        # Different pieces of characters are all named U+FFFD here, and all but one are lost: better none at all.
        lossy = any("\ufffd" in name for name in table)
        shown = () if lossy else tuple(_named(name, logprob(one)) for name, one in table.items())
        # The first token of a text has nothing before it that it could be expected from.
        made.append(Step(_named(token, 0.0 if value is None else logprob(value)), shown))
    return tuple(made)


def logprob(value: Any) -> float:
    """A log-probability; rounding may have brought it above 0, and some write -9999 for minus infinity."""
    if not _is_number(value) or math.isnan(value) or value > 0.01:
        raise malformed(f"a log-probability is {_kind(value)}, not a number below 0")
    return min(float(value), 0.0)


def counts(value: Any) -> Counts:
    """What the reply says of its cost."""
    usage = value.get("usage") if isinstance(value, dict) else None
    usage = usage if isinstance(usage, dict) else {}
    found = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    return Counts(*(one if isinstance(one, int) and one >= 0 else 0 for one in found))


def _field(value: Any, name: str, kind: type) -> Any:
    found = _object(value, "the reply").get(name)
    if not isinstance(found, kind):
        raise malformed(f"the field {name!r} is {_kind(found)}, not {_KINDS[kind]}")
    return found


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise malformed(f"{what} is {_kind(value)}, not an object")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "a truth value", type(None): "missing or null"}


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "a number")


def _short(word: str) -> str:
    return tidy(word, 40)
