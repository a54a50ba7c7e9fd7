"""What calls cost, and where to stop."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.calls.budget import FREE, CallPlan, JobLimits, JobTally, Price, TokenEstimate, estimate_tokens, price_for
from ragworth.core.errors import InputError
from ragworth.llm.contract import Card, Choose, Failure, Generate, Generated, Prompt, PromptMessage, Usage
from ragworth.llm.scripted import Scripted

CARD = Card("openai", "m", endpoint="http://elsewhere")
MODEL = Scripted({})
MOST = TokenEstimate(18, 10)


def test_a_price_is_for_a_million_tokens() -> None:
    assert Price(0.15, 0.60).of(2_000_000, 500_000) == pytest.approx(0.30 + 0.30)
    assert Price(0.15, 0.60).of(0, 0) == 0


@pytest.mark.parametrize(("read", "written"), [(-1, 0), (0, -1), (math.nan, 0), (0, math.inf)])
def test_prices_that_cannot_be(read: float, written: float) -> None:
    with pytest.raises(InputError, match="the price is"):
        Price(read, written)


def test_prices_of_local_models_and_of_endpoints() -> None:
    assert price_for(replace(CARD, endpoint=""), None) == FREE
    assert price_for(CARD, None) is None
    assert price_for(CARD, FREE) == FREE
    assert price_for(replace(CARD, endpoint=""), Price(1, 2)) == Price(1, 2)


@pytest.mark.parametrize("limits", [{"calls": -1}, {"tokens": -1}, {"cost": -0.5}, {"cost": math.nan}], ids=str)
def test_limits_that_cannot_be_kept_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="negative"):
        JobLimits(**limits).check(FREE)
    with pytest.raises(InputError, match="price is unknown"):
        JobLimits(cost=0.0).check(None)


def test_a_failure_that_was_charged_counts() -> None:
    tally = JobTally(Price(1.0, 2.0))
    for failure in (Failure("malformed", usage=Usage(300, 20, 1.0)), Failure("timed-out")):
        tally.start(MOST)
        tally.end(MOST, failure)
    assert (tally.failed, tally.prompt_tokens, tally.new_tokens) == (2, 300, 20)
    assert tally.cost == pytest.approx(340e-6)
    assert tally.would_break(JobLimits(tokens=330), MOST) == "330 tokens"


def test_estimates() -> None:
    two = Prompt((PromptMessage("system", "x" * 10), PromptMessage("user", "x" * 30)))
    assert estimate_tokens(Generate(two, max_tokens=7, n=3), MODEL) == (18, 21)
    assert estimate_tokens(Choose(two, ("yes", "no")), MODEL) == (18, 1)


FAILED = Failure("server-error")
USAGES = st.builds(Usage, st.integers(0, 18), st.integers(0, 10), st.just(0.0))
OUTCOMES = st.just(FAILED) | st.builds(Generated, st.just(()), USAGES)


@given(st.lists(OUTCOMES, max_size=12), st.integers(0, 200), st.integers(0, 6))
def test_calls_under_way_never_break_a_limit(outcomes: list[Generated | Failure], tokens: int, calls: int) -> None:
    """Whatever comes of them, if none takes more than its estimate."""
    tally = JobTally(Price(1.0, 1.0))
    limits = JobLimits(calls, tokens, tokens / 2e6)
    begun: list[Generated | Failure] = []
    for outcome in outcomes:
        if not tally.would_break(limits, MOST):
            tally.start(MOST)
            begun.append(outcome)
    for outcome in begun:
        tally.end(MOST, outcome)
    assert tally.calls == len(begun) <= calls
    assert tally.prompt_tokens + tally.new_tokens <= tokens
    assert tally.cost is not None
    assert tally.cost <= tokens / 2e6 + 1e-15
    assert (tally.flying, *tally.flying_most) == (0, 0, 0)


def test_which_limit_would_break_is_said_in_words() -> None:
    tally = JobTally(Price(1.0, 1.0))
    assert tally.would_break(JobLimits(), MOST) == ""
    assert tally.would_break(JobLimits(calls=0), MOST) == "0 calls"
    assert tally.would_break(JobLimits(calls=1), MOST) == ""
    assert tally.would_break(JobLimits(tokens=27), MOST) == "27 tokens"
    assert tally.would_break(JobLimits(tokens=28), MOST) == ""
    assert tally.would_break(JobLimits(cost=27e-6), MOST) == "a cost of 2.7e-05"
    tally.start(MOST)
    assert tally.would_break(JobLimits(calls=1), MOST) == "1 call"
    tally.end(MOST, FAILED)
    assert tally.reasons == {"server-error": 1}
    assert (tally.failed, tally.calls, tally.prompt_tokens) == (1, 1, 0)


def test_costs_that_nobody_knows_are_none_and_not_0() -> None:
    tally = JobTally(None)
    tally.start(MOST)
    tally.end(MOST, Generated((), Usage(10, 5, 0.1)))
    assert tally.cost is None
    plan = CallPlan(3, 2, 1, 100, 10, None)
    assert str(plan) == (
        "3 requests, 2 distinct, 1 answered already; 1 call to make, about 100 tokens to read and at most 10 to "
        "write; cost unknown (no price given)"
    )
    assert str(plan._replace(price=Price(1000.0, 0.0))).endswith("cost at most about 0.1")
