"""Unlabelled passages that repeat a relevant one: they hold its answer, so no experiment may show them as irrelevant.

A copy has the same words, whatever its case, marks and blanks; or contains the whole text of a relevant passage; or
shares nearly all runs of four characters with it and has the same numbers and negations (in English). A text with
another number or a "not" more isn't a copy: it may be an outdated or a wrong version, which is what an irrelevant
passage is for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import polars as pl

from ragworth.core.errors import format_count, format_list, quote_short
from ragworth.data import OK, Contexts, Judgments

WORD = re.compile(r"\w+")
NUMBER = re.compile(r"\d+")
NEGATION = re.compile(r"\b(?:no|not|never|none|nor|neither|without|cannot|[a-z]+n t)\b")
NEAR = 0.85
"""Jaccard similarity of the runs of two texts from which on one is a copy of the other."""
RUN = 4
SHORTEST_CONTAINED = 40
"""Characters from which on a text that contains a relevant one is a copy. A shorter one may be just a name."""


@dataclass(frozen=True)
class ComparableText:
    """The words of a text without case, marks and blanks."""

    words: str

    @classmethod
    def of(cls, text: str) -> ComparableText:
        return cls(_plain_words(text))

    def repeats(self, relevant: ComparableText) -> bool:
        """Whether it is a copy of a relevant text."""
        if self.words == relevant.words:
            return True
        if len(relevant.words) >= SHORTEST_CONTAINED and relevant.words in self.words:
            return True
        few, many = sorted((len(self.words), len(relevant.words)))
        return few >= NEAR * many and self._facts == relevant._facts and self._similarity(relevant) >= NEAR

    def _similarity(self, other: ComparableText) -> float:
        shared = len(self._runs & other._runs)
        return shared / (len(self._runs) + len(other._runs) - shared)

    @cached_property
    def _facts(self) -> tuple[frozenset[str], int]:
        """The numbers, and how many negations there are."""
        return frozenset(NUMBER.findall(self.words)), len(NEGATION.findall(self.words))

    @cached_property
    def _runs(self) -> frozenset[str]:
        return frozenset(self.words[at : at + RUN] for at in range(max(1, len(self.words) - RUN + 1)))


@lru_cache(maxsize=1 << 14)
def _plain_words(text: str) -> str:
    """The words of a text; many queries have the same candidates."""
    return " ".join(WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def find_copies(passages: Iterable[str], relevant: Iterable[str], text: Callable[[str], str]) -> set[str]:
    """Those of the passages that copy a relevant one. ``text`` is empty for a passage without one."""
    known = [found for each in relevant if (found := ComparableText.of(text(each))).words]
    if not known:
        return set()
    return {each for each in passages if any(map(ComparableText.of(text(each)).repeats, known))}


def unlabelled_copy_notes(contexts: Contexts, judgments: Judgments | None, passages: pl.DataFrame) -> list[str]:
    """A note on passages that are shown, have the text of a relevant one, and no label for the query."""
    if judgments is None or not passages.height:
        return []
    labels = judgments.of("relevance").filter(pl.col("status") == OK).select("query", "passage", "value")
    words = pl.col("text").str.strip_chars().str.to_lowercase()
    texts = passages.select("passage", words).filter(pl.col("text") != "")
    texts = texts.with_columns(pl.col("text").hash())
    relevant = labels.filter(pl.col("value") >= 1).join(texts, on="passage").select("query", "text").unique()
    twins = texts.join(relevant, on="text").select("query", "passage")
    copies = twins.join(labels, on=["query", "passage"], how="anti")
    if not copies.height:
        return []
    pairs = contexts.frame.select("query", "passage")
    shown = pairs.join(copies, on=["query", "passage"], how="semi").unique().sort("query", "passage")
    if not shown.height:
        return []
    queries = shown["query"].unique(maintain_order=True)
    few = format_list([quote_short(each, 24) for each in queries], 3)
    number = format_count(shown.height, "unlabelled passage has", "unlabelled passages have")
    return [
        f"{number} the text of a relevant passage ({format_count(len(queries), 'query', 'queries')}: {few}), "
        "but metrics count what isn't labelled as not relevant; label copies like their originals, or remove them"
    ]
