"""``setwise``: a language model repeatedly picks the best of a few passages to sort out the first k.

Paper: Zhuang et al., A Setwise Approach for Effective and Highly Efficient Zero-shot Ranking with Large Language
Models. With c passages per prompt, each node of a heap has c − 1 children, and the root is removed k times: about
n / (c − 1) calls to build it, and at most its height, log n / log (c − 1), per removal. Bubble sort lets the best rise
from the end to the front k times: ⌈(m − 1) / (c − 1)⌉ calls for the m remaining passages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from string import ascii_uppercase
from typing import ClassVar

from ragworth.calls.programs import NoValue, Program
from ragworth.errors import InputError
from ragworth.llm.contract import Card
from ragworth.retrieval.rerankers.contract import CUT_REMARK, RerankedList, RerankInput
from ragworth.retrieval.rerankers.llm_reranker import LlmReranker, PromptMaterials, truncate_words
from ragworth.tasks.labels import LabelResult, LabelScale, ask_label, choose_label_method
from ragworth.tasks.options import option as named


@dataclass(frozen=True)
class Setwise(LlmReranker):
    """The k best passages, sorted by picking the best of a few; the others follow in their previous order.

    Passages are shown in their previous order, so a model that sees no difference keeps it. Uses the probabilities of
    the letters if the model returns them, else the letter that it writes.
    """

    k: int = named(10, "how many of the best passages to sort", low=1)
    compared: int = named(4, "passages shown to the model at a time", low=2, high=26)
    sort: str = named("heap", "sorting algorithm", choices=("heap", "bubble"))
    words: int = named(300, "maximum words shown of a passage; 0 for all", low=0, high=100_000)

    kind: ClassVar[str] = "setwise"
    title: ClassVar[str] = "retrieved passages, by a model that repeatedly picks the best of a few"
    unit: ClassVar[str] = "choice"
    scored: ClassVar[bool] = False
    fate: ClassVar[str] = "went to the passage that came first"

    def check(self) -> None:
        if self.sort == "heap" and self.compared < 3:
            raise InputError("setwise: a heap of pairs is a list", expected='compared=3 or more, or sort="bubble"')

    def check_abilities(self, card: Card) -> None:
        choose_label_method(card, "auto", "setwise")

    def prompts(self, card: Card) -> tuple[str, ...]:
        return ("rerank-best",)

    def max_calls(self, passages: int) -> int:
        return (_max_heap_calls if self.sort == "heap" else _max_bubble_calls)(passages, self.k, self.compared)

    def reorder(self, head: RerankInput, materials: PromptMaterials) -> Program[RerankedList]:
        sorting = PassageSort(self, head, materials)
        first = yield from (sorting.heap() if self.sort == "heap" else sorting.bubble())
        taken = set(first)
        order = [*first, *(each for each in head.passages if each not in taken)]
        return RerankedList(order, {}, sorting.done, sorting.failed, sorting.remarks)


@dataclass
class PassageSort:
    """State of sorting one list."""

    step: Setwise
    head: RerankInput
    materials: PromptMaterials
    done: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    remarks: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.place = {passage: place for place, passage in enumerate(self.head.passages)}
        # A passage is shown many times, but truncated once.
        self.shown = cache(lambda each: truncate_words(self.materials.texts.passage(each), self.step.words))

    def heap(self) -> Program[list[str]]:
        """The first k, from a heap with the best passage on top."""
        heap = list(self.head.passages)
        for root in reversed(range(_parent_count(len(heap), self.step.compared))):
            yield from self._sink(heap, root)
        first: list[str] = []
        while heap and len(first) < self.step.k:
            first.append(heap[0])
            last = heap.pop()
            if heap and len(first) < self.step.k:
                heap[0] = last
                yield from self._sink(heap, 0)
        return first

    def _sink(self, heap: list[str], root: int) -> Program[None]:
        """Let a passage sink until it is better than its children."""
        below = self.step.compared - 1
        while (child := root * below + 1) < len(heap):
            some = [root, *range(child, min(child + below, len(heap)))]
            best = yield from self._best([heap[each] for each in some])
            at = next(each for each in some if heap[each] == best)
            if at == root:
                return
            heap[root], heap[at] = heap[at], heap[root]
            root = at

    def bubble(self) -> Program[list[str]]:
        """The first k: the best rises to the front, then the best of the others, …"""
        order = list(self.head.passages)
        for front in range(min(self.step.k, len(order))):
            end = len(order)
            while end - front > 1:
                start = max(front, end - self.step.compared)
                best = yield from self._best(order[start:end])
                order.remove(best)
                order.insert(start, best)
                end = start + 1
        return order[: self.step.k]

    def _best(self, passages: Sequence[str]) -> Program[str]:
        """The best of a few; the one that came first if the model doesn't say."""
        some = sorted(passages, key=self.place.__getitem__)
        letters = tuple(ascii_uppercase[: len(some)])
        scale = LabelScale(letters, tuple(map(float, range(len(some)))))
        try:
            result: LabelResult = yield from self._ask_label(some, scale)
        except NoValue as none:
            self.failed[none.status] += 1
            return some[0]
        self.done += 1
        self.remarks += Counter({CUT_REMARK: 1} if result.usage.cut else {})
        return some[letters.index(result.label)]

    def _ask_label(self, passages: Sequence[str], scale: LabelScale) -> Program[LabelResult]:
        query, card = self.materials.texts.query(self.head.query), self.materials.card
        shown = [
            {"letter": letter, "text": self.shown(each)} for letter, each in zip(scale.labels, passages, strict=True)
        ]
        prompt = self.materials.templates["rerank-best"].render({"query": query, "passages": shown})
        return (yield from ask_label(prompt, scale, card, choose_label_method(card, "auto", "setwise")))


def _parent_count(passages: int, compared: int) -> int:
    """Number of heap nodes with children."""
    return (passages + compared - 3) // (compared - 1) if passages > 1 else 0


def _levels_below(passages: int, compared: int, root: int = 0) -> int:
    """Number of heap levels below a node."""
    levels = 0
    while (root := root * (compared - 1) + 1) < passages:
        levels += 1
    return levels


def _max_heap_calls(passages: int, k: int, compared: int) -> int:
    build_calls = sum(_levels_below(passages, compared, root) for root in range(_parent_count(passages, compared)))
    return build_calls + sum(_levels_below(passages - out, compared) for out in range(1, min(k, passages)))


def _max_bubble_calls(passages: int, k: int, compared: int) -> int:
    left = (passages - front for front in range(min(k, passages)))
    return sum((some + compared - 3) // (compared - 1) for some in left if some > 1)
