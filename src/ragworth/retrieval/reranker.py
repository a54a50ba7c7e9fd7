"""Base classes of re-rankers: reorder the first passages of each list, leaving the others behind them unchanged.

Every re-ranker has a depth, is deterministic, and keeps the order of passages between which it sees no difference.
Passages that can't be judged follow those that were, in their previous order, and are counted in a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from math import isfinite
from typing import ClassVar

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.calls.serialization import model_digest
from ragworth.core.errors import InputError, ModelError, format_count
from ragworth.data import Contexts
from ragworth.data.conversations import TurnForm
from ragworth.judging.contract import option as named
from ragworth.judging.text_lookup import NO_PASSAGE, TextLookup
from ragworth.llm.contract import Card
from ragworth.retrieval.pipeline import Need, Place, Step, StepContext, passages_by_query

NOT_FINITE = "not-finite"
"""Why a passage counts as not judged: its score is not a number, or infinite."""

CUT_REMARK = "prompts that were too long for the model, and show only the beginning of their passages"


@dataclass(frozen=True)
class RerankInput:
    """The passages of a query to reorder: those with a text; the others stay behind them."""

    query: str
    passages: list[str]
    behind: list[str]
    without: Counter[str] = field(default_factory=Counter)
    """Why passages of the head can't be judged."""


@dataclass(frozen=True)
class RerankedList:
    """A list in its new order, its scores if there are any, and statistics."""

    order: Sequence[str]
    scores: Mapping[str, float] = field(default_factory=dict)
    done: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    """Why passages were not judged."""
    remarks: Counter[str] = field(default_factory=Counter)
    """Other remarks, with their counts."""

    @classmethod
    def by_score(
        cls, passages: Sequence[str], values: Mapping[str, float], failed: Counter[str] | None = None, cut: int = 0
    ) -> RerankedList:
        """Order passages with a score, highest first, then those without one; ties keep their order.

        A score that isn't finite counts as missing. ``failed``: why others have none. ``cut``: number of truncated
        prompts.
        """
        scores = {passage: value for passage, value in values.items() if isfinite(value)}
        judged = sorted((each for each in passages if each in scores), key=lambda each: -scores[each])
        order = [*judged, *(each for each in passages if each not in scores)]
        failed = (failed or Counter()) + Counter({NOT_FINITE: len(values) - len(scores)})
        return cls(order, scores, len(scores), failed, +Counter({CUT_REMARK: cut}))


@dataclass(frozen=True)
class Reranker(Step):
    """A step that reorders the first passages of each query."""

    _: KW_ONLY
    depth: int = named(0, "how many of the first passages to reorder; 0 for all", low=0)

    place: ClassVar[Place] = "behind"
    needs: ClassVar[tuple[Need, ...]] = ("query texts",)
    unit: ClassVar[str] = "passage"
    """What is judged one by one."""
    fate: ClassVar[str] = "stand behind the others in the order before"
    """What happens to passages that couldn't be judged."""

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        assert before is not None
        texts = retrieved_texts(before, context)
        heads = [self._head(query, passages, texts) for query, passages in passages_by_query(before).items()]
        reranked = self.rerank(heads, texts, context)
        rows = []
        for head, result in zip(heads, reranked, strict=True):
            order, scores = (result.order, result.scores) if result is not None else (head.passages, {})
            for rank, passage in enumerate((*order, *head.behind), 1):
                rows.append(("run", head.query, rank, passage, scores.get(passage)))
        frame = pl.DataFrame(rows, schema=Contexts.schema, orient="row")
        return Contexts.trusted(frame, tuple(self.notes(heads, reranked)))

    def rerank(
        self, heads: Sequence[RerankInput], texts: TextLookup, context: StepContext
    ) -> Sequence[RerankedList | None]:
        """Return each list in its new order; None if unknown, so that it stays unchanged."""
        raise NotImplementedError

    def notes(self, heads: Sequence[RerankInput], reranked: Sequence[RerankedList | None]) -> list[str]:
        """Note what went wrong; it is an error if nothing could be judged."""
        known = [each for each in reranked if each is not None]
        failed = sum((each.failed for each in known), Counter[str]())
        done = sum(each.done for each in known)
        if failed and not done:
            raise ModelError(
                f"{self}: none of {format_count(failed.total(), self.unit)} could be judged: {_format_reasons(failed)}",
                remedy="fix the cause and run the same command again, or use another model",
            )
        notes = []
        if failed:
            total = failed.total() + done
            notes.append(
                f"{self}: {failed.total():,} of {format_count(total, self.unit)} could not be judged and {self.fate} "
                f"({_format_reasons(failed)})"
            )
        without = sum((head.without for head in heads), Counter[str]())
        if without[NO_PASSAGE] and not any(head.passages for head in heads):
            raise InputError(
                f"{self}: the passages to judge have no texts",
                expected="a collection with texts, under the ids that were retrieved",
            )
        if without:
            number = format_count(without.total(), "passage")
            notes.append(f"{self}: {number} without a text to judge by {Reranker.fate} ({_format_reasons(without)})")
        remarks = sum((each.remarks for each in known), Counter[str]())
        return notes + [f"{self}: {words} ({number:,})" for words, number in sorted(remarks.items())]

    def _head(self, query: str, passages: list[str], texts: TextLookup) -> RerankInput:
        end = self.depth or len(passages)
        judged: list[str] = []
        without: list[str] = []
        reasons: Counter[str] = Counter()
        for passage in passages[:end]:
            try:
                texts.query(query)
                texts.passage(passage)
                judged.append(passage)
            except NoValue as none:
                without.append(passage)
                reasons[none.status] += 1
        return RerankInput(query, judged, [*without, *passages[end:]], reasons)


@dataclass(frozen=True)
class LlmReranker(Reranker):
    """A re-ranker that calls a language model through the store about each list, in one or more rounds."""

    model: str = named("", "model to ask; by default the evaluation's")

    asks_model: ClassVar[bool] = True

    def models(self) -> tuple[str, ...]:
        return (self.model,)

    def check_abilities(self, card: Card) -> None:
        """Reject a model that lacks an ability."""

    def max_calls(self, passages: int) -> int:
        """Return the maximum calls for a list of so many passages."""
        raise NotImplementedError

    def problems(self, context: StepContext) -> list[str]:
        problems = super().problems(context)
        if context.model_access is None:
            return [*problems, f"{self.kind} needs a model, but there is none"]
        self.check_abilities(context.model_access.card(self.model))
        self.templates(context)
        return problems

    def sources(self, context: StepContext) -> tuple[str, ...]:
        if context.model_access is None:
            return ()
        card = context.model_access.card(self.model)
        versions = (f"{name}@{each.version}" for name, each in self.templates(context).items())
        return (f"{model_digest(card).hex()} {card.declining}", *versions)


def retrieved_texts(before: Contexts, context: StepContext) -> TextLookup:
    """Look up the texts of the retrieved passages."""
    wanted = before.frame.select("passage").unique()
    known = context.texts
    passages = known.passages.join(wanted, on="passage", how="semi", maintain_order="left")
    queries = context.queries.drop_nulls("text")
    # A human rewrite may be what the reader is asked, but no system has it to search with.
    form: TurnForm = "turn" if known.turn_form == "rewrite" else known.turn_form
    turns = known.turns.join(queries, on="query", how="semi", maintain_order="left")
    return TextLookup(replace(known, queries=queries, passages=passages, turns=turns, turn_form=form))


def _format_reasons(reasons: Counter[str]) -> str:
    return ", ".join(f"{status} {number:,}" for status, number in reasons.most_common())
