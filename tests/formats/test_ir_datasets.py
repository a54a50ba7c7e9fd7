"""Collections by identifier, with a small one registered in the real library."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragworth.core.errors import FormatError, MissingExtraError
from ragworth.formats import load, read_contexts, read_judgments, read_ratings

NAME = "ragworth-test"


@pytest.fixture(scope="module")
def library() -> Any:
    return pytest.importorskip("ir_datasets", reason="the extra ir-datasets is not installed")


@pytest.fixture
def registered(library: Any, tmp_path: Path) -> Iterator[str]:
    """Four variants: everything, sub-topics, qrels alone, and documents alone."""
    from ir_datasets.datasets.base import Dataset
    from ir_datasets.formats import TrecQrels, TrecScoredDocs, TrecSubQrels, TsvDocs, TsvQueries
    from ir_datasets.util import LocalDownload

    def file(name: str, text: str) -> Any:
        (tmp_path / name).write_text(text)
        return LocalDownload(tmp_path / name)

    docs = TsvDocs(file("docs.tsv", "d1\tfirst text\nd2\tsecond text\n"))
    queries = TsvQueries(file("queries.tsv", "1\twhy?\n2\twho?\n"))
    qrels = TrecQrels(file("qrels", "1 0 d1 2\n1 0 d2 0\n2 0 d2 1\n"), {0: "no", 1: "yes", 2: "very"})
    run = TrecScoredDocs(file("run", "1 Q0 d1 1 0.5 t\n1 Q0 d2 2 0.75 t\n2 Q0 d1 1 0.5 t\n"))
    subtopics = TrecSubQrels(file("subtopics", "1 a d1 0\n1 b d1 1\n1 a d2 1\n"), {0: "no", 1: "yes"})
    variants = {
        NAME: Dataset(docs, queries, qrels, run),
        f"{NAME}/subtopics": Dataset(docs, queries, subtopics),
        f"{NAME}/qrels": Dataset(qrels),
        f"{NAME}/docs": Dataset(docs),
    }
    for name, dataset in variants.items():
        library.registry.register(name, dataset)
    yield NAME
    for name in variants:
        # The registry has no way to forget; without this the next test could not register again.
        del library.registry._registered[name]


def test_judgments(registered: str) -> None:
    judgments = read_judgments(f"ir_datasets:{registered}")
    assert judgments.frame.rows() == [
        ("1", "d1", "relevance", 2.0, "ok", "given"),
        ("1", "d2", "relevance", 0.0, "ok", "given"),
        ("2", "d2", "relevance", 1.0, "ok", "given"),
    ]


def test_the_run_that_comes_with_it(registered: str) -> None:
    contexts = read_contexts(f"ir_datasets:{registered}")
    assert contexts.frame.rows() == [
        (registered, "1", 1, "d2", 0.75),
        (registered, "1", 2, "d1", 0.5),
        (registered, "2", 1, "d1", 0.5),
    ]
    assert read_contexts(f"ir_datasets:{registered}", system="bm25").systems == ["bm25"]


def test_whole_collection(registered: str) -> None:
    loaded = load(f"ir_datasets:{registered}")
    assert loaded.collection.queries.rows() == [("1", "why?"), ("2", "who?")]
    assert loaded.collection.passages.rows() == [("d1", "first text"), ("d2", "second text")]
    assert loaded.collection.relevance == read_judgments(f"ir_datasets:{registered}")
    assert loaded.contexts == read_contexts(f"ir_datasets:{registered}")


def test_subtopics(registered: str) -> None:
    spec = f"ir_datasets:{registered}/subtopics"
    assert read_ratings(spec).frame.select("query", "passage", "subquestion", "value").rows() == [
        ("1", "d1", "a", 0.0),
        ("1", "d1", "b", 1.0),
        ("1", "d2", "a", 1.0),
    ]
    # As plain relevance a passage counts with its best sub-topic.
    assert read_judgments(spec).frame.select("passage", "value").rows() == [("d1", 1.0), ("d2", 1.0)]


def test_parts_that_are_not_there(registered: str) -> None:
    assert load(f"ir_datasets:{registered}/qrels").collection.passages.height == 0
    assert load(f"ir_datasets:{registered}/docs").collection.relevance is None
    with pytest.raises(FormatError, match="has no relevance judgments"):
        read_judgments(f"ir_datasets:{registered}/docs")
    with pytest.raises(FormatError, match="has no run"):
        read_contexts(f"ir_datasets:{registered}/qrels")
    for part in ("", "/docs"):
        with pytest.raises(FormatError, match="has no sub-topic judgments"):
            read_ratings(f"ir_datasets:{registered}{part}")


@pytest.mark.parametrize("name", ["no-such-collection", "", "../x"])
def test_unknown_name(name: str, library: Any) -> None:
    with pytest.raises(FormatError, match=f"ir_datasets has no collection '{name}'") as caught:
        read_judgments(f"ir_datasets:{name}")
    assert caught.value.remedy


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    # None in sys.modules makes the import fail, as if the package were not there.
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtraError, match=r'pip install "ragworth\[ir-datasets\]"') as caught:
        read_judgments("ir_datasets:vaswani")
    assert caught.value.exit_code == 2
