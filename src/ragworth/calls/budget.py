"""Estimate and limit the cost of calls."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from ragworth.core.errors import InputError, format_count
from ragworth.llm.contract import LENGTH, Card, Choose, Failure, Generate, Generated, Model, Request, Response, Score

CHARACTERS_PER_TOKEN = 4
"""Rule of thumb for prompts that haven't been tokenized."""

MAX_PRICE = 10**9
"""The highest plausible price of a million tokens."""


@dataclass(frozen=True, slots=True)
class Price:
    """An endpoint's price per million tokens read and written, in the user's currency."""

    read: float
    written: float

    def __post_init__(self) -> None:
        if not (0 <= self.read <= MAX_PRICE and 0 <= self.written <= MAX_PRICE):
            raise InputError(
                f"the price is {self.read} and {self.written}",
                expected=f"numbers that are not negative, {MAX_PRICE:,} at most",
            )

    def of(self, prompt_tokens: int, new_tokens: int) -> float:
        return (self.read * prompt_tokens + self.written * new_tokens) / 1e6


FREE = Price(0.0, 0.0)


def price_for(card: Card, price: Price | None) -> Price | None:
    """Return the price of a model's calls: the one that was set, zero on this machine, unknown elsewhere."""
    return price or (FREE if not card.endpoint else None)


@dataclass(frozen=True, slots=True)
class JobLimits:
    """Limits of a job. None means unlimited."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None

    def less(self, tally: JobTally) -> JobLimits:
        """Subtract what a job has spent from the limits."""
        return JobLimits(
            None if self.calls is None else max(0, self.calls - tally.calls),
            None if self.tokens is None else max(0, self.tokens - tally.prompt_tokens - tally.new_tokens),
            None if self.cost is None else max(0.0, self.cost - (tally.cost or 0.0)),
        )

    def check(self, price: Price | None) -> None:
        """Reject limits that can't be enforced."""
        if self.cost is not None and price is None:
            raise InputError(
                "the cost is limited, but the endpoint's price is unknown",
                remedy="set its price: --price IN/OUT, per million tokens",
            )
        if not all(limit is None or limit >= 0 for limit in (self.calls, self.tokens, self.cost)):
            raise InputError("a limit is not a number, or negative", expected="0 or more")


class TokenEstimate(NamedTuple):
    """Tokens that a call may take."""

    read: int
    written: int


NO_TOKENS = TokenEstimate(0, 0)


def estimate_tokens(request: Request, model: Model) -> TokenEstimate:
    """Estimate tokens without a call: the prompt by a rule of thumb, the output at its maximum."""
    characters = sum(len(message.content) for message in request.prompt.messages)
    new = (
        len(request.continuation) // CHARACTERS_PER_TOKEN + 1
        if isinstance(request, Score)
        else _max_new_tokens(request, model)
    )
    return TokenEstimate(characters // CHARACTERS_PER_TOKEN + 8, new)


def upper_bound_tokens(request: Request, model: Model) -> TokenEstimate:
    """Upper bound on a call's tokens: counted by a local model, otherwise one token per byte plus some for a template.

    An endpoint may need one call for the likeliest tokens, and one for each label that isn't among them.
    """
    read = model.count(request.prompt) if not model.card.endpoint else None
    if read is None:
        texts = [message.content for message in request.prompt.messages]
        read = sum(len(text.encode("utf-8", "replace")) for text in texts) + 16 * len(texts)
        if isinstance(request, Choose):
            read *= 1 + len(request.labels)
    return TokenEstimate(read, _max_new_tokens(request, model))


def unreported_tokens(request: Request, response: Response, model: Model) -> TokenEstimate | None:
    """Upper estimate of a call's tokens if its endpoint doesn't report them, otherwise None.

    The prompt counts as in `upper_bound_tokens`. The reply counts one token per byte, or its maximum if it was cut off.
    """
    read, written = response.usage.prompt_tokens, response.usage.new_tokens
    no_read = not read and any(message.content.strip() for message in request.prompt.messages)
    no_written = isinstance(response, Generated) and response.tokens_written is None
    if not no_read and not no_written:
        return None
    highest = upper_bound_tokens(request, model)
    if no_written and isinstance(response, Generated):
        size = sum(len(output.text.encode("utf-8", "replace")) for output in response.outputs)
        cut_off = any(output.finish == LENGTH for output in response.outputs)
        written = highest.written if cut_off else min(size, highest.written)
    return TokenEstimate(highest.read if no_read else read, written)


def _max_new_tokens(request: Request, model: Model) -> int:
    """The most tokens that a call writes. A model may reason on top of a text, and draw samples to choose a label."""
    if isinstance(request, Generate):
        return (request.max_tokens + int(getattr(model, "reasoning_tokens", 0))) * request.n
    if isinstance(request, Choose):
        return int(getattr(model, "choice_tokens", 1))
    return len(request.continuation.encode("utf-8", "replace"))


@dataclass
class JobTally:
    """Progress and cost of a job. Calls under way count at their upper bound."""

    price: Price | None
    asked: int = 0
    """Requests seen, including repeats."""
    distinct: int = 0
    cached: int = 0
    done: int = 0
    failed: int = 0
    not_asked: int = 0
    """Requests left over because the budget was spent."""
    prompt_tokens: int = 0
    new_tokens: int = 0
    estimated: int = 0
    """Calls with estimated tokens, because the endpoint doesn't report them."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Reasons of failed calls."""
    last_failure: str = ""
    """Detail of the last failed call."""
    flying: int = 0
    flying_most: TokenEstimate = NO_TOKENS

    @property
    def calls(self) -> int:
        return self.done + self.failed

    @property
    def cost(self) -> float | None:
        """Cost so far, or None if the price is unknown."""
        return None if self.price is None else self.price.of(self.prompt_tokens, self.new_tokens)

    @property
    def failures(self) -> str:
        """How many calls failed for which reason, and the detail of the last one."""
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in self.reasons.most_common())
        return f"{reasons} ({self.last_failure})" if self.last_failure else reasons

    def would_break(self, limits: JobLimits, more: TokenEstimate) -> str:
        """Return the limit that another call might break, or an empty text."""
        if limits.calls is not None and self.calls + self.flying + 1 > limits.calls:
            return format_count(limits.calls, "call")
        read = self.prompt_tokens + self.flying_most.read + more.read
        written = self.new_tokens + self.flying_most.written + more.written
        if limits.tokens is not None and read + written > limits.tokens:
            return format_count(limits.tokens, "token")
        if limits.cost is not None and self.price is not None and self.price.of(read, written) > limits.cost:
            return f"a cost of {limits.cost:g}"
        return ""

    def start(self, most: TokenEstimate) -> None:
        """Count a call about to start, at its upper bound."""
        self.flying += 1
        self.flying_most = TokenEstimate(self.flying_most.read + most.read, self.flying_most.written + most.written)

    def end(self, most: TokenEstimate, outcome: Response | Failure, estimated: TokenEstimate | None = None) -> None:
        """Count a finished call, with the tokens it took, and its failure.

        ``estimated``: its tokens, if the endpoint doesn't report them.
        """
        self.flying -= 1
        self.flying_most = TokenEstimate(self.flying_most.read - most.read, self.flying_most.written - most.written)
        if isinstance(outcome, Failure):
            self.failed += 1
            self.reasons[outcome.reason] += 1
            self.last_failure = outcome.detail
        else:
            self.done += 1
            self.estimated += estimated is not None
        read, written = estimated or outcome.usage.bounded()[:2]
        self.prompt_tokens += read
        self.new_tokens += written


class CallPlan(NamedTuple):
    """Calls that a job would make, planned without calling the model."""

    asked: int
    distinct: int
    cached: int
    prompt_tokens: int
    most_new_tokens: int
    price: Price | None

    @property
    def missing(self) -> int:
        return self.distinct - self.cached

    def __str__(self) -> str:
        if self.price is None:
            money = "cost unknown (no price given)"
        elif self.price == FREE:
            money = "free"
        else:
            money = f"cost at most about {self.price.of(self.prompt_tokens, self.most_new_tokens):.4g}"
        return (
            f"{format_count(self.asked, 'request')}, {self.distinct:,} distinct, {self.cached:,} answered already; "
            f"{format_count(self.missing, 'call')} to make, about {self.prompt_tokens:,} tokens to read and at most "
            f"{self.most_new_tokens:,} to write; {money}"
        )
