"""Work split among processes."""

from __future__ import annotations

import polars as pl
import pytest
from training.rewriter.arms import Examples, chains
from training.rewriter.costs import Cost
from training.rewriter.parts import run_parts, split_by_query

from tests.tiers import slow


def _count(rows: pl.DataFrame, part: int) -> tuple[pl.DataFrame, Cost]:
    cost = Cost()
    cost.calls = rows.height
    return rows.with_columns(part=part), cost


@pytest.mark.parametrize("parts", [1, *slow(2, 5)])
def test_every_row_is_worked_on_once_and_calls_are_added(parts: int) -> None:
    rows = pl.DataFrame({"query": ["b", "a", "b", "c", "a"], "row": range(5)})
    cost = Cost()
    made = pl.concat(run_parts(_count, split_by_query(rows, parts), cost))
    assert sorted(made["row"]) == list(range(5))
    assert made.group_by("query").agg(pl.col("part").n_unique())["part"].to_list() == [1, 1, 1]
    assert made["part"].n_unique() == min(parts, 3)
    assert cost.calls == 5


def test_an_arm_is_in_the_chain_of_the_one_that_it_starts_from() -> None:
    rewrites = pl.DataFrame({"query": ["a"], "text": ["b"]})
    arms = {name: Examples(rewrites) for name in ("one", "two")} | {"next": Examples(None, rewrites, "two")}
    assert chains(arms) == [["two", "next"], ["one"]]
