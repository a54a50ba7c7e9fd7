"""``useful``: rank passages by their utility to the model that will read them, as estimated by the model itself.

The utility of a passage is R · (1 − p_abstain): how likely the model is to answer from it, which counts against an
irrelevant passage, since it only misleads (paper: Trappolini, Cuconasu et al., Redefining Retrieval Evaluation in the
Era of LLMs, where the ideal order needs labels). Here p_abstain is the model's own. R is 1 or, with a judge, 2p − 1,
its expected value given the judge's probability p that the passage is relevant. No accepted answer is shown.

It makes the same calls as the judgment ``abstention``, and as ``relevance`` for queries without accepted answers, so
answers are shared with those. A judge that is shown accepted answers gets other prompts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from ragworth.annotators import ANNOTATORS
from ragworth.annotators.contract import AnnotationItem, Annotator
from ragworth.calls.programs import NoValue, Program, combine_programs
from ragworth.collection import Collection
from ragworth.llm.contract import Card
from ragworth.retrieval.contract import StepContext
from ragworth.retrieval.rerankers.contract import RerankedList, RerankInput, order_by_score
from ragworth.retrieval.rerankers.llm_reranker import LlmReranker
from ragworth.tasks.findings import AspectValues
from ragworth.tasks.options import option as named
from ragworth.tasks.text_lookup import TextLookup

SATURATION_MARGIN = 0.05
"""If all p are below this, or above 1 minus this, a model doesn't distinguish passages by declining."""

PassageFindings: TypeAlias = list[AspectValues | NoValue]
"""Findings about the passages of a list."""


@dataclass(frozen=True)
class Useful(LlmReranker):
    """Passages by the model's own utility: how likely it is to answer from each of them alone."""

    judge: str = named("", "model that also judges relevance; without one, all passages count as relevant")
    estimator: str = named("first-token", "how p_abstain is estimated", choices=("first-token", "sequence", "sampled"))

    kind: ClassVar[str] = "useful"
    title: ClassVar[str] = "retrieved passages, by their utility to the model"

    def models(self) -> tuple[str, ...]:
        return (self.model, self.judge) if self.judge else (self.model,)

    def check_abilities(self, card: Card) -> None:
        """Both kinds of judgment check the model's abilities themselves."""

    def prompts(self, card: Card) -> tuple[str, ...]:
        return ()

    def max_calls(self, passages: int) -> int:
        return passages * len(self.models())

    def problems(self, context: StepContext) -> list[str]:
        found = super().problems(context)
        if context.model_access is not None:
            for kind, model, settings in self._kinds():
                _build_annotator(
                    kind, context.model_access.card(model), NO_TEXTS, context.model_access.prompts, settings
                )
        return found

    def templates(self, context: StepContext) -> dict[str, Any]:
        assert context.model_access is not None
        asked = context.model_access
        made = [
            _build_annotator(kind, asked.card(model), NO_TEXTS, asked.prompts, more)
            for kind, model, more in self._kinds()
        ]
        return {name: template for each in made for name, template in each.templates.items()}

    def rerank(
        self, heads: Sequence[RerankInput], texts: TextLookup, context: StepContext
    ) -> Sequence[RerankedList | None]:
        assert context.model_access is not None
        asked, found = context.model_access, []
        # A judge at retrieval time knows no accepted answers.
        blind = TextLookup(replace(texts.collection, answers=texts.collection.answers.clear()))
        max_calls = sum(len(head.passages) for head in heads)
        for kind, model, settings in self._kinds():
            work = _judging_work(kind, heads, blind, asked.prompts, settings)
            found.append(asked.ask(model, work, step=str(self), max_calls=max_calls))
        aspects = [kind for kind, _, _ in self._kinds()]
        return [
            _order_by_utility(head, dict(zip(aspects, said, strict=True)))
            for head, *said in zip(heads, *found, strict=True)
        ]

    def notes(self, heads: Sequence[RerankInput], placed: Sequence[RerankedList | None]) -> list[str]:
        notes = super().notes(heads, placed)
        values = [value for one in placed if one is not None for value in one.scores.values()]
        if (
            not self.judge
            and len(values) > 1
            and (min(values) > 1 - SATURATION_MARGIN or max(values) < SATURATION_MARGIN)
        ):
            never = "never" if min(values) > 1 - SATURATION_MARGIN else "always"
            notes.append(f"{self}: the model practically {never} declines, whatever it is shown: the order says little")
        return notes

    def _kinds(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Kinds of judgment, each with its model and settings."""
        worth: tuple[str, str, dict[str, Any]] = ("abstention", self.model, {"estimator": self.estimator})
        return [worth, ("relevance", self.judge, {})] if self.judge else [worth]


NO_TEXTS = TextLookup(Collection())


def _build_annotator(
    kind: str, card: Card, texts: TextLookup, prompts: Path | None, settings: dict[str, Any]
) -> Annotator:
    chosen: Callable[..., Annotator] = ANNOTATORS.get(kind)
    return chosen(card, texts, prompts, keep_cut=True, **settings)


def _judging_work(
    kind: str, heads: Sequence[RerankInput], texts: TextLookup, prompts: Path | None, settings: dict[str, Any]
) -> Callable[[Card], list[Program[PassageFindings]]]:
    def work(card: Card) -> list[Program[PassageFindings]]:
        annotator = _build_annotator(kind, card, texts, prompts, settings)
        return [
            combine_programs([annotator.program(AnnotationItem(head.query, each)) for each in head.passages])
            for head in heads
        ]

    return work


def _order_by_utility(head: RerankInput, said: dict[str, PassageFindings | NoValue | None]) -> RerankedList | None:
    """The list by utility; None if a call is missing."""
    known = {aspect: found for aspect, found in said.items() if isinstance(found, list)}
    if len(known) < len(said):
        return None
    scores: dict[str, float] = {}
    failed: Counter[str] = Counter()
    cut = 0
    for number, passage in enumerate(head.passages):
        found = {aspect: each[number] for aspect, each in known.items()}
        values = [_probability(aspect, one) for aspect, one in found.items()]
        wrong = [value for value in values if isinstance(value, NoValue)]
        if wrong:
            failed[wrong[0].status] += 1
            continue
        declines, *relevant = (value for value in values if not isinstance(value, NoValue))
        scores[passage] = (1 - declines) * (2 * relevant[0] - 1 if relevant else 1.0)
        cut += any(isinstance(one, AspectValues) and one.detail.get("cut") for one in found.values())
    return order_by_score(head.passages, scores, failed, cut)


def _probability(aspect: str, found: AspectValues | NoValue) -> float | NoValue:
    """The probability that the model declines, or that the passage is relevant (0 or 1 if only a label is known)."""
    if isinstance(found, NoValue):
        return found
    value = found.values[aspect]
    sure = found.detail.get("p") if aspect == "relevance" else None
    return value if sure is None else float(sure)
