"""PyTerrier's transformers as systems."""

from __future__ import annotations

from typing import Any

import pytest

from ragworth import retrieval
from ragworth.core.errors import InputError
from ragworth.retrieval import retrieve
from tests.retrieval.samples import QUERIES, passages, world

pt = pytest.importorskip("pyterrier", reason="pyterrier is not installed")
import pandas as pd  # noqa: E402

# What pandas says of PyTerrier's own code is not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ROWS = [("q1", "p1", 3.0), ("q1", "p4", 2.0), ("q1", "p2", 2.0), ("q2", "p3", 1.0)]
asked: list[list[str]] = []


class Table(pt.Transformer):  # type: ignore[misc, name-defined]
    """Results out of a table, as a retriever gives them."""

    def __init__(self, rows: list[tuple[str, str, float]], *more: str) -> None:
        self.rows, self.more = rows, more

    def transform(self, inp: Any) -> Any:
        asked.append(inp["query"].to_list())
        frame = pd.DataFrame(self.rows, columns=["qid", "docno", "score"]).merge(inp, on="qid")
        frame = pt.model.add_ranks(frame) if "rank" in self.more else frame
        return frame.assign(text="of " + frame["docno"]) if "text" in self.more else frame


def test_a_transformer() -> None:
    asked.clear()
    made = retrieve({"pt": Table(ROWS, "rank"), "bare": Table(ROWS), "bm25": "bm25"}, world())
    assert asked == [[text for text in QUERIES.values() if text]] * 2, "all queries at once, and no empty one"
    assert passages(made, "pt") == {"q1": ["p1", "p4", "p2"], "q2": ["p3"], "q3": [], "q4": []}
    assert passages(made, "bare")["q1"] == ["p1", "p4", "p2"], "equal scores by id, descending"
    assert made.only("pt").frame["score"].to_list() == [3.0, 2.0, 2.0, 1.0]


def test_pipelines_of_transformers() -> None:
    turned = pt.apply.doc_score(lambda row: -row["score"])
    made = retrieve({"cut": Table(ROWS, "rank") % 1, "turned": [Table(ROWS, "rank") >> turned, "top(2)"]}, world())
    assert passages(made, "cut")["q1"] == ["p1"]
    assert passages(made, "turned")["q1"][0] != "p1"
    assert len(passages(made, "turned")["q1"]) == 2


def test_texts_come_along() -> None:
    context = world({})
    retrieve({"pt": Table(ROWS, "text")}, context)
    assert dict(context.texts.passages.iter_rows())["p4"] == "of p4"


def test_what_goes_wrong() -> None:
    broken = pt.apply.generic(lambda frame: frame["nothing"])
    with pytest.raises(InputError, match=r"pt: .* fails for 3 queries \('q1', 'q2', 'q3'\): "):
        retrieve({"pt": broken}, world())
    with pytest.raises(InputError, match=r"pt: .*a table with qid, query was returned[^$]*qid, docno"):
        retrieve({"pt": pt.apply.generic(lambda frame: frame)}, world())
    with pytest.raises(InputError, match="none of 1 passage"):
        retrieve({"pt": Table([("q1", "x", 1.0)])}, world())


def test_another_column_may_hold_the_id() -> None:
    renamed = Table(ROWS, "rank") >> pt.apply.generic(lambda frame: frame.rename(columns={"docno": "passage"}))
    assert passages(retrieve({"pt": retrieval.called(renamed, id="passage")}, world()), "pt")["q2"] == ["p3"]
