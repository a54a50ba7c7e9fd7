"""Parts of the queries, for cross-validation or a single test: queries are parted, never the contexts of one query.

Contexts of one query share its passages and its difficulty. Were they parted, what is learned would be tested on what
it was learned from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.errors import InputError, format_count

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def assign_folds(query: Ints, folds: int, seed: int) -> Ints:
    """The part, 0 to ``folds`` − 1, of each row; ``query`` has the number of its query.

    Parts have equally many queries, or one more than others.
    """
    names, place = np.unique(query, return_inverse=True)
    part = np.random.default_rng(seed).permutation(len(names)) % folds
    return np.asarray(part[place.reshape(-1)], dtype=np.int64)


class QuerySplit(NamedTuple):
    """The rows to learn from and the rows to test on; the same where queries are cross-validated."""

    train: Bools
    test: Bools
    cross_validated: bool


def split_queries(query: Ints, train: float | None, test: float | None, seed: int, fewest: int) -> QuerySplit:
    """Queries drawn at random to learn from, and others to test on; without ``train``, all for both.

    A size below 1 is a share of the queries, others are numbers of queries. Without ``test``, all others are tested on.
    ``fewest`` are needed to learn from.
    """
    names, place = np.unique(query, return_inverse=True)
    if train is None:
        if test is not None:
            raise InputError("there is a size for testing and none for training", remedy="give both (--train, --test)")
        rows = np.ones(len(query), dtype=bool)
        return QuerySplit(rows, rows, True)
    total = len(names)
    first = _number(train, total, "train")
    second = total - first if test is None else _number(test, total, "test")
    if first < fewest or second < 2 or first + second > total:
        raise InputError(
            f"{format_count(total, 'query', 'queries')} with different outcomes can't be split into {first:,} to train "
            f"and {second:,} to test",
            expected=f"at least {fewest} to train and 2 to test",
        )
    drawn = np.random.default_rng(seed).permutation(total)[place.reshape(-1)]
    return QuerySplit(drawn < first, (drawn >= first) & (drawn < first + second), False)


def _number(size: float, total: int, name: str) -> int:
    if not 0 < size < 1 and (size < 1 or size % 1):
        raise InputError(
            f"the size of --{name} is {size:g}", expected="a share between 0 and 1, or a whole number of queries"
        )
    return round(size * total) if size < 1 else int(size)
