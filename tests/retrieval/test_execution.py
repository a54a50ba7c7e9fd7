"""Several systems together: names, sharing, depth, runs from elsewhere, and everything checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragworth.core.errors import FormatError, InputError
from ragworth.data import Contexts
from ragworth.formats import write
from ragworth.retrieval import StepContext, retrieve
from ragworth.retrieval.execution import System
from ragworth.retrieval.pipeline import Step
from ragworth.retrieval.steps.bm25 import Bm25
from ragworth.retrieval.steps.reorder import Reversed
from tests.retrieval.samples import QUERIES, passages, world


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
    """Each step that ran, with the depth it was asked for."""
    calls: list[tuple[str, int]] = []
    for kind in (Bm25, Reversed):

        def watched(self: Step, before: Contexts | None, context: StepContext, real: object = kind.apply) -> Contexts:
            calls.append((str(self), context.depth))
            return real(self, before, context)  # type: ignore[operator, no-any-return]

        monkeypatch.setattr(kind, "apply", watched)
    yield calls


def test_what_systems_have_in_common_runs_once(applied: list[tuple[str, int]]) -> None:
    systems: dict[str, System] = {
        "two": "bm25 % 2",
        "three": "bm25(k1=1.2) >> top(3)",
        "all": "bm25",
        "turned": "bm25 % 2 >> reversed",
        "turned again": ["bm25 % 2", Reversed(), "top(1)"],
        "all turned": "bm25 >> reversed",
        "other": "bm25(b=0)",
    }
    made = retrieve(systems, world())
    assert sorted(applied) == [("bm25", 100), ("bm25(b=0)", 100), ("reversed", 100), ("reversed", 100)]
    assert made.systems == list(systems)
    for name, system in systems.items():
        alone = retrieve({name: system}, world())
        assert made.only(name) == alone


def test_as_deep_as_the_deepest(applied: list[tuple[str, int]]) -> None:
    texts = {f"p{n:03}": "mill" for n in range(300)}
    made = retrieve({"a": "bm25 % 7", "b": "bm25", "c": "bm25 % 250"}, world(texts, {"q": "mill"}))
    assert applied == [("bm25", 250)]
    assert [made.only(name).frame.height for name in "abc"] == [7, 100, 250]
    shallow = retrieve({"a": "bm25 % 7", "b": "bm25 >> reversed"}, world(texts, {"q": "mill"}, depth=20))
    assert [shallow.only(name).frame.height for name in "ab"] == [7, 20]


def test_contexts_that_are_there_already() -> None:
    given = Contexts({"q2": {"x": 1.0, "y": 2.0}, "q1": {"z": 1.0}, "unasked": {"x": 1.0}})
    made = retrieve({"mine": given, "bm25": "bm25"}, world())
    assert passages(made, "mine") == {"q1": ["z"], "q2": ["y", "x"], "q3": [], "q4": []}
    assert made.only("mine").frame["query"].to_list() == ["q1", "q2", "q2"]
    assert made.only("mine").frame["score"].to_list() == [1.0, 2.0, 1.0]
    two = Contexts({"system": ["a", "b"], "query": ["q1"] * 2, "passage": ["p1"] * 2, "rank": [1, 1]})
    with pytest.raises(InputError, match="mine: 2 systems cannot all be called"):
        retrieve({"mine": two}, world())


def test_a_run_out_of_a_file(tmp_path: Path) -> None:
    deep = Contexts({"q1": {f"d{n:03}": float(n) for n in range(150)}, "other": {"p1": 1.0}}, system="x")
    write(deep, tmp_path / "dense.run")
    write(deep, tmp_path / "dense.parquet")
    systems = {
        "dense": 'run("dense.run")',
        "table": "run('table:dense.parquet')",
        "cut": "run('dense.run') % 2 >> reversed",
    }
    made = retrieve(systems, world(folder=tmp_path))
    assert passages(made, "dense")["q1"] == [f"d{n:03}" for n in reversed(range(150))]
    assert passages(made, "table") == passages(made, "dense")
    assert passages(made, "cut")["q1"] == ["d148", "d149"]
    assert made.only("dense").frame["score"][0] == 149.0
    absolute = retrieve({"dense": f'run("{tmp_path / "dense.run"}")'}, world())
    assert passages(absolute, "dense") == passages(made, "dense")


def test_runs_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bad.run").write_text("one two\n")
    two = Contexts({"system": ["a", "b"], "query": ["q1"] * 2, "passage": ["p1"] * 2, "rank": [1, 1]})
    write(two, tmp_path / "two.parquet")
    with pytest.raises(FormatError, match=r"bad\.run"):
        retrieve({"s": "run('bad.run')"}, world(folder=tmp_path))
    with pytest.raises(InputError, match="has 2 systems"):
        retrieve({"s": "run('two.parquet')"}, world(folder=tmp_path))
    with pytest.raises(InputError, match=r"s: run: there is no file .*gone\.run"):
        retrieve({"s": "run('gone.run')"}, world(folder=tmp_path))


def test_all_problems_at_once_and_before_anything_runs(applied: list[tuple[str, int]]) -> None:
    systems = {
        "fine": "bm25",
        "spelt": "bm52",
        "head": "reversed % 10",
        "labels": "oracle",
        "file": "run('nowhere.txt')",
        "": "bm25",
    }
    with pytest.raises(InputError) as caught:
        retrieve(systems, world(labels=None))
    text = str(caught.value)
    for words in ("spelt: ", "did you mean bm25?", "head: reversed can't be first", "labels: oracle", "file: run"):
        assert words in text
    assert "name of a system is empty" in text
    assert applied == []


@pytest.mark.torch
@pytest.mark.parametrize("joined", ["fused(bm25, {}, {})", "fused(within({}, chunks=small), {})"])
def test_all_problems_of_a_system(joined: str) -> None:
    context = world({"a:0-4@small": "mill"}, labels=None)
    written = joined.format("random >> oracle >> rerank('./x')", "random >> rerank('./y')")
    with pytest.raises(InputError) as caught:
        retrieve({"s": written}, context)
    assert all(words in str(caught.value) for words in ("oracle lacks an input", "./x", "./y"))


def test_some_of_the_queries_in_their_order() -> None:
    context = world()
    made = retrieve({"s": "bm25", "r": "random % 1"}, StepContext.of(context.collection, ["q2", "q1", "q2"]))
    assert made.only("r").frame["query"].to_list() == ["q2", "q1"]
    assert list(passages(made, "s")) == ["q2", "q1"]
    every = retrieve({"s": "bm25", "r": "random % 1"}, context)
    assert passages(made, "r")["q1"] == passages(every, "r")["q1"]


def test_every_query_is_there_or_named_empty() -> None:
    made = retrieve({name: name for name in ("bm25", "random", "oracle", "adversary")}, world())
    for name in made.systems:
        assert set(passages(made, name)) == set(QUERIES)
    assert Contexts(made.frame, empty=made.empty) == made  # a table that its own checks accept
