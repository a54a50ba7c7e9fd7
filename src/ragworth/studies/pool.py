"""What contexts are made of: for each query the passages that one retriever found, with their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from ragworth.errors import InputError, RagworthError
from ragworth.results import Results
from ragworth.retrieval.candidates import Candidates, Unusable, choose_retriever
from ragworth.retrieval.context_lists import ContextLists, contexts_from_lists
from ragworth.retrieval.parsing import parse
from ragworth.tables import Contexts

SPARE = 30
"""Passages drawn at random beyond those needed, because some may hold an accepted answer."""


class DrawnContexts(NamedTuple):
    """Contexts, and the queries that were left out, by reason."""

    shown: ContextLists
    left: Counter[str]

    @property
    def contexts(self) -> Contexts:
        return contexts_from_lists(self.shown)


@dataclass(frozen=True, eq=False)
class CandidatePool(Candidates):
    """Candidates to make contexts of, for ``limit`` queries at most; None: for all."""

    limit: int | None = None

    def draw(
        self,
        arms: Sequence[str],
        build: Callable[[str], Mapping[str, list[str]]],
        remedy: str,
        left: Counter[str] | None = None,
        queries: Sequence[str] | None = None,
    ) -> DrawnContexts:
        """Contexts of each arm for each query. ``build`` raises `Unusable` for a query that can't be studied."""
        shown: ContextLists = {arm: {} for arm in arms}
        left = Counter() if left is None else left
        used = 0
        for query in self.found if queries is None else queries:
            if self.limit is not None and used >= self.limit:
                break
            try:
                made = build(query)
            except Unusable as why:
                left[str(why)] += 1
                continue
            used += 1
            for arm, passages in made.items():
                shown[arm][query] = passages
        if not used:
            raise no_queries_error(left, remedy)
        return DrawnContexts(shown, left)


def retriever_of(results: Results, wanted: str | None) -> str:
    """The same of an evaluation's results, which say what its systems were."""
    written = results.manifest.get("systems") or {}

    def is_control(name: str) -> bool:
        try:
            return parse(written.get(name, "")).is_control
        except RagworthError:
            return False  # a run from a file

    return choose_retriever(results.contexts.systems, wanted, is_control, str(results.manifest.get("title", "")))


def pool_of_results(results: Results, system: str, usable: pl.DataFrame) -> CandidatePool:
    """What one system showed in an evaluation, as far as it is among the ``usable`` pairs of query and passage."""
    pair = ["query", "passage"]
    shown = results.contexts.only(system).frame.join(usable, on=pair, how="semi", maintain_order="left")
    labels: dict[str, dict[str, float]] = {}
    if results.judgments is not None:
        known = results.judgments.of("relevance").drop_nulls("value").join(shown, on=pair, how="semi")
        for query, passage, value in known.select(*pair, "value").iter_rows():
            labels.setdefault(query, {})[passage] = value
    found = dict(shown.group_by("query", maintain_order=True).agg("passage").iter_rows())
    answered = frozenset(results.collection.answers["query"].to_list())
    return CandidatePool(results.collection, found, labels, answered=answered)


def no_queries_error(left: Mapping[str, int], remedy: str) -> InputError:
    """That no query can be studied, with the reasons counted."""
    reasons = ", ".join(f"{why}: {count:,}" for why, count in left.items()) or "there are none"
    return InputError(f"no query is left to study ({reasons})", remedy=remedy)
