"""Search texts of turns: the turn and the rarest terms of its history."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from ragworth.data.conversations import Turn
from ragworth.retrieval.tokenize import WordTokenizer

HISTORY_TERMS = 5
"""Terms of the history that ``history-terms`` adds."""

Spellings = dict[int, list[str]]
"""How a history spells each of its terms, every time that it has it; terms by their numbers in a vocabulary."""


def add_history_terms(turns: Sequence[Turn], passages: pl.Series, number: int = HISTORY_TERMS) -> list[str]:
    """Each turn with the rarest terms of its history.

    Terms are words as BM25 finds them, of all messages before the turn, that the turn lacks. They are ranked by how
    often the history has them times their idf, log(N / n), among the passages. Terms in none of the passages can't help
    and are left out; ties go by the alphabet. A term is added as the history first spells it.
    """
    vocabulary: dict[str, int] = {}
    questions = pl.Series([turn.question for turn in turns], dtype=pl.String)
    own = list(WordTokenizer().split(questions, vocabulary, grow=True))
    histories = _spellings(turns, vocabulary)
    idf = _idf(passages, vocabulary)
    names = list(vocabulary)
    found = []
    for turn, asked, said in zip(turns, own, histories, strict=True):
        weights = {term: len(said[term]) * idf[term] for term in said.keys() - set(asked) if idf.get(term)}
        best = sorted(weights, key=lambda term: (-weights[term], names[term]))
        found.append(" ".join([turn.question, *(said[term][0] for term in best[:number])]))
    return found


def _spellings(turns: Sequence[Turn], vocabulary: dict[str, int]) -> list[Spellings]:
    """The terms of each turn's history. A part of a run of characters, as in Chinese, has only one spelling."""
    rows = [(place, message.text) for place, turn in enumerate(turns) for message in turn.history]
    frame = pl.DataFrame(rows, schema={"turn": pl.Int64, "text": pl.String}, orient="row")
    words = pl.col("text").str.normalize("NFKC").str.extract_all(r"\w+").alias("run")
    runs = frame.select("turn", words).explode("run").drop_nulls()
    every = runs["run"].unique(maintain_order=True)
    terms = dict(zip(every, WordTokenizer().split(every, vocabulary, grow=True), strict=True))
    names = list(vocabulary)
    found: list[Spellings] = [{} for _ in turns]
    for place, run in runs.iter_rows():
        for term in terms[run]:
            found[place].setdefault(term, []).append(run if len(terms[run]) == 1 else names[term])
    return found


def _idf(passages: pl.Series, vocabulary: dict[str, int]) -> Mapping[int, float]:
    """The idf of those terms of a vocabulary that occur in passages."""
    frequency: Counter[int] = Counter()
    for words in WordTokenizer().split(passages, vocabulary, grow=False):
        frequency.update(set(words))
    return {term: math.log(len(passages) / n) for term, n in frequency.items()}
