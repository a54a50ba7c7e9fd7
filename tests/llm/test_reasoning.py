"""Reasoning in front of an answer is no part of it."""

from __future__ import annotations

import pytest

from ragworth.llm.contract import Failure, Output, Trace
from ragworth.llm.reasoning import ONLY_REASONING, count_mark_tokens, drop_reasoning, may_open_reasoning


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>\n12 or 36?\n</think>\n\n36 months", "36 months"),
        ("The table says 36.\n</think>\n\n36", "36"),  # the template ends with <think>
        ("<think></think>NO-RESPONSE", "NO-RESPONSE"),
        ("The tag </think> ends it", "The tag </think> ends it"),
        ("Write <think> first", "Write <think> first"),
        ("36", "36"),
        ("<thinking>12?</thinking> 36", "36"),
        ("[THINK]12?[/THINK]36", "36"),
        ("◁think▷12?◁/think▷36", "36"),
        ("<|channel|>analysis<|message|>12?<|end|><|start|>assistant<|channel|>final<|message|>36<|return|>", "36"),
        ("<|channel|>final <|constrain|>json<|message|>{}", "{}"),
        ("<|start|>assistant<|channel|>final<|message|>36", "36"),
        ("analysisThe user wants 36.assistantfinal36 months", "36 months"),
        ("analysis of the assistantfinal", "analysis of the assistantfinal"),
        ("YES<|im_end|>", "YES"),
        ("YES</s>\n", "YES"),
        ("The mark </s> ends a turn", "The mark </s> ends a turn"),
        ("<think>hm</think>The mark </s> ends a turn", "The mark </s> ends a turn"),
        ("It costs <s>20</s>", "It costs <s>20</s>"),
        ("<think>hm</think>It costs <s>20</s> 15", "It costs <s>20</s> 15"),
        ("YES<|im_end|>\n<|im_start|>user\nNext?", "YES"),
    ],
)
def test_the_answer_is_what_follows(text: str, answer: str) -> None:
    assert drop_reasoning(Output(text, "stop")) == Output(answer, "stop")


@pytest.mark.parametrize(
    "text",
    [
        "<think>\n12 or",
        "<think>\n12 or 36?\n</think>\n",
        "<|channel|>analysis<|message|>12 or",
        "<|channel|>analysis<|message|>12?<|end|><|start|>assistant<|channel|>final<|message|>",
        "[THINK]12",
    ],
)
def test_nothing_but_reasoning_is_no_answer(text: str) -> None:
    assert drop_reasoning(Output(text, "length")) is ONLY_REASONING


def test_tokens_are_those_of_the_answer() -> None:
    tokens = ("<think>", "hm", "</", "think>", "\n\n", "36", " months")
    logprobs = (-0.1, -0.2, -0.3, -0.4, -0.5, -0.6, -0.7)
    found = drop_reasoning(Output("".join(tokens), "stop", Trace(tokens, logprobs, ids=tuple(range(7)))))
    assert found == Output("36 months", "stop", Trace(("36", " months"), (-0.6, -0.7), None, None, (5, 6)))
    odd = Trace(("<think>hm", "</think>36", " months"), (-0.1, -0.2, -0.3))
    assert isinstance(drop_reasoning(Output("".join(odd.tokens), "stop", odd)), Failure)


@pytest.mark.parametrize("before", [(), ("<think>", "</think>")])
def test_tokens_without_a_text_stay(before: tuple[str, ...]) -> None:
    tokens = (*before, "Yes ", "😀", "")  # parts of a character
    found = drop_reasoning(Output("".join(tokens), "stop", Trace(tokens, (-0.1,) * len(tokens))))
    assert found == Output("Yes 😀", "stop", Trace(("Yes ", "😀", ""), (-0.1,) * 3))


def test_tokens_of_reasoning_that_the_server_took_out_of_the_text() -> None:
    reasoning = ("<|channel|>", "analysis", "<|message|>", "hm", "<|end|>", "<|start|>", "assistant")
    tokens = (*reasoning, "<|channel|>", "final", "<|message|>", "36", "<|return|>")
    found = drop_reasoning(Output("36", "stop", Trace(tokens, tuple(-float(n) for n in range(12)))))
    assert found == Output("36", "stop", Trace(("36",), (-10.0,)))


@pytest.mark.parametrize(
    ("tokens", "number"),
    [
        (("YES", "."), 0),
        (("<think>", "\n\n", "</think>", "\n\n", "YES"), 4),
        (("<", "think", ">", "</", "think", ">", "YES"), 6),
        (("<|channel|>", "final", "<|message|>", "YES"), 3),
        (("<|start|>", "assistant", "<|channel|>", "final", "<|message|>", "YES"), 5),
        (("<think>", "\n", "Is", "</think>", "YES"), None),
        (("<|channel|>", "analysis", "<|message|>", "Is"), None),
        (("<think>", "Is"), None),
        (("<", "b", ">"), 0),
        ((), 0),
    ],
)
def test_marks_in_front_of_an_answer(tokens: tuple[str, ...], number: int | None) -> None:
    assert count_mark_tokens(tokens) == number
    assert may_open_reasoning(tokens[0]) == (tokens[0] != "YES") if tokens else not may_open_reasoning("")
