"""What a model can be asked, what it answers, and what it says of itself.

A backend is any object that follows `Model` and one or more of `Generates`, `Scores` and `Chooses`. Each
of these takes a list of requests and returns a list of the same length and order, in which a request that
came to nothing has a `Failure` in place of its response. Requests and responses are plain values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from ragworth.errors import ModelError


class Message(NamedTuple):
    """One turn of a chat. The role ``text`` stands alone: a text to go on from, without any template."""

    role: Literal["system", "user", "assistant", "text"]
    content: str


class Span(NamedTuple):
    """A passage inside a prompt: the characters ``start`` to ``end`` of a message. Only spans are ever cut."""

    message: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt, with where its passages are and the version of the template it came from."""

    messages: tuple[Message, ...]
    passages: tuple[Span, ...] = ()
    version: str = ""

    def __post_init__(self) -> None:
        if not self.messages:
            raise ModelError("a prompt has no messages", expected="at least one")

    @staticmethod
    def chat(user: str, system: str = "") -> Prompt:
        """A chat of one turn, with instructions if there are any."""
        first = (Message("system", system),) if system else ()
        return Prompt((*first, Message("user", user)))

    @staticmethod
    def text(text: str) -> Prompt:
        """A plain text to go on from."""
        return Prompt((Message("text", text),))


@dataclass(frozen=True, slots=True)
class Generate:
    """Go on from the prompt, ``n`` times. Temperature 0 is greedy and ignores ``top_p`` and ``seed``."""

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
    """How likely is this continuation of the prompt, token by token?

    ``ids`` are the continuation's tokens as a trace of the same model gave them. A text may be split in more than
    one way; with ids, exactly these tokens are scored. An endpoint, which knows none, goes by the text.
    """

    prompt: Prompt
    continuation: str
    ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Choose:
    """How likely is each label to come next: by its first token, or by all its tokens?"""

    prompt: Prompt
    labels: tuple[str, ...]
    estimator: Literal["first-token", "sequence"] = "first-token"


MAX_TOKENS = 10**9
"""More tokens or characters than a call can read or write. Sums over billions of calls fit into 64 bits."""

MAX_SECONDS = 1e9

MAX_PROBABILITY_MASS = 1.05
"""What the probabilities of things that exclude each other may sum to, since models and servers round."""


class Usage(NamedTuple):
    """What a call cost, and what had to be done to the prompt to make it fit."""

    prompt_tokens: int
    new_tokens: int
    seconds: float
    cut: int = 0
    """Characters cut off the passages."""
    defused: int = 0
    """Control tokens of the model spelt out in the prompt's text, and taken apart."""
    limit: int = 0
    """The context length that the passages were cut for."""

    def bounded(self) -> Usage:
        """The same, with 0 for every impossible number: it may come from a server, and then nobody knows the cost."""
        prompt, new, *rest = (_bounded_or_zero(value, MAX_TOKENS, int) for value in (*self[:2], *self[3:]))
        bounded = Usage(prompt, new, _bounded_or_zero(self.seconds, MAX_SECONDS, float), *rest)
        return self if bounded == self and list(map(type, bounded)) == list(map(type, self)) else bounded


N = TypeVar("N", int, float)


def _bounded_or_zero(value: Any, most: N, kind: type[N]) -> N:
    try:
        found = kind(value)
    except (TypeError, ValueError, OverflowError):
        return kind(0)
    return found if 0 <= found <= most else kind(0)


class Trace(NamedTuple):
    """Tokens and what the model thought of each: natural logarithms, the whole vocabulary."""

    tokens: tuple[str, ...]
    logprobs: tuple[float, ...]
    entropies: tuple[float, ...] | None = None
    bounds: tuple[tuple[float, float], ...] | None = None
    """Least and greatest entropy that the visible log-probabilities allow, where only those are known."""
    ids: tuple[int, ...] | None = None
    """The tokens' numbers in the model's vocabulary, where it tells them."""


class Output(NamedTuple):
    """One text that was generated, and why it ended: ``stop``, ``length`` or the endpoint's own word."""

    text: str
    finish: str
    trace: Trace | None = None


class Generated(NamedTuple):
    outputs: tuple[Output, ...]
    usage: Usage


class Scored(NamedTuple):
    trace: Trace
    usage: Usage


class Chosen(NamedTuple):
    """A probability for each label, and the bounds within which it is known (equal where it is exact)."""

    probabilities: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    estimator: str
    usage: Usage

    @property
    def mass(self) -> float:
        """How much probability the labels hold together."""
        return sum(self.probabilities)


class Failure(NamedTuple):
    """Why there is no response. ``retry``: whether the same request may succeed later."""

    reason: str
    detail: str = ""
    retry: bool = True


Request: TypeAlias = Generate | Score | Choose
Response: TypeAlias = Generated | Scored | Chosen

ABILITIES = ("generate", "logprobs", "entropies", "score", "choose", "schema")
"""What a model may be able to do. ``logprobs`` and ``entropies`` are of generated tokens."""


@dataclass(frozen=True, slots=True)
class Card:
    """Who a model is. What changes its output is part of its identity, and so of every call's key."""

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
    """Of a model that was taught to decline: what the log-odds of declining are divided by to be calibrated."""
    cuts: bool = False
    """Whether passages of a prompt that is too long are cut, instead of the prompt being refused."""
    notes: tuple[str, ...] = ()
    prompts: str = "fenced"
    """Which of ragworth's own prompts it is asked with: ``fenced``, or ``plain`` if it was trained on those."""

    @property
    def identity(self) -> tuple[str, ...]:
        """What enters the key of a call. Where the weights are known by their hash, their name does not matter."""
        name = self.name if self.endpoint or not self.revision else ""
        return (self.backend, name, self.revision, self.quantisation, self.template, self.endpoint)


@runtime_checkable
class Model(Protocol):
    """What every backend has. Constructing it is cheap: weights are loaded by the first request."""

    @property
    def card(self) -> Card:
        """Who the model is. An endpoint may have to be asked."""
        ...

    @property
    def batch(self) -> int:
        """How many requests to hand over at once."""
        ...

    @property
    def concurrency(self) -> int:
        """How many such calls may be under way at a time, from different threads."""
        ...

    def count(self, prompt: Prompt) -> int | None:
        """Tokens of a prompt, template and all; None where the model cannot tell."""
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
