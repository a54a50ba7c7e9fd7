"""What calls will cost, what they have cost, and where to stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ragworth.errors import InputError, counted
from ragworth.llm.contract import Card, Generate, Request, Usage

CHARACTERS_A_TOKEN = 4
"""Rule of thumb for prompts that nobody has counted yet."""


@dataclass(frozen=True, slots=True)
class Price:
    """What an endpoint charges for a million tokens read and a million written, in the user's currency."""

    read: float
    written: float

    def __post_init__(self) -> None:
        if not (0 <= self.read < float("inf") and 0 <= self.written < float("inf")):
            raise InputError(f"the price is {self.read} and {self.written}", expected="numbers that are not negative")

    def of(self, prompt_tokens: int, new_tokens: int) -> float:
        return (self.read * prompt_tokens + self.written * new_tokens) / 1e6


FREE = Price(0.0, 0.0)


def price_for(card: Card, given: Price | None) -> Price | None:
    """What calls of a model cost: as given; nothing on this machine; unknown elsewhere."""
    return given or (FREE if not card.endpoint else None)


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a job may go. None: as far as it takes."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None

    def check(self, price: Price | None) -> None:
        """Refuse limits that cannot be kept."""
        if self.cost is not None and price is None:
            raise InputError(
                "the cost is to be limited, but what the endpoint charges is not known",
                remedy="give its price: --price IN/OUT, per million tokens",
            )
        if any(limit is not None and limit < 0 for limit in (self.calls, self.tokens, self.cost)):
            raise InputError("a limit is negative", expected="0 or more")


class Estimate(NamedTuple):
    """What a call may take: its prompt by a rule of thumb, its output at the most it may be."""

    prompt_tokens: int
    new_tokens: int


def estimate(request: Request) -> Estimate:
    """A guess that needs no model."""
    characters = sum(len(message.content) for message in request.prompt.messages)
    new = request.max_tokens * request.n if isinstance(request, Generate) else 1
    return Estimate(characters // CHARACTERS_A_TOKEN + 8, new)


@dataclass
class Tally:
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
    flying: int = 0
    flying_tokens: int = 0
    flying_cost: float = 0.0

    @property
    def calls(self) -> int:
        return self.done + self.failed

    @property
    def cost(self) -> float | None:
        """What was spent, if anybody knows."""
        return None if self.price is None else self.price.of(self.prompt_tokens, self.new_tokens)

    def would_break(self, request: Request, limits: Limits) -> str:
        """Which limit one more call may break, in words; nothing if none."""
        guess = estimate(request)
        if limits.calls is not None and self.calls + self.flying + 1 > limits.calls:
            return f"{counted(limits.calls, 'call')}"
        tokens = self.prompt_tokens + self.new_tokens + self.flying_tokens + sum(guess)
        if limits.tokens is not None and tokens > limits.tokens:
            return f"{counted(limits.tokens, 'token')}"
        if limits.cost is not None and self.price is not None and self.cost is not None:
            cost = self.cost + self.flying_cost + self.price.of(*guess)
            if cost > limits.cost:
                return f"a cost of {limits.cost:g}"
        return ""

    def start(self, request: Request) -> None:
        """Count a call that is about to begin."""
        self._fly(request, 1)

    def end(self, request: Request, usage: Usage | None) -> None:
        """Count a call that has ended, with what it took; None if it failed."""
        self._fly(request, -1)
        if usage is None:
            self.failed += 1
        else:
            self.done += 1
            self.prompt_tokens += usage.prompt_tokens
            self.new_tokens += usage.new_tokens

    def _fly(self, request: Request, sign: int) -> None:
        guess = estimate(request)
        self.flying += sign
        self.flying_tokens += sign * sum(guess)
        if self.price is not None:
            self.flying_cost += sign * self.price.of(*guess)


class Plan(NamedTuple):
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
            f"{counted(self.asked, 'request')}, {self.distinct:,} distinct, {self.cached:,} answered already; "
            f"{counted(self.missing, 'call')} to make, about {self.prompt_tokens:,} tokens to read and at most "
            f"{self.most_new_tokens:,} to write; {money}"
        )
