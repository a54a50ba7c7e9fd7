"""Split texts into words, in any script.

A text is normalised (NFKC, lower case, ß as ss, no soft hyphens) and split into runs of
letters, marks and digits. Scripts written without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese),
and Korean, whose words carry particles, give single characters and pairs of neighbouring ones instead. Removing stop
words and stemming are optional. `add_history_terms` adds words of a conversation's history to a turn.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from ragworth.core.errors import MissingExtraError
from ragworth.data.conversations import Turn

UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
SIGN = rf"{UNSPACED}\p{{M}}*"
PAIRED = rf"[{UNSPACED}\p{{Hangul}}]"
"""Characters of texts that are searched by pairs of neighbouring characters instead of words."""
PAIRED_SIGN = rf"{PAIRED}\p{{M}}*"
WORD = rf"(?:{PAIRED_SIGN})+|[\w--{PAIRED}]+"
FOLDED = {"ß": "ss", "ς": "σ", "\xad": ""}
"""Letters with a capital that has another small letter, and the soft hyphen, which nobody sees."""
BATCH_ROWS = 1 << 15
"""Texts split at a time, which bounds memory."""

STOPWORDS = {
    "english": "EN_PLUS",
    **{
        name: name.upper()
        for name in (
            "danish", "dutch", "french", "german", "italian", "norwegian", "portuguese", "russian", "spanish",
            "swedish", "turkish",
        )
    },
}  # fmt: skip
"""Languages with a list of stop words in bm25s, and their codes there."""

STEMMERS = (
    "arabic", "basque", "catalan", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hindi",
    "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian", "porter", "portuguese",
    "romanian", "russian", "spanish", "swedish", "tamil", "turkish",
)  # fmt: skip
"""Stemmers of the Snowball project; ``porter`` is the first one for English, from 1980."""

HISTORY_TERMS = 5
"""Terms of the history that ``history-terms`` adds."""


@dataclass(frozen=True)
class WordTokenizer:
    """Settings of the tokenizer."""

    stopwords: str = "none"
    stemmer: str = "none"

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the libraries that determine the output."""
        return {"polars": pl.__version__} | ({"stemmer": version("PyStemmer")} if self.stemmer != "none" else {})

    def split(self, texts: pl.Series, vocabulary: dict[str, int], *, grow: bool) -> Iterator[list[int]]:
        """Words of each text as numbers in a vocabulary; new words are added to it, or left out."""
        for low in range(0, len(texts), BATCH_ROWS):
            part = texts.slice(low, BATCH_ROWS)
            runs = fold_case(part.str.normalize("NFKC")).str.extract_all(WORD)
            rows = pl.DataFrame({"row": pl.arange(len(part), eager=True, dtype=pl.UInt32), "run": runs}).explode("run")
            rows = rows.filter(pl.col("run").is_not_null())
            table = self._number_runs(rows["run"].unique(maintain_order=True), vocabulary, grow)
            found = rows.join(table, on="run", how="inner", maintain_order="left")
            ends = np.cumsum(np.bincount(found["row"].to_numpy(), minlength=len(part)))
            # The same few objects over and over: a list of new numbers would be five times as large.
            shared = np.array([*range(len(vocabulary)), None], dtype=object)
            every = shared[found["number"].to_numpy()].tolist()
            yield from (every[start:end] for start, end in pairwise([0, *ends.tolist()]))

    def _number_runs(self, runs: pl.Series, vocabulary: dict[str, int], grow: bool) -> pl.DataFrame:
        """Word numbers of each run of characters: run, number."""
        owners: list[int] = []
        numbers: list[int] = []
        for owner, terms in enumerate(self._terms(runs)):
            for term in terms:
                number = vocabulary.setdefault(term, len(vocabulary)) if grow else vocabulary.get(term)
                if number is not None:
                    owners.append(owner)
                    numbers.append(number)
        return pl.DataFrame({"run": runs.gather(owners), "number": pl.Series(numbers, dtype=pl.UInt32)})

    def _terms(self, runs: pl.Series) -> Iterator[list[str]]:
        """Terms of each run of characters."""
        words = runs.to_list()
        signs = runs.str.extract_all(PAIRED_SIGN).to_list()
        for run, stem, apart in zip(words, self._stem(words), signs, strict=True):
            if apart:
                yield [*apart, *map("".join, pairwise(apart))]
            else:
                yield [] if run in self._stops else [stem]

    def _stem(self, words: list[str]) -> list[str]:
        return words if self._stemmer is None else self._stemmer.stemWords(words)

    @cached_property
    def _stops(self) -> frozenset[str]:
        if self.stopwords == "none":
            return frozenset()
        from bm25s import stopwords

        words = getattr(stopwords, f"STOPWORDS_{STOPWORDS[self.stopwords]}")
        return frozenset(fold_case(pl.Series(words)))

    @cached_property
    def _stemmer(self) -> Any:
        if self.stemmer == "none":
            return None
        try:
            import Stemmer
        except ImportError as error:
            raise MissingExtraError("PyStemmer", "retrieval", "stemming") from error
        return Stemmer.Stemmer(self.stemmer)


def fold_case(texts: pl.Series) -> pl.Series:
    """Texts in lower case, so that words in capitals match."""
    return texts.str.to_lowercase().str.replace_many(FOLDED)


def add_history_terms(turns: Sequence[Turn], passages: pl.Series, number: int = HISTORY_TERMS) -> list[str]:
    """Return each turn with the rarest terms of its history.

    Terms are words as BM25 finds them, of all messages before the turn, that the turn lacks. They are ranked by how
    often the history has them times their idf, log(N / n), among the passages. Terms in none of the passages can't help
    and are left out; ties go by the alphabet. A term is added as the history first spells it.
    """
    vocabulary: dict[str, int] = {}
    questions = pl.Series([turn.question for turn in turns], dtype=pl.String)
    own = list(WordTokenizer().split(questions, vocabulary, grow=True))
    histories = _spellings(turns, vocabulary)
    frequency: Counter[int] = Counter()
    for words in WordTokenizer().split(passages, vocabulary, grow=False):
        frequency.update(set(words))
    idf = {term: math.log(len(passages) / n) for term, n in frequency.items()}
    names = list(vocabulary)
    texts = []
    for turn, known, spellings in zip(turns, own, histories, strict=True):
        weights = {term: len(spellings[term]) * idf[term] for term in spellings.keys() - set(known) if idf.get(term)}
        best = sorted(weights, key=lambda term: (-weights[term], names[term]))
        texts.append(" ".join([turn.question, *(spellings[term][0] for term in best[:number])]))
    return texts


def _spellings(turns: Sequence[Turn], vocabulary: dict[str, int]) -> list[dict[int, list[str]]]:
    """Return how each turn's history spells each of its terms, every time that it has it.

    A part of a run of characters, as in Chinese, has only one spelling.
    """
    rows = [(place, message.text) for place, turn in enumerate(turns) for message in turn.history]
    frame = pl.DataFrame(rows, schema={"turn": pl.Int64, "text": pl.String}, orient="row")
    words = pl.col("text").str.normalize("NFKC").str.extract_all(r"\w+").alias("run")
    runs = frame.select("turn", words).explode("run").drop_nulls()
    every = runs["run"].unique(maintain_order=True)
    terms = dict(zip(every, WordTokenizer().split(every, vocabulary, grow=True), strict=True))
    names = list(vocabulary)
    spellings: list[dict[int, list[str]]] = [{} for _ in turns]
    for place, run in runs.iter_rows():
        for term in terms[run]:
            spellings[place].setdefault(term, []).append(run if len(terms[run]) == 1 else names[term])
    return spellings
