"""What calls will cost, what they have cost, and where to stop."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from ragworth.errors import InputError, format_count
from ragworth.llm.contract import Card, Choose, Failure, Generate, Generated, Model, Request, Response, Score

CHARACTERS_PER_TOKEN = 4
"""Rule of thumb for prompts that nobody has counted yet."""

MAX_PRICE = 10**9
"""The highest price of a million tokens that is believed."""


@dataclass(frozen=True, slots=True)
class Price:
    """What an endpoint charges for a million tokens read and a million written, in the user's currency."""

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


def price_for(card: Card, given: Price | None) -> Price | None:
    """What calls of a model cost: as given; nothing on this machine; unknown elsewhere."""
    return given or (FREE if not card.endpoint else None)


@dataclass(frozen=True, slots=True)
class JobLimits:
    """How far a job may go. None: as far as it takes."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None

    def less(self, tally: JobTally) -> JobLimits:
        """What is left of the limits after a job has spent some of them."""
        return JobLimits(
            None if self.calls is None else max(0, self.calls - tally.calls),
            None if self.tokens is None else max(0, self.tokens - tally.prompt_tokens - tally.new_tokens),
            None if self.cost is None else max(0.0, self.cost - (tally.cost or 0.0)),
        )

    def check(self, price: Price | None) -> None:
        """Refuse limits that cannot be kept."""
        if self.cost is not None and price is None:
            raise InputError(
                "the cost is to be limited, but what the endpoint charges is not known",
                remedy="give its price: --price IN/OUT, per million tokens",
            )
        if not all(limit is None or limit >= 0 for limit in (self.calls, self.tokens, self.cost)):
            raise InputError("a limit is not a number, or negative", expected="0 or more")


class TokenEstimate(NamedTuple):
    """What a call may take."""

    read: int
    written: int


def estimate_tokens(request: Request, choice: int = 1) -> TokenEstimate:
    """A guess that needs no model: the prompt by a rule of thumb, the output at the most it may be.

    ``choice``: tokens that choosing among labels writes, which is more than one where samples are drawn.
    """
    characters = sum(len(message.content) for message in request.prompt.messages)
    new = (
        len(request.continuation) // CHARACTERS_PER_TOKEN + 1
        if isinstance(request, Score)
        else _max_new_tokens(request, choice)
    )
    return TokenEstimate(characters // CHARACTERS_PER_TOKEN + 8, new)


def upper_bound_tokens(request: Request, model: Model, choice: int) -> TokenEstimate:
    """What a call takes at most: counted by a model on this machine, else a token a byte and some for a template.

    An endpoint may have to be asked once for the likeliest tokens and once for each label that is not among them.
    """
    counted = model.count(request.prompt) if not model.card.endpoint else None
    if counted is None:
        texts = [message.content for message in request.prompt.messages]
        counted = sum(len(text.encode("utf-8", "replace")) for text in texts) + 16 * len(texts)
        if isinstance(request, Choose):
            counted *= 1 + len(request.labels)
    return TokenEstimate(counted, _max_new_tokens(request, choice))


def unreported_tokens(request: Request, response: Response, model: Model, choice: int) -> TokenEstimate | None:
    """Tokens of a call whose endpoint doesn't report them, as an upper estimate. None where they are known.

    The prompt counts as in `most`. The reply counts a token a byte, or everything it was allowed where it was cut off.
    """
    read, written = response.usage.prompt_tokens, response.usage.new_tokens
    no_read = not read and any(message.content.strip() for message in request.prompt.messages)
    no_written = not written and isinstance(response, Generated) and any(one.text for one in response.outputs)
    if not no_read and not no_written:
        return None
    highest = upper_bound_tokens(request, model, choice)
    if no_written and isinstance(response, Generated):
        texts = sum(len(one.text.encode("utf-8", "replace")) for one in response.outputs)
        cut_off = any(one.finish == "length" for one in response.outputs)
        written = highest.written if cut_off else min(texts, highest.written)
    return TokenEstimate(highest.read if no_read else read, written)


def _max_new_tokens(request: Request, choice: int) -> int:
    if isinstance(request, Generate):
        return request.max_tokens * request.n
    return choice if isinstance(request, Choose) else len(request.continuation.encode("utf-8", "replace"))


@dataclass
class JobTally:
    """What a job has come to so far. Calls under way are counted at their estimate."""

    price: Price | None
    asked: int = 0
    """Requests looked at, repeats included."""
    distinct: int = 0
    cached: int = 0
    done: int = 0
    failed: int = 0
    not_asked: int = 0
    """Requests left over because the budget was spent."""
    prompt_tokens: int = 0
    new_tokens: int = 0
    estimated: int = 0
    """Calls whose tokens are estimated, because the endpoint doesn't report them."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why calls failed."""
    flying: int = 0
    flying_most: TokenEstimate = field(default_factory=lambda: TokenEstimate(0, 0))

    @property
    def calls(self) -> int:
        return self.done + self.failed

    @property
    def cost(self) -> float | None:
        """What was spent, if anybody knows."""
        return None if self.price is None else self.price.of(self.prompt_tokens, self.new_tokens)

    def would_break(self, limits: JobLimits, more: TokenEstimate) -> str:
        """Which limit one more call may break, in words; nothing if none. Calls under way count at their most."""
        if limits.calls is not None and self.calls + self.flying + 1 > limits.calls:
            return format_count(limits.calls, "call")
        read = self.prompt_tokens + self.flying_most.read + more.read
        written = self.new_tokens + self.flying_most.written + more.written
        if limits.tokens is not None and read + written > limits.tokens:
            return format_count(limits.tokens, "token")
        if limits.cost is not None and self.price is not None and self.price.of(read, written) > limits.cost:
            return f"a cost of {limits.cost:g}"
        return ""

    def start(self, tokens: TokenEstimate) -> None:
        """Count a call that is about to begin, at the most it may take."""
        self.flying += 1
        self.flying_most = TokenEstimate(self.flying_most.read + tokens.read, self.flying_most.written + tokens.written)

    def end(self, tokens: TokenEstimate, outcome: Response | Failure, estimated: TokenEstimate | None = None) -> None:
        """Count a call that has ended, with what it took or why it failed.

        ``estimated``: its tokens, where the endpoint doesn't report them.
        """
        self.flying -= 1
        self.flying_most = TokenEstimate(self.flying_most.read - tokens.read, self.flying_most.written - tokens.written)
        if isinstance(outcome, Failure):
            self.failed += 1
            self.reasons[outcome.reason] += 1
        else:
            self.done += 1
            self.estimated += estimated is not None
            used = estimated or TokenEstimate(outcome.usage.prompt_tokens, outcome.usage.new_tokens)
            self.prompt_tokens += used.read
            self.new_tokens += used.written


class CallPlan(NamedTuple):
    """What a job would do: nothing was asked of the model."""

    asked: int
    distinct: int
    cached: int
    prompt_tokens: int
    most_new_tokens: int
    price: Price | None

    @property
    def missing(self) -> int:
        return self.distinct - self.cached

    @property
    def most_cost(self) -> float | None:
        """The most that the missing calls can cost, by the estimate of their tokens."""
        return None if self.price is None else self.price.of(self.prompt_tokens, self.most_new_tokens)

    def __str__(self) -> str:
        cost = self.most_cost
        money = "cost unknown (no price given)" if cost is None else f"cost at most about {cost:.4g}"
        return (
            f"{format_count(self.asked, 'request')}, {self.distinct:,} distinct, {self.cached:,} answered already; "
            f"{format_count(self.missing, 'call')} to make, about {self.prompt_tokens:,} tokens to read and at most "
            f"{self.most_new_tokens:,} to write; {money}"
        )
