"""``rerank`` and ``monot5``: re-rank with a model that reads query and passage together and returns a score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import ClassVar

from ragworth.errors import InputError, quote_short
from ragworth.llm.fingerprint import fingerprint
from ragworth.retrieval.artifact_cache import digest
from ragworth.retrieval.contract import StepContext, argument
from ragworth.retrieval.rerankers.contract import RerankedList, Reranker, RerankInput, order_by_score
from ragworth.retrieval.rerankers.pair_scorers import CrossEncoder, MonoT5, PairScorer, model_folder
from ragworth.retrieval.rerankers.score_cache import TextPair, cached_scores
from ragworth.tasks.options import option as named
from ragworth.tasks.text_lookup import TextLookup

CROSS_ENCODER_PREFIX = "cross-encoder:"
FORM = 1
"""Incremented when the same model would give different scores."""


@dataclass(frozen=True)
class PairReranker(Reranker):
    """A re-ranker whose model scores each pair of a query and a passage. Scores are cached as they are computed."""

    model: str = argument("", "folder of the model, or OWNER/NAME of the hub, in its local cache")

    scorer: ClassVar[Callable[..., PairScorer]]
    """The kind of model."""

    def check(self) -> None:
        if not self.model:
            example = 'rerank("cross-encoder:FOLDER") or monot5("FOLDER")'
            raise InputError(f"{self.kind} lacks a model", expected=f"a folder, or OWNER/NAME: {example}")

    def problems(self, context: StepContext) -> list[str]:
        self.scorer(model_folder(self._name, context.folder), **self.score_settings).check()
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
        settings = {
            "form": FORM,
            "kind": self.kind,
            "how": repr(sorted(self.score_settings.items())),
            "model": scorer.revision,
        }
        name = f"{self.kind}-{digest(settings)}"
        progress = (
            partial(context.progress, f"scoring passages with {self.model}") if context.progress is not None else None
        )
        values = iter(cached_scores(context.cache, name, pairs, scorer.score, progress))
        placed = [order_by_score(head.passages, {each: next(values) for each in head.passages}) for head in heads]
        if placed and (cut := scorer.cut - before):
            remark = f"pairs of a query and a passage truncated to the model's {scorer.reads:,} tokens"
            placed[0] = replace(placed[0], remarks=Counter({remark: cut}))
        return placed

    @property
    def score_settings(self) -> dict[str, int | str]:
        """Settings that change the scores."""
        raise NotImplementedError

    @property
    def _name(self) -> str:
        return self.model

    def _scorer(self, context: StepContext) -> PairScorer:
        folder = model_folder(self._name, context.folder)
        return _open_scorer(self.scorer, folder, fingerprint(folder), tuple(sorted(self.score_settings.items())))


@dataclass(frozen=True)
class Rerank(PairReranker):
    """Re-rank with a cross-encoder: a sequence classifier, as in sentence-transformers."""

    model: str = argument("", "cross-encoder:FOLDER, or cross-encoder:OWNER/NAME of the hub, in its local cache")
    length: int = named(0, "maximum tokens of a query and a passage; 0 for the model's maximum", low=0)

    kind: ClassVar[str] = "rerank"
    title: ClassVar[str] = "retrieved passages, re-ranked by a cross-encoder"
    scorer: ClassVar[Callable[..., PairScorer]] = CrossEncoder

    def check(self) -> None:
        super().check()
        kind, sign, _ = self.model.partition(":")
        if sign and f"{kind}:" != CROSS_ENCODER_PREFIX and len(kind) > 1:
            raise InputError(
                f"rerank doesn't support models of the kind {quote_short(kind)}",
                expected=f"{CROSS_ENCODER_PREFIX}FOLDER",
            )

    @property
    def _name(self) -> str:
        return self.model.removeprefix(CROSS_ENCODER_PREFIX)

    @property
    def score_settings(self) -> dict[str, int | str]:
        return {"length": self.length}


@dataclass(frozen=True)
class Monot5(PairReranker):
    """Re-rank with a sequence-to-sequence model trained to say whether a passage is relevant, such as monoT5."""

    length: int = named(512, "maximum tokens of a query and a passage", low=16)
    yes: str = named("true", "word that means relevant")
    no: str = named("false", "word that means not relevant")

    kind: ClassVar[str] = "monot5"
    title: ClassVar[str] = "retrieved passages, re-ranked by a sequence-to-sequence model such as monoT5"
    scorer: ClassVar[Callable[..., PairScorer]] = MonoT5

    @property
    def score_settings(self) -> dict[str, int | str]:
        return {"length": self.length, "yes": self.yes, "no": self.no}


@lru_cache(maxsize=2)
def _open_scorer(
    kind: Callable[..., PairScorer], folder: Path, revision: str, how: tuple[tuple[str, int | str], ...]
) -> PairScorer:
    """The model with these files and settings, shared so that weights are loaded once."""
    scorer = kind(folder, **dict(how))
    scorer.revision = revision
    return scorer
