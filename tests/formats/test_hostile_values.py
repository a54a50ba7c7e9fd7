"""ir_datasets collections that hold what no honest one does."""

from __future__ import annotations

import copy
import sys
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from ragworth.core.errors import RagworthError
from ragworth.data import Contexts
from ragworth.formats import ir_datasets

ODD: list[Any] = [None, True, "", "x", "\ud800", "1", -1, 0, 1.5, 2**70, 10**400, 1e308, [], [1], {}, {"a": 1}, [[]]]


class Qrel(NamedTuple):
    query_id: Any = "q1"
    doc_id: Any = "d1"
    relevance: Any = 1


class Scored(NamedTuple):
    query_id: Any = "q1"
    doc_id: Any = "d1"
    score: Any = 1.0


def dataset(**parts: list[Any]) -> SimpleNamespace:
    """A collection as ir_datasets would hand it over."""
    made = SimpleNamespace()
    for name in ("qrels", "scoreddocs", "docs", "queries"):
        setattr(made, f"has_{name}", lambda name=name: name in parts)
        setattr(made, f"{name}_iter", lambda name=name: iter(copy.copy(parts[name])))
    return made


@pytest.mark.parametrize(
    "odd", [*ODD, float("nan"), float("inf"), object(), b"x"], ids=lambda value: repr(value).partition(" at ")[0]
)
@pytest.mark.parametrize("field", ["query_id", "doc_id", "relevance", "score"])
def test_ir_datasets(field: str, odd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table as exact as the values, or an error that names the collection."""
    kind, name, read = (
        (Scored, "scoreddocs", ir_datasets.read_contexts)
        if field == "score"
        else (Qrel, "qrels", ir_datasets.read_judgments)
    )
    rows = [kind(), kind("q2")._replace(**{field: odd})]
    library = SimpleNamespace(load=lambda _: dataset(**{name: rows}))
    monkeypatch.setitem(sys.modules, "ir_datasets", library)
    try:
        table: Any = read("hostile/collection")
    except RagworthError as error:
        assert "hostile/collection" in str(error)
        return
    assert table.frame.height == 2
    if field in ("query_id", "doc_id"):
        assert isinstance(odd, (str, int)) and not isinstance(odd, bool)
        assert str(odd) in table.frame[field.split("_")[0].replace("doc", "passage")].to_list()
    else:
        value = table.frame["score" if isinstance(table, Contexts) else "value"][1]
        assert value == odd and not isinstance(odd, (str, bool))
