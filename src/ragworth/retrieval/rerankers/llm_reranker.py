"""Base class of re-rankers that call a language model through the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ragworth.calls.serialization import model_digest
from ragworth.judging.contract import option as named
from ragworth.llm.contract import Card
from ragworth.llm.prompts.template import Template
from ragworth.retrieval.contract import StepContext
from ragworth.retrieval.rerankers.contract import Reranker


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

    def templates(self, context: StepContext) -> dict[str, Template]:
        """All its prompts."""
        raise NotImplementedError

    def max_calls(self, passages: int) -> int:
        """Maximum calls for a list of so many passages."""
        raise NotImplementedError

    def problems(self, context: StepContext) -> list[str]:
        found = super().problems(context)
        if context.model_access is None:
            return [*found, f"{self.kind} needs a model, but there is none"]
        self.check_abilities(context.model_access.card(self.model))
        self.templates(context)
        return found

    def sources(self, context: StepContext) -> tuple[str, ...]:
        if context.model_access is None:
            return ()
        card = context.model_access.card(self.model)
        model = f"{model_digest(card).hex()} {card.declining}"
        return (model, *(f"{name}@{each.version}" for name, each in self.templates(context).items()))
