"""Rows that are read together: all of them, each once, the longest first, within the budget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragworth.llm.local.runtime import MIN_SHARED_PREFIX, BatchBudget, group_by_prefix

# Rows of few different tokens, many of which begin alike.
STEMS = [[1] * 20, [1] * 12 + [2] * 12, [1] * 3, []]
ROWS = st.lists(
    st.tuples(st.sampled_from(STEMS), st.lists(st.integers(1, 3), max_size=4)).map(lambda pair: pair[0] + pair[1]),
    max_size=12,
)


@st.composite
def rows_and_firsts(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    rows = draw(ROWS)
    return rows, [draw(st.integers(0, len(row))) for row in rows]


@given(rows_and_firsts(), st.booleans())
def test_every_row_is_in_one_group_and_begins_like_the_others(
    given_rows: tuple[list[list[int]], list[int]], share: bool
) -> None:
    rows, firsts = given_rows
    found = list(group_by_prefix(rows, firsts, share))
    assert sorted(row for group in found for row in group.rows) == list(range(len(rows)))
    for group in found:
        lengths = [len(rows[row]) for row in group.rows]
        assert lengths == sorted(lengths, reverse=True)
        assert len({tuple(rows[row][: group.shared]) for row in group.rows}) == 1
        assert group.shared == 0 or group.shared >= MIN_SHARED_PREFIX
        # Every distribution that is needed is still to come after the prefix.
        assert all(group.shared <= firsts[row] for row in group.rows)
        if not share or len(group.rows) == 1:
            assert group.shared == 0


LENGTHS = st.lists(st.integers(0, 50), max_size=30).map(lambda found: sorted(found, reverse=True))


@given(LENGTHS, st.integers(1, 200), st.integers(1, 8))
def test_batches_stay_within_the_budget(lengths: list[int], tokens: int, rows: int) -> None:
    done: list[tuple[int, int]] = []
    BatchBudget(tokens, rows).batches(lengths, lambda start, end: done.append((start, end)))
    assert [row for start, end in done for row in range(start, end)] == list(range(len(lengths)))
    for start, end in done:
        size = end - start
        assert 1 <= size <= rows
        # One row alone goes through, however long it is.
        assert size == 1 or size * max(1, lengths[start]) <= tokens


@given(LENGTHS, st.integers(1, 6))
def test_a_batch_that_is_too_much_is_tried_in_halves(lengths: list[int], most: int) -> None:
    done: list[int] = []
    refused: list[int] = []

    def work(start: int, end: int) -> None:
        if end - start > most:
            refused.append(end - start)
            raise MemoryError
        done.extend(range(start, end))

    budget = BatchBudget(10_000, 16)
    budget.batches(lengths, work)
    assert done == list(range(len(lengths)))
    # It learns: 16, 8, 4, 2 at the most, and never again.
    assert len(refused) <= 4
    assert refused == sorted(set(refused), reverse=True)
    assert budget.rows <= 16
