"""Reasoning that a model writes in front of its answer, between marks such as ``<think>`` and ``</think>``: no part of
the answer. Nor are marks of the end of a turn that a server leaves in the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from ragworth.llm.contract import LENGTH, Failure, Output, Trace

ONLY_REASONING = Failure(
    "no-text",
    "only reasoning came, and no answer: allow longer outputs (the option reasoning_tokens of an endpoint), or turn "
    "reasoning off at the server or in the template",
    retry=False,
)

_PAIRS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
)
_HARMONY_OPENS = ("<|channel|>", "<|start|>")
_HARMONY_FINAL = re.compile(r"<\|channel\|>\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>")
_HARMONY_WITHOUT_MARKS = re.compile(r"\s*analysis(?=[\n\"'(A-Z]).*?assistantfinal", re.DOTALL)
"""The rest of harmony's channels if a server drops their marks."""
_MARKS = re.compile("|".join(re.escape(mark) for pair in _PAIRS for mark in pair) + r"|<\|\w+\|>(?:assistant|final)?")
_END = re.compile(
    r"<\|(?:return|end|call|im_end|eot_id|eom_id|endoftext|end_of_text|end_of_turn|end▁of▁sentence)\|>"
    r"|<｜end▁of▁sentence｜>|<end_of_turn>|</s>"
)
_AFTER_END = re.compile(r"\s*(?:\Z|<\||<｜|</s>|<end_of_turn>|<start_of_turn>|\[INST\])")
"""The text after the mark of an end: nothing, or a mark of the next turn. Otherwise, the text is about the mark."""
_STRUCK_OUT = "<s>"
"""In HTML, </s> ends a text that is struck out."""


def drop_reasoning(output: Output) -> Output | Failure:
    """An output without the reasoning in front of it and marks of the end; a failure if nothing follows.

    Some templates end with ``<think>``, so that only its end is in the output, on a line of its own. A server may take
    the reasoning out of the text, but not out of its tokens.
    """
    part = _answer_part(output.text)
    if part is None:
        return ONLY_REASONING
    text = output.text[slice(*part)]
    if part[0] and not text.strip() and output.finish == LENGTH:
        return ONLY_REASONING
    trace = output.trace if output.trace is None else _answer_trace(output.trace)
    if output.trace is not None and trace is None:
        return Failure("no-logprobs", "the tokens don't show where the reasoning ends", retry=False)
    return output._replace(text=text.lstrip() if part[0] else text, trace=trace)


def may_open_reasoning(token: str) -> bool:
    """True if the first token of an output may be the beginning of a mark."""
    start = token.strip()
    return bool(start) and any(mark.startswith(start) for mark in (*(pair[0] for pair in _PAIRS), *_HARMONY_OPENS))


def count_mark_tokens(tokens: Sequence[str]) -> int | None:
    """The number of tokens in front of an answer that are only marks and blanks: 0 without marks, None if the model
    reasons, or if no answer follows.
    """
    text = "".join(tokens)
    part = _answer_part(text)
    if part is None or _MARKS.sub("", text[: part[0]]).strip():
        return None
    return _skip_blank_tokens(tokens, _tokens_before(tokens, part[0])) if part[0] else 0


def _answer_part(text: str) -> tuple[int, int] | None:
    """Where the answer begins and ends; None if there is only reasoning."""
    start = _answer_start(text)
    if start is None:
        return None
    ends = (end.start() for end in _END.finditer(text, start) if _ends_turn(end, text, start))
    return start, next(ends, len(text))


def _ends_turn(end: re.Match[str], text: str, start: int) -> bool:
    if _AFTER_END.match(text, end.end()) is None:
        return False
    return end[0] != "</s>" or text.find(_STRUCK_OUT, start, end.start()) < 0


def _answer_start(text: str) -> int | None:
    bare = text.lstrip()
    if bare.startswith(_HARMONY_OPENS):
        finals = list(_HARMONY_FINAL.finditer(text))
        return finals[-1].end() if finals else None
    if dropped := _HARMONY_WITHOUT_MARKS.match(text):
        return dropped.end()
    for opens, closes in _PAIRS:
        close = text.find(closes)
        if bare.startswith(opens):
            return None if close < 0 else close + len(closes)
        if close > 0 and opens not in text[:close] and text[close - 1] == "\n":
            return close + len(closes)
    return 0


def _answer_trace(trace: Trace) -> Trace | None:
    """The tokens of the answer, without blanks in front of it; None if a token spans its beginning."""
    text = "".join(trace.tokens)
    part = _answer_part(text)
    if part is None:
        return None
    start = _tokens_before(trace.tokens, part[0])
    # Tokens without a text, such as parts of a character, stay at the end of an answer that has no mark there.
    end = _tokens_before(trace.tokens, part[1]) if part[1] < len(text) else None
    if part[0] == 0:
        return trace.part(0, end)
    if len("".join(trace.tokens[:start]).rstrip()) > part[0]:
        return None
    return trace.part(_skip_blank_tokens(trace.tokens, start), end)


def _tokens_before(tokens: Sequence[str], place: int) -> int:
    """The number of tokens that begin before a place in their text."""
    return sum(start < place for start in [0, *accumulate(map(len, tokens))][:-1])


def _skip_blank_tokens(tokens: Sequence[str], start: int) -> int:
    return next((at for at in range(start, len(tokens)) if tokens[at].strip()), len(tokens))
