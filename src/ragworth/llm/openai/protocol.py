"""What is sent to an OpenAI-compatible endpoint and what comes back: JSON to values, and nothing taken on trust.

Servers differ, and proxies between them and us differ more. Whatever a reply holds, it becomes a value of
this file or `Trouble` with a `Failure` in it. What is said of a reply that is not as it should be names
fields and types, never its content, which may be anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sized
from typing import Any, NamedTuple, TypeVar

from ragworth.llm.contract import MOST_TOKENS, Failure, Generate, Message, Prompt, Span
from ragworth.llm.openai.errors import Trouble, malformed, tidy
from ragworth.llm.openai.validation import MOST_ID, check_top, kind, logprob, own_logprob, whole

MOST_STEPS, MOST_TOP = 200_000, 1000
"""Tokens of a text, and likeliest ones at each place, that are believed."""

S = TypeVar("S", bound=Sized)


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


def choices(value: Any, most: int | None = None, *, shown: bool = True) -> list[Choice]:
    """The texts of a reply, ``most`` of them. A refusal without any text is trouble of its own kind.

    ``shown``: whether log-probabilities were asked for. Where they were not, none are read.
    """
    return [_choice(one, shown) for one in raw_choices(value)[:most]]


def raw_choices(value: Any) -> list[dict[str, Any]]:
    found = _field(value, "choices", list)
    if not found:
        raise malformed("the reply has no choices")
    return [_object(one, "a choice") for one in found]


def _choice(choice: dict[str, Any], shown: bool) -> Choice:
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
        raise malformed(f"the text of a choice is {kind(text)}, not a string")
    return Choice(encodable(text), _short(finish), steps(choice) if shown else None)


def steps(choice: dict[str, Any]) -> tuple[Step, ...] | None:
    """The tokens of a choice with their log-probabilities, in either of the two forms in use; None without any."""
    found = choice.get("logprobs")
    if found is None:
        return None
    found = _object(found, "logprobs")
    if isinstance(found.get("content"), list):
        return tuple(step(one) for one in _bounded(found["content"], MOST_STEPS))
    if isinstance(found.get("tokens"), list):
        return _columns(found)
    return None


def step(value: Any) -> Step:
    """One token in the form of chats: an object with the likeliest ones in it."""
    one = _object(value, "a token")
    top = one.get("top_logprobs") or []
    if not isinstance(top, list):
        raise malformed(f"top_logprobs is {kind(top)}, not a list")
    shown = tuple(_visible(_object(other, "a token"), logprob) for other in _bounded(top, MOST_TOP))
    check_top(shown)
    return Step(_visible(one, own_logprob), shown)


def _visible(one: dict[str, Any], number: Callable[[Any], float]) -> Visible:
    token = _field(one, "token", str)
    return _named(token, number(one.get("logprob")), whole(one.get("id"), 0, MOST_ID))


def _named(token: str, value: float, number: int | None = None) -> Visible:
    """A token whose name may be its id, which is how vLLM shows ids when asked to."""
    head, _, tail = token.partition(":")
    if head == "token_id" and tail.isascii() and tail.isdecimal() and len(tail) < 10:
        return Visible("", value, int(tail))
    return Visible(encodable(token), value, number)


def _columns(found: dict[str, Any]) -> tuple[Step, ...]:
    """The older form, of completions: one list of tokens, one of values, one of tables."""
    tokens, values = _bounded(found["tokens"], MOST_STEPS), _field(found, "token_logprobs", list)
    tops = found.get("top_logprobs") or [None] * len(tokens)
    if not isinstance(tops, list) or not len(tokens) == len(values) == len(tops):
        raise malformed("the lists in logprobs are not of one length")
    made = []
    for token, value, top in zip(tokens, values, tops, strict=True):
        if not isinstance(token, str):
            raise malformed(f"a token is {kind(token)}, not a string")
        table = {} if top is None else _object(top, "top_logprobs")
        _bounded(table, MOST_TOP)
        # Different pieces of characters are all named U+FFFD here, and all but one are lost: better none at all.
        lossy = any("\ufffd" in name for name in table)
        shown = () if lossy else tuple(_named(name, logprob(one)) for name, one in table.items())
        check_top(shown)
        # The first token of a text has nothing before it that it could be expected from.
        made.append(Step(_named(token, 0.0 if value is None else own_logprob(value)), shown))
    return tuple(made)


def counts(value: Any) -> Counts:
    """What the reply says of its cost. A number that can't be true is as good as none: the text was paid for."""
    usage = value.get("usage") if isinstance(value, dict) else None
    usage = usage if isinstance(usage, dict) else {}
    return Counts(*(whole(usage.get(name), 0, MOST_TOKENS) or 0 for name in ("prompt_tokens", "completion_tokens")))


def _field(value: Any, name: str, wanted: type) -> Any:
    found = _object(value, "the reply").get(name)
    if not isinstance(found, wanted):
        raise malformed(f"the field {name!r} is {kind(found)}, not {kind(wanted())}")
    return found


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise malformed(f"{what} is {kind(value)}, not an object")
    return value


def _bounded(found: S, most: int) -> S:
    if len(found) > most:
        raise malformed(f"a list has {len(found):,} entries, more than {most:,}")
    return found


def encodable(text: str) -> str:
    """The text, with U+FFFD in place of half a character, which JSON can spell and no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _short(word: str) -> str:
    return tidy(word, 40)
