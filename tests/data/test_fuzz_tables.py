"""Whatever is handed over, the result is a table that keeps its promises or a ragworth error."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any

import polars as pl
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from ragworth import Answers, Collection, Contexts, Judgments, Outcomes, Ratings, Scores
from ragworth.core.errors import RagworthError
from ragworth.data import ANSWERED_STATUSES, OK, Table
from tests.strategies import examples

TABLES: list[type[Table]] = [Contexts, Judgments, Ratings, Answers, Outcomes, Scores]

NAMES = ["query", "qid", "passage", "docno", "score", "rank", "value", "status", "aspect", "source", "subquestion"]
NAMES += ["system", "metric", "text", "tokens", "repeat", "relevance", "label", "abstention", "stranger"]

CELLS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(0, 3)
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(
        ["ok", "refused", "", "q1", "q2", "relevance", "\ud800", b"q1", [], ["a"], {}, {"a": 1}, (1,), 1 + 2j]
    )
    | st.sampled_from(
        [datetime.date(2020, 1, 1), datetime.timedelta(1), decimal.Decimal("1.5"), decimal.Decimal("NaN")]
    )
    | st.builds(object)
)
LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "score": st.floats(allow_nan=False) | st.integers(-3, 3),
    "rank": st.integers(0, 5),
    "value": st.floats(allow_nan=False, allow_infinity=False),
    "repeat": st.integers(0, 5),
    "tokens": st.none() | st.integers(0, 5),
    "relevance": st.integers(0, 3),
    "label": st.integers(0, 3),
    "abstention": st.floats(0, 1),
    "status": st.just("ok"),
}


@st.composite
def columns(draw: st.DrawFn) -> dict[str, list[Any]]:
    """Columns under our names: mostly what belongs there, some of one odd kind, some of all kinds."""
    height = draw(st.integers(0, 5))
    names = draw(st.lists(st.sampled_from(NAMES), max_size=9, unique=True))
    if draw(st.booleans()):
        names = list(dict.fromkeys([*names, "query", "passage", "score", "value", "system", "subquestion", "metric"]))
    data: dict[str, list[Any]] = {}
    for name in names:
        match draw(st.integers(0, 9)):
            case 0:
                cells = CELLS
            case 1:
                cells = draw(
                    st.sampled_from([st.integers(), st.floats(), st.none(), st.booleans(), st.binary(max_size=2)])
                )
            case _:
                cells = LIKELY.get(name, st.text(max_size=2) | st.sampled_from(["q1", "q2", "q3"]))
        data[name] = draw(st.lists(cells, min_size=height, max_size=height))
    return data


def keeps_its_promises(table: Table) -> None:
    frame = table.frame
    assert dict(frame.schema) == table.schema
    for name, kind in table.schema.items():
        if kind == pl.String and name not in table.nullable:
            assert frame[name].null_count() == 0
        if kind == pl.Float64:
            assert not frame[name].is_nan().any()
    for name in {"system", "query", "passage", "subquestion"} & set(table.schema):
        assert "" not in frame[name].to_list()
    if "status" in table.schema and "value" in table.schema:
        assert ((frame["status"] == OK) == frame["value"].is_not_null()).all()
    if isinstance(table, Answers):
        assert frame.filter(
            pl.col("status").is_in(ANSWERED_STATUSES) & (pl.col("text").fill_null("").str.strip_chars() == "")
        ).is_empty()
    assert frame.select(table.key).is_duplicated().sum() == 0
    if isinstance(table, Contexts):
        assert frame.height == 0 or int(frame["rank"].cast(pl.Int64).min() or 0) >= 1  # type: ignore[arg-type]
        assert frame.select("system", "query", "passage").is_duplicated().sum() == 0
    # What was checked once passes again unchanged.
    assert type(table)(frame).frame.equals(frame)


def check(table: type[Table], data: Any) -> None:
    try:
        made = table(data)
    except RagworthError as error:
        event(f"{table.name}: error")
        assert 0 < len(str(error)) < 4000
        return
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Polars is no Exception
        raise AssertionError(f"{type(error).__name__} from {table.__name__}: {data!r}") from error
    event(f"{table.name}: table")
    keeps_its_promises(made)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.name))
@examples(80)
@given(data=columns())
def test_dicts_of_columns(table: type[Table], data: dict[str, list[Any]]) -> None:
    check(table, data)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.name))
@examples(50)
@given(data=columns(), hole=st.none() | st.integers(0, 4))
def test_lists_of_dicts(table: type[Table], data: dict[str, list[Any]], hole: int | None) -> None:
    rows = [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)]
    if hole is not None and hole < len(rows):
        rows[hole] = {}
    check(table, rows)


@pytest.mark.parametrize("table", [Contexts, Judgments])
@examples(80)
@given(
    data=st.dictionaries(
        st.text(max_size=2) | st.integers() | st.none(),
        st.dictionaries(st.text(max_size=2) | st.integers(0, 9), CELLS, max_size=3),
        max_size=3,
    )
)
def test_nested_dicts(table: type[Table], data: dict[Any, Any]) -> None:
    check(table, data)


@examples(60)
@given(
    data=CELLS
    | st.lists(CELLS, max_size=4)
    | st.lists(st.lists(CELLS, max_size=3), max_size=3)
    | st.dictionaries(CELLS.filter(lambda c: c.__hash__ is not None), CELLS, max_size=3)
)
def test_anything(data: Any) -> None:
    for table in TABLES:
        check(table, data)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.name))
@examples(40)
@given(data=columns())
def test_pandas(table: type[Table], data: dict[str, list[Any]]) -> None:
    pandas = pytest.importorskip("pandas")
    check(table, pandas.DataFrame({name: pandas.Series(values, dtype=object) for name, values in data.items()}))
    try:
        inferred = pandas.DataFrame(data)
    except (ValueError, TypeError, OverflowError, UnicodeError):
        return  # pandas itself has no such frame
    check(table, inferred)


@examples(60)
@given(data=columns())
def test_collections(data: dict[str, list[Any]]) -> None:
    for part in ("queries", "passages", "answers", "subquestions", "relevance", "ratings"):
        arguments: dict[str, Any] = {part: data}
        try:
            made = Collection.of(**arguments)
        except RagworthError:
            continue
        assert made.equals(Collection.of(**arguments))


@pytest.mark.parametrize("kind", [pl.Date, pl.Duration, pl.Time, pl.Binary, pl.Boolean, pl.Int128, pl.UInt64, pl.Null])
@pytest.mark.parametrize("name", ["query", "score", "rank"])
def test_columns_of_odd_types(kind: Any, name: str) -> None:
    """A type that is no text and no number must be refused by name; of numbers, any will do."""
    good = {"query": ["q"], "passage": ["d"], "score": [1.0], "rank": [1]}
    column = pl.Series(name, [None], dtype=kind) if not kind.is_integer() else pl.Series(name, [7], dtype=kind)
    frame = pl.DataFrame(good).with_columns(column)
    if kind.is_integer():
        assert float(Contexts(frame).frame[name][0]) == 7.0
        return
    if name == "score" and kind in (pl.Boolean, pl.Null):
        assert Contexts(frame).frame["score"].to_list() == [None]
        return
    with pytest.raises(RagworthError, match=name):
        Contexts(frame)


def test_a_large_whole_number_is_a_score() -> None:
    assert Contexts({"q": {"a": 2**53}}).frame["score"].to_list() == [2.0**53]
    assert Contexts({"q": {"a": -math.inf}}).frame["score"].to_list() == [-math.inf]
