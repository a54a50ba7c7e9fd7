"""``bm25``: passages by the words they share with the query.

The score of a passage d is the sum over the words q of the query, each as often as it stands there, of
idf(q) · tf(q, d), where tf is f / (f + k1 · (1 − b + b · |d| / mean |d|)) for f occurrences in |d| words and, of N
passages, n with the word, idf is ln(1 + (N − n + 0.5) / (n + 0.5)). That is the variant ``lucene``; the others and
the scores come from the library bm25s. Only a passage that has a word of some weight in common with the query is
retrieved. Equal scores are ordered by passage id, descending.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ragworth.errors import MissingExtraError
from ragworth.retrieval.artifact_cache import digest, load_or_build, table_fingerprint
from ragworth.retrieval.contract import Need, Place, Step, StepContext, format_value
from ragworth.retrieval.hits import NO_HITS, Ints, SearchHits, contexts_from_hits, id_order, top_hits
from ragworth.retrieval.tokenize import STEMMERS, STOPWORDS, WordTokenizer
from ragworth.tables import Contexts
from ragworth.tasks.options import option as named

METHODS = ("lucene", "robertson", "atire", "bm25l", "bm25+")
FORM = 1
"""Raised when the same settings would give another index than before."""


@dataclass(frozen=True)
class Bm25(Step):
    """BM25 over the passages of the collection."""

    k1: float = named(1.2, "how soon more occurrences of a word count less", low=0)
    b: float = named(0.75, "how far long passages are held back", low=0, high=1)
    method: str = named("lucene", "variant of the formula", choices=METHODS)
    delta: float = named(0.5, "least share of a word that occurs, in bm25l and bm25+", low=0)
    stopwords: str = named("none", "language whose stop words are left out", choices=("none", *STOPWORDS))
    stemmer: str = named("none", "language whose words are stemmed", choices=("none", *STEMMERS))

    kind: ClassVar[str] = "bm25"
    title: ClassVar[str] = "passages that share words with the query, by BM25"
    place: ClassVar[Place] = "first"
    needs: ClassVar[tuple[Need, ...]] = ("passages", "query texts")

    def problems(self, setting: StepContext) -> list[str]:
        for package, wanted in (("bm25s", True), ("Stemmer", self.stemmer != "none")):
            if wanted and find_spec(package) is None:
                raise MissingExtraError({"Stemmer": "PyStemmer"}.get(package, package), "retrieval", "BM25")
        return super().problems(setting)

    def apply(self, before: Contexts | None, setting: StepContext) -> Contexts:
        passages = setting.collection.passages
        index = self.index(passages, setting.cache)
        places = id_order(passages["passage"])
        names = list(index.vocab_dict)
        # In the order of the alphabet: that of the words in a query, or of passages in a file, cannot change the last
        # digit of a sum.
        found = [
            search_bm25(index, sorted(words, key=names.__getitem__), places, setting.depth)
            for words in self.words.split(setting.queries["text"], index.vocab_dict, grow=False)
        ]
        return contexts_from_hits(found, setting.queries["query"], passages["passage"])

    @property
    def words(self) -> WordTokenizer:
        """How texts are taken apart."""
        return WordTokenizer(self.stopwords, self.stemmer)

    def index(self, passages: pl.DataFrame, cache: Path | None) -> Any:
        """The index of the passages, as the library has it: out of the cache, memory-mapped, if it is there."""
        import bm25s

        name = ""
        if cache is not None:
            settings = {each: format_value(value) for each, value in asdict(self).items()}
            facts = {
                "form": FORM,
                "settings": settings,
                "passages": table_fingerprint(passages),
                "bm25s": version("bm25s"),
            }
            name = digest(facts | self.words.versions)
        return load_or_build(
            cache,
            f"bm25-{name}",
            make=lambda: self._made(passages["text"]),
            save=lambda index, folder: index.save(folder, show_progress=False),
            load=lambda folder: bm25s.BM25.load(folder, mmap=True, show_progress=False),
        )

    def _made(self, texts: pl.Series) -> Any:
        import bm25s

        vocabulary: dict[str, int] = {}
        numbers = list(self.words.split(texts, vocabulary, grow=True))
        # In double precision, so that scores are those of the formula, and ties are ties.
        index = bm25s.BM25(k1=self.k1, b=self.b, delta=self.delta, method=self.method, dtype="float64")
        with np.errstate(invalid="ignore"):  # without any word, lengths are divided by their mean of 0 for nothing
            index.index((numbers, vocabulary), create_empty_token=False, show_progress=False)
        return index


def search_bm25(index: Any, words: list[int], places: Ints, k: int) -> SearchHits:
    """The ``k`` best passages that share a word with the query; `places` says how ids are ordered, for ties."""
    if not words:
        return NO_HITS
    numbers = np.array(words, dtype=np.int32)
    scores = index.get_scores_from_ids(numbers)
    # In bm25l and bm25+ a word counts even where it does not occur; the passages without any have this score.
    floor = 0.0 if index.nonoccurrence_array is None else index.nonoccurrence_array[numbers].sum()
    return top_hits(scores, floor, places, k)
