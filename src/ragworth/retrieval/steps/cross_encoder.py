"""``rerank``: re-rank with a model that reads query and passage together and returns a score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import ClassVar

import polars as pl

from ragworth.core.errors import InputError, quote_short
from ragworth.judging.contract import option as named
from ragworth.judging.text_lookup import TextLookup
from ragworth.retrieval.artifacts import Arrays, digest, load_or_build_arrays, table_fingerprint
from ragworth.retrieval.encoders.sentence_transformer import PairScorer
from ragworth.retrieval.pipeline import StepContext, argument
from ragworth.retrieval.reranker import RerankedList, Reranker, RerankInput

CROSS_ENCODER_PREFIX = "cross-encoder:"
FORM = 2
"""Incremented when the same model would give different scores."""


@dataclass(frozen=True)
class Rerank(Reranker):
    """Re-rank with a cross-encoder of sentence-transformers. Scores are cached as they are computed."""

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
        self._scorer(context)
        return super().problems(context)

    def sources(self, context: StepContext) -> tuple[str, ...]:
        return (self._scorer(context).revision,)

    def rerank(
        self, heads: Sequence[RerankInput], texts: TextLookup, context: StepContext
    ) -> Sequence[RerankedList | None]:
        scorer = self._scorer(context)
        before = scorer.truncated
        pairs = [(texts.query(head.query), texts.passage(each)) for head in heads for each in head.passages]
        progress = context.progress and partial(context.progress, f"scoring passages with {self.model}")
        missing = sorted(
            {pair for pair in pairs if pair not in scorer.scores}, key=lambda pair: (sum(map(len, pair)), pair)
        )
        if missing:
            # Neither the model's location nor the depth of lists matters. Pairs of similar length are read together.
            table = pl.DataFrame(missing, schema={"query": pl.String, "passage": pl.String}, orient="row")
            facts = {"form": FORM, "length": self.length, "model": scorer.revision, "pairs": table_fingerprint(table)}

            def make(block: range) -> Arrays:
                return {"scores": scorer.score(missing[block.start : block.stop])}

            name = f"rerank-{digest(facts)}"
            arrays = load_or_build_arrays(context.cache, name, len(missing), make, progress)
            scorer.scores.update(zip(missing, arrays["scores"].tolist(), strict=True))
        values = iter([scorer.scores[pair] for pair in pairs])
        reranked = [
            RerankedList.by_score(head.passages, {each: next(values) for each in head.passages}) for head in heads
        ]
        if reranked and (truncated := scorer.truncated - before):
            remark = f"pairs of a query and a passage truncated to the model's {scorer.longest:,} tokens"
            reranked[0] = replace(reranked[0], remarks=Counter({remark: truncated}))
        return reranked

    def _scorer(self, context: StepContext) -> PairScorer:
        name = self.model.removeprefix(CROSS_ENCODER_PREFIX)
        revision = PairScorer(name, context.folder).revision
        return _shared_scorer(name, context.folder, self.length, revision)


@lru_cache(maxsize=2)
def _shared_scorer(name: str, folder: Path | None, length: int, revision: str) -> PairScorer:
    """Return the model with these files, shared so that weights are loaded once, and pairs scored once."""
    return PairScorer(name, folder, length)
