"""``useful``: rank passages by their utility to the model that will read them, as estimated by the model itself.

The utility of a passage is 1 − p_abstain: how likely the model is to answer from it (paper: Trappolini, Cuconasu et
al., Redefining Retrieval Evaluation in the Era of LLMs, where the ideal order also needs labels of relevance). It makes
the same calls as the judgment ``abstention``, so answers are shared with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from ragworth.calls.programs import NoValue, Program, combine_programs
from ragworth.data.collection import Collection
from ragworth.judging.annotators.abstention import AbstentionAnnotator
from ragworth.judging.contract import option as named
from ragworth.judging.findings import AspectValues
from ragworth.judging.judge import AnnotationItem
from ragworth.judging.text_lookup import TextLookup
from ragworth.llm.contract import Card
from ragworth.retrieval.pipeline import StepContext
from ragworth.retrieval.reranker import LlmReranker, RerankedList, RerankInput

SATURATION_MARGIN = 0.05
"""If all p are below this, or above 1 minus this, a model doesn't distinguish passages by declining."""

NO_TEXTS = TextLookup(Collection())


@dataclass(frozen=True)
class Useful(LlmReranker):
    """Passages by the model's own utility: how likely it is to answer from each of them alone."""

    estimator: str = named("first-token", "how p_abstain is estimated", choices=("first-token", "sequence", "sampled"))

    kind: ClassVar[str] = "useful"
    title: ClassVar[str] = "retrieved passages, by their utility to the model"

    def max_calls(self, passages: int) -> int:
        return passages

    def templates(self, context: StepContext) -> dict[str, Any]:
        assert context.model_access is not None
        return self._annotator(context.model_access.card(self.model), NO_TEXTS, context).templates

    def rerank(
        self, heads: Sequence[RerankInput], texts: TextLookup, context: StepContext
    ) -> Sequence[RerankedList | None]:
        assert context.model_access is not None

        def work(card: Card) -> list[Program[list[AspectValues | NoValue]]]:
            annotator = self._annotator(card, texts, context)
            return [
                combine_programs([annotator.program(AnnotationItem(head.query, each)) for each in head.passages])
                for head in heads
            ]

        max_calls = sum(len(head.passages) for head in heads)
        judged = context.model_access.ask(self.model, work, step=str(self), max_calls=max_calls)
        return [_order_by_utility(head, found) for head, found in zip(heads, judged, strict=True)]

    def notes(self, heads: Sequence[RerankInput], placed: Sequence[RerankedList | None]) -> list[str]:
        notes = super().notes(heads, placed)
        values = [value for one in placed if one is not None for value in one.scores.values()]
        if len(values) > 1 and (min(values) > 1 - SATURATION_MARGIN or max(values) < SATURATION_MARGIN):
            never = "never" if min(values) > 1 - SATURATION_MARGIN else "always"
            notes.append(f"{self}: the model practically {never} declines, whatever it is shown: the order says little")
        return notes

    def _annotator(self, card: Card, texts: TextLookup, context: StepContext) -> AbstentionAnnotator:
        assert context.model_access is not None
        make = cast(Callable[..., AbstentionAnnotator], AbstentionAnnotator)
        return make(card, texts, context.model_access.prompts, estimator=self.estimator, keep_cut=True)


def _order_by_utility(
    head: RerankInput, judged: Sequence[AspectValues | NoValue] | NoValue | None
) -> RerankedList | None:
    """The list by utility; None if a call is missing."""
    if judged is None or isinstance(judged, NoValue):
        return None
    scores: dict[str, float] = {}
    failed: Counter[str] = Counter()
    cut = 0
    for passage, found in zip(head.passages, judged, strict=True):
        value = found if isinstance(found, NoValue) else found.values["abstention"]
        if isinstance(value, NoValue):
            failed[value.status] += 1
            continue
        scores[passage] = 1 - value
        cut += isinstance(found, AspectValues) and bool(found.detail.get("cut"))
    return RerankedList.by_score(head.passages, scores, failed, cut)
