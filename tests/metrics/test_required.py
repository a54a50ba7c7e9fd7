"""The required subset of a query, and the classes of the passages outside it."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragworth
from ragworth.core.errors import InputError, TableError
from tests.metrics.cases import Grades, rated
from tests.strategies import examples

REQUIRED, PARTIAL, FULL, NOTHING = "required", "partially-redundant", "fully-redundant", "answers-nothing"


class Row(NamedTuple):
    passage: str
    kind: str
    place: int | None
    gain: int


def rows(ratings: ragworth.Ratings, eta: float = 3.0) -> list[Row]:
    frame = ragworth.required(ratings, eta)
    assert frame.columns == ["query", "passage", "class", "place", "gain"]
    return [Row(*row) for row in frame.select("passage", "class", "place", "gain").rows()]


def test_greedy() -> None:
    # b answers three. Then s and t, u are closed: d adds v, a adds nothing. c answers too little.
    ratings = rated(
        a={"s": 3.0, "t": 3.0},
        b={"s": 3.0, "t": 3.0, "u": 4.0},
        c={"s": 2.0},
        d={"u": 3.0, "v": 5.0},
    )
    assert rows(ratings) == [
        Row("a", FULL, None, 0),  # 3 and 3 beside b's 3 and 3
        Row("b", REQUIRED, 1, 3),
        Row("c", NOTHING, None, 0),
        Row("d", REQUIRED, 2, 1),
    ]


def test_redundant_in_part() -> None:
    # Each of b, c, d answers s, which a answers with 4. b answers it better; d's 2 for t is no answer.
    ratings = rated(a={"s": 4.0, "t": 3.0}, b={"s": 5.0}, c={"s": 4.0}, d={"s": 3.0, "t": 2.0})
    assert [row.kind for row in rows(ratings)] == [REQUIRED, PARTIAL, FULL, FULL]


def test_the_best_rating_in_the_whole_subset_counts() -> None:
    # s is answered first by a with 3, but with 5 by b, which is required for u; so c's 4 adds nothing.
    ratings = rated(a={"s": 3.0, "t": 3.0}, b={"s": 5.0, "u": 3.0}, c={"s": 4.0})
    assert rows(ratings) == [Row("a", REQUIRED, 1, 2), Row("b", REQUIRED, 2, 1), Row("c", FULL, None, 0)]


def test_redundant_by_the_published_rule() -> None:
    # a is required: 4 and 3. b reaches its 4 for s, c is below in both, d is higher in one, e answers nothing.
    ratings = rated(
        a={"s": 4.0, "t": 3.0},
        b={"s": 4.0, "t": 0.0},
        c={"s": 3.0, "t": 2.0},
        d={"s": 5.0, "t": 1.0},
        e={"s": 1.0, "t": 0.0},
    )
    assert [row.kind for row in rows(ratings)] == [REQUIRED, FULL, FULL, PARTIAL, NOTHING]
    classes = ragworth.required(ratings, redundancy="crux")["class"].to_list()
    assert classes == [REQUIRED, PARTIAL, FULL, PARTIAL, FULL]
    with pytest.raises(InputError, match="redundancy is 'other'"):
        ragworth.required(ratings, redundancy="other")  # type: ignore[arg-type]


def test_ties_go_to_the_first_given() -> None:
    assert rows(rated(z={"s": 3.0}, a={"s": 3.0}))[0] == Row("z", REQUIRED, 1, 1)
    assert rows(rated(a={"s": 3.0}, z={"s": 3.0}))[0] == Row("a", REQUIRED, 1, 1)


def test_greedy_is_not_the_smallest() -> None:
    # b and c together would do, but a answers most at first.
    ratings = rated(
        a={"s": 3.0, "t": 3.0, "u": 3.0, "v": 3.0},
        b={"s": 3.0, "t": 3.0, "w": 3.0},
        c={"u": 3.0, "v": 3.0, "x": 3.0},
    )
    assert [(row.place, row.gain) for row in rows(ratings)] == [(1, 4), (2, 1), (3, 1)]


@pytest.mark.parametrize(
    ("eta", "kinds"), [(1.0, [REQUIRED, PARTIAL]), (3.0, [NOTHING, REQUIRED]), (6.0, [NOTHING] * 2)]
)
def test_the_threshold_decides(eta: float, kinds: list[str]) -> None:
    assert [row.kind for row in rows(rated(a={"s": 1.0, "t": 1.0}, b={"s": 5.0}), eta)] == kinds


def test_a_failed_rating_is_refused() -> None:
    # If b answered t, b alone would be required.
    with pytest.raises(TableError, match="1 rating without a value"):
        rows(rated(a={"s": 4.0}, b={"s": 3.0, "t": None}, c={"t": 3.0}))


def test_queries_are_apart_and_in_order() -> None:
    first, second = rated("q2", a={"s": 3.0}), rated("q1", a={"s": 1.0}, b={"s": 3.0, "t": 3.0})
    # Rows of the two mixed, as ratings made sub-question by sub-question are.
    both = [second.frame.row(0, named=True), *first.frame.to_dicts(), *second.frame.to_dicts()[1:]]
    frame = ragworth.required(ragworth.Ratings(both))
    assert frame.rows() == [
        ("q1", "a", NOTHING, None, 0),
        ("q1", "b", REQUIRED, 1, 2),
        ("q2", "a", REQUIRED, 1, 1),
    ]


def test_any_table_will_do() -> None:
    columns = {"qid": ["q"], "docno": ["d"], "subtopic": ["1"], "value": [5]}
    assert ragworth.required(columns).rows() == [("q", "d", REQUIRED, 1, 1)]


@given(
    st.dictionaries(
        st.sampled_from("abcdefgh"),
        st.dictionaries(st.sampled_from("stuvwx"), st.sampled_from((0.0, 2.0, 3.0, 4.0, 5.0)), min_size=1),
        min_size=1,
    ),
    st.sampled_from((2.0, 3.0, 5.0)),
)
@examples(150)
def test_what_holds_for_all_ratings(ratings: dict[str, dict[str, float]], eta: float) -> None:
    grades: dict[str, Grades] = dict(ratings)
    found = rows(rated(**grades), eta)
    answers = {passage: {s for s, value in row.items() if value >= eta} for passage, row in ratings.items()}
    chosen = sorted((row for row in found if row.place is not None), key=lambda row: row.place or 0)
    assert [row.place for row in chosen] == list(range(1, len(chosen) + 1))
    assert all((row.kind == REQUIRED) == (row.place is not None) == (row.gain > 0) for row in found)
    # Each step takes what no other passage could better, so gains never rise.
    closed: set[str] = set()
    for row in chosen:
        assert row.gain == len(answers[row.passage] - closed) == max(len(found - closed) for found in answers.values())
        closed |= answers[row.passage]
    assert [row.gain for row in chosen] == sorted((row.gain for row in chosen), reverse=True)
    # Together they answer all that can be answered.
    assert closed == set().union(*answers.values())
    for row in found:
        if row.kind == REQUIRED:
            continue
        mine = answers[row.passage]
        better = {s for s in mine if all(ratings[c.passage].get(s, 0.0) < ratings[row.passage][s] for c in chosen)}
        assert row.kind == (NOTHING if not mine else PARTIAL if better else FULL)
