"""Results and logs written for other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ragworth
from ragworth import Answers, Collection, Contexts, Outcomes, Results, Scores
from ragworth.cli import main
from ragworth.core.errors import InputError
from ragworth.exports import trace_id
from tests.formats.sample_files import HERE, QUESTIONS


def results(**changes: Any) -> Results:
    parts: dict[str, Any] = {
        "collection": Collection.of(
            queries={"query": ["q1", "q2"], "text": ["Who?", "When?"]},
            passages={"passage": ["d1"], "text": ["Ines did it."]},
            answers={"query": ["q1", "q1"], "text": ["Ines", "Varga"]},
        ),
        "contexts": Contexts({"query": ["q1"], "passage": ["d1"], "rank": [1]}, system="rag", empty=[("rag", "q2")]),
        "judgments": None,
        "ratings": None,
        "answers": Answers({"system": ["rag"] * 2, "query": ["q1", "q2"], "repeat": [0, 0], "text": ["Ines", "1958"]}),
        "outcomes": Outcomes({"system": ["rag"], "query": ["q1"], "aspect": ["correct"], "value": [1.0]}),
        "scores": Scores(
            {
                "system": ["rag"] * 2,
                "query": ["q1", "q2"],
                "metric": ["P@1"] * 2,
                "value": [0.5, None],
                "status": ["ok", "left-out"],
            }
        ),
    }
    return Results(**(parts | changes))


def test_evaluation_events(tmp_path: Path) -> None:
    notes = ragworth.export(results(), tmp_path / "events.json", "otel")
    assert notes == ("1 value missing, and not exported",)
    (resource,) = json.loads((tmp_path / "events.json").read_text())["resourceLogs"]
    assert resource["resource"]["attributes"] == [{"key": "service.name", "value": {"stringValue": "rag"}}]
    records = resource["scopeLogs"][0]["logRecords"]
    assert {record["eventName"] for record in records} == {"gen_ai.evaluation.result"}
    facts = [{pair["key"]: next(iter(pair["value"].values())) for pair in record["attributes"]} for record in records]
    assert [(fact["gen_ai.evaluation.name"], fact["gen_ai.evaluation.score.value"]) for fact in facts] == [
        ("P@1", 0.5),
        ("correct", 1.0),
    ]
    assert {fact["ragworth.query"] for fact in facts} == {"q1"}


def test_langfuse_scores_go_to_their_traces(tmp_path: Path) -> None:
    """Scores of a log that came from Langfuse carry the ids of its traces."""
    notes = ragworth.export(HERE / "langfuse/traces.json", tmp_path / "scores.json", "langfuse")
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert notes == ()
    assert [(score["traceId"], score["name"], score["value"]) for score in scores] == [
        ("trace-0", "correctness", 1.0),
        ("trace-1", "correctness", 0.0),
        ("trace-2", "correctness", 0.0),
    ]
    assert len({score["id"] for score in scores}) == 3


def test_langfuse_scores_without_traces(tmp_path: Path) -> None:
    notes = ragworth.export(results(), tmp_path / "scores.json", "langfuse")
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert {score["traceId"] for score in scores} == {trace_id("rag", "q1")}
    assert any("1 answer without a trace" in note for note in notes)


def test_a_ragas_dataset_is_read_back(tmp_path: Path) -> None:
    """Questions, passages, answers and empty contexts survive; ragas has one reference for a question."""
    given = results()
    notes = ragworth.export(given, tmp_path / "dataset.jsonl", "ragas")
    assert notes == ("1 query has several accepted answers; the first is the reference",)
    loaded = ragworth.load(tmp_path / "dataset.jsonl")
    assert loaded.contexts == given.contexts
    assert loaded.answers is not None
    assert given.answers is not None
    columns = ["system", "query", "text"]
    assert sorted(loaded.answers.frame.select(columns).rows()) == sorted(given.answers.frame.select(columns).rows())
    assert loaded.collection.answers.rows() == [("q1", "Ines")]


@pytest.mark.parametrize(
    ("source", "there"),
    [("qrels.txt", True), ("containment of an accepted answer", False), ("openai:m · relevance@1f", False)],
)
def test_only_labels_are_reference_contexts(source: str, there: bool, tmp_path: Path) -> None:
    rows = {"query": ["q1"], "passage": ["d1"], "aspect": ["relevance"], "value": [1.0], "source": [source]}
    ragworth.export(results(judgments=ragworth.Judgments(rows)), tmp_path / "dataset.jsonl", "ragas")
    lines = [json.loads(line) for line in (tmp_path / "dataset.jsonl").read_text().splitlines()]
    assert {line["query_id"]: "reference_contexts" in line for line in lines} == {"q1": there, "q2": False}


def test_a_folder_of_results(tmp_path: Path) -> None:
    results().write(tmp_path / "results")
    run = CliRunner().invoke(
        main, ["export", str(tmp_path / "results"), "--to", "otel", "-o", str(tmp_path / "e.json")]
    )
    assert run.exit_code == 0, run.output
    assert "1 value missing" in run.output
    assert len(json.loads((tmp_path / "e.json").read_text())["resourceLogs"]) == 1


def test_a_log_becomes_a_ragas_dataset(tmp_path: Path) -> None:
    ragworth.export(HERE / "deepeval/goldens.json", tmp_path / "dataset.jsonl", "ragas")
    rows = [json.loads(line) for line in (tmp_path / "dataset.jsonl").read_text().splitlines()]
    assert [row["user_input"] for row in rows] == [question for question, _, _ in QUESTIONS]
    assert [row["reference"] for row in rows] == [accepted for _, accepted, _ in QUESTIONS]
    assert all(len(row["reference_contexts"]) == 1 for row in rows)


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    bare = results(collection=Collection())
    with pytest.raises(InputError, match="2 queries without text"):
        ragworth.export(bare, tmp_path / "dataset.jsonl", "ragas")
    with pytest.raises(InputError, match="no scores and no outcomes"):
        ragworth.export(HERE / "ragas/dataset.jsonl", tmp_path / "scores.json", "langfuse")
    with pytest.raises(InputError, match="unknown target"):
        ragworth.export(bare, tmp_path / "x", "csv")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
