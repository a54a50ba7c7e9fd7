"""The six tables: schemas, what is refused and how that is said, and what they can do."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ragworth import Answers, Contexts, Judgments, Outcomes, Ratings, Scores
from ragworth.core.errors import FormatError, TableError
from ragworth.data import Table

TEXT, REAL, WHOLE = pl.String, pl.Float64, pl.Int64

SCHEMAS: dict[type[Table], dict[str, Any]] = {
    Contexts: {"system": TEXT, "query": TEXT, "rank": pl.UInt32, "passage": TEXT, "score": REAL},
    Judgments: {"query": TEXT, "passage": TEXT, "aspect": TEXT, "value": REAL, "status": TEXT, "source": TEXT},
    Ratings: {"query": TEXT, "passage": TEXT, "subquestion": TEXT, "value": REAL, "status": TEXT, "source": TEXT},
    Answers: {
        "system": TEXT,
        "query": TEXT,
        "repeat": WHOLE,
        "text": TEXT,
        "tokens": WHOLE,
        "status": TEXT,
        "source": TEXT,
    },
    Outcomes: {"system": TEXT, "query": TEXT, "aspect": TEXT, "value": REAL, "status": TEXT, "source": TEXT},
    Scores: {"system": TEXT, "query": TEXT, "metric": TEXT, "value": REAL, "status": TEXT},
}
COLUMNS: dict[str, list[Any]] = {
    "system": ["s", "s"],
    "query": ["q1", "q2"],
    "passage": ["d1", "d2"],
    "rank": [1, 1],
    "score": [0.5, 2],
    "aspect": ["relevance", "relevance"],
    "subquestion": ["a", "b"],
    "metric": ["RR", "RR"],
    "value": [1, 0.25],
    "status": ["ok", "ok"],
    "source": ["me", "you"],
    "repeat": [0, 1],
    "text": ["so", "no"],
    "tokens": [3, None],
}
TABLES = pytest.mark.parametrize("table", SCHEMAS, ids=lambda table: str(table.name))


def rows(table: type[Table], **changes: Any) -> dict[str, Any]:
    """Two good rows of a table, with other columns where told; None takes a column away."""
    columns = {name: COLUMNS[name] for name in table.schema} | changes
    return {name: values for name, values in columns.items() if values is not None}


@TABLES
def test_schema(table: type[Table]) -> None:
    assert table.schema == SCHEMAS[table]
    made = table(rows(table))
    assert dict(made.frame.schema) == SCHEMAS[table]
    assert len(made) == 2
    for name in table.schema:
        assert made.frame[name].to_list() == COLUMNS[name]


@TABLES
def test_columns_in_any_order_and_strangers_left_out(table: type[Table]) -> None:
    turned = dict(reversed(rows(table).items())) | {"stranger": [object(), None]}
    assert table(turned) == table(rows(table))


@TABLES
def test_parquet_reads_back_equal(table: type[Table], tmp_path: Path) -> None:
    made = table(rows(table))
    made.write(tmp_path / "table.parquet")
    assert table.read(tmp_path / "table.parquet") == made


@TABLES
def test_reading_what_is_not_there(table: type[Table], tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="can't be read as Parquet") as caught:
        table.read(tmp_path / "absent.parquet")
    assert caught.value.file == str(tmp_path / "absent.parquet")


@TABLES
def test_equality_is_of_content(table: type[Table]) -> None:
    made = table(rows(table))
    assert made == table(rows(table))
    assert made != table(rows(table, query=["q1", "q3"]))
    assert made != table({name: values[:1] for name, values in rows(table).items()})
    other = Ratings if table is not Ratings else Scores
    assert made != other(rows(other))
    assert made != made.frame
    with pytest.raises(TypeError):
        hash(made)


@TABLES
def test_repr_says_what_and_how_much(table: type[Table]) -> None:
    assert repr(table(rows(table))).startswith(f"{table.__name__}: 2 rows\n")


@TABLES
def test_empty_tables_are_tables(table: type[Table]) -> None:
    made = table({name: [] for name in table.schema})
    assert len(made) == 0
    assert dict(made.frame.schema) == SCHEMAS[table]


@TABLES
def test_missing_columns_are_named(table: type[Table]) -> None:
    optional = {"status", "source", "repeat", "aspect", "tokens", "rank", "score"}
    optional |= {"system"} if table is Contexts else set()
    for name in set(table.schema) - optional:
        with pytest.raises(TableError, match=f"'?{name}'?") as caught:
            table(rows(table, **{name: None}), source="file.csv")
        assert caught.value.file == "file.csv"


@TABLES
def test_duplicate_keys_are_refused(table: type[Table]) -> None:
    twice = {name: [values[0], values[0]] for name, values in rows(table).items()}
    with pytest.raises(TableError) as caught:
        table(twice, source="file.csv")
    assert "q1" in caught.value.found
    assert caught.value.expected
    assert caught.value.remedy


@TABLES
@pytest.mark.parametrize("column", ["system", "query", "passage", "subquestion"])
@pytest.mark.parametrize(
    ("ids", "found"),
    [
        ([1.0, 2.0], "Float64 values where ids belong, such as 1.0"),
        ([1.0, None], "Float64 values where ids belong"),
        (["a", None], "row 2: the .* id is missing"),
        (["a", ""], "row 2: the .* id is empty"),
        ([True, False], "Boolean values where ids belong"),
        ([["a"], ["b"]], "where ids belong"),
        ([b"a", b"b"], "Binary values where ids belong"),
        ([None, None], "row 1: the .* id is missing"),
    ],
)
def test_ids_that_are_none(table: type[Table], column: str, ids: list[Any], found: str) -> None:
    if column not in table.schema:
        return
    with pytest.raises(TableError, match=found) as caught:
        table(rows(table, **{column: ids}))
    assert column in caught.value.found


@TABLES
def test_whole_numbers_as_ids_become_text(table: type[Table]) -> None:
    made = table(rows(table, query=[7, 12345678901]))
    assert made.frame["query"].to_list() == ["7", "12345678901"]


VALUED = pytest.mark.parametrize("table", [Judgments, Ratings, Outcomes, Scores], ids=lambda table: str(table.name))


@VALUED
def test_value_and_status_go_together(table: type[Table]) -> None:
    made = table(rows(table, value=[None, 1], status=["refused", "ok"]))
    assert made.frame.select("value", "status").rows() == [(None, "refused"), (1.0, "ok")]
    for value, status in (([1, None], ["ok", "ok"]), ([1, 2], ["ok", "refused"])):
        with pytest.raises(TableError, match=r"row 2: value .* with status") as caught:
            table(rows(table, value=value, status=status))
        assert "if the status is 'ok'" in caught.value.expected


@VALUED
def test_missing_value_needs_a_reason(table: type[Table]) -> None:
    with pytest.raises(TableError, match="row 2: the value is missing without a reason"):
        table(rows(table, value=[1, None], status=None))


@VALUED
def test_not_a_number_is_refused(table: type[Table]) -> None:
    with pytest.raises(TableError, match="row 2: the value is NaN"):
        table(rows(table, value=[1, math.nan]))
    with pytest.raises(TableError, match="'value' holds String values where numbers belong, such as '1'"):
        table(rows(table, value=["1", "2"]))


@pytest.mark.parametrize("table", [Judgments, Ratings])
@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinite_values_are_refused(table: type[Table], value: float) -> None:
    """Gains of infinity give metrics that are not numbers; the readers of files refuse them too."""
    with pytest.raises(TableError, match="row 2"):
        table(rows(table, value=[1, value]))


@VALUED
@pytest.mark.parametrize("status", [["ok", None], [1, 2], [None, None]])
def test_status_is_text(table: type[Table], status: list[Any]) -> None:
    with pytest.raises(TableError, match="'status'"):
        table(rows(table, status=status))


@pytest.mark.parametrize("column", ["repeat", "tokens"])
@pytest.mark.parametrize("numbers", [[1.5, 2], [math.nan, 1], ["1", "2"], [2**70, 1]])
def test_whole_numbers_are_whole(column: str, numbers: list[Any]) -> None:
    with pytest.raises(TableError, match=column):
        Answers(rows(Answers, **{column: numbers}))
    assert Answers(rows(Answers, **{column: [1.0, 2.0]})).frame[column].to_list() == [1, 2]


def test_defaults() -> None:
    judgments = Judgments({"query": ["q"], "passage": ["d"], "value": [1]})
    assert judgments.frame.rows() == [("q", "d", "relevance", 1.0, "ok", "given")]
    answers = Answers({"system": ["s"], "query": ["q"], "text": ["so"]})
    assert answers.frame.rows() == [("s", "q", 0, "so", None, "ok", "given")]


def test_an_answer_has_a_text_or_a_reason() -> None:
    made = Answers(rows(Answers, text=["so", None], status=["truncated", "timed-out"]))
    assert made.frame.select("text", "status").rows() == [("so", "truncated"), (None, "timed-out")]
    both = Answers(rows(Answers, text=[None, None], status=["refused", "too-long"]))
    assert both.frame["text"].to_list() == [None, None]
    for status in ("ok", "truncated"):
        with pytest.raises(TableError, match=f"row 2: the text is missing, but the status is '{status}'"):
            Answers(rows(Answers, text=["so", None], status=["ok", status]))
    with pytest.raises(TableError, match="row 2: the text is missing"):
        Answers(rows(Answers, text=["so", None], status=None))
    with pytest.raises(TableError, match="'text' holds Int64 values where texts belong"):
        Answers(rows(Answers, text=[1, 2]))


def test_a_blank_answer_is_said_to_be_empty() -> None:
    blank = Answers(rows(Answers, text=[" \n", ""], status=["ok", "truncated"]))
    assert blank.frame["status"].to_list() == ["empty-answer", "empty-answer"]
    assert Answers(rows(Answers, text=["", "so"], status=None)).frame["status"].to_list() == ["empty-answer", "ok"]
    assert Answers(rows(Answers, text=["", "so"], status=["refused", "ok"])).frame["status"].to_list() == [
        "refused",
        "ok",
    ]


def test_wide_judgments() -> None:
    for relevance in ("relevance", "rel", "label", "grade", "is_relevant"):
        made = Judgments({"qid": [1, 1], "docno": ["a", "b"], relevance: [True, False], "p_abstain": [0.25, 0.5]})
        assert made.frame.select("query", "passage", "aspect", "value").rows() == [
            ("1", "a", "relevance", 1.0),
            ("1", "b", "relevance", 0.0),
            ("1", "a", "abstention", 0.25),
            ("1", "b", "abstention", 0.5),
        ]
    assert made.of("abstention")["value"].to_list() == [0.25, 0.5]
    assert made.of("other").height == 0


def test_empty_cells_of_wide_judgments_are_counted() -> None:
    made = Judgments({"query": ["q", "q", "p"], "passage": ["a", "b", "a"], "label": [1, None, None]})
    assert len(made) == 1
    assert made.notes == ("2 empty cells in 'label': no judgment",)


def test_an_outcome_must_say_what_it_is() -> None:
    with pytest.raises(TableError, match=r"^an outcomes table needs an 'aspect' column"):
        Outcomes({"system": ["s"], "query": ["q"], "value": [1.0]})


def test_wide_judgments_without_what_they_need() -> None:
    with pytest.raises(TableError, match="no judgment among the columns query, passage, score"):
        Judgments({"query": ["q"], "passage": ["d"], "score": [1]})
    with pytest.raises(TableError, match="needs a 'query' column"):
        Judgments({"docno": ["d"], "label": [1]})
    with pytest.raises(TableError, match="needs a 'query' column"):
        Judgments({"label": [1]})


def test_judgments_from_several_files() -> None:
    relevance = Judgments({"q": {"d": 1}}, notes=("one",))
    abstention = Judgments({"query": ["q"], "passage": ["d"], "abstention": [0.5]}, notes=("two",))
    both = Judgments.concat([relevance, abstention])
    assert both.frame["aspect"].to_list() == ["relevance", "abstention"]
    assert both.notes == ("one", "two")
    assert len(Judgments.concat([])) == 0
    with pytest.raises(TableError, match="second row for query 'q', passage 'd', aspect 'relevance'"):
        Judgments.concat([relevance, Judgments({"q": {"d": 0}})])
