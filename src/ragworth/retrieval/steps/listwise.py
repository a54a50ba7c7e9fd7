"""``listwise``: a language model orders a window of passages, which slides from the end to the front.

Paper: Sun et al., Is ChatGPT Good at Search? Investigating Large Language Models as Re-Ranking Agents (RankGPT). A
list of n passages takes one call if n is at most the window w, else ⌈(n − w) / s⌉ + 1 with the step s.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.core.errors import InputError, PromptError, format_list
from ragworth.judging.contract import option as named
from ragworth.judging.findings import require_abilities
from ragworth.judging.labels import NO_LABELS
from ragworth.judging.text_lookup import TextLookup
from ragworth.llm import prompts
from ragworth.llm.contract import LENGTH, Card, Generate, Generated, Prompt
from ragworth.llm.prompts.template import Template
from ragworth.retrieval.chunks import build_cutter
from ragworth.retrieval.pipeline import StepContext
from ragworth.retrieval.reranker import CUT_REMARK, LlmReranker, RerankedList, RerankInput

PROMPT = "rerank-list"
SLOTS = ("query", "passages")
"""Slots that the prompt must have."""

TOKENS_PER_NUMBER = 7
"""Maximum tokens of a number with its brackets and separator."""

_MARKED = re.compile(r"\[\s*(\d{1,9})\s*\]")
_BARE = re.compile(r"\s*\d{1,9}(?:\s*[>,]\s*\d{1,9})*\s*\.?\s*")

MISSING = "numbers missing in the output, whose passages went to the end in their previous order"
TWICE = "repeated numbers, which count where they come first"
STRANGE = "numbers without a passage, which were dropped"


class Permutation(NamedTuple):
    """The new order of a window, each position once, and what had to be fixed."""

    places: list[int]
    remarks: Counter[str]


@dataclass(frozen=True)
class Listwise(LlmReranker):
    """Passages in a model's order, a window at a time, from the end of the list to its front."""

    window: int = named(20, "passages shown to the model at a time", low=2, high=100)
    step: int = named(10, "positions that the window moves at a time", low=1, high=100)
    words: int = named(300, "maximum words shown of a passage; 0 for all", low=0, high=100_000)

    kind: ClassVar[str] = "listwise"
    title: ClassVar[str] = "retrieved passages, ordered by a model, a window at a time"
    unit: ClassVar[str] = "window"
    fate: ClassVar[str] = "kept their previous order"

    def check(self) -> None:
        if self.step >= self.window:
            raise InputError(
                f"listwise: the step ({self.step}) is not smaller than the window ({self.window})",
                expected="windows that overlap, so that passages can rise; half the window is usual",
            )

    def check_abilities(self, card: Card) -> None:
        require_abilities(card, ("generate",), "listwise")

    def templates(self, context: StepContext) -> dict[str, Template]:
        assert context.model_access is not None
        card = context.model_access.card(self.model)
        return {PROMPT: load_template(context.model_access.prompts, card.prompts)}

    def max_calls(self, passages: int) -> int:
        return len(list(sliding_windows(passages, self.window, self.step)))

    def rerank(
        self, heads: Sequence[RerankInput], texts: TextLookup, context: StepContext
    ) -> Sequence[RerankedList | None]:
        assert context.model_access is not None
        template = self.templates(context)[PROMPT]
        max_calls = sum(self.max_calls(len(head.passages)) for head in heads)

        def work(card: Card) -> list[Program[RerankedList]]:
            self.check_abilities(card)
            return [self._reorder(head, texts, template) for head in heads]

        outcomes = context.model_access.ask(self.model, work, step=str(self), max_calls=max_calls)
        return [
            RerankedList(head.passages, failed=Counter({outcome.status: 1}))
            if isinstance(outcome, NoValue)
            else outcome
            for head, outcome in zip(heads, outcomes, strict=True)
        ]

    def _reorder(self, head: RerankInput, texts: TextLookup, template: Template) -> Program[RerankedList]:
        order = list(head.passages)
        done = 0
        failed: Counter[str] = Counter()
        remarks: Counter[str] = Counter()
        for start, end in sliding_windows(len(order), self.window, self.step):
            part = order[start:end]
            (outcome,) = yield [
                Generate(self._prompt(head.query, part, texts, template), max_tokens=TOKENS_PER_NUMBER * len(part) + 8)
            ]
            try:
                generated = require_response(outcome, Generated)
                output = generated.outputs[0]
                found = parse_permutation(output.text, len(part), cut_off=output.finish == LENGTH)
            except NoValue as none:
                failed[none.status] += 1
                continue
            done += 1
            remarks += found.remarks + Counter({CUT_REMARK: 1} if generated.usage.cut else {})
            order[start:end] = [part[place] for place in found.places]
        return RerankedList(order, {}, done, failed, remarks)

    def _prompt(self, query: str, passages: Sequence[str], texts: TextLookup, template: Template) -> Prompt:
        shown = [{"text": truncate_words(texts.passage(each), self.words)} for each in passages]
        return template.render({"query": texts.query(query), "passages": shown})


def load_template(folder: Path | None, prompt_set: str) -> Template:
    """Load the prompt, preferably the user's own; missing and unknown slots are errors."""
    template = prompts.load_prompt(PROMPT, folder, prompt_set)
    NO_LABELS.for_prompt(template)
    lacking = [slot for slot in SLOTS if slot not in template.names]
    unknown = [slot for slot, what in template.slots.items() if slot not in SLOTS and what != "optional list"]
    if lacking or unknown:
        words = [f"it has no slot for {format_list(lacking)}"] if lacking else []
        words += [f"there is no value for {format_list(unknown)}"] if unknown else []
        raise PromptError("; ".join(words), file=template.file, expected=f"slots for {', '.join(SLOTS)}")
    return template


def truncate_words(text: str, words: int) -> str:
    """The first words of a text, or characters in scripts without blanks; all of them for 0."""
    if not words:
        return text
    (units,) = build_cutter("words")([text])
    return text[: units[words].start if words < len(units) else None].rstrip()


def sliding_windows(passages: int, size: int, step: int) -> Iterator[tuple[int, int]]:
    """Start and end of each window, last passages first; none if there is nothing to order."""
    end = passages
    while end > 1:
        start = max(0, end - size)
        yield start, end
        if not start:
            return
        end -= step


def parse_permutation(text: str, passages: int, *, cut_off: bool = False) -> Permutation:
    """Parse the order that a model wrote: numbers in brackets, or only numbers separated by > or commas.

    A repeated number counts where it comes first; unknown numbers are dropped; missing ones follow in their previous
    order. A text without any known number has no value. ``cut_off``: the text ended at its greatest length, so its last
    number may lack digits if it has no bracket.
    """
    bare = re.findall(r"\d+", text) if _BARE.fullmatch(text) else []
    written = _MARKED.findall(text) or (bare[:-1] if cut_off else bare)
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
