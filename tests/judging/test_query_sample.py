"""Some of the queries, and numbers that are none."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from ragworth.core.errors import InputError
from ragworth.judging.text_lookup import check_positive_count, sample_by_query, sample_queries


class Thing(NamedTuple):
    query: str
    name: int


THINGS = [Thing(f"q{n % 3}", n) for n in range(7)]


def test_the_first_queries_with_all_that_is_theirs() -> None:
    assert sample_by_query(THINGS, None, None, 0) == THINGS
    assert [each.name for each in sample_by_query(THINGS, 1, None, 0)] == [0, 3, 6]
    assert sample_by_query(THINGS, 9, 9, 0) == THINGS


def test_queries_drawn_at_random_keep_their_order() -> None:
    found = {tuple(sample_queries("abc", sample=2, seed=seed)) for seed in range(20)}
    assert found == {("a", "b"), ("a", "c"), ("b", "c")}
    assert len(sample_queries("abc", limit=1, sample=2)) == 1


@pytest.mark.parametrize("value", [0, -1, 1.0, "3", True, "oracle"])
def test_what_is_no_number_of_things(value: Any) -> None:
    with pytest.raises(InputError, match=r"k is .*\n.*a whole number, 1 or more"):
        check_positive_count("k", value)
    for more in ({"limit": value}, {"sample": value}):
        with pytest.raises(InputError):
            sample_queries("abc", **more)


def test_what_is_one() -> None:
    for value in (None, 1, 99):
        check_positive_count("k", value)
