"""A small world to judge, and scripts that answer by what stands in the prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from ragworth.data.collection import Collection
from ragworth.judging.judge import JudgingResult
from ragworth.llm.contract import Failure, Generate, Generated, Output, Request, Score, Trace, Usage
from ragworth.llm.scripted import Scripted, ScriptedReply

PASSAGES = {
    "p1": "Ann Lee built the mill.",
    "p2": "The mill was sold twice.",
    "p3": "Bread is baked at night.",
    "p4": "A mill grinds corn.",
}
QUERY = "Who built it?"
QUESTIONS = {"a": "Who was it?", "b": "When was it?"}

WORLD = Collection.of(
    queries={"query": ["q1"], "text": [QUERY]},
    passages={"passage": list(PASSAGES), "text": list(PASSAGES.values())},
    answers={"query": ["q1", "q1"], "text": ["Ann", "Ann Lee"]},
    subquestions={"query": ["q1"] * 2, "subquestion": list(QUESTIONS), "text": list(QUESTIONS.values())},
)
RUN = {"q1": {"p1": 4.0, "p2": 3.0, "p3": 2.0, "p4": 1.0}}


def by_text(replies: Mapping[str, ScriptedReply], otherwise: ScriptedReply) -> Callable[[Request], ScriptedReply]:
    """A script that gives the reply of the first of these texts that the prompt's last message holds."""

    def script(request: Request) -> ScriptedReply:
        last = request.prompt.messages[-1].content
        return next((reply for text, reply in replies.items() if text in last), otherwise)

    return script


def by_passage(
    replies: Mapping[str, ScriptedReply], otherwise: ScriptedReply = ""
) -> Callable[[Request], ScriptedReply]:
    return by_text({PASSAGES[name]: reply for name, reply in replies.items()}, otherwise)


def column(found: JudgingResult, name: str, *keys: str) -> dict[Any, Any]:
    """A column by passage, or by other keys."""
    wanted = keys or ("passage",)
    return {row[: len(wanted)] if len(wanted) > 1 else row[0]: row[-1] for row in found.frame[[*wanted, name]].rows()}


def trace(logprobs: Sequence[float], entropies: Sequence[float]) -> Trace:
    return Trace(tuple(f"t{n} " for n in range(len(logprobs))), tuple(logprobs), tuple(entropies))


def three(grounded: Trace, forced: Trace | Failure, alone: Trace | Failure) -> Callable[[Request], ScriptedReply]:
    """What confidence asks for: an answer with the context, the same one read without, and one of its own without."""

    def script(request: Request) -> ScriptedReply:
        if isinstance(request, Score):
            assert not request.prompt.passages
            return forced
        return grounded if request.prompt.passages else alone

    return script


class Sampler(Scripted):
    """A model whose samples differ: the texts of a list, over and over."""

    def __init__(self, texts: Sequence[str], **options: Any) -> None:
        super().__init__({}, **options)
        self.texts = list(texts)
        self.seen: list[Generate] = []

    def generate(self, requests: Sequence[Generate]) -> list[Generated | Failure]:
        self.calls += len(requests)
        self.seen += requests
        return [
            Generated(
                tuple(Output(self.texts[n % len(self.texts)], "stop") for n in range(request.n)), Usage(1, 1, 0.0)
            )
            for request in requests
        ]


def statuses(found: JudgingResult) -> list[str]:
    return found.frame["status"].to_list()


def values(frame: pl.DataFrame) -> list[float | None]:
    return frame["value"].to_list()
