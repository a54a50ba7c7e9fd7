"""Reasoning that a model writes in front of its answer, between ``<think>`` and ``</think>``: no part of the answer."""

from __future__ import annotations

from ragworth.llm.contract import LENGTH, Failure, Output, Trace

OPEN, CLOSE = "<think>", "</think>"

ONLY_REASONING = Failure(
    "no-text",
    "only reasoning came, and no answer: allow longer outputs, or turn reasoning off at the server or in the template",
    retry=False,
)


def drop_reasoning(output: Output) -> Output | Failure:
    """An output without the reasoning in front of it; a failure if nothing follows.

    Some templates end with ``<think>``, so that only its end is in the output, on a line of its own.
    """
    opened = output.text.lstrip().startswith(OPEN)
    thought, closed, answer = output.text.partition(CLOSE)
    if not opened and (not closed or OPEN in thought or not thought.endswith("\n")):
        return output
    if not closed or (not answer.strip() and output.finish == LENGTH):
        return ONLY_REASONING
    trace = output.trace if output.trace is None else _after_reasoning(output.trace)
    if output.trace is not None and trace is None:
        return Failure("no-logprobs", "the tokens don't show where the reasoning ends", retry=False)
    return output._replace(text=answer.lstrip(), trace=trace)


def _after_reasoning(trace: Trace) -> Trace | None:
    """The tokens after the end of the reasoning and the blanks that follow; None if they don't show it."""
    text = ""
    for at, token in enumerate(trace.tokens):
        text += token
        _, closed, rest = text[-len(CLOSE) - len(token) :].partition(CLOSE)
        if closed and not rest.strip():
            start = at + 1
            while start < len(trace.tokens) and not trace.tokens[start].strip():
                start += 1
            return trace.part(start)
        if closed:
            return None
    return None
