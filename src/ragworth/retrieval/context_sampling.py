"""Contexts drawn from candidates: at random, balanced by relevance, or with a relevant passage at chosen positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from math import comb
from random import Random

from ragworth.core.errors import InputError, format_count
from ragworth.retrieval.candidates import Candidates, DrawnContexts, Unusable

FEW_DRAWN = "retrieve more passages, give more labels, or draw without balancing (--sampling plain)"
FEW_OTHERS = "retrieve more passages, give more labels, or show fewer"


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
