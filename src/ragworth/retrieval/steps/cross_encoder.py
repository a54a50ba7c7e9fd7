"""``rerank``: re-rank with a model that reads query and passage together and returns a score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import ClassVar

from ragworth.core.errors import InputError, quote_short
from ragworth.judging.contract import option as named
from ragworth.judging.text_lookup import TextLookup
from ragworth.llm.model_files import fingerprint
from ragworth.retrieval.artifact_cache import digest
from ragworth.retrieval.contract import StepContext, argument
from ragworth.retrieval.rerankers.contract import RerankedList, Reranker, RerankInput, order_by_score
from ragworth.retrieval.rerankers.pair_scorers import PairScorer, model_folder, open_scorer
from ragworth.retrieval.rerankers.score_cache import TextPair, cached_scores

CROSS_ENCODER_PREFIX = "cross-encoder:"
FORM = 1
"""Incremented when the same model would give different scores."""


@dataclass(frozen=True)
class Rerank(Reranker):
    """Re-rank with a cross-encoder: a sequence classifier, as in sentence-transformers, or a monoT5.

    Scores are cached as they are computed.
    """

    model: str = argument("", "cross-encoder:FOLDER, or cross-encoder:OWNER/NAME of the hub, in its local cache")
    length: int = named(0, "maximum tokens of a query and a passage; 0 for the model's maximum", low=0)

    kind: ClassVar[str] = "rerank"
    title: ClassVar[str] = "retrieved passages, re-ranked by a cross-encoder"

    def check(self) -> None:
        if not self.model:
            example = 'rerank("cross-encoder:FOLDER")'
            raise InputError("rerank lacks a model", expected=f"a folder, or OWNER/NAME: {example}")
        kind, sign, _ = self.model.partition(":")
        if sign and f"{kind}:" != CROSS_ENCODER_PREFIX and len(kind) > 1:
            raise InputError(
                f"rerank doesn't support models of the kind {quote_short(kind)}",
                expected=f"{CROSS_ENCODER_PREFIX}FOLDER",
            )

    def problems(self, context: StepContext) -> list[str]:
        open_scorer(self._folder(context), self.length).check()
        return super().problems(context)

    def sources(self, context: StepContext) -> tuple[str, ...]:
        return (self._scorer(context).revision,)

    def rerank(
        self, heads: Sequence[RerankInput], texts: TextLookup, context: StepContext
    ) -> Sequence[RerankedList | None]:
        scorer = self._scorer(context)
        before = scorer.cut
        pairs = [TextPair(texts.query(head.query), texts.passage(each)) for head in heads for each in head.passages]
        # Neither the model's location nor the depth of lists matters.
        settings = {"form": FORM, "length": self.length, "model": scorer.revision}
        progress = (
            partial(context.progress, f"scoring passages with {self.model}") if context.progress is not None else None
        )
        values = iter(cached_scores(context.cache, f"rerank-{digest(settings)}", pairs, scorer.score, progress))
        placed = [order_by_score(head.passages, {each: next(values) for each in head.passages}) for head in heads]
        if placed and (cut := scorer.cut - before):
            remark = f"pairs of a query and a passage truncated to the model's {scorer.reads:,} tokens"
            placed[0] = replace(placed[0], remarks=Counter({remark: cut}))
        return placed

    def _folder(self, context: StepContext) -> Path:
        return model_folder(self.model.removeprefix(CROSS_ENCODER_PREFIX), context.folder)

    def _scorer(self, context: StepContext) -> PairScorer:
        folder = self._folder(context)
        return _shared_scorer(folder, fingerprint(folder), self.length)


@lru_cache(maxsize=2)
def _shared_scorer(folder: Path, revision: str, length: int) -> PairScorer:
    """The model with these files, shared so that weights are loaded once."""
    scorer = open_scorer(folder, length)
    scorer.revision = revision
    return scorer
