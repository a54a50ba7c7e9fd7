"""``marginal``: choose passages one after another, each by what it adds to those chosen before.

The worth of a set of passages is how likely the model is to answer from it: the log-odds of not declining. Greedily,
the passage that raises it most comes next. Passages that say the same as others add nothing and come late, and so do
those that make the model less sure. No labels and no accepted answers are needed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ragworth import prompts
from ragworth.calls.programs import NoValue, Program, combine_programs, require_response
from ragworth.llm.contract import Card, Choose, Chosen
from ragworth.prompts.template import Template
from ragworth.retrieval.contract import StepContext
from ragworth.retrieval.rerankers.contract import CUT_REMARK, RerankedList, RerankInput
from ragworth.retrieval.rerankers.llm_reranker import LlmReranker, PassageScore, PromptMaterials
from ragworth.tasks.answerability import DECLINING, answerability_labels, calibrate, declining_label
from ragworth.tasks.findings import require_abilities
from ragworth.tasks.options import option as named

PROMPT = "answer"
MOST_ODDS = 30.0
"""Log-odds of a probability of 0 or 1, so that sets can still be compared."""


@dataclass(frozen=True)
class Marginal(LlmReranker):
    """The k passages that add most, one after another; the others follow in their previous order.

    Passages of a set are shown in their previous order. Ties go to the passage that came first. With ``least``, it
    stops when no passage adds more than that, and drops the rest.
    """

    k: int = named(5, "how many passages to choose", low=1)
    least: float = named(0.0, "log-odds of answering that a passage must add; 0 keeps all passages", low=0)

    kind: ClassVar[str] = "marginal"
    title: ClassVar[str] = "retrieved passages, by what each adds to those chosen before it"
    scored: ClassVar[bool] = False
    unit: ClassVar[str] = "set"
    fate: ClassVar[str] = "were not chosen in that round"

    def check_abilities(self, card: Card) -> None:
        require_abilities(card, ("choose",), "marginal")

    def prompts(self, card: Card) -> tuple[str, ...]:
        return (PROMPT,)

    def templates(self, context: StepContext) -> dict[str, Template]:
        assert context.model_access is not None
        template = prompts.load_prompt(
            PROMPT, context.model_access.prompts, context.model_access.card(self.model).prompts
        )
        DECLINING.for_prompt(template)
        return {PROMPT: template}

    def max_calls(self, passages: int) -> int:
        return 1 + sum(passages - taken for taken in range(min(self.k, passages)))

    def reorder(self, head: RerankInput, materials: PromptMaterials) -> Program[RerankedList]:
        chosen: list[str] = []
        failed: Counter[str] = Counter()
        done = cut = 0
        before = -math.inf
        while len(chosen) < min(self.k, len(head.passages)):
            left = [each for each in head.passages if each not in chosen]
            groups = [[each for each in head.passages if each in (*chosen, new)] for new in left]
            found = yield from combine_programs([self._worth(head.query, group, materials) for group in groups])
            worth = {new: one for new, one in zip(left, found, strict=True) if not isinstance(one, NoValue)}
            failed.update(one.status for one in found if isinstance(one, NoValue))
            done += len(worth)
            cut += sum(bool(one.usage.cut) for one in worth.values())
            if not worth:
                break
            best = max(worth, key=lambda new: (worth[new].value, -head.passages.index(new)))
            if self.least and chosen and worth[best].value - before <= self.least:
                return RerankedList(chosen, {}, done, failed, +Counter({CUT_REMARK: cut}))
            chosen.append(best)
            before = worth[best].value
        rest = [each for each in head.passages if each not in chosen]
        return RerankedList([*chosen, *rest], {}, done, failed, +Counter({CUT_REMARK: cut}))

    def _worth(self, query: str, passages: Sequence[str], materials: PromptMaterials) -> Program[PassageScore]:
        """The log-odds of answering from a set of passages."""
        template = materials.templates[PROMPT]
        shown = [{"text": materials.texts.passage(each), "id": each, "rank": n} for n, each in enumerate(passages, 1)]
        prompt = template.render({"query": materials.texts.query(query), "passages": shown})
        (outcome,) = yield [Choose(prompt, answerability_labels(materials.card, declining_label(template)))]
        chosen = require_response(outcome, Chosen)
        declines = calibrate(chosen.probabilities[0], materials.card)
        if declines <= 0 or declines >= 1:
            return PassageScore(MOST_ODDS if declines <= 0 else -MOST_ODDS, chosen.usage)
        return PassageScore(math.log1p(-declines) - math.log(declines), chosen.usage)
