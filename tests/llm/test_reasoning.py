"""Reasoning in front of an answer is no part of it."""

from __future__ import annotations

import pytest

from ragworth.llm.contract import Failure, Output, Trace
from ragworth.llm.reasoning import ONLY_REASONING, drop_reasoning


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>\n12 or 36?\n</think>\n\n36 months", "36 months"),
        ("The table says 36.\n</think>\n\n36", "36"),  # the template ends with <think>
        ("<think></think>NO-RESPONSE", "NO-RESPONSE"),
        ("The tag </think> ends it", "The tag </think> ends it"),
        ("Write <think> first", "Write <think> first"),
        ("36", "36"),
    ],
)
def test_the_answer_is_what_follows(text: str, answer: str) -> None:
    assert drop_reasoning(Output(text, "stop")) == Output(answer, "stop")


@pytest.mark.parametrize("text", ["<think>\n12 or", "<think>\n12 or 36?\n</think>\n"])
def test_nothing_but_reasoning_is_no_answer(text: str) -> None:
    assert drop_reasoning(Output(text, "length")) is ONLY_REASONING


def test_tokens_are_those_of_the_answer() -> None:
    tokens = ("<think>", "hm", "</", "think>", "\n\n", "36", " months")
    logprobs = (-0.1, -0.2, -0.3, -0.4, -0.5, -0.6, -0.7)
    found = drop_reasoning(Output("".join(tokens), "stop", Trace(tokens, logprobs, ids=tuple(range(7)))))
    assert found == Output("36 months", "stop", Trace(("36", " months"), (-0.6, -0.7), None, None, (5, 6)))
    odd = Trace(("<think>hm", "</think>36", " months"), (-0.1, -0.2, -0.3))
    assert isinstance(drop_reasoning(Output("".join(odd.tokens), "stop", odd)), Failure)
