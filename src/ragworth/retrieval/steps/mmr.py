"""``mmr``: maximal marginal relevance, passages that are relevant and unlike those before them.

Paper: Carbonell and Goldstein, The Use of MMR, Diversity-Based Reranking for Reordering Documents and Producing
Summaries. One after the other the passage with the greatest λ · relevance − (1 − λ) · likeness is taken, where likeness
is the cosine with the most similar passage taken before, 0 for the first. Nothing is asked.
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

from ragworth.retrieval.contract import Setting, argument
from ragworth.retrieval.encoders import encoder
from ragworth.retrieval.encoders.contract import Encoder, unit
from ragworth.retrieval.encoders.vector_cache import name_of, vectors_of
from ragworth.retrieval.rerankers.contract import Head, Placed, Reranker
from ragworth.retrieval.steps.dense import signed
from ragworth.retrieval.tokenize import Words
from ragworth.tasks.options import setting as named
from ragworth.tasks.text_lookup import Texts

Floats = npt.NDArray[np.float64]

WORDS = "words"


class Near(NamedTuple):
    """How alike the passages of a list are to the query, and to each other."""

    query: Floats
    passages: Floats


@dataclass(frozen=True)
class Mmr(Reranker):
    """Passages that are relevant and unlike those before them.

    How relevant a passage is comes from its place in the order before, from 1 for the first in equal steps down to
    1 / n for the last of n (``relevance="place"``), so that with λ = 1 nothing changes; or it is its likeness to the
    query. Texts are alike by the words they share: the cosine of their TF-IDF vectors, with ln((1 + n) / (1 + df)) + 1
    over the n passages of the list; or by an encoder, as `dense` has them.
    """

    weight: float = argument(
        0.5, "λ, the share of relevance: 1 leaves the order, 0 goes by novelty alone", low=0, high=1
    )
    by: str = named("words", "how texts are alike: words, or an encoder such as embedded")
    relevance: str = named("place", "the place before, or likeness to the query", choices=("place", "query"))

    kind: ClassVar[str] = "mmr"
    title: ClassVar[str] = "what was retrieved, relevant passages that are unlike those before them"
    scored: ClassVar[bool] = False

    def problems(self, setting: Setting) -> list[str]:
        self.sources(setting)  # an encoder that is not there is refused
        return super().problems(setting)

    def sources(self, setting: Setting) -> tuple[str, ...]:
        return () if self.by == WORDS else (encoder(self.by, setting.folder).revision,)

    def placed(self, heads: Sequence[Head], texts: Texts, setting: Setting) -> Sequence[Placed | None]:
        some = [head for head in heads if head.passages]
        near: Callable[[Head, Texts], Near] = by_words
        if self.by != WORDS and some:
            near = encoded(encoder(self.by, setting.folder), some, texts, setting)
        return [self._placed(head, near(head, texts)) if head.passages else Placed([]) for head in heads]

    def _placed(self, head: Head, near: Near) -> Placed:
        passages = head.passages
        relevance = near.query if self.relevance == "query" else np.arange(len(passages), 0, -1) / len(passages)
        return Placed([passages[at] for at in chosen(relevance, near.passages, self.weight)], done=len(passages))


def chosen(relevance: Floats, near: Floats, weight: float) -> list[int]:
    """Places in the order of maximal marginal relevance; of equal ones, the one that came first before."""
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


def by_words(head: Head, texts: Texts) -> Near:
    """Likeness by shared words. How rare a word is comes from the passages of the list alone."""
    every = [texts.query(head.query), *map(texts.passage, head.passages)]
    vocabulary: dict[str, int] = {}
    numbers = list(Words().split(pl.Series(every), vocabulary, grow=True))
    ends = np.cumsum([0, *map(len, numbers)])
    columns = np.fromiter(chain.from_iterable(numbers), dtype=np.int64, count=int(ends[-1]))
    shape = (len(every), len(vocabulary))
    counts = csr_array((np.ones(len(columns)), columns, ends), shape=shape)
    counts.sum_duplicates()
    found = np.bincount(counts[1:].indices, minlength=len(vocabulary))
    rows = counts * (np.log(len(every) / (1 + found)) + 1)
    lengths = np.sqrt((rows * rows).sum(axis=1))
    near = (rows[1:] @ rows.T).toarray() / np.outer(*(np.where(each > 0, each, 1.0) for each in (lengths[1:], lengths)))
    return Near(near[:, 0], near[:, 1:])


def encoded(model: Encoder, heads: Sequence[Head], texts: Texts, setting: Setting) -> Callable[[Head, Texts], Near]:
    """Likeness by an encoder, of lists that are not empty. Texts are encoded once; vectors of passages are kept."""
    every = _kept_with({texts.passage(each) for head in heads for each in head.passages}, model, setting)
    rows = vectors_of(model, every, setting.cache, told=setting.told)
    asked = unit(model.encode([texts.query(head.query) for head in heads], "query"))
    place = {each: at for at, each in enumerate(every)}
    vector = dict(zip((head.query for head in heads), asked, strict=True))

    def near(head: Head, texts: Texts) -> Near:
        mine = rows[[place[texts.passage(each)] for each in head.passages]].astype(np.float64)
        return Near(mine @ vector[head.query].astype(np.float64), mine @ mine.T)

    return near


def _kept_with(texts: Set[str], model: Encoder, setting: Setting) -> pl.Series:
    """The texts whose vectors are taken: those of the collection where they are there already, as dense leaves them.

    Otherwise these texts alone, in their own order: that of queries and of their lists does not matter.
    """
    known = setting.collection.passages["text"]
    known = known.gather(signed(known))
    there = setting.cache is not None and (setting.cache / name_of(model, known, True, None)).exists()
    return known if there and texts <= set(known) else pl.Series(sorted(texts))
