"""Scripted readers whose answer has a known probability for any set of passages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ragworth import Collection
from ragworth.llm.contract import Generate, Request, Score, Trace
from ragworth.llm.scripted import Scripted, ScriptedReply

Value = Callable[[frozenset[int]], float]
"""The log-probability of the answer, by the numbers of the passages shown (from 0)."""

QUERY = "Who built the mill?"
ANSWER = "Ann Lee built the mill."


def passage_text(n: int) -> str:
    return f"This is the text of passage number {n:03d}."


def world(k: int, answers: tuple[str, ...] = (ANSWER,)) -> Collection:
    return Collection.of(
        queries={"query": ["q1"], "text": [QUERY]},
        passages={"passage": [f"p{n}" for n in range(k)], "text": [passage_text(n) for n in range(k)]},
        answers={"query": ["q1"] * len(answers), "text": list(answers)},
    )


def run(k: int) -> dict[str, dict[str, float]]:
    return {"q1": {f"p{n}": float(k - n) for n in range(k)}}


def shown(request: Request, k: int) -> frozenset[int]:
    text = request.prompt.messages[-1].content
    return frozenset(n for n in range(k) if passage_text(n) in text)


def reader(value: Value, k: int, answer: str = ANSWER, **more: Any) -> Scripted:
    """Writes the answer, and scores any text with ``value``, spread evenly over its tokens."""

    def script(request: Request) -> ScriptedReply:
        if isinstance(request, Generate):
            return answer
        assert isinstance(request, Score)
        words = request.continuation.split()
        each = value(shown(request, k)) / len(words)
        return Trace(tuple(words), (each,) * len(words))

    return Scripted(script, **more)


def additive(weights: list[float], base: float = -60.0) -> Value:
    return lambda numbers: base + sum(weights[n] for n in numbers)


def either(weight: float, twins: tuple[int, ...] = (0, 1), base: float = -60.0) -> Value:
    """Any one of the twins is enough; more of them add nothing."""
    return lambda numbers: base + (weight if numbers & set(twins) else 0.0)


def both(weight: float, needed: tuple[int, ...] = (0, 1), base: float = -60.0) -> Value:
    """Only all of them together help."""
    return lambda numbers: base + (weight if numbers >= set(needed) else 0.0)


def contradicted(weight: float, loss: float, base: float = -60.0) -> Value:
    """Passage 0 says it; passage 1 says the opposite, and takes ``loss`` away only where passage 0 is there."""
    return lambda numbers: base + (weight if 0 in numbers else 0.0) - (loss if {0, 1} <= numbers else 0.0)
