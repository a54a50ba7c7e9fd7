"""Finding judged passages when different pairs share a key, which chance alone would never show."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.core.errors import TableError
from ragworth.data import Contexts, ranking
from ragworth.metrics import METRICS
from ragworth.metrics.ground_truth import PassageLookup
from tests.strategies import World, examples, values, worlds
from tests.tiers import slow

Pair = tuple[int, str]
Keys = npt.NDArray[np.uint64]
Sizes = npt.NDArray[np.int64] | None
Make = Callable[[pl.Series, npt.NDArray[np.integer], Sizes], Keys]

TOP = np.uint64(1 << 63)


def constant(passages: pl.Series, numbers: npt.NDArray[np.integer], sizes: Sizes = None) -> Keys:
    """Everything collides."""
    return np.full(len(passages), 7, dtype=np.uint64)


def largest(passages: pl.Series, numbers: npt.NDArray[np.integer], sizes: Sizes = None) -> Keys:
    """Everything collides, at the very end of the keys."""
    return np.full(len(passages), np.iinfo(np.uint64).max, dtype=np.uint64)


def by_number(passages: pl.Series, numbers: npt.NDArray[np.integer], sizes: Sizes = None) -> Keys:
    """The passages of one query collide."""
    return (numbers if sizes is None else np.repeat(numbers, sizes)).astype(np.uint64)


def by_length(passages: pl.Series, numbers: npt.NDArray[np.integer], sizes: Sizes = None) -> Keys:
    """Ids of one length collide, whatever the query; half of the keys are in the upper half."""
    length = passages.str.len_chars().to_numpy().astype(np.uint64)
    return length + (length % np.uint64(2)) * TOP


MAKES: list[Make] = [constant, largest, by_number, by_length, ranking.passage_keys]
pairs = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(("a", "b", "ab", "ba", "abc", "é"))), max_size=12)


def series(asked: list[Pair], chunks: int = 1) -> tuple[npt.NDArray[np.int64], pl.Series]:
    passages = pl.Series([p for _, p in asked], dtype=pl.String)
    step = max(1, -(-len(asked) // chunks))
    pieces = [passages[low : low + step] for low in range(0, len(asked), step)]
    return np.array([n for n, _ in asked], dtype=np.int64), pl.concat(pieces) if pieces else passages


@pytest.mark.parametrize("make", MAKES, ids=lambda make: make.__name__)
@given(table=pairs.map(lambda rows: list(dict.fromkeys(rows))), asked=pairs, chunks=st.integers(1, 3))
@examples(60)
def test_each_match_is_found_once(make: Make, table: list[Pair], asked: list[Pair], chunks: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "passage_keys", make)
        found = PassageLookup(*series(table, chunks)).find(*series(asked))
    wanted = [(i, table.index(pair)) for i, pair in enumerate(asked) if pair in table]
    assert sorted(zip(found.asked.tolist(), found.row.tolist(), strict=True)) == wanted


def test_a_key_at_the_end_that_collides_less_often_than_another() -> None:
    # The two ids of length 2 share a key; the one of length 3 has the last key to itself.
    table: list[Pair] = [(0, "ab"), (0, "cd"), (0, "abc")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "passage_keys", by_length)
        found = PassageLookup(*series(table)).find(*series([(0, "abc"), (0, "xyz"), (1, "abc")]))
    assert (found.asked.tolist(), found.row.tolist()) == ([0], [2])


@pytest.mark.parametrize("make", [constant, *slow(largest, by_number, by_length)], ids=lambda make: make.__name__)
@given(world=worlds(failures=True))
@examples(10)
def test_scores_do_not_depend_on_keys(make: Make, world: World) -> None:
    metrics = [METRICS.get(name).bind() for name in METRICS.names()]
    wanted = values(world.score(metrics))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "passage_keys", make)
        assert values(world.score(metrics)) == wanted


@pytest.mark.parametrize("make", MAKES, ids=lambda make: make.__name__)
def test_colliding_ids_are_not_duplicates(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "passage_keys", make)
    assert Contexts({"q": {"a": 2.0, "b": 1.0}, "r": {"a": 1.0}}).frame["passage"].to_list() == ["a", "b", "a"]
    with pytest.raises(TableError, match="passage 'a' occurs twice for query 'r'"):
        Contexts({"query": ["q", "r", "r"], "passage": ["a"] * 3, "score": [1.0] * 3})
