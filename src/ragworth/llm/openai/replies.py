"""Read an endpoint's replies: JSON, errors, texts, log-probabilities and token counts.

Servers differ, and proxies between them and us differ more. Any reply becomes a value of this module or an
`EndpointError`. Messages about invalid replies name fields and types, never their content, which may be anything.
Numbers are checked: JSON has numbers of any size, the store has integers of 64 bits, and impossible probabilities
would give wrong results.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ragworth.llm.contract import CONTENT_FILTER, LENGTH, MAX_PROBABILITY_MASS, MAX_TOKENS, STOP, WITHHELD, Failure
from ragworth.llm.reasoning import ONLY_REASONING

MAX_DETAIL = 300
"""Maximum characters of an endpoint's message to pass on."""

MAX_ERROR_TEXT = 1 << 20
"""Characters of an error to search for its message."""

MAX_VALUES = 3_000_000
"""Maximum values in a reply: a few bytes each, they become objects of some hundred, and take a second to read."""

MAX_STEPS, MAX_TOP, MAX_ID, MAX_NAME = 200_000, 1000, 2**31 - 1, 200
"""Maximum plausible tokens of a text, likeliest ones at a position, token ids, and characters of a model's name."""

MIN_LOGPROB = -1e39
"""Some servers write the lowest 32-bit float, -3.4e38, for minus infinity; none writes less."""

MIN_TOP_LOGPROB = -math.log(1e7)
"""The likeliest token of a distribution has at least the probability 1 / vocabulary."""

MALFORMED_RETRIES, ALL_RETRIES = 2, 10**6
"""Retries after an unusable reply, which may have been paid for, and after other errors that may pass."""

_TOO_LONG = (
    *("context length", "context size", "context window", "context_length", "exceed_context", "too many tokens"),
    *("prompt is too long", "input is too long", "prompt length", "input token count", "input tokens exceed"),
    *("exceeds the maximum number of tokens", "reduce the length"),
)
_NO_ROOM_FOR_OUTPUT = ("max_tokens or model output limit was reached", "max_completion_tokens is too small")
"""A model that reasons in secret has used up all tokens for that."""
_OVERLOAD_REASONS = {408: "timed-out", 429: "rate-limited", 503: "server-error", 529: "server-error"}
"""Statuses that mean that fewer requests at a time may help."""

_FINISH_NAMES = dict.fromkeys((STOP, "eos", "eos_token", "end_turn", "stop_sequence"), STOP) | {
    name: name for name in ("tool_calls", "function_call", CONTENT_FILTER)
}
"""Ends of whole texts, and of withheld ones. With any other word, a text counts as truncated: servers have many words
for texts that aren't whole.
"""
_ABANDONED = ("error", "abort")
_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "a truth value", type(None): "missing or null"}


class EndpointError(Exception):
    """A request failed. ``status`` is the endpoint's, if it answered at all."""

    def __init__(self, failure: Failure, status: int = 0, retries: int = 0) -> None:
        self.failure = failure
        self.status = status
        self.retries = retries
        """How many retries may help."""
        self.wait: float | None = None
        """Seconds to wait before the next one, if the endpoint says so."""
        super().__init__(failure.reason)

    @property
    def is_overload(self) -> bool:
        return self.status in _OVERLOAD_REASONS


def malformed_reply(problem: str) -> EndpointError:
    """The error for an invalid reply. The next one may be valid."""
    return EndpointError(Failure("malformed", problem), retries=MALFORMED_RETRIES)


def unsupported(reason: str, detail: str) -> EndpointError:
    """The error for a request that this endpoint can never fulfil."""
    return EndpointError(Failure(reason, detail, retry=False))


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
        # The status may be inside, as a number or its digits.
        code = str(error.get("code")) if isinstance(error, dict) else ""
        is_status = code.isascii() and code.isdecimal() and len(code) == 3 and "400" <= code < "600"
        raise error_for_status(int(code) if is_status else 500, text, clean)
    return value


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
    elif status < 200:
        return malformed_reply(f"HTTP {status} is not a reply")
    elif status < 400:
        detail = f"HTTP {status}: the endpoint redirects; use its final address"
    is_empty_account = status == 402 or "insufficient_quota" in text  # waiting doesn't help
    return EndpointError(Failure(reason, detail, again), status, ALL_RETRIES if again and not is_empty_account else 0)


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


def read_choices(value: Any, most: int | None = None, *, shown: bool = True) -> list[ReplyChoice]:
    """The texts of a reply, ``most`` of them. A refusal without text raises its own error.

    ``shown``: whether log-probabilities were requested. Otherwise none are read.
    """
    has_reasoned = bool(_hidden_reasoning(_object_or_empty(value, "usage")))
    return [_read_choice(one, shown, has_reasoned) for one in raw_choices(value)[:most]]


def raw_choices(value: Any) -> list[dict[str, Any]]:
    entries = _field(value, "choices", list)
    if not entries:
        raise malformed_reply("the reply has no choices")
    choices = [_object(one, "a choice") for one in entries]
    for part in (value, *choices):
        _refuse_abandoned(part)
    return choices


def _refuse_abandoned(part: dict[str, Any]) -> None:
    """Raise if the endpoint gave up on a reply or choice, even if some of its text came."""
    word, error = part.get("finish_reason"), part.get("error")
    if isinstance(error, dict) and not any(error.values()):
        error = None  # a form that wasn't filled in
    if error or word in _ABANDONED:
        message = error.get("message") if isinstance(error, dict) else error
        reason = message if isinstance(message, str) else word if word in _ABANDONED else "error"
        failure = Failure("server-error", one_line(f"the endpoint gave up on the output: {reason}"))
        raise EndpointError(failure, retries=MALFORMED_RETRIES)


def _read_choice(choice: dict[str, Any], shown: bool, has_reasoned: bool) -> ReplyChoice:
    """Read a choice. ``has_reasoned``: the model reasoned in secret."""
    word = choice.get("finish_reason")
    finish = "unknown"
    if isinstance(word, str) and word.strip():
        finish = _FINISH_NAMES.get(word.strip().lower(), LENGTH)
    message = choice if "text" in choice else _field(choice, "message", dict)
    text = message.get("text" if "text" in choice else "content")
    has_reasoned |= any(message.get(name) for name in _REASONING_FIELDS)
    if isinstance(text, list):
        has_reasoned |= any(isinstance(part, dict) and part.get("type") in ("thinking", "reasoning") for part in text)
        text = _join_parts(text)
    if not text and finish == CONTENT_FILTER:
        raise unsupported("refused", WITHHELD)
    if not text and isinstance(message.get("refusal"), str) and (text is None or message["refusal"]):
        raise unsupported("refused", "the model refused to answer")
    if not text and has_reasoned:
        raise EndpointError(ONLY_REASONING)
    if text is None and finish == LENGTH:
        text = ""
    if not isinstance(text, str):
        raise malformed_reply(f"the text of a choice is {_json_kind(text)}, not a string")
    return ReplyChoice(replace_surrogates(text), finish, read_tokens(choice) if shown else None)


def _join_parts(parts: list[Any]) -> str:
    """The texts of a message in parts. Reasoning may be among them, and is no text."""
    _check_length(parts, MAX_STEPS)
    objects = [_object(part, "a part of the text") for part in parts]
    return "".join(_field(part, "text", str) for part in objects if part.get("type") in ("text", "output_text"))


def read_tokens(choice: dict[str, Any]) -> tuple[GeneratedToken, ...] | None:
    """The tokens of a choice with their log-probabilities, in either of the two forms in use; None without any."""
    shown = choice.get("logprobs")
    if shown is None:
        return None
    for name in ("content", "tokens"):
        if isinstance(tokens := _object(shown, "logprobs").get(name), list):
            _check_length(tokens, MAX_STEPS)
            return tuple(map(read_token, tokens)) if name == "content" else _read_columns(shown)
    return None


def read_token(value: Any) -> GeneratedToken:
    """Read a token in the chat form: an object that contains the likeliest ones."""
    one = _object(value, "a token")
    top = one.get("top_logprobs") or []
    if not isinstance(top, list):
        raise malformed_reply(f"top_logprobs is {_json_kind(top)}, not a list")
    _check_length(top, MAX_TOP)
    likeliest = tuple(_read_logprob(_object(other, "a token"), read_logprob) for other in top)
    _check_top(likeliest)
    return GeneratedToken(_read_logprob(one, read_own_logprob), likeliest)


def _read_logprob(one: dict[str, Any], read: Callable[[Any], float]) -> TokenLogprob:
    token = _field(one, "token", str)
    return _named_token(token, read(one.get("logprob")), bounded_int(one.get("id"), 0, MAX_ID))


def _named_token(name: str, logprob: float, number: int | None = None) -> TokenLogprob:
    """A token whose name may be its id, which is how vLLM shows ids on request."""
    head, _, tail = name.partition(":")
    if head == "token_id" and tail.isascii() and tail.isdecimal() and len(tail) < 10:
        return TokenLogprob("", logprob, int(tail))
    return TokenLogprob(replace_surrogates(name), logprob, number)


def _read_columns(shown: dict[str, Any]) -> tuple[GeneratedToken, ...]:
    """Read the older form, of completions: one list of tokens, one of values, one of tables."""
    tokens, values = shown["tokens"], _field(shown, "token_logprobs", list)
    tops = shown.get("top_logprobs") or [None] * len(tokens)
    if not isinstance(tops, list) or not len(tokens) == len(values) == len(tops):
        raise malformed_reply("the lists in logprobs are not of one length")
    steps = []
    for token, value, top in zip(tokens, values, tops, strict=True):
        if not isinstance(token, str):
            raise malformed_reply(f"a token is {_json_kind(token)}, not a string")
        table = {} if top is None else _object(top, "top_logprobs")
        _check_length(table, MAX_TOP)
        # Different fragments of characters are all named U+FFFD here, and all but one are lost: better none at all.
        is_lossy = any("\ufffd" in name for name in table)
        likeliest = () if is_lossy else tuple(_named_token(name, read_logprob(one)) for name, one in table.items())
        _check_top(likeliest)
        # The first token of a text has no log-probability.
        steps.append(GeneratedToken(_named_token(token, 0.0 if value is None else read_own_logprob(value)), likeliest))
    return tuple(steps)


def read_logprob(value: Any) -> float:
    """Return a log-probability, which may be minus infinity, or slightly above 0 by rounding."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise malformed_reply(f"a log-probability is {_json_kind(value)}, not a number below 0")
    if not (MIN_LOGPROB <= value <= 0.01 or value == -math.inf):
        raise malformed_reply("a log-probability is out of range, not a number below 0")
    return min(float(value), 0.0)


def read_own_logprob(value: Any) -> float:
    """Return the log-probability of a generated token, which can't be minus infinity."""
    logprob = read_logprob(value)
    if logprob == -math.inf:
        raise malformed_reply("the log-probability of a token that came is minus infinity")
    return logprob


def _check_top(top: tuple[TokenLogprob, ...]) -> None:
    """Raise if no distribution has these likeliest tokens.

    A server may list a token twice, which counts once. A list of one may be the generated token, likely or not.
    """
    values = [value for _, value, _ in set(top)]
    if math.fsum(map(math.exp, values)) > MAX_PROBABILITY_MASS:
        raise malformed_reply("the probabilities of the likeliest tokens sum to more than 1")
    if len(values) > 1 and max(values) < MIN_TOP_LOGPROB:
        raise malformed_reply("the likeliest tokens have next to no probability")


def read_counts(value: Any) -> TokenCounts:
    """Read the token counts. Impossible numbers are ignored, because the text was paid for.

    Some endpoints count hidden reasoning only in the total, or only in the details.
    """
    usage = _object_or_empty(value, "usage")
    prompt, new = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    reasoning, unlisted = _hidden_reasoning(usage), _beyond_parts(usage)
    return TokenCounts(prompt, new + (unlisted or (reasoning if reasoning > new else 0)))


def _hidden_reasoning(usage: dict[str, Any]) -> int:
    """Tokens of hidden reasoning, whether they are among those written or not."""
    return _count(_object_or_empty(usage, "completion_tokens_details"), "reasoning_tokens") or _beyond_parts(usage)


def _beyond_parts(usage: dict[str, Any]) -> int:
    """Tokens in the total that were neither read nor written."""
    prompt, new, total = (_count(usage, name) for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
    cached = _count(_object_or_empty(usage, "prompt_tokens_details"), "cached_tokens")
    apart = cached if cached > prompt else 0  # more than the prompt can't be a part of it
    return max(0, total - prompt - new - apart) if prompt else 0


def _count(usage: dict[str, Any], name: str) -> int:
    return bounded_int(usage.get(name), 0, MAX_TOKENS) or 0


def read_model_name(value: Any) -> str:
    """The name of the model that the endpoint says answered; empty if it gives none."""
    name = value.get("model") if isinstance(value, dict) else None
    return replace_surrogates(name[:MAX_NAME]) if isinstance(name, str) else ""


def bounded_int(value: Any, least: int, most: int) -> int | None:
    """Return a whole number within bounds, or None."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and least <= value <= most else None


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON allows but files can't contain, with U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _object_or_empty(value: Any, name: str) -> dict[str, Any]:
    field = value.get(name) if isinstance(value, dict) else None
    return field if isinstance(field, dict) else {}


def _field(value: Any, name: str, wanted: type) -> Any:
    field = _object(value, "the reply").get(name)
    if not isinstance(field, wanted):
        raise malformed_reply(f"the field {name!r} is {_json_kind(field)}, not {_json_kind(wanted())}")
    return field


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise malformed_reply(f"{what} is {_json_kind(value)}, not an object")
    return value


def _check_length(entries: list[Any] | dict[str, Any], most: int) -> None:
    if len(entries) > most:
        raise malformed_reply(f"a list has {len(entries):,} entries, more than {most:,}")


def _json_kind(value: Any) -> str:
    return _KINDS.get(type(value), "a number")
