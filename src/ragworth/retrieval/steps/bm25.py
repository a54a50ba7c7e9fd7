"""``bm25``: rank passages by words shared with the query.

The score of a passage d is the sum over the words q of the query, counting repetitions, of idf(q) · tf(q, d), where
tf is f / (f + k1 · (1 − b + b · |d| / mean |d|)) for f occurrences in |d| words and, for N passages of which n contain
the word, idf is ln(1 + (N − n + 0.5) / (n + 0.5)). The scores come from the library bm25s. Only passages
that share a word with the query are retrieved. Equal scores are ordered by passage id, descending.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ragworth.core.errors import MissingExtraError
from ragworth.data import Contexts
from ragworth.judging.contract import option as named
from ragworth.retrieval.artifacts import digest, load_or_build, table_fingerprint
from ragworth.retrieval.hits import NO_HITS, Ints, SearchHits, contexts_from_hits, id_order, top_hits
from ragworth.retrieval.pipeline import Need, Place, Step, StepContext, format_value
from ragworth.retrieval.words import STEMMERS, STOPWORDS, WordTokenizer

FORM = 3
"""Incremented when the same settings would give a different index."""


@dataclass(frozen=True)
class Bm25(Step):
    """BM25 over the passages of the collection."""

    k1: float = named(1.2, "how slowly repeated occurrences of a word saturate", low=0)
    b: float = named(0.75, "how much long passages are penalised", low=0, high=1)
    stopwords: str = named("none", "language of stop words to remove", choices=("none", *STOPWORDS))
    stemmer: str = named("none", "language of the stemmer", choices=("none", *STEMMERS))

    kind: ClassVar[str] = "bm25"
    title: ClassVar[str] = "passages that share words with the query, by BM25"
    place: ClassVar[Place] = "first"
    needs: ClassVar[tuple[Need, ...]] = ("passages", "query texts")

    def problems(self, context: StepContext) -> list[str]:
        for module, package in (("bm25s", "bm25s"), *([("Stemmer", "PyStemmer")] if self.stemmer != "none" else [])):
            if find_spec(module) is None:
                raise MissingExtraError(package, "retrieval", "BM25")
        return super().problems(context)

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        passages = context.collection.passages
        index = self._index(passages, context.cache)
        order = id_order(passages["passage"])
        names = list(index.vocab_dict)
        # In alphabetical order, so that the order of words in a query or of passages in a file can't change the last
        # digit of a sum.
        hits = [
            search_bm25(index, sorted(words, key=names.__getitem__), order, context.depth)
            for words in self.words.split(context.queries["text"], index.vocab_dict, grow=False)
        ]
        return contexts_from_hits(hits, context.queries["query"], passages["passage"])

    @property
    def words(self) -> WordTokenizer:
        """The tokenizer for these settings."""
        return WordTokenizer(self.stopwords, self.stemmer)

    def _index(self, passages: pl.DataFrame, cache: Path | None) -> Any:
        """Return the index of the passages in the library, memory-mapped from the cache if it is there."""
        import bm25s

        facts = {
            "form": FORM,
            "settings": {name: format_value(value) for name, value in asdict(self).items()},
            "passages": table_fingerprint(passages) if cache is not None else "",
            "bm25s": version("bm25s"),
            **self.words.versions,
        }
        return load_or_build(
            cache,
            f"bm25-{digest(facts)}",
            make=lambda: self._build_index(passages["text"]),
            save=lambda index, folder: index.save(folder, show_progress=False),
            load=lambda folder: bm25s.BM25.load(folder, mmap=True, show_progress=False),
        )

    def _build_index(self, texts: pl.Series) -> Any:
        import bm25s

        vocabulary: dict[str, int] = {}
        numbers = list(self.words.split(texts, vocabulary, grow=True))
        # In double precision, so that scores are those of the formula, and ties are ties.
        index = bm25s.BM25(k1=self.k1, b=self.b, method="lucene", dtype="float64")
        with np.errstate(invalid="ignore"):  # without any word, lengths are needlessly divided by their mean of 0
            index.index((numbers, vocabulary), create_empty_token=False, show_progress=False)
        return index


def search_bm25(index: Any, words: list[int], order: Ints, k: int) -> SearchHits:
    """Return the ``k`` best passages that share a word with the query; `order` is that of ids, for ties."""
    if not words:
        return NO_HITS
    scores = index.get_scores_from_ids(np.array(words, dtype=np.int32))
    rows = np.flatnonzero(scores > 0)
    return top_hits(rows, scores[rows], order, k)
