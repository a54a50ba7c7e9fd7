"""Records in memory are read like files."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from ragworth.core.errors import InputError, TableError
from ragworth.formats import load, load_records
from ragworth.formats.contract import LoadedCollection
from tests.formats.sample_files import HERE

ROWS: list[dict[str, Any]] = [
    {"user_input": "Who?", "retrieved_contexts": ["Ines did it.", "Otto"], "response": "Ines", "reference": "Ines"},
    {"user_input": "When?", "retrieved_contexts": ["In 1958."], "response": 1958, "reference": "1958"},
]


def texts(loaded: LoadedCollection) -> list[Any]:
    assert loaded.contexts is not None
    assert loaded.answers is not None
    collection = loaded.collection
    return [
        collection.queries["text"].to_list(),
        collection.passages["text"].to_list(),
        loaded.answers.frame["text"].to_list(),
    ]


EXPECTED = [["Who?", "When?"], ["Ines did it.", "Otto", "In 1958."], ["Ines", "1958"]]


def test_list_of_dicts() -> None:
    loaded = load_records(ROWS)
    assert texts(loaded) == EXPECTED
    assert loaded.contexts is not None
    assert loaded.contexts.systems == ["run"]
    named = load_records(ROWS, source="mine").contexts
    assert named is not None
    assert named.systems == ["mine"]


def test_data_frames_and_columns() -> None:
    as_text = [row | {"response": str(row["response"])} for row in ROWS]
    columns = {name: [row[name] for row in as_text] for name in as_text[0]}
    assert texts(load_records(pl.DataFrame(as_text))) == EXPECTED
    assert texts(load_records(pl.DataFrame(as_text).to_arrow())) == EXPECTED
    assert texts(load_records(columns)) == EXPECTED
    assert texts(load(pl.DataFrame(as_text))) == texts(load(ROWS)) == EXPECTED
    pd = pytest.importorskip("pandas")
    assert texts(load_records(pd.DataFrame(ROWS))) == EXPECTED


def test_a_frame_and_its_file_are_the_same() -> None:
    path = HERE / "ragas/result.parquet"
    from_file, from_frame = load(path), load_records(pl.read_parquet(path), source=str(path))
    assert from_file.collection.equals(from_frame.collection)
    assert from_file.contexts == from_frame.contexts
    assert from_file.answers == from_frame.answers
    assert from_file.outcomes == from_frame.outcomes


@dataclass
class Case:
    """Like a test case of deepeval."""

    input: str
    actual_output: str
    retrieval_context: list[Any]
    expected_output: str | None = None


def test_objects_and_documents() -> None:
    document = SimpleNamespace(page_content="Ines did it.", metadata={}, id=None)
    node = SimpleNamespace(node_id="n1", get_content=lambda: "Otto", metadata={})
    scored = SimpleNamespace(node=node, node_id="n1", get_content=node.get_content, score=0.5)
    held = SimpleNamespace(test_cases=[Case("Who?", "Ines", [document, scored]), Case("When?", "1958", ["In 1958."])])
    assert texts(load_records(held)) == EXPECTED
    loaded = load_records([document, SimpleNamespace(page_content="Otto", metadata={}, id="o")])
    assert loaded.collection.passages["text"].to_list() == ["Ines did it.", "Otto"]


def test_missing_numbers_of_pandas() -> None:
    """NaN stands for a missing answer, never for the text 'nan'."""
    loaded = load_records([ROWS[0], ROWS[1] | {"response": float("nan")}])
    assert loaded.answers is not None
    assert loaded.answers.frame.select("text", "status").rows() == [("Ines", "ok"), (None, "no-answer")]


@pytest.mark.parametrize("data", [3, "log.jsonl", None, [], [1, 2], [{"a": 1}], {}, pl.DataFrame()])
def test_what_is_no_log(data: Any) -> None:
    with pytest.raises(InputError) as caught:
        load_records(data)
    assert str(caught.value)


def test_pandas_frames_with_a_named_index_or_equal_columns() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [{"question": f"Who {n}?", "system": "a", "answer": "Ann", "ground_truth": "Ann"} for n in range(2)]
    frame = pandas.DataFrame(rows)
    for index in ("question", ["system", "question"]):
        answers = load_records(frame.set_index(index)).answers
        assert answers is not None and answers.frame["system"].to_list() == ["a", "a"]
    with pytest.raises(TableError, match="columns occur twice: answer"):
        load_records(pandas.concat([frame, frame[["answer"]]], axis=1))
    with pytest.raises(TableError, match="has no rows"):
        load_records(frame.head(0))
