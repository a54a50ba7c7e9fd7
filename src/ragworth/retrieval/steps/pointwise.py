"""``pointwise``: a language model judges each passage alone.

``by="yes"`` is the probability of YES versus NO when asked whether the passage helps to answer the question;
``by="likelihood"`` is the query likelihood given the passage (mean log-probability of the question's tokens). One call
per passage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.llm.contract import Card, Score, Scored
from ragworth.retrieval.rerankers.contract import RerankedList, RerankInput
from ragworth.retrieval.rerankers.llm_reranker import LlmReranker, PassageScore, PromptMaterials, judge_each
from ragworth.tasks.findings import require_abilities
from ragworth.tasks.labels import LabelScale, ask_label, choose_label_method
from ragworth.tasks.options import option as named

YES_NO = LabelScale(("YES", "NO"), (1.0, 0.0))


@dataclass(frozen=True)
class Pointwise(LlmReranker):
    """Passages by a model's judgment of each alone.

    A model without probabilities writes YES or NO: passages then form two groups, each in its previous order.
    """

    by: str = named("yes", "whether it helps, or how likely it makes the question", choices=("yes", "likelihood"))

    kind: ClassVar[str] = "pointwise"
    title: ClassVar[str] = "retrieved passages, by a model that judges each alone"

    def check_abilities(self, card: Card) -> None:
        if self.by == "yes":
            choose_label_method(card, "auto", "pointwise")
        else:
            require_abilities(card, ("score",), "pointwise by likelihood")

    def prompts(self, card: Card) -> tuple[str, ...]:
        return ("rerank-yes",) if self.by == "yes" else ("rerank-question",)

    def max_calls(self, passages: int) -> int:
        return passages

    def reorder(self, head: RerankInput, materials: PromptMaterials) -> Program[RerankedList]:
        judge = self._helps if self.by == "yes" else self._likely
        return (yield from judge_each(head, lambda query, passage: judge(query, passage, materials)))

    def _helps(self, query: str, passage: str, materials: PromptMaterials) -> Program[PassageScore]:
        texts, template = materials.texts, materials.templates["rerank-yes"]
        prompt = template.render({"query": texts.query(query), "passage": texts.passage(passage)})
        result = yield from ask_label(
            prompt, YES_NO, materials.card, choose_label_method(materials.card, "auto", "pointwise")
        )
        return PassageScore(result.value if result.expected is None else result.expected, result.usage)

    def _likely(self, query: str, passage: str, materials: PromptMaterials) -> Program[PassageScore]:
        prompt = materials.templates["rerank-question"].render({"passage": materials.texts.passage(passage)})
        (outcome,) = yield [Score(prompt, materials.texts.query(query).strip())]
        scored = require_response(outcome, Scored)
        logs = scored.trace.logprobs
        if not logs:
            raise NoValue("empty-continuation", "the question has no tokens")
        return PassageScore(sum(logs) / len(logs), scored.usage)
