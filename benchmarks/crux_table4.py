"""Can the released files of CRUX-DUC give the 274 required passages of the paper's Table 4? Every reading we could
think of, computed without ragworth.

    python -m benchmarks.crux_table4 [--orders 200]

The readings differ in the threshold η, in the passages (all that were rated, or only those of the topic's own
documents), in the unit (passages or documents), in the sub-questions (15, or the first 10), in the rule, and in the
order of ties. It reads ``$RAGWORTH_DATA/crux_duc04`` and ``crux_case``.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

WANTED = 274
Answered = dict[str, frozenset[int]]
"""By passage: the sub-questions that it answers."""


def greedy(answered: Answered, order: Sequence[str]) -> int:
    """Take the passage that answers most of what is open, until nothing is gained."""
    covered: set[int] = set()
    for taken in range(len(order)):
        best = max(order, key=lambda passage: len(answered[passage] - covered))
        if not answered[best] - covered:
            return taken
        covered |= answered[best]
    return len(order)


def ranked(answered: Answered, order: Sequence[str]) -> int:
    """Rank by how many sub-questions each passage answers, once, and keep those that add something."""
    return in_order(answered, sorted(order, key=lambda passage: -len(answered[passage])))


def in_order(answered: Answered, order: Sequence[str]) -> int:
    covered: set[int] = set()
    taken = 0
    for passage in order:
        taken += bool(answered[passage] - covered)
        covered |= answered[passage]
    return taken


RULES: tuple[Callable[[Answered, Sequence[str]], int], ...] = (greedy, ranked, in_order)
ORDERS: dict[str, Callable[[list[str]], list[str]]] = {"run": list, "reversed": lambda ids: ids[::-1], "id": sorted}


class Topic:
    def __init__(self, id: str, passages: list[str], ratings: list[list[int]], seen: set[str]) -> None:
        self.rows = dict(zip(passages, ratings, strict=True))
        self.own = {passage for passage in passages if passage.startswith(f"{id}:")}
        self.seen = {passage for passage in seen if passage.startswith(f"{id}:")}

    def answered(self, eta: int, *, own: bool, documents: bool, number: int) -> Answered:
        found: Answered = {}
        for passage, ratings in self.rows.items():
            if not own or passage in self.own:
                unit = passage.split("#")[0] if documents else passage
                good = {at for at, rating in enumerate(ratings[:number]) if rating >= eta}
                found[unit] = found.get(unit, frozenset()) | good
        return found


def read_topics(folder: Path) -> list[Topic]:
    runs = {path.name: _read_run(path) for path in sorted(folder.glob("*.run.gz"))}
    bm25 = runs["bm25-crux-mds-duc04.run.gz"]
    with gzip.open(folder / "ratings.oracle.bm25.json.gz") as stream:
        ratings = json.load(stream)
    return [Topic(id, bm25[id], rows, {p for run in runs.values() for p in run[id]}) for id, rows in ratings.items()]


def _read_run(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    with gzip.open(path, "rt") as stream:
        for query, _, passage, *_ in map(str.split, stream):
            found.setdefault(query, []).append(passage)
    return found


def readings(topics: list[Topic]) -> Iterator[tuple[str, int]]:
    for eta, own, documents, number in product((1, 2, 3, 4, 5), (False, True), (False, True), (15, 10)):
        every = [each.answered(eta, own=own, documents=documents, number=number) for each in topics]
        for rule, (name, order) in product(RULES, ORDERS.items()):
            count = sum(rule(each, order(list(each))) for each in every)
            unit, pool = ("documents" if documents else "passages"), ("own" if own else "all")
            yield f"η = {eta}, {pool} {unit}, {number} sub-questions, {rule.__name__}, ties by {name}", count


def random_ties(topics: list[Topic], rule: Callable[[Answered, Sequence[str]], int], own: bool, orders: int) -> str:
    """The least and the most over random orders of each topic."""
    draw, least, most = random.Random(0), 0, 0
    for topic in topics:
        answered = topic.answered(3, own=own, documents=False, number=15)
        ids = [passage for passage, good in answered.items() if good]
        counts = [rule(answered, draw.sample(ids, len(ids))) for _ in range(orders)]
        least, most = least + min(counts), most + max(counts)
    return f"{least} to {most}"


def released_orders(path: Path) -> tuple[int, int, int]:
    """Subsets in the log of Multi-News, and how many are in an order that `ranked` and `greedy` could have given."""
    with gzip.open(path, "rt") as stream:
        matrices = [ast.literal_eval(line) for line in stream if line.startswith("[[")]
    number = by_rank = by_gain = 0
    for matrix in matrices:
        sets = [frozenset(at for at, rating in enumerate(row) if rating >= 3) for row in matrix]
        gains = [len(each.difference(*sets[:at])) for at, each in enumerate(sets)]
        counts = list(map(len, sets))
        number += 1
        by_rank += counts == sorted(counts, reverse=True)
        by_gain += gains == sorted(gains, reverse=True)
    return number, by_rank, by_gain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=200)
    given = parser.parse_args()
    data = Path(os.environ["RAGWORTH_DATA"])
    topics = read_topics(data / "crux_duc04")
    numbers = [1 + max(int(passage.split("#")[1]) for passage in topic.seen) for topic in topics]
    print(f"passages of the topics' own documents: at least {sum(numbers):,}, by the highest number in an id")
    print(f"  in a released run: {sum(len(topic.seen) for topic in topics):,}")
    print(f"  with a rating: {sum(len(topic.own) for topic in topics):,}")
    counts = dict(readings(topics))
    print(f"readings: {len(counts):,}; {sum(each == WANTED for each in counts.values())} give {WANTED}")
    for reading, count in counts.items():
        if abs(count - WANTED) <= 4:
            print(f"  {count}: {reading}")
    for rule, own in product((greedy, ranked), (False, True)):
        where = "own passages" if own else "all passages"
        print(f"η = 3, {where}, {rule.__name__}, random ties: {random_ties(topics, rule, own, given.orders)}")
    number, by_rank, by_gain = released_orders(data / "crux_case" / "case.log.gz")
    print(f"order of {number:,} released subsets: {by_gain:,} as greedy gives it, {by_rank:,} as ranked does")


if __name__ == "__main__":
    main()
