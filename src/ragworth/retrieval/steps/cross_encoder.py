"""``rerank``: re-rank with a model that reads query and passage together and returns a score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import ClassVar

import numpy as np

from ragworth.core.errors import InputError, quote_short
from ragworth.judging.contract import option as named
from ragworth.judging.text_lookup import TextLookup
from ragworth.retrieval.artifacts import BLOCK_SIZE, all_arrays, digest, store_arrays
from ragworth.retrieval.encoders.sentence_transformer import PairScore, PairScorer
from ragworth.retrieval.pipeline import StepContext, argument
from ragworth.retrieval.reranker import RerankedList, Reranker, RerankInput

CROSS_ENCODER_PREFIX = "cross-encoder:"
FORM = 2
"""Incremented when the same model would give different scores."""


@dataclass(frozen=True)
class Rerank(Reranker):
    """Re-rank with a cross-encoder of sentence-transformers. Finite scores are cached as they are computed."""

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
        pairs = [(texts.query(head.query), texts.passage(each)) for head in heads for each in head.passages]
        scores = self._score_pairs(scorer, set(pairs), context)
        values = iter([scores[pair].value for pair in pairs])
        reranked = [
            RerankedList.by_score(head.passages, {each: next(values) for each in head.passages}) for head in heads
        ]
        if limits := [score.truncated_to for score in scores.values() if score.truncated_to]:
            remark = f"pairs of a query and a passage truncated to the model's {limits[0]:,} tokens"
            reranked[0] = replace(reranked[0], remarks=Counter({remark: len(limits)}))
        return reranked

    def _score_pairs(
        self, scorer: PairScorer, pairs: set[tuple[str, str]], context: StepContext
    ) -> dict[tuple[str, str], PairScore]:
        """Return the scores of pairs, computing and caching the unknown ones, unless they aren't finite.

        Neither the model's location nor the queries and lists of a run matter.
        """
        keys = {pair: digest({"query": pair[0], "passage": pair[1]}) for pair in pairs}
        facts = {"form": FORM, "length": self.length, "model": scorer.revision}
        folder = context.cache / f"rerank-{digest(facts)}" if context.cache is not None else None
        if folder is not None and not scorer.scores.keys() >= set(keys.values()):
            for arrays in all_arrays(folder):
                columns = [arrays[name].tolist() for name in ("keys", "scores", "truncated_to")]
                scorer.scores.update((key.decode(), PairScore(*score)) for key, *score in zip(*columns, strict=True))
        scores = {pair: scorer.scores[key] for pair, key in keys.items() if key in scorer.scores}
        # Pairs of similar length are read together.
        missing = sorted(pairs - scores.keys(), key=lambda pair: (sum(map(len, pair)), pair))
        for start in range(0, len(missing), BLOCK_SIZE):
            if context.progress is not None:
                context.progress(f"scoring passages with {self.model}", start, len(missing))
            block = missing[start : start + BLOCK_SIZE]
            computed = dict(zip(block, scorer.score(block), strict=True))
            scores |= computed
            finite = {keys[pair]: score for pair, score in computed.items() if isfinite(score.value)}
            scorer.scores |= finite
            if folder is not None and finite:
                values, limits = zip(*finite.values(), strict=True)
                arrays = {
                    "keys": np.array(list(finite), "S"),
                    "scores": np.array(values),
                    "truncated_to": np.array(limits),
                }
                store_arrays(folder, digest({"keys": sorted(finite)}), arrays)
        if missing and context.progress is not None:
            context.progress(f"scoring passages with {self.model}", len(missing), len(missing))
        return scores

    def _scorer(self, context: StepContext) -> PairScorer:
        name = self.model.removeprefix(CROSS_ENCODER_PREFIX)
        revision = PairScorer(name, context.folder).revision
        return _shared_scorer(name, context.folder, self.length, revision)


@lru_cache(maxsize=2)
def _shared_scorer(name: str, folder: Path | None, length: int, revision: str) -> PairScorer:
    """Return the model with these files, shared so that weights are loaded once, and pairs scored once."""
    return PairScorer(name, folder, length)
