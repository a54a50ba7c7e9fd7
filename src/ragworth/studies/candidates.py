"""What one retriever found for each query, and contexts drawn from it.

They show relevant, not relevant and random passages: any, balanced by relevance, or with a relevant passage at chosen
positions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import cycle
from math import comb
from random import Random
from typing import NamedTuple

import polars as pl

from ragworth.calls.programs import NoValue
from ragworth.core.errors import InputError, RagworthError, format_count, format_list
from ragworth.data import Contexts
from ragworth.data.collection import Collection
from ragworth.judging.text_lookup import TextLookup
from ragworth.results import Results
from ragworth.retrieval.pipeline import parse, unscored_contexts
from ragworth.retrieval.steps.controlled import SPARE as SPARE
from ragworth.retrieval.steps.controlled import find_copies
from ragworth.retrieval.steps.reorder import sample_passages
from ragworth.text_match.matching import match_answer, to_matchable

ContextLists = dict[str, dict[str, list[str]]]
"""By system and query, the passages in the order shown."""

FEW_DRAWN = "retrieve more passages, give more labels, or draw without balancing (--sampling plain)"
FEW_OTHERS = "retrieve more passages, give more labels, or show fewer"


def lists_by_system(contexts: Contexts) -> ContextLists:
    """What each system shows for each query, in its order."""
    found: ContextLists = {system: {} for system in contexts.systems}
    rows = contexts.frame.sort("rank", maintain_order=True).select("system", "query", "passage")
    for system, query, passage in rows.iter_rows():
        found[system].setdefault(query, []).append(passage)
    return found


def contexts_from_lists(contexts: ContextLists) -> Contexts:
    """Contexts as a table."""
    tables = []
    for system, rows in contexts.items():
        table = unscored_contexts(rows.items()).renamed(system)
        table.empty = frozenset((system, query) for query, shown in rows.items() if not shown)
        tables.append(table)
    return Contexts.concat(tables)


class Unusable(Exception):  # noqa: N818 (it is counted, not reported)
    """Why no context can be made for a query."""


class DrawnContexts(NamedTuple):
    """Contexts, and the queries that were left out, by reason."""

    shown: ContextLists
    left: Counter[str]

    @property
    def contexts(self) -> Contexts:
        return contexts_from_lists(self.shown)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Passages that one retriever found for each query, with their labels.

    Attributes
    ----------
    found: for each query the first ``depth`` passages that one retriever found, in its order.
    labels: relevance by query and passage; a passage that nobody judged isn't relevant.
    limit: the number of queries that contexts are made for; None for all.
    """

    collection: Collection
    found: dict[str, list[str]]
    labels: dict[str, dict[str, float]]
    level: float = 1.0
    seed: int = 0
    answered: frozenset[str] | None = None
    """Queries with accepted answers; None if answers aren't needed."""
    held: Counter[str] = field(default_factory=Counter)
    """How many passages were passed over because they hold an accepted answer, by arm."""
    limit: int | None = None
    _others: dict[str, list[str]] = field(default_factory=dict, init=False, repr=False)

    def draw(
        self,
        arms: Sequence[str],
        build: Callable[[str], Mapping[str, list[str]]],
        remedy: str,
        left: Counter[str] | None = None,
        queries: Sequence[str] | None = None,
    ) -> DrawnContexts:
        """Contexts of each arm for each query. ``build`` raises `Unusable` for a query that has none."""
        shown: ContextLists = {arm: {} for arm in arms}
        left = Counter() if left is None else left
        used = 0
        for query in self.found if queries is None else queries:
            if used == self.limit:
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

    @cached_property
    def passages(self) -> pl.Series:
        """All passages of the collection, in the order of ids."""
        return self.collection.passages["passage"].sort()

    def has_text(self, passage: str) -> bool:
        return passage in self._known

    def is_relevant(self, query: str, passage: str) -> bool:
        label = self.labels.get(query, {}).get(passage)
        return label is not None and label >= self.level

    def retrieved(self, query: str) -> list[str]:
        """Relevant passages that were found, in their order."""
        return [each for each in self.found[query] if self.is_relevant(query, each)]

    def relevant(self, query: str) -> list[str]:
        """Relevant passages: those that were found, in their order, then others with a text, highest label first."""
        first, labels = self.retrieved(query), self.labels.get(query, {})
        rest = sorted((label, each) for each, label in labels.items() if label >= self.level and each in self._known)
        return [*first, *(each for _, each in reversed(rest) if each not in first)]

    def first_relevant(self, query: str) -> str:
        """The relevant passage that was found first; if none was found, the one with the highest label."""
        return self._some_relevant(query)[0]

    def gold(self, query: str) -> str:
        """The relevant passage with a text that has the highest label; of equals the one found first."""
        known = self._some_relevant(query, with_text=True)
        return max(known, key=lambda each: self.labels[query][each])

    def _some_relevant(self, query: str, *, with_text: bool = False) -> list[str]:
        self.check_answered(query)
        known = [each for each in self.relevant(query) if not with_text or self.has_text(each)]
        if not known:
            raise Unusable("no relevant passage")
        return known

    def others(self, query: str) -> list[str]:
        """Passages that were found and aren't relevant, in their order, without unlabelled copies of relevant ones."""
        if query not in self._others:
            found = [each for each in self.found[query] if not self.is_relevant(query, each)]
            self._others[query] = self._without_copies(query, found)
        return list(self._others[query])

    def _without_copies(self, query: str, passages: Sequence[str]) -> list[str]:
        unlabelled = [each for each in passages if each not in self.labels.get(query, {})]
        copies = find_copies(unlabelled, self.relevant(query), self._texts.known_passage)
        return [each for each in passages if each not in copies]

    def random(self, arm: str, query: str, number: int, rng: Random, among: int) -> list[str]:
        """The first without an answer ``among`` passages drawn at random, neither found nor labelled for the query."""
        taken = {*self.found[query], *self.labels.get(query, {})}
        drawn = sample_passages(self.passages, among + len(taken), rng)
        left = self._without_copies(query, [each for each in drawn if each not in taken][:among])
        return self.without_answer(arm, query, left, number)

    def without_answer(self, arm: str, query: str, passages: Sequence[str], number: int) -> list[str]:
        """The first passages with a text in which no accepted answer is found; those that hold one are counted."""
        found: list[str] = []
        for each in passages:
            if len(found) == number:
                break
            holds = self._holds_answer(query, each)
            self.held[arm] += holds is True
            if holds is False:
                found.append(each)
        return found

    def check_answered(self, query: str) -> None:
        if self.answered is not None and query not in self.answered:
            raise Unusable("no accepted answers")

    def rng(self, purpose: str, query: str) -> Random:
        """Random numbers of a query for one purpose: another query, or another purpose, changes nothing."""
        return Random(f"{purpose} {self.seed} {query}".encode("utf-8", "surrogatepass"))

    def _holds_answer(self, query: str, passage: str) -> bool | None:
        """None if there is no text to look at."""
        try:
            text = to_matchable(self._texts.passage(passage))
        except NoValue:
            return None
        return any(match_answer(text, answer) is not None for answer in self._texts.known_answers(query))

    @cached_property
    def _texts(self) -> TextLookup:
        return TextLookup(self.collection)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.passages)


def choose_retriever(known: Sequence[str], wanted: str | None, controls: Container[str], file: str) -> str:
    """The system whose passages are the candidates: the one that is named, or the first that isn't a control."""
    if wanted is not None:
        if wanted not in known:
            raise InputError(f"there is no system {wanted!r}", file=file, expected=format_list(list(known), 12))
        return wanted
    real = [name for name in known if name not in controls]
    if not real:
        found = "all systems are controls (random, oracle, reversed, …), so there are no retrieved candidates"
        remedy = "add a retriever under [systems], or name one of them: --retriever"
        raise InputError(found, file=file, remedy=remedy)
    return real[0]


def retriever_of(results: Results, wanted: str | None) -> str:
    """The same of an evaluation's results, which say what its systems were."""
    controls = set()
    for name, written in (results.manifest.get("systems") or {}).items():
        with suppress(RagworthError):  # a run from a file
            controls |= {name} if parse(written).is_control else set()
    return choose_retriever(results.contexts.systems, wanted, controls, str(results.manifest.get("title", "")))


def candidates_of_results(results: Results, system: str, usable: pl.DataFrame) -> Candidates:
    """What one system showed in an evaluation, as far as it is among the ``usable`` pairs of query and passage."""
    pair = ["query", "passage"]
    shown = results.contexts.only(system).frame.join(usable, on=pair, how="semi", maintain_order="left")
    labels: dict[str, dict[str, float]] = {}
    if results.judgments is not None:
        known = results.judgments.of("relevance").drop_nulls("value").join(shown, on=pair, how="semi")
        for query, passage, value in known.select(*pair, "value").iter_rows():
            labels.setdefault(query, {})[passage] = value
    found = dict(shown.group_by("query", maintain_order=True).agg("passage").iter_rows())
    return Candidates(results.collection, found, labels, answered=frozenset(results.collection.answers["query"]))


def no_queries_error(left: Mapping[str, int], remedy: str) -> InputError:
    """That no query can be studied, with the reasons counted."""
    reasons = ", ".join(f"{why}: {count:,}" for why, count in left.items()) or "there are none"
    return InputError(f"no query is left to study ({reasons})", remedy=remedy)


def draw_contexts(
    pools: Sequence[Candidates], number: int, k: int, *, sampling: str = "balanced", order: str = "shuffled"
) -> DrawnContexts:
    """So many contexts of k passages for each query, from the candidates of several retrievers in turn.

    Balanced: every other context has at least one relevant passage, the others none. Plain: without regard to labels.
    """
    arms = [f"c{at:02d}" for at in range(number)]

    def build(query: str) -> dict[str, list[str]]:
        pools[0].check_answered(query)
        rng, made = pools[0].rng("alignment", query), {}
        for at, (arm, pool) in enumerate(zip(arms, cycle(pools), strict=False)):
            if sampling == "plain":
                chosen = rng.sample(_enough(pool.found[query], k, "passages found"), k)
            else:
                chosen = _balanced(pool, query, k, rng, relevant=at % 2 == 0)
            made[arm] = sorted(chosen, key=pool.found[query].index) if order == "ranked" else chosen
        return made

    return pools[0].draw(arms, build, FEW_DRAWN)


def draw_sizes(pool: Candidates, number: int, sizes: Sequence[int], *, sampling: str = "balanced") -> DrawnContexts:
    """Contexts of every size, of the queries that have enough passages for the largest."""
    drawn: dict[int, DrawnContexts] = {}
    for size in sorted(sizes, reverse=True):
        try:
            drawn[size] = draw_contexts([pool], number, size, sampling=sampling)
        except InputError as error:
            remedy = f"retrieve more passages, or show fewer: --sizes below {size}"
            raise InputError(error.found, remedy=remedy) from error
        pool = replace(pool, found={query: pool.found[query] for query in next(iter(drawn[size].shown.values()))})
    shown = {f"k{size:02d}-{arm}": rows for size in sizes for arm, rows in drawn[size].shown.items()}
    return DrawnContexts(shown, drawn[max(sizes)].left)


def _balanced(pool: Candidates, query: str, k: int, rng: Random, *, relevant: bool) -> list[str]:
    """k passages at random out of all those found, given that some are relevant, or that none is; in any order."""
    good, others = pool.retrieved(query), pool.others(query)
    if not good:
        raise Unusable("no relevant passage retrieved")
    _enough(others, k, "passages that aren't relevant")
    number = 0
    if relevant:
        possible = range(1, min(k, len(good)) + 1)
        number = rng.choices(possible, [comb(len(good), n) * comb(len(others), k - n) for n in possible])[0]
    shown = rng.sample(good, number) + rng.sample(others, k - number)
    rng.shuffle(shown)
    return shown


def _enough(passages: list[str], k: int, what: str) -> list[str]:
    if len(passages) < k:
        raise Unusable(f"fewer than {k} {what}")
    return passages


def draw_positions(
    pool: Candidates, k: int, places: Sequence[int], option: str = "--k", *, with_text: bool = False
) -> DrawnContexts:
    """A relevant passage at each place among the first k − 1 others, which keep their order.

    It is the first that was found, or ``with_text`` the one with the highest label of those whose text is known, like
    the others. ``option`` sets k.
    """
    arms = {f"p{place:02d}": place for place in places}

    def build(query: str) -> dict[str, list[str]]:
        gold = pool.gold(query) if with_text else pool.first_relevant(query)
        others = [each for each in pool.others(query) if not with_text or pool.has_text(each)][: k - 1]
        if len(others) < k - 1:
            raise Unusable(f"fewer than {format_count(k - 1, 'passage')} that {'is' if k == 2 else 'are'} not relevant")
        return {arm: [*others[: at - 1], gold, *others[at - 1 :]] for arm, at in arms.items()}

    return pool.draw(list(arms), build, f"{FEW_OTHERS} ({option})")
