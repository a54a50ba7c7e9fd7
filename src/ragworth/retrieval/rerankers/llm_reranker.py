"""Re-rankers that ask a language model: through the store, so that what was asked once is not asked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ragworth import prompts
from ragworth.calls.programs import NoValue, Steps, together
from ragworth.calls.serialization import model_digest
from ragworth.errors import PromptError, listed
from ragworth.llm.contract import Card, Usage
from ragworth.prompts.template import Template
from ragworth.retrieval.contract import Setting
from ragworth.retrieval.rerankers.contract import Head, Placed, Reranker, by_score
from ragworth.retrieval.units import cutter
from ragworth.tasks.options import setting as named
from ragworth.tasks.text_lookup import Texts

SLOTS = {
    "rerank-yes": ("query", "passage"),
    "rerank-question": ("passage",),
    "rerank-list": ("query", "passages"),
    "rerank-best": ("query", "passages"),
}
"""What each prompt must have a slot for."""


class Judged(NamedTuple):
    """What a model makes of a passage, the higher the better."""

    value: float
    usage: Usage


class Desk(NamedTuple):
    """What lies before a step when it asks."""

    texts: Texts
    card: Card
    templates: dict[str, Template]


Judge: TypeAlias = Callable[[str, str], Steps[Judged]]
"""From the ids of a query and a passage to what the model makes of it."""


@dataclass(frozen=True)
class Asked(Reranker):
    """A re-ranker that asks a model about each list, in one or more rounds."""

    model: str = named("", "model to ask; that of the whole where none is named")

    def models(self) -> tuple[str, ...]:
        """The models it asks."""
        return (self.model,)

    def able(self, card: Card) -> None:
        """Refuse a model that cannot be asked in this way."""
        raise NotImplementedError

    def prompts(self, card: Card) -> tuple[str, ...]:
        """Names of the prompts that this model is asked with."""
        raise NotImplementedError

    def most(self, passages: int) -> int:
        """Calls that a list of so many passages may take."""
        raise NotImplementedError

    def ordered(self, head: Head, desk: Desk) -> Steps[Placed]:
        """One list in its new order."""
        raise NotImplementedError

    def problems(self, setting: Setting) -> list[str]:
        found = super().problems(setting)
        if setting.asking is None:
            return [*found, f"{self.kind} asks a model, and there is none to ask"]
        for model in self.models():
            self.able(setting.asking.card(model))
        self.templates(setting)
        return found

    def templates(self, setting: Setting) -> dict[str, Template]:
        """All prompts that it asks with."""
        assert setting.asking is not None
        cards = [setting.asking.card(model) for model in self.models()]
        return {
            name: loaded(name, setting.asking.prompts, card.prompts) for card in cards for name in self.prompts(card)
        }

    def sources(self, setting: Setting) -> tuple[str, ...]:
        if setting.asking is None:
            return ()
        cards = [setting.asking.card(model) for model in self.models()]
        models = [f"{model_digest(card).hex()} {card.declining}" for card in cards]
        return (*models, *(f"{name}@{each.version}" for name, each in self.templates(setting).items()))

    def placed(self, heads: Sequence[Head], texts: Texts, setting: Setting) -> Sequence[Placed | None]:
        assert setting.asking is not None
        templates = self.templates(setting)
        most = sum(self.most(len(head.passages)) for head in heads)

        def work(card: Card) -> list[Steps[Placed]]:
            self.able(card)
            desk = Desk(texts, card, templates)
            return [self.ordered(head, desk) for head in heads]

        found = setting.asking.ask(self.model, work, step=str(self), most=most)
        return [
            one if not isinstance(one, NoValue) else _failed(head, one) for head, one in zip(heads, found, strict=True)
        ]


def _failed(head: Head, none: NoValue) -> Placed:
    return Placed(head.passages, failed=Counter({none.status: 1}))


def each_judged(head: Head, judge: Judge) -> Steps[Placed]:
    """A list by what the model makes of each of its passages alone; all are asked about together."""
    found = yield from together([judge(head.query, passage) for passage in head.passages])
    pairs = list(zip(head.passages, found, strict=True))
    scores = {passage: one.value for passage, one in pairs if not isinstance(one, NoValue)}
    failed = Counter(one.status for _, one in pairs if isinstance(one, NoValue))
    cut = sum(bool(one.usage.cut) for _, one in pairs if not isinstance(one, NoValue))
    return by_score(head.passages, scores, failed, cut)


def loaded(name: str, folder: Path | None, prompt_set: str) -> Template:
    """A prompt, the user's own where there is one; one that lacks a slot, or has a strange one, is refused."""
    template = prompts.load(name, folder, prompt_set)
    known = SLOTS.get(name, ())
    lacking = [slot for slot in known if slot not in template.names]
    strange = [slot for slot, what in template.slots.items() if known and slot not in known and what != "optional list"]
    if lacking or strange:
        words = [f"it has no slot for {listed(lacking)}"] if lacking else []
        words += [f"nothing is known to fill {listed(strange)} with"] if strange else []
        raise PromptError("; ".join(words), file=template.file, expected=f"slots for {', '.join(known)}")
    return template


def beginning(text: str, words: int) -> str:
    """The first words of a text, or signs of scripts that are written without blanks; all of them for 0."""
    if not words:
        return text
    (units,) = cutter("words")([text])
    return text[: units[words].start if words < len(units) else None].rstrip()
