"""``listwise``: a language model writes the order of a window of passages, which slides from the end to the front.

Paper: Sun et al., Is ChatGPT Good at Search? Investigating Large Language Models as Re-Ranking Agents (RankGPT). A
list of n passages takes one call where n is at most the window w, else ⌈(n − w) / s⌉ + 1 with the step s.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.errors import InputError
from ragworth.llm.contract import Card, Generate, Generated, Prompt
from ragworth.retrieval.rerankers.contract import CUT_REMARK, RerankedList, RerankInput
from ragworth.retrieval.rerankers.llm_reranker import LlmReranker, PromptMaterials, truncate_words
from ragworth.tasks.findings import require_abilities
from ragworth.tasks.options import option as named

TOKENS_PER_NUMBER = 7
"""Most tokens that a number takes with its brackets and what stands between."""

_MARKED = re.compile(r"\[\s*(\d{1,9})\s*\]")
_BARE = re.compile(r"\s*\d{1,9}(?:\s*[>,]\s*\d{1,9})*\s*\.?\s*")

MISSING = "numbers missing in what the model wrote, which went to the end in the order before"
TWICE = "numbers there more than once, which count where they come first"
STRANGE = "numbers of no passage, which were dropped"


class Permutation(NamedTuple):
    """The new places of a window, each once, and what had to be mended."""

    places: list[int]
    remarks: Counter[str]


@dataclass(frozen=True)
class Listwise(LlmReranker):
    """Passages as a model orders them, a window at a time, from the end of the list to its front."""

    window: int = named(20, "passages that the model sees at a time", low=2, high=100)
    step: int = named(10, "places that the window moves at a time", low=1, high=100)
    words: int = named(300, "most words of a passage that are shown; 0 for all", low=0, high=100_000)

    kind: ClassVar[str] = "listwise"
    title: ClassVar[str] = "what was retrieved, as a model orders it, a window at a time"
    unit: ClassVar[str] = "window"
    scored: ClassVar[bool] = False
    fate: ClassVar[str] = "kept the order before"

    def check(self) -> None:
        if self.step >= self.window:
            raise InputError(
                f"listwise: the step ({self.step}) is not smaller than the window ({self.window})",
                expected="windows that overlap, so that passages can rise; half the window is usual",
            )

    def able(self, card: Card) -> None:
        require_abilities(card, ("generate",), "listwise")

    def prompts(self, card: Card) -> tuple[str, ...]:
        return ("rerank-list",)

    def most(self, passages: int) -> int:
        return len(list(sliding_windows(passages, self.window, self.step)))

    def ordered(self, head: RerankInput, desk: PromptMaterials) -> Program[RerankedList]:
        order = list(head.passages)
        done = 0
        failed: Counter[str] = Counter()
        remarks: Counter[str] = Counter()
        for start, end in sliding_windows(len(order), self.window, self.step):
            part = order[start:end]
            (outcome,) = yield [
                Generate(self._prompt(head.query, part, desk), max_tokens=TOKENS_PER_NUMBER * len(part) + 8)
            ]
            try:
                made = require_response(outcome, Generated)
                found = parse_permutation(made.outputs[0].text, len(part))
            except NoValue as none:
                failed[none.status] += 1
                continue
            done += 1
            remarks += found.remarks + Counter({CUT_REMARK: 1} if made.usage.cut else {})
            order[start:end] = [part[place] for place in found.places]
        return RerankedList(order, {}, done, failed, remarks)

    def _prompt(self, query: str, passages: Sequence[str], desk: PromptMaterials) -> Prompt:
        shown = [{"text": truncate_words(desk.texts.passage(each), self.words)} for each in passages]
        return desk.templates["rerank-list"].render({"query": desk.texts.query(query), "passages": shown})


def sliding_windows(passages: int, size: int, step: int) -> Iterator[tuple[int, int]]:
    """Where windows begin and end, the last passages first; none where there is nothing to order."""
    end = passages
    while end > 1:
        start = max(0, end - size)
        yield start, end
        if not start:
            return
        end -= step


def parse_permutation(text: str, passages: int) -> Permutation:
    """The order that a model wrote: numbers in brackets, or nothing but numbers with > or commas between.

    A number counts where it comes first; one that belongs to no passage is dropped; those that are missing follow in
    the order before. A text without any number of a passage gives none.
    """
    written = _MARKED.findall(text) or (re.findall(r"\d+", text) if _BARE.fullmatch(text) else [])
    places: list[int] = []
    remarks: Counter[str] = Counter()
    for number in map(int, written):
        if not 1 <= number <= passages:
            remarks[STRANGE] += 1
        elif number - 1 in places:
            remarks[TWICE] += 1
        else:
            places.append(number - 1)
    if not places:
        raise NoValue("unparsable", "expected an order such as [2] > [1]", text)
    missing = [place for place in range(passages) if place not in places]
    if missing:
        remarks[MISSING] += len(missing)
    return Permutation(places + missing, remarks)
