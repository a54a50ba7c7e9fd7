"""``mmr``: maximal marginal relevance, which prefers relevant passages unlike those before them.

Paper: Carbonell and Goldstein, The Use of MMR, Diversity-Based Reranking for Reordering Documents and Producing
Summaries. Repeatedly picks the passage with the highest λ · relevance − (1 − λ) · similarity, where similarity is the
cosine with the most similar passage picked before, 0 for the first. No model is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import csr_array

from ragworth.judging.contract import option as named
from ragworth.judging.text_lookup import TextLookup
from ragworth.retrieval.encoders import Encoder, cache_name, load_vectors, normalize, open_encoder
from ragworth.retrieval.hits import nonblank_rows
from ragworth.retrieval.pipeline import StepContext, argument
from ragworth.retrieval.reranker import RerankedList, Reranker, RerankInput
from ragworth.retrieval.words import WordTokenizer

Floats = npt.NDArray[np.float64]

WORDS = "words"


class Similarities(NamedTuple):
    """Similarities of a list's passages to the query, and to each other."""

    query: Floats
    passages: Floats


@dataclass(frozen=True)
class Mmr(Reranker):
    """Relevant passages unlike those before them.

    A passage's relevance comes from its previous position, from 1 for the first in equal steps down to 1 / n for the
    last of n (``relevance="place"``), so that λ = 1 changes nothing; or it is its similarity to the query. The
    similarity of texts is the cosine of their TF-IDF vectors, with ln((1 + n) / (1 + df)) + 1 over the n passages of
    the list; or that of an encoder's vectors, as in `dense`.
    """

    weight: float = argument(0.5, "λ, the weight of relevance: 1 keeps the order, 0 uses only novelty", low=0, high=1)
    by: str = named("words", "similarity of texts: by words, or an encoder such as embedded")
    relevance: str = named("place", "the previous position, or similarity to the query", choices=("place", "query"))

    kind: ClassVar[str] = "mmr"
    title: ClassVar[str] = "retrieved passages, preferring relevant ones unlike those before them"

    def problems(self, context: StepContext) -> list[str]:
        self.sources(context)  # raises if the encoder is missing
        return super().problems(context)

    def sources(self, context: StepContext) -> tuple[str, ...]:
        return () if self.by == WORDS else (open_encoder(self.by, context.folder).revision,)

    def rerank(
        self, heads: Sequence[RerankInput], texts: TextLookup, context: StepContext
    ) -> Sequence[RerankedList | None]:
        some = [head for head in heads if head.passages]
        near: Callable[[RerankInput, TextLookup], Similarities] = word_similarities
        if self.by != WORDS and some:
            near = encoder_similarities(open_encoder(self.by, context.folder), some, texts, context)
        return [self._placed(head, near(head, texts)) if head.passages else RerankedList([]) for head in heads]

    def _placed(self, head: RerankInput, near: Similarities) -> RerankedList:
        passages = head.passages
        relevance = near.query if self.relevance == "query" else np.arange(len(passages), 0, -1) / len(passages)
        return RerankedList(
            [passages[at] for at in mmr_order(relevance, near.passages, self.weight)], done=len(passages)
        )


def mmr_order(relevance: Floats, near: Floats, weight: float) -> list[int]:
    """Positions in the order of maximal marginal relevance; ties go to the earlier one."""
    alike = np.zeros(len(relevance))
    left = np.ones(len(relevance), dtype=bool)
    order: list[int] = []
    for _ in range(len(relevance)):
        # Sums of the same numbers in another order may differ in their last digits; such ties are ties.
        worth = np.round(weight * relevance - (1 - weight) * alike, 12)
        at = int(np.argmax(np.where(left, worth, -np.inf)))
        order.append(at)
        left[at] = False
        alike = np.maximum(alike, near[at]) if len(order) > 1 else near[at].copy()
    return order


def word_similarities(head: RerankInput, texts: TextLookup) -> Similarities:
    """Similarity by shared words. Document frequencies come only from the passages of the list."""
    every = [texts.query(head.query), *map(texts.passage, head.passages)]
    vocabulary: dict[str, int] = {}
    numbers = list(WordTokenizer().split(pl.Series(every), vocabulary, grow=True))
    ends = np.cumsum([0, *map(len, numbers)])
    columns = np.fromiter(chain.from_iterable(numbers), dtype=np.int64, count=int(ends[-1]))
    shape = (len(every), len(vocabulary))
    counts = csr_array((np.ones(len(columns)), columns, ends), shape=shape)
    counts.sum_duplicates()
    found = np.bincount(counts[1:].indices, minlength=len(vocabulary))
    rows = counts * (np.log(len(every) / (1 + found)) + 1)
    lengths = np.sqrt((rows * rows).sum(axis=1))
    near = (rows[1:] @ rows.T).toarray() / np.outer(*(np.where(each > 0, each, 1.0) for each in (lengths[1:], lengths)))
    return Similarities(near[:, 0], near[:, 1:])


def encoder_similarities(
    model: Encoder, heads: Sequence[RerankInput], texts: TextLookup, context: StepContext
) -> Callable[[RerankInput, TextLookup], Similarities]:
    """Similarity by an encoder, of lists that aren't empty. Texts are encoded once; vectors of passages are cached."""
    every = _texts_to_encode({texts.passage(each) for head in heads for each in head.passages}, model, context)
    rows = load_vectors(model, every, context.cache, progress=context.progress)
    asked = normalize(model.encode([texts.query(head.query) for head in heads], "query"))
    place = {each: at for at, each in enumerate(every)}
    vector = dict(zip((head.query for head in heads), asked, strict=True))

    def near(head: RerankInput, texts: TextLookup) -> Similarities:
        mine = rows[[place[texts.passage(each)] for each in head.passages]].astype(np.float64)
        return Similarities(mine @ vector[head.query].astype(np.float64), mine @ mine.T)

    return near


def _texts_to_encode(texts: Set[str], model: Encoder, context: StepContext) -> pl.Series:
    """Texts to encode: those of the whole collection if `dense` has cached them.

    Otherwise only these texts, sorted, so that the order of queries and their lists doesn't matter.
    """
    known = context.collection.passages["text"]
    known = known.gather(nonblank_rows(known))
    there = context.cache is not None and (context.cache / cache_name(model, known, True, None)).exists()
    return known if there and texts <= set(known) else pl.Series(sorted(texts))
