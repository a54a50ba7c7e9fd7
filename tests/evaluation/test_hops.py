"""Agents that search several times: contexts that say in which hop a passage was found."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ragworth import evaluate
from ragworth.core.errors import InputError, TableError
from ragworth.data import Contexts
from ragworth.evaluation.plan import plan_evaluation
from ragworth.formats import load
from ragworth.formats.logs.trace_specs import OTLP_FORMAT as OTLP
from ragworth.judging.contribution.hops import hops_of, read_hops
from ragworth.llm.contract import Score
from ragworth.workspace.config import read
from tests.evaluation.samples import Models, lines, rests_on_first, statuses, workspace

ROWS = [("q1", "p2", 1, 1, "mill"), ("q1", "p1", 2, 2, "builder of the mill"), ("q2", "p2", 1, 1, "mill")]
TOML = """
k = 2
[collection]
queries = "queries.jsonl"
passages = "passages.jsonl"
answers = "answers.jsonl"
qrels = "qrels.txt"
[systems]
agent = {run = "agent.csv"}
[metrics]
use = ["nDCG@2"]
"""


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    made = Models(rests_on_first)
    monkeypatch.setattr("ragworth.evaluation.model_pool.llm", made)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    where = workspace(tmp_path / "data", f"judgments.hops = true\n{TOML}")
    frame = pl.DataFrame(ROWS, schema=["query", "passage", "rank", "hop", "search"], orient="row")
    frame.write_csv(where / "agent.csv")
    return where


@pytest.mark.usefixtures("whole_report")
def test_hops_of_a_run_are_analysed_and_reported(folder: Path, models: Models) -> None:
    assert [stage.name for stage in plan_evaluation(read(folder)).stages] == ["grade.hops"]
    found = evaluate(folder)
    assert statuses(found.stages)["grade.hops"] == "done"
    assert found.results is not None
    frame = found.results.said["hops"]
    row = frame.filter(pl.col("growing").is_not_null()).row(0, named=True)
    assert (row["query"], row["searches"]) == ("q1", ["mill", "builder of the mill"])
    assert row["growing"] == pytest.approx([-5.0, -5.0, -1.0])
    assert set(frame["query"]) == {"q1"}  # the other query has a single hop
    needed = found.results.outcomes_of("hops-needed")
    assert needed.select("system", "query", "value").rows() == [("agent", "q1", 2.0)]
    assert found.report is not None
    text = found.report.read_text(encoding="utf-8")
    assert "The agent couldn't have stopped earlier" in html.unescape(text)
    assert "of an accepted answer, as measured by " in text
    assert models.taken()
    assert statuses(evaluate(folder).stages)["grade.hops"] == "kept"


@pytest.mark.usefixtures("whole_report")
def test_the_report_goes_by_the_same_threshold_as_the_outcome(folder: Path, models: Models) -> None:
    (folder / "ragworth.toml").write_text(f"judgments.hops = {{least = 5.0}}\n{TOML}", encoding="utf-8")
    found = evaluate(folder)
    assert found.results is not None and found.report is not None
    assert found.results.outcomes_of("hops-needed")["value"].to_list() == [0.0]
    text = found.report.read_text(encoding="utf-8")
    assert "The agent could have answered without searching: all searches together add +4.0 nats." in text
    assert "the median answer needs 0 of 2 searches" in text
    assert "together add no more than 5 nats" in text


def test_hops_wait_for_a_word_because_they_take_calls(folder: Path, models: Models) -> None:
    def tasks(line: str) -> Any:
        (folder / "ragworth.toml").write_text(f"{line}\n{TOML}", encoding="utf-8")
        return read(folder).hops

    assert tasks("judgments.hops = false") is None
    assert "grade.hops" not in statuses(evaluate(folder).stages)
    tasks("")
    stages = evaluate(folder).stages
    assert statuses(stages)["grade.hops"] == "skipped"
    assert "write hops = true under [judgments]" in str(stages)
    assert not models.taken()
    assert tasks('judgments.hops = {method = "exact"}').settings == {"method": "exact"}
    tasks('judgments.hops = {metod = "exact"}')
    with pytest.raises(InputError, match="metod"):
        evaluate(folder)


def test_logs_say_in_which_hop_a_passage_was_found(folder: Path, models: Models) -> None:
    shown = [
        {"doc_id": "p2", "text": "Passage 2: It burned.", "hop": 1, "search": "mill"},
        {"doc_id": "p1", "text": "Passage 1: Ann built it.", "hop": 2, "search": "who"},
    ]
    record = {"query_id": "q1", "query": "Who built the mill?", "answer": "Ann built it", "retrieved_context": shown}
    lines(folder / "agent.jsonl", [record])
    toml = 'judgments.hops = true\n[systems]\nagent = {run = "agent.jsonl"}\n[grades]\ntext = false\n'
    (folder / "ragworth.toml").write_text(toml, encoding="utf-8")
    found = evaluate(folder, until="grade")
    assert statuses(found.stages)["grade.hops"] == "done"
    assert {request.continuation.strip() for _, request in models.taken() if isinstance(request, Score)} == {
        "Ann built it"
    }


@pytest.mark.parametrize("hop", ["bridge", -1, 1.5, True, None])
def test_a_field_that_is_no_number_of_a_hop_is_left_alone(folder: Path, hop: object) -> None:
    passage = {"doc_id": "p1", "text": "Ann built it.", "hop": hop}
    record = {"query_id": "q1", "query": "Who?", "answer": "Ann", "retrieved_context": [passage]}
    lines(folder / "agent.jsonl", [record])
    contexts = load(str(folder / "agent.jsonl")).contexts
    assert contexts is not None
    assert contexts.hops is None


def test_a_search_that_finds_nothing_new_is_a_hop(folder: Path) -> None:
    shown = [{"doc_id": name, "text": name, "hop": hop} for hop, name in ((0, "p1"), (1, "p1"), (2, "p2"))]
    record = {"query_id": "q1", "query": "Who?", "answer": "Ann", "retrieved_context": shown}
    lines(folder / "agent.jsonl", [record])
    contexts = load(str(folder / "agent.jsonl")).contexts
    assert contexts is not None
    assert contexts.frame["passage"].to_list() == ["p1", "p2"]
    assert contexts.hops is not None
    (hops,) = hops_of(contexts.hops).values()
    assert [hop.passages for hop in hops] == [("p1",), (), ("p2",)]


def test_a_search_without_a_result_is_a_hop(folder: Path, models: Models) -> None:
    rows = [("q1", "p2", 1, 1, "mill"), ("q1", None, None, 2, "miller"), ("q2", None, None, 1, "mill")]
    frame = pl.DataFrame(rows, schema=["query", "passage", "rank", "hop", "search"], orient="row")
    frame.write_csv(folder / "agent.csv")
    frame.write_csv(folder / "hops.csv")
    results = evaluate(folder).results
    assert results is not None
    assert ("agent", "q2") in results.contexts.empty
    row = results.said["hops"].row(0, named=True)
    assert (row["query"], row["searches"]) == ("q1", ["mill", "miller"])
    assert row["growing"] == pytest.approx([-5.0, -5.0, -5.0])
    hops = read_hops(folder / "hops.csv")["run", "q1"]
    assert [hop.passages for hop in hops] == [("p2",), ()]
    frame.with_columns(hop=None).write_csv(folder / "agent.csv")
    with pytest.raises(InputError, match="line 3: the passage is missing"):
        evaluate(folder)
    assert [hop.passages for hop in hops_of(frame.with_columns(search=None))["run", "q1"]] == [("p2",), ()]
    frame.with_columns(rank=pl.int_range(1, 4)).write_csv(folder / "agent.csv")
    with pytest.raises(InputError, match="line 3: the passage is missing"):
        evaluate(folder)
    with pytest.raises(TableError, match="has passages, and a row without one"):
        Contexts(frame.with_columns(hop=None))


def test_logs_have_searches_without_a_result(tmp_path: Path) -> None:
    shown: list[dict[str, Any]] = [{"hop": 1, "search": "miller"}, {"doc_id": "p1", "text": "A", "hop": 2}]
    record = {"query_id": "q1", "query": "Who?", "answer": "Ann", "retrieved_context": shown}
    lines(tmp_path / "agent.jsonl", [record])
    contexts = load(str(tmp_path / "agent.jsonl")).contexts
    assert contexts is not None and contexts.hops is not None
    assert contexts.frame["passage"].to_list() == ["p1"]
    (hops,) = hops_of(contexts.hops).values()
    assert [(hop.search, hop.passages) for hop in hops] == [("miller", ()), ("", ("p1",))]
    assert not contexts.notes
    for first in ({"hop": 1}, {"hop": 1, "search": "miller", "snippet_body": "Ann built it.", "score": 0.9}):
        lines(tmp_path / "agent.jsonl", [record | {"retrieved_context": [first, *shown[1:]]}])
        with pytest.raises(InputError, match="passage 1 has neither doc_id nor text"):
            load(str(tmp_path / "agent.jsonl"))


@pytest.mark.parametrize("columns", [["turn"], ["hop"]])
def test_a_column_that_means_something_else_is_no_error(folder: Path, models: Models, columns: list[str]) -> None:
    frame = pl.read_csv(folder / "agent.csv").drop("hop").with_columns(pl.lit("c1_1").alias(name) for name in columns)
    frame.write_csv(folder / "agent.csv")
    (folder / "ragworth.toml").write_text(TOML, encoding="utf-8")
    found = evaluate(folder)
    assert "grade.hops" not in statuses(found.stages)
    assert found.results is not None
    notes = str(found.results.manifest)
    assert ("isn't read as an agent's hops" in notes) == (columns == ["hop"])


@pytest.mark.parametrize(
    ("second", "found", "hops"),
    [("her name", True, [1, 2]), ("her name", False, [1, 2]), ("who built it", True, None)],
)
def test_retrievers_of_a_trace_are_hops_if_they_search_for_different_things(
    tmp_path: Path, second: str, found: bool, hops: list[int] | None
) -> None:
    def span(name: str, kind: str, given: str, **more: str) -> dict[str, Any]:
        facts = {"openinference.span.kind": kind, "input.value": given, **more}
        attributes = [{"key": key, "value": {"stringValue": value}} for key, value in facts.items()]
        return {"traceId": "t", "spanId": name, "parentSpanId": "" if name == "a" else "a", "attributes": attributes}

    document = "retrieval.documents.0.document.content"
    spans = [
        span("a", "CHAIN", "Who built the mill?", **{"output.value": "Ann"}),
        span("b", "RETRIEVER", "who built it", **{document: "A widow did."}),
        span("c", "RETRIEVER", second, **({document: "The widow was Ann."} if found else {})),
    ]
    path = tmp_path / "traces.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}), encoding="utf-8")
    assert OTLP.load is not None
    contexts = OTLP.load(path).contexts
    assert contexts is not None
    assert (contexts.hops["hop"].to_list() if contexts.hops is not None else None) == hops
    assert len(contexts) == 1 + found
