"""``useful``: passages by what they are worth to the model that will read them, as the model itself shows it.

The utility of a passage is R · (1 − p_abstain): how likely the model is to answer from it, which counts against a
passage that is not relevant, since it only misleads (paper: Trappolini, Cuconasu et al., Redefining Retrieval
Evaluation in the Era of LLMs, where the ideal order needs labels). Here p_abstain is the model's own. R is 1, or where
a judge is named 2p − 1, its expected value by the judge's probability p that the passage is relevant. No accepted
answer is shown to anybody.

It asks what the judgment ``abstention`` asks, and what ``relevance`` asks about queries without accepted answers: what
one has asked there, the other has for nothing. A judge who is shown accepted answers is asked something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from ragworth.annotators import KINDS
from ragworth.annotators.contract import Annotator, Item
from ragworth.calls.programs import NoValue, Steps, together
from ragworth.collection import Collection
from ragworth.llm.contract import Card
from ragworth.retrieval.contract import Setting
from ragworth.retrieval.rerankers.contract import Head, Placed, by_score
from ragworth.retrieval.rerankers.llm_reranker import Asked
from ragworth.tasks.findings import Finding
from ragworth.tasks.options import setting as named
from ragworth.tasks.text_lookup import Texts

SAME = 0.05
"""A model whose every p is below this, or above 1 less this, does not tell passages apart by declining."""

Said: TypeAlias = list[Finding | NoValue]
"""What was found of the passages of a list."""


@dataclass(frozen=True)
class Useful(Asked):
    """Passages by the model's own utility: how likely it is to answer from each of them alone."""

    judge: str = named("", "model that judges relevance besides; without one, every passage may be relevant")
    estimator: str = named("first-token", "how p_abstain is estimated", choices=("first-token", "sequence", "sampled"))

    kind: ClassVar[str] = "useful"
    title: ClassVar[str] = "what was retrieved, by what each passage is worth to the model"

    def models(self) -> tuple[str, ...]:
        return (self.model, self.judge) if self.judge else (self.model,)

    def able(self, card: Card) -> None:
        """Both kinds of judgment refuse, when they are made, a model that cannot give them."""

    def prompts(self, card: Card) -> tuple[str, ...]:
        return ()

    def most(self, passages: int) -> int:
        return passages * len(self.models())

    def problems(self, setting: Setting) -> list[str]:
        found = super().problems(setting)
        if setting.asking is not None:
            for kind, model, settings in self._kinds():
                _made(kind, setting.asking.card(model), EMPTY, setting.asking.prompts, settings)
        return found

    def templates(self, setting: Setting) -> dict[str, Any]:
        assert setting.asking is not None
        asked = setting.asking
        made = [_made(kind, asked.card(model), EMPTY, asked.prompts, more) for kind, model, more in self._kinds()]
        return {name: each.prompt(name) for each in made for name in each.asked}

    def placed(self, heads: Sequence[Head], texts: Texts, setting: Setting) -> Sequence[Placed | None]:
        assert setting.asking is not None
        asked, found = setting.asking, []
        # A judge at the time of retrieval knows no accepted answers.
        blind = Texts(replace(texts.collection, answers=texts.collection.answers.clear()))
        most = sum(len(head.passages) for head in heads)
        for kind, model, settings in self._kinds():
            work = _work(kind, heads, blind, asked.prompts, settings)
            found.append(asked.ask(model, work, step=str(self), most=most))
        aspects = [kind for kind, _, _ in self._kinds()]
        return [_placed(head, dict(zip(aspects, said, strict=True))) for head, *said in zip(heads, *found, strict=True)]

    def notes(self, heads: Sequence[Head], placed: Sequence[Placed | None]) -> list[str]:
        notes = super().notes(heads, placed)
        values = [value for one in placed if one is not None for value in one.scores.values()]
        if not self.judge and len(values) > 1 and (min(values) > 1 - SAME or max(values) < SAME):
            never = "never" if min(values) > 1 - SAME else "always"
            notes.append(f"{self}: the model practically {never} declines, whatever it is shown: the order says little")
        return notes

    def _kinds(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Kinds of judgment, each with its model and its settings."""
        worth: tuple[str, str, dict[str, Any]] = ("abstention", self.model, {"estimator": self.estimator})
        return [worth, ("relevance", self.judge, {})] if self.judge else [worth]


EMPTY = Texts(Collection())


def _made(kind: str, card: Card, texts: Texts, prompts: Path | None, settings: dict[str, Any]) -> Annotator:
    chosen: Callable[..., Annotator] = KINDS.get(kind)
    return chosen(card, texts, prompts, keep_cut=True, **settings)


def _work(
    kind: str, heads: Sequence[Head], texts: Texts, prompts: Path | None, settings: dict[str, Any]
) -> Callable[[Card], list[Steps[Said]]]:
    def work(card: Card) -> list[Steps[Said]]:
        annotator = _made(kind, card, texts, prompts, settings)
        return [together([annotator.judge(Item(head.query, each)) for each in head.passages]) for head in heads]

    return work


def _placed(head: Head, said: dict[str, Said | NoValue | None]) -> Placed | None:
    """The list by utility; None where something of it was not asked."""
    known = {aspect: found for aspect, found in said.items() if isinstance(found, list)}
    if len(known) < len(said):
        return None
    scores: dict[str, float] = {}
    failed: Counter[str] = Counter()
    cut = 0
    for number, passage in enumerate(head.passages):
        found = {aspect: each[number] for aspect, each in known.items()}
        values = [_share(aspect, one) for aspect, one in found.items()]
        wrong = [value for value in values if isinstance(value, NoValue)]
        if wrong:
            failed[wrong[0].status] += 1
            continue
        declines, *relevant = (value for value in values if not isinstance(value, NoValue))
        scores[passage] = (1 - declines) * (2 * relevant[0] - 1 if relevant else 1.0)
        cut += any(isinstance(one, Finding) and one.detail.get("cut") for one in found.values())
    return by_score(head.passages, scores, failed, cut)


def _share(aspect: str, found: Finding | NoValue) -> float | NoValue:
    """A probability: that the model declines; or that the passage is relevant, 0 or 1 where only a label is known."""
    if isinstance(found, NoValue):
        return found
    value = found.values[aspect]
    sure = found.detail.get("p") if aspect == "relevance" else None
    return value if sure is None else float(sure)
