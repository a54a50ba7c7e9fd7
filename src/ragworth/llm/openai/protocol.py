"""Requests to an OpenAI-compatible endpoint, and validation of its replies.

Servers differ, and proxies between them and us differ more. Any reply becomes a value of this module or an
`EndpointError` with a `Failure`. Messages about invalid replies name fields and types, never their content, which may
be anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sized
from typing import Any, NamedTuple, TypeVar

from ragworth.llm.contract import (
    CONTENT_FILTER,
    LENGTH,
    MAX_TOKENS,
    STOP,
    WITHHELD,
    Failure,
    Generate,
    Prompt,
    PromptMessage,
    Span,
)
from ragworth.llm.openai.errors import EndpointError, malformed_reply, one_line
from ragworth.llm.openai.validation import MAX_ID, bounded_int, check_top, json_kind, read_logprob, read_own_logprob
from ragworth.llm.reasoning import ONLY_REASONING

TEMPERATURE, STOP_FIELD, SYSTEM_TURN, ZERO_TEMPERATURE = "temperature", "stop", "system", "temperature 0"
"""Parts of a request that some endpoints refuse."""

LOWEST_TEMPERATURE = 0.01
"""Instead of 0, for endpoints that refuse 0."""

MAX_STEPS, MAX_TOP = 200_000, 1000
"""Maximum plausible tokens of a text, and likeliest ones at each position."""

MAX_NAME = 200
"""Maximum characters of a model's name that are read."""

_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")

UNKNOWN_FINISH = "unknown"

_FINISH_NAMES = {
    **dict.fromkeys((STOP, "eos_token", "end_turn", "stop_sequence"), STOP),
    **dict.fromkeys(
        (LENGTH, "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"), LENGTH
    ),
    **dict.fromkeys((CONTENT_FILTER, "safety", "refusal", "recitation", "blocked"), CONTENT_FILTER),
}
"""The words of OpenAI and vLLM, and those of TGI, Anthropic, Gemini, Mistral and others."""

_ABANDONED = frozenset(
    ("error", "failed", "abort", "cancelled", "timeout", "network_error", "insufficient_system_resource")
)

S = TypeVar("S", bound=Sized)


class TokenLogprob(NamedTuple):
    """A token in a reply, with its natural log-probability, and its id if given."""

    text: str
    logprob: float
    id: int | None = None


class GeneratedToken(NamedTuple):
    """A generated token, and the likeliest ones at its position."""

    token: TokenLogprob
    top: tuple[TokenLogprob, ...]


class ReplyChoice(NamedTuple):
    """A text of a reply."""

    text: str
    finish: str
    steps: tuple[GeneratedToken, ...] | None


class TokenCounts(NamedTuple):
    """The endpoint's token counts; 0 if unknown."""

    prompt: int = 0
    new: int = 0

    def plus(self, other: TokenCounts) -> TokenCounts:
        return TokenCounts(self.prompt + other.prompt, self.new + other.new)


NO_COUNTS = TokenCounts()


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


def request_body(model: str, request: Generate, manner: RequestFormat, *, seed: int, n: int) -> dict[str, Any]:
    """The JSON of a request to continue a prompt."""
    fields: dict[str, Any] = {"model": model, **manner.more, manner.limit: request.max_tokens}
    fields |= {
        name: value for name, value in _sampling(request, seed, manner.without).items() if name not in manner.without
    }
    if n > 1:
        fields["n"] = n
    if manner.chat:
        fields["messages"] = chat_messages(adapt_system_turn(request.prompt, manner))
        if manner.top:
            fields |= {"logprobs": True, "top_logprobs": manner.top}
        if request.schema:
            form = {"name": "answer", "strict": True, "schema": json.loads(request.schema)}
            fields["response_format"] = {"type": "json_schema", "json_schema": form}
    else:
        fields["prompt"] = joined_text(request.prompt)
        if manner.top:
            fields["logprobs"] = manner.top
    return fields


def _sampling(request: Generate, seed: int, without: frozenset[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {TEMPERATURE: request.temperature}
    if request.temperature > 0:
        fields |= {"seed": seed, "top_p": request.top_p}
    elif ZERO_TEMPERATURE in without:
        fields[TEMPERATURE] = LOWEST_TEMPERATURE
    return fields | ({STOP_FIELD: list(request.stop)} if request.stop else {})


def is_text(prompt: Prompt) -> bool:
    """Whether a prompt is a plain text to continue, not a chat."""
    return prompt.messages[0].role == "text"


def chat_messages(prompt: Prompt) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in prompt.messages]


def adapt_system_turn(prompt: Prompt, manner: RequestFormat) -> Prompt:
    """Put the instructions at the beginning of the user's turn if the endpoint refuses a system turn."""
    first, *others = prompt.messages
    if SYSTEM_TURN not in manner.without or first.role != "system" or not others:
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


def read_choices(value: Any, most: int | None = None, *, shown: bool = True) -> list[ReplyChoice]:
    """The texts of a reply, ``most`` of them. A refusal without text raises its own error.

    ``shown``: whether log-probabilities were requested. Otherwise none are read.
    """
    hidden = bool(_hidden_reasoning(_object_or_empty(value, "usage")))
    return [_read_choice(one, shown, hidden) for one in raw_choices(value)[:most]]


def raw_choices(value: Any) -> list[dict[str, Any]]:
    found = _field(value, "choices", list)
    if not found:
        raise malformed_reply("the reply has no choices")
    choices = [_object(one, "a choice") for one in found]
    for part in (value, *choices):
        refuse_abandoned(part)
    return choices


def _read_choice(choice: dict[str, Any], shown: bool, hidden: bool) -> ReplyChoice:
    """``hidden``: whether the model reasoned in secret."""
    finish = read_finish(choice)
    message = choice if "text" in choice else _field(choice, "message", dict)
    text = message.get("text" if "text" in choice else "content")
    reasoned = hidden or any(message.get(name) for name in _REASONING_FIELDS)
    if isinstance(text, list):
        reasoned |= any(isinstance(part, dict) and part.get("type") in ("thinking", "reasoning") for part in text)
        text = _join_parts(text)
    if not text and finish == CONTENT_FILTER:
        raise EndpointError(Failure("refused", WITHHELD, retry=False))
    if not text and isinstance(message.get("refusal"), str) and (text is None or message["refusal"]):
        raise EndpointError(Failure("refused", "the model refused to answer", retry=False))
    if not text and reasoned:
        raise EndpointError(ONLY_REASONING)
    if text is None and finish == LENGTH:
        text = ""
    if not isinstance(text, str):
        raise malformed_reply(f"the text of a choice is {json_kind(text)}, not a string")
    return ReplyChoice(replace_surrogates(text), finish, read_tokens(choice) if shown else None)


def read_finish(choice: Mapping[str, Any]) -> str:
    """Why a choice ended: ``stop``, ``length``, ``content_filter``, or the endpoint's own word."""
    given = _finish_word(choice)
    return _FINISH_NAMES.get(given.strip().lower()) or one_line(given, 40) or UNKNOWN_FINISH


def refuse_abandoned(part: Mapping[str, Any]) -> None:
    """Raise if the endpoint gave up on a reply or choice, even if some of its text came."""
    given, error = _finish_word(part), part.get("error")
    if isinstance(error, dict) and not any(error.values()):
        error = None  # a form that wasn't filled in
    is_abandoned = given.strip().lower() in _ABANDONED
    if error or is_abandoned:
        said = error.get("message") if isinstance(error, dict) else error
        reason = said if isinstance(said, str) else given if is_abandoned else "error"
        raise EndpointError(Failure("server-error", one_line(f"the endpoint gave up on the output: {reason}")))


def _finish_word(part: Mapping[str, Any]) -> str:
    """The endpoint's word for how it ended."""
    return next((part[name] for name in ("finish_reason", "status") if isinstance(part.get(name), str)), "")


def _join_parts(parts: list[Any]) -> str:
    """The texts of a message in parts. Reasoning may be among them, and is no text."""
    found = [_object(part, "a part of the text") for part in _check_length(parts, MAX_STEPS)]
    return "".join(_field(part, "text", str) for part in found if part.get("type") in ("text", "output_text"))


def read_tokens(choice: dict[str, Any]) -> tuple[GeneratedToken, ...] | None:
    """The tokens of a choice with their log-probabilities, in either of the two forms in use; None without any."""
    found = choice.get("logprobs")
    if found is None:
        return None
    found = _object(found, "logprobs")
    if isinstance(found.get("content"), list):
        return tuple(read_token(one) for one in _check_length(found["content"], MAX_STEPS))
    if isinstance(found.get("tokens"), list):
        return _read_columns(found)
    return None


def read_token(value: Any) -> GeneratedToken:
    """Read a token in the chat form: an object that contains the likeliest ones."""
    one = _object(value, "a token")
    top = one.get("top_logprobs") or []
    if not isinstance(top, list):
        raise malformed_reply(f"top_logprobs is {json_kind(top)}, not a list")
    shown = tuple(_read_logprob(_object(other, "a token"), read_logprob) for other in _check_length(top, MAX_TOP))
    check_top(shown)
    return GeneratedToken(_read_logprob(one, read_own_logprob), shown)


def _read_logprob(one: dict[str, Any], number: Callable[[Any], float]) -> TokenLogprob:
    token = _field(one, "token", str)
    return _token_from_name(token, number(one.get("logprob")), bounded_int(one.get("id"), 0, MAX_ID))


def _token_from_name(token: str, value: float, number: int | None = None) -> TokenLogprob:
    """A token whose name may be its id, which is how vLLM shows ids on request."""
    head, _, tail = token.partition(":")
    if head == "token_id" and tail.isascii() and tail.isdecimal() and len(tail) < 10:
        return TokenLogprob("", value, int(tail))
    return TokenLogprob(replace_surrogates(token), value, number)


def _read_columns(found: dict[str, Any]) -> tuple[GeneratedToken, ...]:
    """Read the older form, of completions: one list of tokens, one of values, one of tables."""
    tokens, values = _check_length(found["tokens"], MAX_STEPS), _field(found, "token_logprobs", list)
    tops = found.get("top_logprobs") or [None] * len(tokens)
    if not isinstance(tops, list) or not len(tokens) == len(values) == len(tops):
        raise malformed_reply("the lists in logprobs are not of one length")
    steps = []
    for token, value, top in zip(tokens, values, tops, strict=True):
        if not isinstance(token, str):
            raise malformed_reply(f"a token is {json_kind(token)}, not a string")
        table = {} if top is None else _object(top, "top_logprobs")
        _check_length(table, MAX_TOP)
        # Different fragments of characters are all named U+FFFD here, and all but one are lost: better none at all.
        lossy = any("\ufffd" in name for name in table)
        shown = () if lossy else tuple(_token_from_name(name, read_logprob(one)) for name, one in table.items())
        check_top(shown)
        # The first token of a text has no log-probability.
        steps.append(GeneratedToken(_token_from_name(token, 0.0 if value is None else read_own_logprob(value)), shown))
    return tuple(steps)


def read_counts(value: Any) -> TokenCounts:
    """Read the token counts. Impossible numbers are ignored, because the text was paid for.

    Some endpoints count hidden reasoning only in the total, or only in the details.
    """
    usage = _object_or_empty(value, "usage")
    prompt, new = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    reasoning, unlisted = _hidden_reasoning(usage), _beyond_parts(usage)
    return TokenCounts(prompt, new + (unlisted or (reasoning if reasoning > new else 0)))


def read_model_name(value: Any) -> str:
    """The name of the model that the endpoint says answered; empty if it gives none."""
    name = value.get("model") if isinstance(value, dict) else None
    return replace_surrogates(name[:MAX_NAME]) if isinstance(name, str) else ""


def _hidden_reasoning(usage: dict[str, Any]) -> int:
    """Tokens of hidden reasoning, whether they are among those written or not."""
    return _count(_object_or_empty(usage, "completion_tokens_details"), "reasoning_tokens") or _beyond_parts(usage)


def _beyond_parts(usage: dict[str, Any]) -> int:
    """Tokens in the total that were neither read nor written."""
    prompt, new, total = (_count(usage, name) for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
    cached = _count(_object_or_empty(usage, "prompt_tokens_details"), "cached_tokens")
    apart = cached if cached > prompt else 0  # more than the prompt can't be a part of it
    return max(0, total - prompt - new - apart) if prompt else 0


def _object_or_empty(value: Any, name: str) -> dict[str, Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _count(usage: dict[str, Any], name: str) -> int:
    return bounded_int(usage.get(name), 0, MAX_TOKENS) or 0


def _field(value: Any, name: str, wanted: type) -> Any:
    found = _object(value, "the reply").get(name)
    if not isinstance(found, wanted):
        raise malformed_reply(f"the field {name!r} is {json_kind(found)}, not {json_kind(wanted())}")
    return found


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise malformed_reply(f"{what} is {json_kind(value)}, not an object")
    return value


def _check_length(found: S, most: int) -> S:
    if len(found) > most:
        raise malformed_reply(f"a list has {len(found):,} entries, more than {most:,}")
    return found


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON allows but files can't contain, with U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
