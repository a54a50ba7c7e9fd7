"""Base class of re-rankers that call a language model through the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeAlias

from ragworth import prompts
from ragworth.calls.programs import NoValue, Program, combine_programs
from ragworth.calls.serialization import model_digest
from ragworth.errors import PromptError, format_list
from ragworth.llm.contract import Card, Usage
from ragworth.prompts.template import Template
from ragworth.retrieval.contract import StepContext
from ragworth.retrieval.rerankers.contract import RerankedList, Reranker, RerankInput, order_by_score
from ragworth.retrieval.units import build_cutter
from ragworth.tasks.labels import NO_LABELS
from ragworth.tasks.options import option as named
from ragworth.tasks.text_lookup import TextLookup

SLOTS = {
    "rerank-yes": ("query", "passage"),
    "rerank-question": ("passage",),
    "rerank-list": ("query", "passages"),
}
"""Slots that each prompt must have."""


class PassageScore(NamedTuple):
    """A model's score of a passage, the higher the better."""

    value: float
    usage: Usage


class PromptMaterials(NamedTuple):
    """Inputs of a step's model calls."""

    texts: TextLookup
    card: Card
    templates: dict[str, Template]


JudgePassage: TypeAlias = Callable[[str, str], Program[PassageScore]]
"""Judges a passage, from the ids of a query and a passage."""


@dataclass(frozen=True)
class LlmReranker(Reranker):
    """A re-ranker that calls a model about each list, in one or more rounds."""

    model: str = named("", "model to ask; by default the evaluation's")

    asks_model: ClassVar[bool] = True

    def models(self) -> tuple[str, ...]:
        """The models it calls."""
        return (self.model,)

    def check_abilities(self, card: Card) -> None:
        """Reject a model that lacks an ability."""
        raise NotImplementedError

    def prompts(self, card: Card) -> tuple[str, ...]:
        """Names of the prompts for this model."""
        raise NotImplementedError

    def max_calls(self, passages: int) -> int:
        """Maximum calls for a list of so many passages."""
        raise NotImplementedError

    def reorder(self, head: RerankInput, materials: PromptMaterials) -> Program[RerankedList]:
        """Reorder one list."""
        raise NotImplementedError

    def problems(self, context: StepContext) -> list[str]:
        found = super().problems(context)
        if context.model_access is None:
            return [*found, f"{self.kind} needs a model, but there is none"]
        for model in self.models():
            self.check_abilities(context.model_access.card(model))
        self.templates(context)
        return found

    def templates(self, context: StepContext) -> dict[str, Template]:
        """All its prompts."""
        assert context.model_access is not None
        cards = [context.model_access.card(model) for model in self.models()]
        return {
            name: load_template(name, context.model_access.prompts, card.prompts)
            for card in cards
            for name in self.prompts(card)
        }

    def sources(self, context: StepContext) -> tuple[str, ...]:
        if context.model_access is None:
            return ()
        cards = [context.model_access.card(model) for model in self.models()]
        models = [f"{model_digest(card).hex()} {card.declining}" for card in cards]
        return (*models, *(f"{name}@{each.version}" for name, each in self.templates(context).items()))

    def rerank(
        self, heads: Sequence[RerankInput], texts: TextLookup, context: StepContext
    ) -> Sequence[RerankedList | None]:
        assert context.model_access is not None
        templates = self.templates(context)
        max_calls = sum(self.max_calls(len(head.passages)) for head in heads)

        def work(card: Card) -> list[Program[RerankedList]]:
            self.check_abilities(card)
            materials = PromptMaterials(texts, card, templates)
            return [self.reorder(head, materials) for head in heads]

        found = context.model_access.ask(self.model, work, step=str(self), max_calls=max_calls)
        return [
            one if not isinstance(one, NoValue) else RerankedList(head.passages, failed=Counter({one.status: 1}))
            for head, one in zip(heads, found, strict=True)
        ]


def judge_each(head: RerankInput, judge: JudgePassage) -> Program[RerankedList]:
    """Order a list by judging each passage alone, all in one round."""
    found = yield from combine_programs([judge(head.query, passage) for passage in head.passages])
    pairs = list(zip(head.passages, found, strict=True))
    scores = {passage: one.value for passage, one in pairs if not isinstance(one, NoValue)}
    failed = Counter(one.status for _, one in pairs if isinstance(one, NoValue))
    cut = sum(bool(one.usage.cut) for _, one in pairs if not isinstance(one, NoValue))
    return order_by_score(head.passages, scores, failed, cut)


def load_template(name: str, folder: Path | None, prompt_set: str) -> Template:
    """Load a prompt, preferably the user's own; missing and unknown slots are errors."""
    template = prompts.load_prompt(name, folder, prompt_set)
    NO_LABELS.for_prompt(template)
    known = SLOTS.get(name, ())
    lacking = [slot for slot in known if slot not in template.names]
    unknown = [slot for slot, what in template.slots.items() if known and slot not in known and what != "optional list"]
    if lacking or unknown:
        words = [f"it has no slot for {format_list(lacking)}"] if lacking else []
        words += [f"there is no value for {format_list(unknown)}"] if unknown else []
        raise PromptError("; ".join(words), file=template.file, expected=f"slots for {', '.join(known)}")
    return template


def truncate_words(text: str, words: int) -> str:
    """The first words of a text, or characters in scripts without blanks; all of them for 0."""
    if not words:
        return text
    (units,) = build_cutter("words")([text])
    return text[: units[words].start if words < len(units) else None].rstrip()
