"""What Python functions accept for a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ragworth
from ragworth.core.errors import TableError
from ragworth.formats.contract import LoadedCollection
from ragworth.workspace import arguments

RUN = "q1 Q0 d1 1 2.0 t\nq1 Q0 d2 2 1.0 t\n"
QRELS = "q1 0 d2 1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bm25.run").write_text(RUN)
    (tmp_path / "dense.run").write_text(RUN.replace("d1 1 2.0", "d2 1 2.0").replace("d2 2 1.0", "d1 2 1.0"))
    (tmp_path / "qrels.txt").write_text(QRELS)
    return tmp_path


def test_a_path_is_read(folder: Path) -> None:
    found = ragworth.score(str(folder / "bm25.run"), folder / "qrels.txt", "RR")
    assert found.frame.select("system", "value").rows() == [("bm25", 0.5)]


def test_data_frames_and_dicts_still_do(folder: Path) -> None:
    frame = pl.DataFrame({"query": ["q1"], "passage": ["d2"], "score": [1.0]})
    assert ragworth.score(frame, folder / "qrels.txt", "RR").frame["value"].to_list() == [1.0]
    assert ragworth.score(frame.to_dicts(), {"q1": {"d2": 1}}, "RR").frame["value"].to_list() == [1.0]


@pytest.mark.parametrize(
    ("contexts", "words"),
    [
        (ragworth.Judgments({"q1": {"d1": 1}}), "contexts has the type Judgments"),
        (3, "contexts has the type int"),
        (None, "contexts has the type NoneType"),
        (b"bm25.run", "contexts has the type bytes"),
    ],
)
def test_a_wrong_type_names_what_is_expected_and_what_makes_it(contexts: Any, words: str) -> None:
    with pytest.raises(TableError) as caught:
        ragworth.score(contexts, {"q1": {"d1": 1}})
    assert words in str(caught.value)
    assert "expected: the path of a run, Contexts, a data frame" in str(caught.value)
    assert "ragworth.read_contexts(PATH)" in str(caught.value)


def test_results_of_load_say_which_part_to_give() -> None:
    contexts = ragworth.Contexts({"q1": {"d1": 1.0}})
    with pytest.raises(TableError, match=r"has the type LoadedCollection(.|\n)*to do: give \.contexts of it"):
        ragworth.score(LoadedCollection(ragworth.Collection(), contexts), {"q1": {"d1": 1}})


def test_judgments_of_a_wrong_type(folder: Path) -> None:
    with pytest.raises(TableError, match=r"judgments has the type Contexts(.|\n)*ragworth.read_judgments\(PATH\)"):
        ragworth.score(folder / "bm25.run", ragworth.Contexts({"q1": {"d1": 1.0}}))


def test_runs_of_several_systems_in_one_dict() -> None:
    contexts = arguments.to_contexts({"a": {"q1": {"d1": 2.0, "d2": 3.0}}, "b": {"q1": {"d1": 1.0}}})
    assert contexts.frame.select("system", "passage").rows() == [("a", "d2"), ("a", "d1"), ("b", "d1")]
