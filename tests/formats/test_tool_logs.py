"""Results of evaluation tools, answers of services and hits of vector stores, in the shapes that these document."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ragworth.core.errors import FormatError
from ragworth.formats import load
from ragworth.formats.contract import LoadedCollection
from tests.formats.sample_files import format_of

Save = Callable[[str, str | bytes], Path]
MILL, TOWN = "Who built the mill?", "Where is the mill?"
BUILT, LIES = "Ann built the mill in 1820.", "The mill is in Arden."

PROMPTFOO = {
    "promptIdx": 0,
    "testIdx": 0,
    "provider": {"id": "openai:gpt-4o", "label": "large"},
    "prompt": {"raw": f"Answer: {MILL}", "label": "Answer: {{question}}"},
    "vars": {"question": MILL, "context": [BUILT, LIES]},
    "testCase": {"vars": {"question": MILL}, "assert": [{"type": "icontains", "value": "Ann"}]},
    "response": {"output": "Ann did."},
    "failureReason": 0,
    "success": True,
    "score": 1,
    "namedScores": {"Hallucination": 1},
    "gradingResult": {
        "pass": True,
        "score": 1,
        "componentResults": [{"pass": True, "score": 1, "assertion": {"type": "icontains", "value": "Ann"}}],
    },
}


def span(name: str, kind: str, inputs: Any, outputs: Any, parent: str | None = None) -> dict[str, Any]:
    """A span of MLflow 3."""
    facts = {"mlflow.spanType": kind, "mlflow.spanInputs": inputs, "mlflow.spanOutputs": outputs}
    attributes = {key: json.dumps(value) for key, value in facts.items()}
    status = {"code": "STATUS_CODE_OK"}
    return {"trace_id": "t", "span_id": name, "parent_span_id": parent, "attributes": attributes, "status": status}


MLFLOW = {
    "info": {
        "trace_id": "tr-1",
        "state": "OK",
        "trace_metadata": {"mlflow.sourceRun": "run1"},
        "assessments": [
            {"assessment_name": "expected_response", "expectation": {"value": "Ann"}},
            {"assessment_name": "correctness", "feedback": {"value": "no"}, "source": {"source_type": "LLM_JUDGE"}},
            {"assessment_name": "correctness", "feedback": {"value": True}, "source": {"source_type": "HUMAN"}},
            {"assessment_name": "correctness", "feedback": {"value": "yes"}, "valid": False},
        ],
    },
    "data": {
        "spans": [
            span("a", "CHAIN", {"question": MILL}, {"answer": "Ann"}),
            span("b", "RETRIEVER", {"query": "mill"}, [{"page_content": BUILT, "id": "d7", "metadata": {}}], "a"),
            span("c", "CHAT_MODEL", {"messages": []}, {"choices": []}, "a"),
        ]
    },
}
RETRIEVE = {"path": "app.retriever", "method": {"name": "retrieve", "obj": {}}}
TRULENS = {
    "app_id": "app_hash_1",
    "app_name": "RAG",
    "app_version": "base",
    "record_id": "record_1",
    "input": MILL,
    "output": "Ann",
    "record_json": {
        "main_input": MILL,
        "main_output": "Ann",
        "main_error": None,
        "calls": [
            {
                "stack": [{"method": {"name": "query"}}, RETRIEVE, RETRIEVE],
                "args": {"query": MILL},
                "rets": [BUILT, LIES],
            },
            {"stack": [{"method": {"name": "query"}}, RETRIEVE], "args": {"query": MILL}, "rets": [BUILT, LIES]},
            {"stack": [{"method": {"name": "query"}}], "args": {"query": MILL}, "rets": "Ann"},
        ],
    },
    "Answer Relevance": 0.75,
    "Answer Relevance_calls": [{"args": {"prompt": MILL, "response": "Ann"}, "ret": 0.75}],
    "Answer Relevance feedback cost in USD": 0.002,
    "latency": 3,
}
CHROMA = {"ids": [["a", "b"]], "documents": [[BUILT, LIES]], "distances": [[0.1, 0.4]], "metadatas": [[None, {}]]}


SAMPLES: dict[str, dict[str, Any]] = {
    "promptfoo": PROMPTFOO,
    "mlflow": MLFLOW,
    "trulens": TRULENS,
}
"""A row of each format, for tests with changed values."""


def read(save: Save, rows: Any, name: str = "log.json") -> LoadedCollection:
    text = rows if isinstance(rows, str) else json.dumps(rows)
    return load(save(name, text))


def shown(loaded: LoadedCollection) -> dict[tuple[str, str], list[tuple[str, float | None]]]:
    """Texts and scores of passages in the order shown, by system and question."""
    assert loaded.contexts is not None
    questions, texts = dict(loaded.collection.queries.iter_rows()), dict(loaded.collection.passages.iter_rows())
    found: dict[tuple[str, str], list[tuple[str, float | None]]] = {}
    rows = loaded.contexts.frame.select("system", "query", "passage", "score").iter_rows()
    for system, query, passage, score in rows:
        found.setdefault((system, questions[query]), []).append((texts.get(passage, passage), score))
    return found


def answers(loaded: LoadedCollection) -> list[tuple[str, str, int, str | None, str]]:
    assert loaded.answers is not None
    questions = dict(loaded.collection.queries.iter_rows())
    rows = loaded.answers.frame.select("system", "query", "repeat", "text", "status").iter_rows()
    return [(system, questions[query], *rest) for system, query, *rest in rows]


def grades(loaded: LoadedCollection, system: str = "log") -> dict[str, list[float | None]]:
    """Values by aspect, in the order of the questions."""
    assert loaded.outcomes is not None
    found: dict[str, list[float | None]] = {}
    rows = {(row["system"], row["query"], row["aspect"]): row["value"] for row in loaded.outcomes.frame.to_dicts()}
    for query in loaded.collection.queries["query"]:
        for aspect in loaded.outcomes.distinct("aspect"):
            if (system, query, aspect) in rows:
                found.setdefault(aspect, []).append(rows[system, query, aspect])
    return found


def accepted(loaded: LoadedCollection) -> list[str]:
    return loaded.collection.answers["text"].to_list()


def notes(loaded: LoadedCollection) -> str:
    found = (loaded.contexts, loaded.answers, loaded.collection)
    return "\n".join(note for table in found if table is not None for note in table.notes)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_is_recognised(name: str, save: Save) -> None:
    for ending, text in (("json", json.dumps([SAMPLES[name]], indent=1)), ("jsonl", json.dumps(SAMPLES[name]) + "\n")):
        assert format_of(save(f"log.{ending}", text)) == name


def test_providers_errors_and_repeats_of_promptfoo(save: Save) -> None:
    """A rejected answer is wrong, and has an error, too; a request that failed has no answer and no grade."""
    small = {"provider": {"id": "small"}, "promptIdx": 1}
    wrong = {"response": {"output": "Bob"}, "success": False, "score": 0, "failureReason": 1, "error": "Expected Ann"}
    failed = {
        "response": {"error": "timed out"},
        "success": False,
        "score": 0,
        "failureReason": 2,
        "error": "timed out",
    }
    results = [PROMPTFOO, PROMPTFOO | small | wrong, PROMPTFOO | failed, PROMPTFOO | small | {"testIdx": 1}]
    for document in (
        {"evalId": "e", "results": {"version": 3, "results": results}},
        {"version": 3, "results": results},
    ):
        loaded = read(save, document)
        assert answers(loaded) == [
            ("large", MILL, 0, "Ann did.", "ok"),
            ("small", MILL, 0, "Bob", "ok"),
            ("large", MILL, 1, None, "error"),
            ("small", MILL, 1, "Ann did.", "ok"),
        ]
        assert shown(loaded) == {(name, MILL): [(BUILT, None), (LIES, None)] for name in ("large", "small")}
        assert accepted(loaded) == ["Ann"]
        assert grades(loaded, "large") == {
            "pass": [1.0],
            "score": [1.0],
            "higher_Hallucination": [1.0],
        }
        assert grades(loaded, "small")["pass"] == [pytest.approx(0.5)]


def test_prompts_of_promptfoo(save: Save) -> None:
    """Prompts are systems, if there are several; without assertions, there is no grade."""
    plain: dict[str, Any] = {"testCase": {}, "gradingResult": None, "provider": "small", "namedScores": {}}
    loaded = read(save, [PROMPTFOO | plain, PROMPTFOO | plain | {"prompt": {"label": "Be brief"}}, PROMPTFOO | plain])
    assert [(system, repeat) for system, _, repeat, _, _ in answers(loaded)] == [
        ("small, prompt 1", 0),
        ("small, prompt 2", 0),
        ("small, prompt 1", 1),
    ]
    assert loaded.outcomes is None


@pytest.mark.parametrize(
    ("assertions", "references"),
    [
        ([{"type": "equals", "value": "{{who}}"}, {"type": "not-equals", "value": "Bob"}], ["Ann"]),
        ([{"type": "contains", "value": "Ann"}, {"type": "contains", "value": "1820"}], []),
        ([{"type": "icontains-any", "value": ["Ann", "Anne"]}], ["Ann", "Anne"]),
        ([{"type": "equals", "value": 1820}], ["1820"]),
        ([{"type": "factuality", "value": "file://a.txt"}, {"type": "javascript", "value": "true"}], []),
    ],
)
def test_references_in_assertions_of_promptfoo(assertions: Any, references: list[str], save: Save) -> None:
    row = PROMPTFOO | {"vars": {"question": MILL, "who": "Ann"}, "testCase": {"assert": assertions}}
    row["response"] = {"output": {"answer": "Ann", "context": BUILT}}
    loaded = read(save, [row])
    assert accepted(loaded) == references
    assert shown(loaded) == {("log", MILL): [(BUILT, None)]}


def test_variables_of_promptfoo_of_which_any_may_be_the_question(save: Save) -> None:
    row = PROMPTFOO | {"vars": {"topic": MILL, "tone": "formal"}}
    with pytest.raises(FormatError, match=r"no question in 'vars'; there are topic, tone; .*--map question=vars.NAME"):
        read(save, [row])
    assert load(save("log.json", json.dumps([row])), columns={"question": "vars.topic"}).answers is not None


def test_traces_of_mlflow(save: Save) -> None:
    """Runs are systems; people's feedback is apart from a judge's; a trace that failed has no answer."""
    other: dict[str, Any] = json.loads(json.dumps(MLFLOW))
    other["info"] |= {"trace_id": "tr-2", "trace_metadata": {"mlflow.sourceRun": "run2"}, "state": "ERROR"}
    loaded = read(save, [MLFLOW, other])
    assert answers(loaded) == [("run1", MILL, 0, "Ann", "ok"), ("run2", MILL, 0, None, "error")]
    assert shown(loaded) == {(name, MILL): [(BUILT, None)] for name in ("run1", "run2")}
    assert accepted(loaded) == ["Ann"]
    assert grades(loaded, "run1") == {"correctness": [0.0], "human_correctness": [1.0]}
    assert grades(loaded, "run2") == {}


def test_older_traces_of_mlflow(save: Save) -> None:
    """MLflow 2: the id of a span is in its context, and the whole request is JSON beside the spans."""
    old = {**span("b", "RETRIEVER", {"query": "mill"}, [{"page_content": BUILT}]), "context": {"span_id": "b"}}
    data = {"spans": [old], "request": json.dumps({"model_input": {"messages": [{"role": "user", "content": MILL}]}})}
    trace = {"info": {"request_id": "r", "status": "OK"}, "data": {**data, "response": json.dumps("Ann")}}
    loaded = read(save, trace)
    assert format_of(save("log.json", json.dumps(trace))) == "mlflow"
    assert shown(loaded) == {("log", MILL): [(BUILT, None)]}
    assert answers(loaded) == [("log", MILL, 0, "Ann", "ok")]


def test_evaluation_tables_of_mlflow(save: Save) -> None:
    """A table as MLflow stores it, and one of its GenAI evaluation with the traces in it. Facts are no answers."""
    columns = ["inputs", "targets", "outputs", "retrieved_context", "toxicity/v1/score", "toxicity/v1/justification"]
    stored = {"columns": columns, "data": [[MILL, "Ann", "Ann", [BUILT], 0.1, "…"], [MILL, "Ann", "Bob", [], 0.3, "…"]]}
    loaded = read(save, stored)
    assert format_of(save("log.json", json.dumps(stored))) == "mlflow"
    assert answers(loaded) == [("log", MILL, 0, "Ann", "ok"), ("log", MILL, 1, "Bob", "ok")]
    assert accepted(loaded) == ["Ann"]
    assert grades(loaded) == {"toxicity": [pytest.approx(0.2)]}
    row = {"request_id": "x", "inputs": {"question": MILL}, "outputs": {"response": "Ann"}, "trace": json.dumps(MLFLOW)}
    row |= {"expectations": {"expected_facts": ["Ann", "1820"]}, "safety/value": "yes", "safety/rationale": "…"}
    loaded = read(save, [row])
    assert shown(loaded) == {("log", MILL): [(BUILT, None)]}
    assert (accepted(loaded), grades(loaded)["safety"]) == (["Ann"], [1.0])
    assert accepted(read(save, [{**row, "trace": None}])) == []
    assert accepted(read(save, [{**row, "trace": None, "expectations": "Bob"}])) == ["Bob"]


def test_records_of_trulens(save: Save) -> None:
    """Versions are systems; a record with an error has no answer; the outermost retrieval has the passages."""
    record = TRULENS["record_json"]
    failed = {"record_json": {**record, "main_output": None, "main_error": "timeout"}, "output": None}  # type: ignore[dict-item]
    rows = [TRULENS, TRULENS | failed | {"record_id": "record_2", "app_version": "2"}]
    loaded = read(save, rows)
    assert answers(loaded) == [("RAG, base", MILL, 0, "Ann", "ok"), ("RAG, 2", MILL, 0, None, "error")]
    assert shown(loaded)["RAG, base", MILL] == [(BUILT, None), (LIES, None)]
    assert grades(loaded, "RAG, base") == {"Answer Relevance": [0.75]}
    assert shown(read(save, [record])) == {("log", MILL): [(BUILT, None), (LIES, None)]}


def test_columns_of_trulens_without_calls_are_no_grades_unless_mapped(save: Save) -> None:
    row = {"record_id": "r1", "input": MILL, "output": "Ann", "record_json": "{}", "ours": 0.25, "ours_calls": "[]"}
    row |= {"ours feedback cost in USD": 0.001, "customer": 4711, "shelf": 1, "answer_score": 80}
    loaded = read(save, [row])
    assert grades(loaded) == {"ours": [0.25]}
    assert grades(load(save("log.json", json.dumps([row])), columns={"grade": "shelf"}))["grade"] == [1.0]


def document(text: str, score: float) -> dict[str, Any]:
    return {"id": text[:3], "content": text, "meta": {}, "score": score}


def test_outputs_of_haystack_pipelines(save: Save) -> None:
    """The documents are the ranker's, wherever it stands; the question is beside the output, or in the answer."""
    retrieved, ranked = [document(LIES, 0.2), document(BUILT, 0.1)], [document(BUILT, 0.9)]
    output = {
        "ranker": {"documents": ranked},
        "retriever": {"documents": retrieved},
        "llm": {"replies": ["Ann", "Bob"]},
    }
    assert shown(read(save, [{"query": MILL, "result": output}])) == {("log", MILL): [(BUILT, 0.9)]}
    loaded = read(save, [{"query": MILL, **output}])
    assert format_of(save("log.json", json.dumps([{"query": MILL, **output}]))) == "haystack"
    assert shown(loaded) == {("log", MILL): [(BUILT, 0.9)]}
    assert answers(loaded) == [("log", MILL, 0, "Ann", "ok")]
    assert "only the first of several replies" in notes(loaded)
    made = {
        "type": "GeneratedAnswer",
        "init_parameters": {"data": "Ann", "query": MILL, "documents": retrieved, "meta": {}},
    }
    loaded = read(save, [{"answer_builder": {"answers": [made]}}])
    assert shown(loaded) == {("log", MILL): [(LIES, 0.2), (BUILT, 0.1)]}
    assert answers(loaded) == [("log", MILL, 0, "Ann", "ok")]


def test_evaluations_of_haystack(save: Save) -> None:
    """Several runs are several systems. Beside predicted answers, an answer is the right one."""
    inputs = {"question": [MILL, TOWN], "contexts": [[BUILT], []], "answer": ["Ann", "Arden"]}
    runs = [
        {
            "run_name": name,
            "inputs": {**inputs, "predicted_answer": ["Ann", "Rome"]},
            "results": {"sas": {"score": 0.5, "individual_scores": [1.0, 0.0]}},
        }
        for name in ("one", "two")
    ]
    loaded = read(save, "".join(json.dumps(run) + "\n" for run in runs), "log.jsonl")
    assert [row[:2] + row[3:4] for row in answers(loaded)[2:]] == [("two", MILL, "Ann"), ("two", TOWN, "Rome")]
    assert (accepted(loaded), grades(loaded, "two")) == (["Ann", "Arden"], {"sas": [1.0, 0.0]})
    assert shown(loaded)["one", MILL] == [(BUILT, None)]


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ({"hits": {"total": {}, "hits": [{"_id": "a", "_score": 3.0, "_source": {"text": BUILT}}]}}, 3.0),
        ({"matches": [{"id": "a", "score": 0.9, "metadata": {"text": BUILT}}], "namespace": ""}, 0.9),
        ({"matches": [{"id": "a", "score": 0.9, "metadata": {"text": BUILT}}], "metric": "euclidean"}, -0.9),
        ({"matches": [{"id": "a", "score": 0.9, "metadata": {"text": BUILT}}], "metric": "cosine"}, 0.9),
        ({"result": {"points": [{"id": 7, "score": 0.9, "payload": {"text": BUILT}}], "distance": "Euclid"}}, -0.9),
        ([{"id": 7, "distance": 0.9, "entity": {"text": BUILT}}], None),  # Milvus calls similarities so, too
        ({"result": {"points": [{"id": 7, "score": 0.9, "payload": {"text": BUILT}}]}, "status": "ok"}, 0.9),
        ({"result": [{"id": 7, "score": 0.9, "payload": {"text": BUILT}}], "status": "ok"}, 0.9),
        ({"ids": ["a"], "documents": [BUILT], "distances": [0.3]}, -0.3),
        (CHROMA | {"ids": [["a"]], "included": ["documents"]}, -0.1),
    ],
)
def test_responses_of_vector_stores(response: Any, score: float | None, save: Save) -> None:
    """A score is better if higher, so a distance gets a minus; where nothing says which it is, there is none."""
    loaded = read(save, [{"question": MILL, "prediction": "Ann", "retrieved_documents": response}])
    assert shown(loaded) == {("log", MILL): [(BUILT, score if score is None else pytest.approx(score))]}
    assert answers(loaded) == [("log", MILL, 0, "Ann", "ok")]


def test_euclidean_distances_of_pinecone(save: Save) -> None:
    """Without a metric, growing scores are noted."""
    matches = [{"id": name, "score": score, "metadata": {"text": name}} for name, score in (("a", 0.1), ("b", 0.4))]
    row: dict[str, Any] = {"query": MILL, "contexts": {"matches": matches}}
    loaded = read(save, [row | {"contexts": {"matches": matches, "metric": "euclidean"}}])
    assert [score for _, score in shown(loaded)["log", MILL]] == pytest.approx([-0.1, -0.4])
    assert loaded.contexts is not None and not loaded.contexts.notes
    rows = [row | {"query": f"{MILL} {n}"} for n in range(31)]
    unnamed, two = read(save, rows[:3]).contexts, read(save, rows[:2]).contexts
    assert unnamed is not None and unnamed.notes[0].endswith("file counts; these scores may be distances")
    assert two is not None and two.notes[0].endswith("one before it: the order of the file counts")
    others = [each | {"contexts": {"matches": matches[::-1]}} for each in rows[3:]]
    few = read(save, rows[:3] + others).contexts
    assert few is not None and not few.notes


@pytest.mark.parametrize(
    "others",
    [
        {"record_id": 7, "app_name": "bot", "latency_ms": 120},
        {"citations": [{"text": LIES}], "trace": {"text": "…"}, "output": {"text": "Ann"}},
        {"hits": [{"content": LIES, "score": 0.4}]},
        {"candidates": [{"content": LIES}, {"content": BUILT}]},
    ],
)
def test_an_ordinary_log_with_names_that_tools_also_use(others: dict[str, Any], save: Save) -> None:
    """Passages, answers and grades are read from the usual names, whatever else is there."""
    row = {"input": MILL, "output": "Ann", "passages": [BUILT], "expected": "Ann", "correct": True, "user_id": 4711}
    loaded = read(save, [row | others])
    assert shown(loaded) == {("log", MILL): [(BUILT, None)]}
    assert answers(loaded) == [("log", MILL, 0, "Ann", "ok")]
    assert (accepted(loaded), grades(loaded)) == (["Ann"], {"correct": [1.0]})


def test_a_table_of_trulens_with_columns_of_its_user(save: Save) -> None:
    """Accepted answers are no grades, and passages are read."""
    row = {"record_id": "r1", "input": MILL, "output": "Ann", "Relevance": 0.5, "Relevance_calls": "[]"}
    loaded = read(save, [row | {"expected": "1815", "contexts": [BUILT]}])
    assert (accepted(loaded), grades(loaded)) == (["1815"], {"Relevance": [0.5]})
    assert shown(loaded) == {("log", MILL): [(BUILT, None)]}


def test_accepted_answers_beside_documents_of_haystack(save: Save) -> None:
    row = {"question": MILL, "documents": [document(BUILT, 0.9)], "answer": "Ann", "expected": "Bob"}
    assert accepted(read(save, [row])) == ["Bob"]


LANGSMITH = {
    "id": "r1",
    "run_type": "chain",
    "inputs": {"question": MILL},
    "outputs": {"answer": "Ann"},
    "child_runs": [{"id": "c1", "run_type": "retriever", "outputs": {"documents": [{"page_content": BUILT}]}}],
}


@pytest.mark.parametrize(("sample", "passages"), [(TRULENS, 2), (MLFLOW, 1), (LANGSMITH, 1)])
def test_a_mapped_grade_beside_a_trace(sample: dict[str, Any], passages: int, save: Save) -> None:
    """The trace is read as without the mapping."""
    path = save("log.json", json.dumps([sample | {"stars": 4}]))
    loaded = load(path, columns={"higher_review": "stars"})
    assert [len(each) for each in shown(loaded).values()] == [passages]
    assert grades(loaded).items() >= {"higher_review": [4.0]}.items()
    assert "stars" not in grades(loaded)


@pytest.mark.parametrize("form", ["promptfoo"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("higher_x", 4),
        ("answer", "Eve did."),
        ("question", "Who paid?"),
        ("passages", ["Eve paid."]),
        ("accepted", "Eve"),
    ],
)
def test_columns_that_the_user_maps_come_before_those_of_the_tool(
    form: str, field: str, value: Any, save: Save
) -> None:
    path = save("log.json", json.dumps([SAMPLES[form] | {"mine": value}]))
    loaded = load(path, columns={field: "mine"})
    texts = loaded.collection
    found: dict[str, list[Any]] = {
        "higher_x": loaded.outcomes.frame.filter(pl.col("aspect") == "higher_x")["value"].to_list()
        if loaded.outcomes is not None
        else [],
        "answer": loaded.answers.frame["text"].to_list() if loaded.answers is not None else [],
        "question": texts.queries["text"].to_list(),
        "passages": [texts.passages["text"].to_list()],
        "accepted": texts.answers["text"].to_list(),
    }
    assert found[field] == [value]


LANGFUSE = {"id": "t1", "input": {"text": MILL}, "output": "Ann", "observations": [], "sessionId": "s", "scores": []}
PHOENIX = {
    "context.span_id": "a",
    "context.trace_id": "t",
    "parent_id": None,
    "span_kind": "CHAIN",
    "attributes.input.value": MILL,
    "attributes.output.value": "Ann",
}


@pytest.mark.parametrize("row", [LANGFUSE, PHOENIX, MLFLOW])
def test_columns_of_traces_that_the_user_maps(row: dict[str, Any], save: Save) -> None:
    mine = {"stars": 4, "asked": "Who paid?", "said": "Eve did.", "gold": "Eve", "found": ["Eve paid."]}
    path = save("log.json", json.dumps([row | mine]))
    loaded = load(path, columns={"higher_review": "stars"})
    assert loaded.outcomes is not None and loaded.answers is not None
    assert loaded.outcomes.frame.filter(pl.col("aspect") == "higher_review")["value"].to_list() == [4.0]
    columns = {"question": "asked", "answer": "said", "accepted": "gold", "passages": "found", "higher_review": "stars"}
    loaded = load(path, columns=columns)
    assert loaded.outcomes is not None and loaded.answers is not None and loaded.contexts is not None
    assert loaded.collection.queries["text"].to_list() == ["Who paid?"]
    assert loaded.answers.frame["text"].to_list() == ["Eve did."]
    assert accepted(loaded) == ["Eve"]
    assert loaded.contexts.frame.height == 1
    assert "higher_review" in loaded.outcomes.distinct("aspect")
    with pytest.raises(FormatError, match="map it, too: --map question=COLUMN"):
        load(path, columns={"answer": "said"})
