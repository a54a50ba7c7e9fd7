"""Unlabelled passages that repeat a relevant one: they hold its answer, so no experiment may show them as irrelevant.

A copy has the same words, whatever its case, marks and blanks; or contains the whole text of a relevant passage; or
shares nearly all runs of four characters with it and has the same numbers. A text with another number isn't a copy: it
may be an outdated or a wrong version, which is what an irrelevant passage is for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

WORD = re.compile(r"\w+")
NUMBER = re.compile(r"\d+")
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
        return cls(" ".join(WORD.findall(unicodedata.normalize("NFKC", text).casefold())))

    def repeats(self, relevant: ComparableText) -> bool:
        """Whether it is a copy of a relevant text."""
        if self.words == relevant.words:
            return True
        if len(relevant.words) >= SHORTEST_CONTAINED and relevant.words in self.words:
            return True
        few, many = sorted((len(self.words), len(relevant.words)))
        return few >= NEAR * many and self._numbers == relevant._numbers and self._similarity(relevant) >= NEAR

    def _similarity(self, other: ComparableText) -> float:
        shared = len(self._runs & other._runs)
        return shared / (len(self._runs) + len(other._runs) - shared)

    @cached_property
    def _numbers(self) -> frozenset[str]:
        return frozenset(NUMBER.findall(self.words))

    @cached_property
    def _runs(self) -> frozenset[str]:
        return frozenset(self.words[at : at + RUN] for at in range(max(1, len(self.words) - RUN + 1)))


def find_copies(passages: Iterable[str], relevant: Iterable[str], text: Callable[[str], str]) -> set[str]:
    """Those of the passages that copy a relevant one. ``text`` is empty for a passage without one."""
    known = [found for each in relevant if (found := ComparableText.of(text(each))).words]
    if not known:
        return set()
    return {each for each in passages if any(map(ComparableText.of(text(each)).repeats, known))}
