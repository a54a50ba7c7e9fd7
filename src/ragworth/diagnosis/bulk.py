"""Findings of many contexts at once: which hold, without the details.

The rules are those of `ragworth.diagnosis.rules`, as arrays of systems × queries. Contexts of queries with ratings
are left to the examiner, which looks at them one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.diagnosis.context_facts import GRADE_SCORES, PASSAGE_KINDS, plain_words
from ragworth.diagnosis.rules import FINDINGS
from ragworth.metrics.passage_utility import HARD, WEAK

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

TEXTS = 1 << 16
"""Texts hashed at a time."""

EXPLAINED = ("nothing-relevant", "misled", "unused", "incomplete")
"""Findings that explain an answer that is not correct."""


class Rows(NamedTuple):
    """Passages shown, ordered by context, with what is known of them.

    Attributes
    ----------
    context: number of each row's context, system × queries + query.
    relevant, unlabelled: whether it is relevant, and whether that is unknown.
    kind: its place in KINDS; −1 where its utility is unknown.
    words: what its text hashes to; 0 without one.
    own: whether the reader judged its relevance itself.
    """

    context: Ints
    relevant: Bools
    unlabelled: Bools
    kind: npt.NDArray[np.int8]
    words: Ints
    own: Bools


class Tally(NamedTuple):
    """A finding: in which contexts it could be examined, and where it holds."""

    examined: Bools
    holds: Bools


def kinds_of(utility: npt.NDArray[np.float64]) -> npt.NDArray[np.int8]:
    """Places in KINDS, as `kind_of` has them; −1 for NaN."""
    u = np.round(utility, 12)
    found = np.select([u >= WEAK, u > -WEAK, u < -HARD], [0, 1, 3], 2)
    return np.where(np.isnan(u), -1, found).astype(np.int8)


def hashed_words(passages: pl.DataFrame) -> pl.DataFrame:
    """passage, words: a hash of its text without case and punctuation; 0 where there are no words."""
    hashes = [
        np.fromiter(map(hash, map(plain_words, part)), np.int64, len(part))
        for low in range(0, passages.height, TEXTS)
        for part in [passages["text"].slice(low, TEXTS).to_list()]
    ]  # Python's hash of a text has 64 bits and a random seed; that of the empty text is 0
    return passages.select("passage", words=pl.Series(np.concatenate([np.empty(0, np.int64), *hashes])))


def tallies(
    rows: Rows,
    shape: tuple[int, int],
    judged: Bools,
    grades: npt.NDArray[np.int8],
    correctness: npt.NDArray[np.int8],
    *,
    texts: bool,
) -> dict[str, Tally]:
    """Every finding of contexts without ratings.

    Parameters
    ----------
    shape: systems × queries.
    judged: for which contexts it is known what is relevant to the query.
    grades: place of each context's grade in GRADES; −1 without one.
    correctness: 1 if each context's answers are correct, 0 if they aren't; −1 if nothing but a grade may say so.
    texts: whether there are texts of passages.
    """

    def count(which: Bools) -> Ints:
        return np.bincount(rows.context[which], minlength=shape[0] * shape[1]).reshape(shape)

    is_hard = (rows.kind == PASSAGE_KINDS.index("misleading")) & ~rows.relevant
    some = count(np.ones_like(rows.relevant)) > 0
    relevant, hard = count(rows.relevant) > 0, count(is_hard) > 0
    sure = relevant | (judged & (count(rows.unlabelled) == 0))
    certain = hard | (judged & (count((rows.kind < 0) & (~rows.relevant | rows.own)) == 0))
    correct, partial, abstained, wrong = (grades == i for i in range(len(GRADE_SCORES)))
    graded = grades >= 0
    found = {
        "nothing-relevant": Tally(sure, ~relevant),
        "unsupported": Tally(graded & sure, (correct | partial) & ~relevant),
        "misled": Tally(graded & certain, wrong & hard),
        "unused": Tally(graded & sure & (~wrong | certain), relevant & (abstained | (wrong & ~hard))),
        "redundant": Tally(some & texts, _repeated(rows, shape)),
    }
    found = {name: Tally(each.examined, each.examined & each.holds) for name, each in found.items()}
    explained = np.logical_or.reduce([each.holds for name, each in found.items() if name in EXPLAINED])
    told = graded | (correctness >= 0)
    unexplained = np.where(graded, abstained | wrong, correctness == 0) & ~explained
    holding = np.logical_or.reduce([unexplained, *(each.holds for each in found.values())])
    examined = np.logical_or.reduce([told, *(each.examined for name, each in found.items() if name != "redundant")])
    return {**found, "unexplained": Tally(told, unexplained), "fine": Tally(examined, examined & ~holding)}


def bits(tallies: Mapping[str, Tally], shape: tuple[int, int]) -> npt.NDArray[np.uint8]:
    """The findings of each context as bits, in the order of FINDINGS."""
    made = np.zeros(shape, dtype=np.uint8)
    for i, name in enumerate(FINDINGS):
        if name in tallies:
            made[tallies[name].holds] |= np.uint8(1 << i)
    return made


def grade_places(
    grades: Mapping[tuple[str, str], str], systems: Sequence[str], queries: pl.Series
) -> npt.NDArray[np.int8]:
    """Place of each context's grade in GRADES: systems × queries; −1 without one."""
    places = {word: i for i, word in enumerate(GRADE_SCORES)}
    return number_array({pair: places[word] for pair, word in grades.items()}, systems, queries)


def number_array(
    numbers: Mapping[tuple[str, str], int], systems: Sequence[str], queries: pl.Series
) -> npt.NDArray[np.int8]:
    """Numbers of contexts as an array of systems × queries; −1 without one."""
    made = np.full((len(systems), len(queries)), -1, dtype=np.int8)
    if numbers:
        system, query = ({name: i for i, name in enumerate(names)} for names in (systems, queries))
        for (name, each), number in numbers.items():
            if name in system and each in query:
                made[system[name], query[each]] = number
    return made


def _repeated(rows: Rows, shape: tuple[int, int]) -> Bools:
    """Contexts in which a passage says word for word what another one says."""
    made = np.zeros(shape[0] * shape[1], dtype=bool)
    with_text = rows.words != 0
    context, words = rows.context[with_text], rows.words[with_text]
    order = np.lexsort((words, context))
    context, words = context[order], words[order]
    made[context[1:][(context[1:] == context[:-1]) & (words[1:] == words[:-1])]] = True
    return made.reshape(shape)
