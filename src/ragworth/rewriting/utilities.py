"""What the passages that a rewrite retrieves are worth to the reader: one class for each kind of utility."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import polars as pl

from ragworth.calls.programs import Program
from ragworth.core.errors import MissingInputError, give_input
from ragworth.data import OK, Contexts
from ragworth.data.collection import Collection
from ragworth.judging.annotators.abstention import AbstentionAnnotator
from ragworth.judging.annotators.confidence import ConfidenceAnnotator
from ragworth.judging.findings import AspectValues
from ragworth.judging.judge import AnnotationItem, Annotator, JudgingResult, Unit
from ragworth.judging.text_lookup import NO_RELEVANT, TextLookup
from ragworth.llm.contract import Card


class UtilityValue(NamedTuple):
    """The utility of a context, or why it has none."""

    value: float | None
    status: str = OK
    reason: str = ""
    source: str = ""


Values = dict[tuple[str, str], UtilityValue]
"""Utilities by query and key of the context."""


class Utility:
    """A kind of utility: the judgments that it needs, and its value from them."""

    kind: ClassVar[str]
    title: ClassVar[str]
    asks_model: ClassVar[bool] = True

    def annotators(self, card: Card, collection: Collection, prompts: str | None) -> list[Annotator]:
        """The judgments to make."""
        return []

    def check(self, collection: Collection) -> None:
        """Refuse a collection that lacks something."""

    def values(self, contexts: Contexts, collection: Collection, results: Sequence[JudgingResult]) -> Values:
        """Values of all contexts, from what the annotators found."""
        raise NotImplementedError


@dataclass(frozen=True)
class KeyEntropyUtility(Utility):
    """GroGU by the entropy of key tokens, without the part that is the same for all contexts of a turn."""

    a: float = 0.05
    top: float = 0.1
    length: int = 64
    kind: ClassVar[str] = "key-entropy"
    title: ClassVar[str] = "confidence of the answer in its key tokens (GroGU), without references"

    def annotators(self, card: Card, collection: Collection, prompts: str | None) -> list[Annotator]:
        texts = TextLookup(collection)
        a, top, length = self.a, self.top, self.length
        return [
            ConfidenceAnnotator(
                card, texts, prompts, a=a, top=top, length=length, measures="KeyEntropy", relative=False
            )
        ]

    def values(self, contexts: Contexts, collection: Collection, results: Sequence[JudgingResult]) -> Values:
        return _outcome_values(results[0].frame)


@dataclass(frozen=True)
class AnswerabilityUtility(Utility):
    """1 − the probability that the reader declines to answer from the context."""

    kind: ClassVar[str] = "answerability"
    title: ClassVar[str] = "1 − probability that the reader declines to answer from the context"

    def annotators(self, card: Card, collection: Collection, prompts: str | None) -> list[Annotator]:
        return [ContextAbstention(card, TextLookup(collection), prompts, prompt="answer")]

    def values(self, contexts: Contexts, collection: Collection, results: Sequence[JudgingResult]) -> Values:
        return _outcome_values(results[0].frame.with_columns((1 - pl.col("value")).alias("value")))


@dataclass(frozen=True)
class GoldRankUtility(Utility):
    """The reciprocal rank of the first relevant passage; 0 if none is retrieved. Needs relevance labels."""

    level: float = 1.0
    kind: ClassVar[str] = "gold-rank"
    title: ClassVar[str] = "reciprocal rank of the first relevant passage; needs relevance labels"
    asks_model: ClassVar[bool] = False

    def check(self, collection: Collection) -> None:
        if collection.relevance is None:
            raise MissingInputError("gold-rank", "relevance labels", "there are none", give_input("qrels"))

    def values(self, contexts: Contexts, collection: Collection, results: Sequence[JudgingResult]) -> Values:
        assert collection.relevance is not None
        judged = collection.relevance.of("relevance").filter((pl.col("status") == OK) & (pl.col("value") >= self.level))
        relevant = set(judged.select("query", "passage").iter_rows())
        known = set(judged["query"])
        found: Values = {}
        for system, query, rank, passage in contexts.frame.select("system", "query", "rank", "passage").iter_rows():
            if query not in known:
                found[query, system] = UtilityValue(None, NO_RELEVANT, "no passage is judged relevant to this turn")
                continue
            before = found.setdefault((query, system), UtilityValue(0.0, source=f"relevance ≥ {self.level:g}"))
            if (query, passage) in relevant and before.value == 0:
                found[query, system] = before._replace(value=1 / rank)
        return found


class ContextAbstention(AbstentionAnnotator):
    """The probability that the model declines to answer from a whole context."""

    unit: ClassVar[Unit] = "context"

    def program(self, item: AnnotationItem) -> Program[AspectValues]:
        query = self.texts.query(item.query)
        passages = [{"text": self.texts.passage(passage)} for passage in item.passages]
        prompt = self.ask("abstention", query=query, passages=passages)
        return (yield from (self._sampled(prompt) if self.estimator == "sampled" else self._read(prompt)))


UTILITIES: dict[str, type[Utility]] = {
    each.kind: each for each in (KeyEntropyUtility, AnswerabilityUtility, GoldRankUtility)
}


def _outcome_values(frame: pl.DataFrame) -> Values:
    """The values of outcomes of contexts."""
    return {
        (row["query"], row["system"]): UtilityValue(row["value"], row["status"], row["reason"] or "", row["source"])
        for row in frame.iter_rows(named=True)
    }
