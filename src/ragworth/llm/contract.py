"""The interface of models: requests, responses, and the card that describes a model.

A backend is any object that implements `Model` and one or more of `GeneratingModel`, `ScoringModel` and
`ChoosingModel`. Each of these takes a list of requests and returns a list of the same length and order, with a
`Failure` in place of the response to a failed request. Requests and responses are plain values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from ragworth.core.errors import ModelError


class PromptMessage(NamedTuple):
    """A turn of a chat. The role ``text`` stands alone: a text to continue, without a template."""

    role: Literal["system", "user", "assistant", "text"]
    content: str


class Span(NamedTuple):
    """A passage inside a prompt: characters ``start`` to ``end`` of a message. Only spans are ever truncated."""

    message: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt, with the positions of its passages and the version of its template."""

    messages: tuple[PromptMessage, ...]
    passages: tuple[Span, ...] = ()
    version: str = ""

    def __post_init__(self) -> None:
        if not self.messages:
            raise ModelError("a prompt has no messages", expected="at least one")

    @staticmethod
    def chat(user: str, system: str = "") -> Prompt:
        """A chat of one turn, with optional instructions."""
        first = (PromptMessage("system", system),) if system else ()
        return Prompt((*first, PromptMessage("user", user)))

    @staticmethod
    def text(text: str) -> Prompt:
        """A plain text to continue."""
        return Prompt((PromptMessage("text", text),))


@dataclass(frozen=True, slots=True)
class Generate:
    """Continue the prompt ``n`` times. Temperature 0 is greedy and ignores ``top_p`` and ``seed``."""

    prompt: Prompt
    max_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    seed: int = 0
    n: int = 1
    detail: Literal["text", "logprobs", "entropies"] = "text"
    schema: str = ""
    """A JSON schema the output must follow; for models with the ability ``schema``."""


@dataclass(frozen=True, slots=True)
class Score:
    """Log-probabilities of a given continuation of the prompt, token by token.

    ``ids`` are the continuation's tokens from a trace of the same model. A text can be tokenized in more than one way;
    with ids, exactly these tokens are scored. Endpoints, which don't take ids, use the text.
    """

    prompt: Prompt
    continuation: str
    ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Choose:
    """Probability of each label as the continuation: by its first token, or by all its tokens."""

    prompt: Prompt
    labels: tuple[str, ...]
    estimator: Literal["first-token", "sequence"] = "first-token"


MAX_TOKENS = 10**9
"""More tokens or characters than a call can read or write. Sums over billions of calls fit into 64 bits."""

MAX_SECONDS = 1e9

MAX_PROBABILITY_MASS = 1.05
"""Maximum sum of probabilities of mutually exclusive events, since models and servers round."""


class Usage(NamedTuple):
    """Cost of a call, and how the prompt was changed to fit."""

    prompt_tokens: int
    new_tokens: int
    seconds: float
    cut: int = 0
    """Characters truncated from the passages."""
    defused: int = 0
    """Control tokens spelt out in the prompt's text, and broken up."""
    limit: int = 0
    """The context length that the passages were truncated to."""
    model: str = ""
    """The name under which an endpoint answered; empty if it gave none."""

    def bounded(self) -> Usage:
        """Replace impossible numbers, which a server may send, with 0, for an unknown cost."""
        counts = (*self[:2], *self[3:6])
        if (
            set(map(type, counts)) == {int}
            and type(self.model) is str
            and min(counts) >= 0
            and max(counts) <= MAX_TOKENS
            and type(self.seconds) is float
            and 0 <= self.seconds <= MAX_SECONDS
        ):
            return self
        prompt, new, *rest = (_bounded_or_zero(value, MAX_TOKENS, int) for value in counts)
        cut, defused, limit = rest
        seconds = _bounded_or_zero(self.seconds, MAX_SECONDS, float)
        return Usage(prompt, new, seconds, cut, defused, limit, str(self.model))


N = TypeVar("N", int, float)


def _bounded_or_zero(value: Any, most: N, kind: type[N]) -> N:
    try:
        number = kind(value)
    except (TypeError, ValueError, OverflowError):
        return kind(0)
    return number if 0 <= number <= most else kind(0)


class Trace(NamedTuple):
    """Tokens with their natural log-probabilities and entropies over the whole vocabulary."""

    tokens: tuple[str, ...]
    logprobs: tuple[float, ...]
    entropies: tuple[float, ...] | None = None
    bounds: tuple[tuple[float, float], ...] | None = None
    """Lower and upper bounds of the entropies, if only some log-probabilities are known."""
    ids: tuple[int, ...] | None = None
    """The tokens' ids in the model's vocabulary, if known."""

    def part(self, start: int, end: int | None = None) -> Trace:
        """The same of some of the tokens."""
        return Trace(*(None if column is None else column[start:end] for column in self))  # type: ignore[arg-type]

    def first(self, characters: int) -> Trace:
        """The tokens that spell the first characters of the text."""
        starts = [0, *accumulate(map(len, self.tokens))][:-1]
        return self.part(0, sum(start < characters for start in starts))


STOP, LENGTH, CONTENT_FILTER = "stop", "length", "content_filter"


class Output(NamedTuple):
    """A generated text, and why it ended: ``stop``, ``length`` (truncated), ``content_filter`` (withheld, even if some
    of the text came) or the endpoint's own word.
    """

    text: str
    finish: str
    trace: Trace | None = None


def text_before_stop(text: str, stop: Sequence[str]) -> str | None:
    """The text before the first stop text; None if it has none."""
    places = [place for each in stop if (place := text.find(each)) >= 0]
    return text[: min(places)] if places else None


def cut_at_stop(output: Output, stop: Sequence[str]) -> Output:
    """End an output at the first stop text, for servers that ignore or refuse them."""
    text, trace = text_before_stop(output.text, stop), output.trace
    if text is None:
        return output
    return Output(text, STOP, None if trace is None else trace.first(len(text)))


MAX_CHARACTERS = 200
"""Characters of a token, at most; the longest of known vocabularies have 128."""


def cut_at_length(output: Output, max_tokens: int) -> Output:
    """End an output where it must be longer than asked for, for servers that ignore the limit."""
    limit = max_tokens * MAX_CHARACTERS
    if len(output.text) <= limit:
        return output
    return Output(output.text[:limit], LENGTH, None if output.trace is None else output.trace.first(limit))


WITHHELD = "the endpoint's content filter held the output back"


class Generated(NamedTuple):
    outputs: tuple[Output, ...]
    usage: Usage

    @property
    def is_withheld(self) -> bool:
        """True if any of the outputs is."""
        return any(output.finish == CONTENT_FILTER for output in self.outputs)

    @property
    def tokens_read(self) -> int | None:
        """Tokens of the prompt; None if unknown."""
        return self.usage.prompt_tokens or None

    @property
    def tokens_written(self) -> int | None:
        """Tokens of the outputs; None if unknown."""
        is_empty = not any(output.text for output in self.outputs)
        return self.usage.new_tokens if self.usage.new_tokens or is_empty else None


class Scored(NamedTuple):
    trace: Trace
    usage: Usage


class Chosen(NamedTuple):
    """A probability for each label, and its bounds (equal if it is exact)."""

    probabilities: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    estimator: str
    usage: Usage

    @property
    def mass(self) -> float:
        """Total probability of the labels."""
        return sum(self.probabilities)


NO_USAGE = Usage(0, 0, 0.0)


class Failure(NamedTuple):
    """Why there is no response. ``retry``: whether the same request may succeed later."""

    reason: str
    detail: str = ""
    retry: bool = True
    usage: Usage = NO_USAGE
    """Its cost nevertheless: replies that couldn't be used, as far as the endpoint reports their tokens."""


Request: TypeAlias = Generate | Score | Choose
Response: TypeAlias = Generated | Scored | Chosen

ABILITIES = ("generate", "logprobs", "entropies", "score", "choose", "schema")
"""Possible abilities of a model. ``logprobs`` and ``entropies`` are of generated tokens."""


@dataclass(frozen=True, slots=True)
class Card:
    """Identifies a model. Everything that changes its output is part of its identity, and so of every call's key."""

    backend: str
    name: str
    revision: str = ""
    """Commit, or hash of the weights."""
    quantisation: str = ""
    template: str = ""
    """Hash of the chat template."""
    endpoint: str = ""
    abilities: frozenset[str] = frozenset()
    context_length: int | None = None
    declining: float | None = None
    """For a model trained to decline: the divisor that calibrates the log-odds of declining."""
    cuts: bool = False
    """Whether passages of a prompt that is too long are truncated; otherwise the prompt is rejected."""
    notes: tuple[str, ...] = ()
    prompts: str = "fenced"
    """Which of ragworth's own prompts to use: ``fenced``, or ``plain`` if the model was trained on those."""
    purpose: str = ""
    """The only task it was trained for; empty for a model that can be asked anything."""

    @property
    def identity(self) -> tuple[str, ...]:
        """The model's part of a call's key. If the hash of the weights is known, the name doesn't matter."""
        name = self.name if self.endpoint or not self.revision else ""
        return (self.backend, name, self.revision, self.quantisation, self.template, self.endpoint)


REWRITE = "rewrites"
"""The purpose of rewriting a question."""


@runtime_checkable
class Model(Protocol):
    """The part of every backend. Constructing it is cheap: the first request loads the weights."""

    @property
    def card(self) -> Card:
        """The model's card. May call an endpoint."""
        ...

    @property
    def batch(self) -> int:
        """Number of requests to submit at once."""
        ...

    @property
    def concurrency(self) -> int:
        """Number of such calls that may be under way at a time, from different threads."""
        ...

    def count(self, prompt: Prompt) -> int | None:
        """Tokens of a prompt including the template; None if unknown."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class GeneratingModel(Protocol):
    def generate(self, requests: Sequence[Generate]) -> list[Generated | Failure]: ...


@runtime_checkable
class ScoringModel(Protocol):
    def score(self, requests: Sequence[Score]) -> list[Scored | Failure]: ...


@runtime_checkable
class ChoosingModel(Protocol):
    def choose(self, requests: Sequence[Choose]) -> list[Chosen | Failure]: ...
