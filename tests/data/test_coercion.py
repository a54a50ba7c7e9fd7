"""What people hand over: Polars, pandas, Arrow, dicts and lists all make the same table."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest

from ragworth import Collection, Contexts, Judgments, Ratings
from ragworth.core.errors import MissingExtraError, TableError
from ragworth.workspace.arguments import to_contexts

COLUMNS: dict[str, list[Any]] = {
    "query": ["q1", "q1", "q2"],
    "passage": ["a", "b", "a"],
    "score": [1.0, 2.5, 0.5],
}
ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
EXPECTED = [("run", "q1", 1, "b", 2.5), ("run", "q1", 2, "a", 1.0), ("run", "q2", 1, "a", 0.5)]


def frame() -> pl.DataFrame:
    return pl.DataFrame(COLUMNS)


@pytest.mark.parametrize(
    "data",
    [
        frame(),
        frame().lazy(),
        frame().with_columns(pl.col("query").cast(pl.Categorical), pl.col("passage").cast(pl.Enum(["a", "b"]))),
        frame().with_columns(pl.col("score").cast(pl.Float32)),
        frame().with_columns(pl.col("score").cast(pl.Decimal(10, 2))),
        pl.concat([frame()[:1], frame()[1:]], rechunk=False),
        COLUMNS,
        {name: tuple(values) for name, values in COLUMNS.items()},
        {name: pl.Series(values) for name, values in COLUMNS.items()},
        {name: np.array(values, dtype=object) for name, values in COLUMNS.items()},
        ROWS,
        tuple(ROWS),
        {"q1": {"a": 1.0, "b": 2.5}, "q2": {"a": 0.5}},
    ],
    ids=[
        "frame",
        "lazy",
        "categories",
        "single",
        "decimal",
        "chunks",
        "columns",
        "tuples",
        "series",
        "objects",
        "rows",
        "more rows",
        "nested",
    ],
)
def test_containers(data: Any) -> None:
    assert Contexts(data).frame.rows() == EXPECTED


def test_arrow() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(COLUMNS)
    assert Contexts(table).frame.rows() == EXPECTED
    assert Contexts(pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches())).frame.rows() == EXPECTED


@pytest.mark.parametrize("dtype", ["object", "string", "category", "str"])
def test_pandas(dtype: str) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(COLUMNS).astype({"query": dtype, "passage": dtype})
    assert Contexts(table).frame.rows() == EXPECTED
    # The index says nothing, whatever it holds.
    assert Contexts(table.set_index(pandas.Index([7, 7, 7]))).frame.rows() == EXPECTED


def test_pyterrier_results() -> None:
    """Ranks from 0, ids called qid and docno, and the text of the query in ``query``."""
    pandas = pytest.importorskip("pandas")
    results = pandas.DataFrame(
        {
            "qid": ["1", "1", "2"],
            "docid": [55, 12, 55],
            "docno": ["d55", "d12", "d55"],
            "rank": [0, 1, 0],
            "score": [7.5, 7.5, 1.0],
            "query": ["why is it", "why is it", "who was it"],
        }
    )
    assert Contexts(results, system="bm25").frame.rows() == [
        ("bm25", "1", 1, "d55", 7.5),
        ("bm25", "1", 2, "d12", 7.5),
        ("bm25", "2", 1, "d55", 1.0),
    ]
    qrels = pandas.DataFrame({"qid": ["1"], "docno": ["d55"], "label": [2], "iteration": ["0"]})
    assert Judgments(qrels).frame.rows() == [("1", "d55", "relevance", 2.0, "ok", "given")]


def test_the_index_of_pandas_has_columns() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(COLUMNS)
    assert Contexts(table.set_index("query")).frame.rows() == EXPECTED
    assert Contexts(table.set_index(["query", "passage"])).frame.rows() == EXPECTED
    assert Contexts(table.set_index("query", drop=False)).frame.rows() == EXPECTED
    assert Contexts(table.set_index(["query", pandas.RangeIndex(3)])).frame.rows() == EXPECTED


@pytest.mark.torch
def test_hugging_face() -> None:
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_dict(COLUMNS)
    assert Contexts(table).frame.rows() == EXPECTED
    assert to_contexts(table).frame.rows() == EXPECTED
    with pytest.raises(TableError, match=r"give one of them: data\['train'\]"):
        Contexts(datasets.DatasetDict({"train": table, "test": table}))


@pytest.mark.parametrize(("texts", "words"), [([5], "cast it to text"), ([["a", "b"]], "explode")])
def test_texts_of_other_types_are_named(texts: list[Any], words: str) -> None:
    with pytest.raises(TableError, match=rf"column 'text' holds(?s:.*){words}"):
        Collection.of(answers=pl.DataFrame({"query": ["1"], "text": texts}))


def test_pandas_gaps() -> None:
    """A missing whole number makes pandas turn ids into floats, and 7.0 is not 7."""
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TableError, match=r"'qid' holds Float64 values where ids belong, such as 7\.0") as caught:
        Contexts(pandas.DataFrame({"qid": [7, None], "docno": ["a", "b"], "score": [1, 2]}))
    assert "pandas" in caught.value.remedy
    with pytest.raises(TableError, match="row 2: the score is missing"):
        Contexts(pandas.DataFrame({"qid": ["7", "8"], "docno": ["a", "b"], "score": [1, None]}))
    with pytest.raises(TableError, match="row 2: the 'docno' id is missing"):
        Contexts(pandas.DataFrame({"qid": ["7", "8"], "docno": ["a", None], "score": [1, 2]}))


def test_pandas_nullable_whole_numbers() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"qid": pandas.array([7, 8], dtype="Int64"), "docno": ["a", "b"], "score": [1, 2]})
    assert Contexts(table).frame["query"].to_list() == ["7", "8"]


def test_pandas_oddities() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TableError, match="can't make a table of this DataFrame"):
        Contexts(pandas.DataFrame({"qid": ["1", 2], "docno": ["a", "b"], "score": [1, 2]}))
    with pytest.raises(TableError, match="can't make a table of this DataFrame"):
        Contexts(pandas.DataFrame([["1", "a", 1, 2]], columns=["qid", "docno", "score", "score"]))
    with pytest.raises(TableError):
        Contexts(pandas.DataFrame([["1", "a", 1]]))
    with pytest.raises(TableError):
        Contexts(pandas.Series([1, 2]))
    with pytest.raises(TableError, match="can't make a table of this DataFrame"):
        Contexts(pandas.DataFrame({"qid": pandas.Series([2**70], dtype=object), "docno": ["a"], "score": [1]}))


def test_pandas_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"qid": ["1"], "docno": ["a"], "score": [1.0]}).astype(
        {"qid": "object", "docno": "object"}
    )

    def fail(*_: Any, **__: Any) -> pl.DataFrame:
        raise ImportError("pyarrow is required")

    monkeypatch.setattr(pl, "from_pandas", fail)
    with pytest.raises(MissingExtraError, match=r'pip install "ragworth\[pandas\]"'):
        Contexts(table)


def test_nothing_heavy_is_imported_for_dicts() -> None:
    """pandas is recognised by the name of its module, not by importing it."""
    code = "import sys, ragworth; ragworth.Contexts({'q': {'a': 1}}); print({'pandas', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("query_id", "doc_id"),
        ("qid", "docno"),
        ("query-id", "corpus-id"),
        ("topic_id", "docid"),
        ("query", "passage"),
        ("qid", "passage_id"),
    ],
)
def test_other_names(query: str, passage: str) -> None:
    renamed = frame().rename({"query": query, "passage": passage})
    assert Contexts(renamed).frame.rows() == EXPECTED
    assert Judgments(renamed.rename({"score": "value"})).frame["passage"].to_list() == ["a", "b", "a"]


@pytest.mark.parametrize("name", ["subquestion_id", "sub_question_id", "subtopic", "subquestion", "question_id"])
def test_other_names_of_subquestions(name: str) -> None:
    made = Ratings({"query": ["q"], "passage": ["a"], name: [3], "value": [5]})
    assert made.frame["subquestion"].to_list() == ["3"]


def test_names_of_systems() -> None:
    for name in ("system", "run_id", "system_id", "run"):
        assert Contexts(COLUMNS | {name: ["x", "x", "y"]}).systems == ["x", "y"]


def test_mixed_ids_in_a_dict() -> None:
    """Keys of a dict may be whole numbers here and text there; they are all text in the end."""
    made = Contexts({1: {"a": 1.0, 2: 2.0}, "x": {3: 1.0}})
    assert made.frame.select("query", "passage").rows() == [("1", "2"), ("1", "a"), ("x", "3")]


@pytest.mark.parametrize("many", [10, 150, 5000])
def test_late_surprises_in_lists_of_dicts(many: int) -> None:
    """The first rows must not decide what the last ones may hold."""
    rows: list[dict[str, Any]] = [{"query": "q", "passage": f"d{i}", "score": 1} for i in range(many)]
    made = Contexts([*rows, {"query": "q", "passage": "last", "score": 0.5}])
    assert made.frame.row(-1) == ("run", "q", many + 1, "last", 0.5)
    judged: list[dict[str, Any]] = [{"query": "q", "passage": f"d{i}", "value": 1} for i in range(many)]
    with pytest.raises(TableError, match=f"row {many + 1}: the value is missing"):
        Judgments([*judged, {"query": "q", "passage": "last", "value": None}])
    rated = [row | {"status": "ok"} for row in judged]
    late = Judgments([*rated, {"query": "q", "passage": "last", "value": None, "status": "refused"}])
    assert late.frame.row(-1, named=True)["status"] == "refused"


def test_a_column_that_begins_late() -> None:
    rows: list[dict[str, Any]] = [{"query": "q", "passage": f"d{i}", "rank": i + 1} for i in range(150)]
    made = Contexts([*rows, {"query": "q", "passage": "last", "rank": 151, "score": 0.5}])
    assert made.frame.row(-1) == ("run", "q", 151, "last", 0.5)


@pytest.mark.parametrize(
    "data",
    [
        None,
        3,
        "run.txt",
        b"q",
        object(),
        {1, 2},
        [],
        {},
        [1, 2],
        [[1], [2]],
        {"q": 1},
        {"query": ["q"], "passage": ["a", "b"]},
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_table(data: Any) -> None:
    with pytest.raises(TableError) as caught:
        Contexts(data, source="somewhere")
    assert caught.value.file == "somewhere"


def test_a_decimal_that_is_no_number() -> None:
    """Polars panics at it, and its panic is no Exception."""
    with pytest.raises(TableError):
        Contexts({"query": ["q"], "passage": ["a"], "score": [Decimal("NaN")]})
    assert Contexts({"q": {"a": Decimal("1.5")}}).frame["score"].to_list() == [1.5]


def test_nested_dicts_only_where_they_have_a_meaning() -> None:
    with pytest.raises(TableError, match="it is a dict of dicts"):
        Ratings({"q": {"d": 1}})
