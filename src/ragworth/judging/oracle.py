"""The oracle context, which a perfect system would show: all relevant passages, or the required subset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.core.errors import InputError, give_input
from ragworth.data import OK, Ratings
from ragworth.judging.text_lookup import TextLookup
from ragworth.metrics.required_passages import REQUIRED, required, without_failed

UNJUDGED = "unjudged"
NO_RATINGS = "no-ratings"
NO_ANSWERABLE = "no-answerable"
ORACLE_SOURCES = ("auto", "ratings", "relevance")


@dataclass
class OracleSelector:
    """The oracle context of each query.

    Parameters
    ----------
    by: ``ratings`` takes the required subset, in the order in which it was chosen; ``relevance`` all passages judged
        relevant, best first; ``auto`` the first of these that the collection has.
    level: lowest relevance that counts.
    eta: lowest rating that counts as answered.
    most: no more passages than these.
    """

    texts: TextLookup
    by: str = "auto"
    level: float = 1.0
    eta: float = 3.0
    most: int | None = None

    def __post_init__(self) -> None:
        if self.by == "auto":
            self.by = "relevance" if self.texts.collection.ratings is None else "ratings"

    def check(self) -> None:
        """Reject a collection without what the oracle needs."""
        if getattr(self.texts.collection, self.by) is None:
            raise InputError(
                f"the oracle's context needs {self.by}, but there is none",
                expected="relevance judgments, or ratings of sub-questions",
                remedy=give_input("qrels", "ratings"),
            )

    def passages(self, query: str) -> tuple[str, ...]:
        """Return the passages of the oracle context; raises `NoValue` if it is unknown or empty."""
        found = self._required(query) if self.by == "ratings" else self.texts.relevant(query, self.level)
        return found[: self.most]

    def _required(self, query: str) -> tuple[str, ...]:
        if query in self._unsure:
            raise NoValue(UNJUDGED, f"a rating of the query {query!r} failed; the required subset may be another")
        found = self._subsets.get(query)
        if found is None:
            raise NoValue(NO_RATINGS, f"no passage is rated for the query {query!r}")
        if not found:
            raise NoValue(NO_ANSWERABLE, f"no passage answers any sub-question of the query {query!r}")
        return found

    @cached_property
    def _ratings(self) -> Ratings:
        return self.texts.collection.ratings or Ratings.trusted(pl.DataFrame(schema=Ratings.schema))

    @cached_property
    def _unsure(self) -> frozenset[str]:
        """Queries with failed ratings."""
        return frozenset(self._ratings.frame.filter(pl.col("status") != OK)["query"])

    @cached_property
    def _subsets(self) -> Mapping[str, tuple[str, ...]]:
        known = without_failed(self._ratings)
        if not known.frame.height:
            return {}
        chosen = pl.col("passage").filter(pl.col("class") == REQUIRED)
        classes = required(known, self.eta).sort("place", maintain_order=True)
        return {query: tuple(passages) for query, passages in classes.group_by("query").agg(chosen).iter_rows()}
