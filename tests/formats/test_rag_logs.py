"""RAG logs: files that the libraries wrote (see ``sample_files.py``), and files in their documented shapes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragworth.core.errors import FormatError
from ragworth.formats import load, read_contexts
from ragworth.formats.contract import LoadedCollection
from tests.formats.sample_files import HERE, PASSAGES, QUESTIONS, format_of

Save = Callable[[str, str | bytes], Path]

LOGS = {
    "deepeval/goldens.csv": "deepeval",
    "deepeval/goldens.json": "deepeval",
    "deepeval/goldens.jsonl": "deepeval",
    "deepeval/test_run.json": "deepeval",
    "haystack/answers.json": "haystack",
    "inspect_ai/log.json": "inspect_ai",
    "langchain/chain_results.json": "langchain",
    "langfuse/observations.jsonl": "langfuse",
    "langfuse/traces.json": "langfuse",
    "llamaindex/responses.json": "llamaindex",
    "otlp/traces.json": "otlp",
    "phoenix/spans.csv": "phoenix",
    "phoenix/spans.json": "phoenix",
    "phoenix/spans.parquet": "phoenix",
    "ragas/dataset.csv": "ragas",
    "ragas/dataset.jsonl": "ragas",
    "ragas/result.csv": "ragas",
    "ragas/result.parquet": "ragas",
    "ragchecker/inputs.json": "ragchecker",
    "ragchecker/results.json": "ragchecker",
    "open_rag_eval/answers.csv": "open-rag-eval",
}
"""Files with the three questions of ``sample_files``, and their formats."""

DOCUMENTS = {
    "haystack/documents.json": "haystack",
    "langchain/documents.jsonl": "langchain",
    "llamaindex/nodes.json": "llamaindex",
}
ACCEPTED = ("deepeval", "inspect_ai", "ragas", "ragchecker")
OUTCOMES = {
    "deepeval/test_run.json": ("Answer Relevancy", [1.0, 0.0, 0.5]),
    "inspect_ai/log.json": ("includes", [1.0, 0.0, 0.0]),
    "langfuse/traces.json": ("correctness", [1.0, 0.0, 0.0]),
    "ragas/result.csv": ("faithfulness", [1.0, 0.0, None]),
    "ragas/result.parquet": ("faithfulness", [1.0, 0.0, None]),
    "ragchecker/results.json": ("f1", [100.0, 0.0, 0.0]),
}


def shown_texts(loaded: LoadedCollection) -> dict[str, list[str]]:
    """Texts of passages in the order shown, by question."""
    assert loaded.contexts is not None
    questions, texts = dict(loaded.collection.queries.iter_rows()), dict(loaded.collection.passages.iter_rows())
    shown: dict[str, list[str]] = {}
    for query, passage in loaded.contexts.frame.select("query", "passage").iter_rows():
        shown.setdefault(questions[query], []).append(texts[passage])
    return shown


def test_every_file_is_tested() -> None:
    there = {path.relative_to(HERE).as_posix() for path in HERE.rglob("*.*")}
    assert there == {*LOGS, *DOCUMENTS}


def test_the_tool_in_the_documentation_is_the_one_that_is_read() -> None:
    text = Path("CONTRIBUTING.md").read_text(encoding="utf-8")
    example = text.partition("<!-- example: log tool -->\n```python\n")[2].partition("```")[0]
    assert 0 < len(example.splitlines()) <= 15
    assert example in Path("src/ragworth/formats/logs/tools.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", LOGS)
def test_log_of_a_library(name: str) -> None:
    """Whatever the shape, the same questions, passages and answers are in it."""
    path = HERE / name
    assert format_of(path) == LOGS[name]
    loaded = load(path)
    questions = dict(loaded.collection.queries.iter_rows())
    assert list(questions.values()) == [question for question, _, _ in QUESTIONS]
    assert shown_texts(loaded) == {question: texts for (question, _, _), texts in zip(QUESTIONS, PASSAGES, strict=True)}
    assert loaded.answers is not None
    first = loaded.answers.frame.filter(loaded.answers.frame["repeat"] == 0)
    suffix = " [1]" if LOGS[name] == "open-rag-eval" else ""  # its answers cite passages
    assert {questions[query]: text for query, text in first.select("query", "text").iter_rows()} == {
        question: answer + suffix for question, _, answer in QUESTIONS
    }
    accepted = [] if LOGS[name] not in ACCEPTED else [text for _, text, _ in QUESTIONS]
    assert loaded.collection.answers["text"].to_list() == accepted
    assert loaded.contexts == read_contexts(path)


@pytest.mark.parametrize("name", LOGS)
def test_outcomes_of_a_library(name: str) -> None:
    loaded = load(HERE / name)
    if name not in OUTCOMES:
        assert loaded.outcomes is None
        return
    aspect, values = OUTCOMES[name]
    assert loaded.outcomes is not None
    frame = loaded.outcomes.frame.filter(loaded.outcomes.frame["aspect"] == aspect)
    assert frame["value"].to_list() == values
    assert frame["status"].to_list() == ["no-value" if value is None else "ok" for value in values]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_of_a_library(name: str) -> None:
    assert format_of(HERE / name) == DOCUMENTS[name]
    loaded = load(HERE / name)
    assert loaded.contexts is None
    assert loaded.collection.passages["text"].to_list() == [text for texts in PASSAGES for text in texts]
    assert len(set(loaded.collection.passages["passage"])) == 6


def test_reference_contexts_are_relevance_labels() -> None:
    """In ragas and deepeval, a text that was retrieved and is a reference is a relevant passage."""
    loaded = load(HERE / "ragas/dataset.jsonl")
    assert loaded.collection.relevance is not None
    texts = dict(loaded.collection.passages.iter_rows())
    relevant = [
        (texts[p], value) for p, value in loaded.collection.relevance.frame.select("passage", "value").iter_rows()
    ]
    assert relevant == [(PASSAGES[0][0], 1.0), (PASSAGES[1][1], 1.0), (PASSAGES[2][1], 1.0)]


def test_passages_numbered_within_a_query_are_not_merged() -> None:
    """RAGChecker's example files number documents from 000 in each query; open-rag-eval from [1]."""
    for name in ("ragchecker/inputs.json", "open_rag_eval/answers.csv"):
        loaded = load(HERE / name)
        assert loaded.collection.passages.height == 6
        assert loaded.contexts is not None
        assert any("different texts in different contexts" in note for note in loaded.contexts.notes)


def test_runs_of_open_rag_eval_are_repeats() -> None:
    loaded = load(HERE / "open_rag_eval/answers.csv")
    assert loaded.answers is not None
    assert sorted(loaded.answers.frame["repeat"]) == [0, 0, 0, 1, 1, 1]


def pair(label: int, *, dataset: str = "novels", model: str = "two", answer: str = "B") -> dict[str, Any]:
    return {
        "instance_id": 0,
        "dataset": dataset,
        "query_id": "7",
        "query": "Who?",
        "gt_answer": "Ines",
        "model1": {"model_name": "one", "response": "A"},
        "model2": {"model_name": model, "response": answer},
        "overall_label": label,
    }


def test_reference_texts_and_their_ids_are_the_same_passages(save: Save) -> None:
    row = {"user_input": "Who?", "reference_contexts": ["Ines did it."], "reference_context_ids": ["d7"]}
    for shown, name in ({}, "d7"), ({"retrieved_contexts": ["Ines did it.", "Otto did."]}, None):
        relevance = load(save("test.jsonl", json.dumps(row | shown | {"reference": "Ines"}))).collection.relevance
        assert relevance is not None and relevance.frame.height == 1
        assert name in (None, relevance.frame["passage"][0])


def test_a_chunk_with_the_text_of_a_reference_is_that_passage_whatever_its_id(save: Save) -> None:
    text = "Ann built the mill in 1820, on the river."
    shown = [{"doc_id": "doc7#3", "text": text}]
    record = {"user_input": "Who?", "retrieved_contexts": shown, "reference_contexts": [text], "response": "Ann"}
    found = load(save("log.jsonl", json.dumps(record | {"reference_context_ids": ["doc7"]})))
    assert found.collection.relevance is not None
    assert found.collection.relevance.frame["passage"].to_list() == ["doc7#3"]


def test_pairwise_preferences(save: Save) -> None:
    """Two people say 2 and 1 for the second system, so it is better by 1.5."""
    loaded = load(save("labels.json", json.dumps([pair(2), pair(1), pair(-1, dataset="science")])))
    assert loaded.outcomes is not None
    assert loaded.answers is not None
    assert loaded.contexts is None
    assert loaded.outcomes.frame.select("system", "query", "aspect", "value").rows() == [
        ("one", "novels:7", "human-overall-preference", -0.75),
        ("two", "novels:7", "human-overall-preference", 0.75),
        ("one", "science:7", "human-overall-preference", 0.5),
        ("two", "science:7", "human-overall-preference", -0.5),
    ]
    assert loaded.answers.frame["text"].to_list() == ["A", "B", "A", "B"]


def test_old_names_of_ragas_in_csv_with_python_lists(save: Save) -> None:
    """pandas writes lists as Python does, and NumPy arrays without commas."""
    rows = """,question,contexts,answer,ground_truths
0,Who?,"['Ines did it.', ""It's Varga""]",Ines,['Ines']
1,When?,"['In 1958.'
 'In May.']",1958,"['1958', '58']"
"""
    loaded = load(save("old.csv", rows))
    assert shown_texts(loaded) == {"Who?": ["Ines did it.", "It's Varga"], "When?": ["In 1958.", "In May."]}
    assert loaded.collection.answers["text"].to_list() == ["Ines", "1958", "58"]


@pytest.mark.parametrize(
    ("form", "names"),
    [("ragas", ("question", "contexts")), ("deepeval", ("input", "retrieval_context"))],
)
@pytest.mark.parametrize(("column", "aspect"), [("correct", "correct"), ("human_label", "human")])
def test_grades_beside_the_fields_of_a_library(
    form: str, names: tuple[str, str], column: str, aspect: str, save: Save
) -> None:
    answer = "answer" if form == "ragas" else "actual_output"
    rows = [{names[0]: f"Q{n}?", names[1]: ["A."], answer: "A", column: n == 1} for n in range(2)]
    path = save("log.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert format_of(path) == form
    outcomes = load(path).outcomes
    assert outcomes is not None
    frame = outcomes.frame
    assert frame["aspect"].unique().to_list() == [aspect]
    assert sorted(frame["value"]) == [-1 if aspect == "human" else 0, 1]


def test_labelled_dataset_of_llamaindex(save: Save) -> None:
    example = {
        "query": "Who?",
        "query_by": {"model_name": "", "type": "human"},
        "reference_contexts": ["Ines Varga designed the bridge."],
        "reference_answer": "Ines",
        "reference_answer_by": None,
    }
    loaded = load(save("rag_dataset.json", json.dumps({"examples": [example]})))
    assert loaded.contexts is None
    assert loaded.collection.answers["text"].to_list() == ["Ines"]
    assert loaded.collection.relevance is not None
    assert loaded.collection.passages["text"].to_list() == ["Ines Varga designed the bridge."]


def span(trace: str, name: str, parent: str, kind: str, **more: Any) -> dict[str, Any]:
    attributes = {"openinference.span.kind": kind, **more}
    listed = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    return {"traceId": trace, "spanId": name, "parentSpanId": parent, "name": kind, "attributes": listed, "events": []}


def otlp(*spans: dict[str, Any]) -> str:
    return json.dumps({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"spans": list(spans)}]}]})


def test_passages_of_the_reranker_and_repeats_of_a_question(save: Save) -> None:
    documents = {f"retrieval.documents.{i}.document.content": text for i, text in enumerate(["a", "b", "c"])}
    best = {"reranker.output_documents.0.document.content": "c", "reranker.output_documents.1.document.content": "a"}
    lines = [
        otlp(
            span(trace, f"{trace}1", "", "CHAIN", **{"input.value": '{"question": "Who?"}', "output.value": answer}),
            span(trace, f"{trace}2", f"{trace}1", "RETRIEVER", **documents),
            span(trace, f"{trace}3", f"{trace}1", "RERANKER", **best),
        )
        for trace, answer in (("t", "Ines"), ("u", '{"answer": "Varga"}'))
    ]
    loaded = load(save("traces.jsonl", "\n".join(lines)))
    assert shown_texts(loaded) == {"Who?": ["c", "a"]}
    assert loaded.answers is not None
    assert loaded.answers.frame.select("repeat", "text").rows() == [(0, "Ines"), (1, "Varga")]


def test_a_stray_model_is_not_the_request(save: Save) -> None:
    model = span("t", "3", "", "LLM", **{"input.value": "Answer from: …", "output.value": "{}"})
    search = span("t", "2", "1", "RETRIEVER", **{"retrieval.documents.0.document.content": "Ines did it."})
    chain = span("t", "1", "", "CHAIN", **{"input.value": "Who?", "output.value": "Ines"})
    loaded = load(save("traces.json", otlp(model, search, chain)))
    assert shown_texts(loaded) == {"Who?": ["Ines did it."]}
    assert loaded.answers is not None and loaded.answers.frame["text"].to_list() == ["Ines"]


def test_attributes_without_a_key_are_an_error(save: Save) -> None:
    text = otlp(span("t", "1", "", "CHAIN", **{"input.value": "Who?"}))
    with pytest.raises(FormatError, match="the key of an attribute is missing"):
        load(save("traces.json", text.replace('"key"', '"keys"', 1)))


def test_evaluation_events_of_a_span(save: Save) -> None:
    one = span("t", "1", "", "CHAIN", **{"input.value": "Who?", "output.value": "Ines"})
    value = {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": 0.25}}
    named = {"key": "gen_ai.evaluation.name", "value": {"stringValue": "relevance"}}
    one["events"] = [{"name": "gen_ai.evaluation.result", "attributes": [named, value]}]
    outcomes = load(save("traces.json", otlp(one))).outcomes
    assert outcomes is not None
    assert outcomes.frame.select("aspect", "value").rows() == [("relevance", 0.25)]


def test_systems_with_and_without_passages_in_one_file(save: Save) -> None:
    """A closed-book system has answers and empty contexts."""
    rows = [
        {"question": "Who?", "system": "rag", "response": "Ines", "contexts": ["Ines did it."], "reference": "Ines"},
        {"question": "Who?", "system": "closed", "response": "Otto", "contexts": None, "reference": "Ines"},
    ]
    loaded = load(save("log.json", json.dumps(rows)))
    assert loaded.contexts is not None
    assert loaded.answers is not None
    assert {system for system, _ in loaded.contexts.empty} == {"closed"}
    assert loaded.contexts.systems == ["rag", "closed"]
    assert loaded.answers.frame["text"].to_list() == ["Ines", "Otto"]
    assert any("1 record (record 2) without passages; read as nothing retrieved" in n for n in loaded.contexts.notes)


def test_answers_without_contexts(save: Save) -> None:
    loaded = load(save("graded.csv", "question,prediction,gold_answer,label\nWho?,Ines,Ines,Correct\nA?,b,c,Wrong\n"))
    assert loaded.contexts is None
    assert loaded.outcomes is not None
    assert loaded.outcomes.frame.select("aspect", "value").rows() == [("human", 1.0), ("human", -1.0)]


def test_concatenated_and_long_documents(save: Save) -> None:
    """A document over several lines, twice; and one that is longer than what detection reads."""
    one, two = (
        {"user_input": q, "response": "a", "retrieved_contexts": ["x" * 300_000, "y"]} for q in ("Who?", "Why?")
    )
    path = save("two.json", json.dumps(one, indent=1) + "\n" + json.dumps(two, indent=1))
    assert format_of(path) == "ragas"
    assert load(path).collection.queries["text"].to_list() == ["Who?", "Why?"]
    assert format_of(save("list.json", json.dumps([two, one]))) == "ragas"


def test_langsmith_and_mlflow(save: Save) -> None:
    """A run of LangSmith with the run of its retriever, a spread-out table, and an evaluation table of MLflow."""
    run = {
        "id": "r",
        "trace_id": "r",
        "run_type": "chain",
        "inputs": {"question": "Who?"},
        "outputs": {"answer": "Ann"},
    }
    found = {"id": "d", "trace_id": "r", "parent_run_id": "r", "run_type": "retriever", "inputs": {"query": "Who?"}}
    found |= {"outputs": {"documents": [{"page_content": "Ann did.", "metadata": {}}]}}
    files = {
        "runs.jsonl": f"{json.dumps(run | {'reference_outputs': {'answer': 'Ann'}})}\n{json.dumps(found)}\n",
        "table.csv": "inputs.question,outputs.answer,outputs.contexts,reference_outputs.answer,feedback.correctness\n"
        'Who?,Ann,"[""Ann did.""]",Ann,1\n',
        "mlflow.csv": "inputs,outputs,targets,retrieved_context,answer_correctness/v1/score\n"
        "Who?,Ann,Ann,\"[{'content': 'Ann did.'}]\",5\n",
    }
    for name, text in files.items():
        loaded = load(save(name, text))
        assert shown_texts(loaded) == {"Who?": ["Ann did."]}, name
        assert loaded.answers is not None
        assert loaded.answers.frame["text"].to_list() == ["Ann"]
        assert loaded.collection.answers["text"].to_list() == ["Ann"]
        assert name == "runs.jsonl" or loaded.outcomes is not None


@pytest.mark.parametrize(
    ("row", "answer", "accepted"),
    [
        ({"outputs": {"answer": 42}, "reference_outputs": {"answer": 42}}, "42", ["42"]),
        ({"outputs": {"answer": "a"}, "reference_outputs": {"answer": ["a", "b"]}}, "a", ["a", "b"]),
        ({"outputs": {"result": 3, "text": "a"}, "reference_outputs": {"answers": ["a", 2]}}, "a", ["a", "2"]),
        ({"outputs": "a", "reference_outputs": {"answers": [{"text": "a"}, {"text": "b"}]}}, "a", ["a", "b"]),
        ({"outputs": 0, "reference_outputs": "", "targets": 0}, "0", ["0"]),
        ({"outputs": {"answer": False}, "targets": False}, "No", ["No"]),
        (
            {"outputs": "a", "reference_outputs": [{"role": "user", "content": "?"}, {"role": "ai", "content": "b"}]},
            "a",
            ["b"],
        ),
    ],
)
def test_answers_and_references_of_langsmith(row: dict[str, Any], answer: str, accepted: list[str], save: Save) -> None:
    loaded = load(save("runs.json", json.dumps([{"id": "r", "inputs": {"question": "Which?"}} | row])))
    assert loaded.answers is not None
    assert loaded.answers.frame["text"].to_list() == [answer]
    assert loaded.collection.answers["text"].to_list() == accepted


def test_grades_projects_and_blank_passages_of_langsmith(save: Save) -> None:
    """Several grades with one key are averaged, projects without a name are systems, blank texts are noted."""
    run = {"inputs": {"question": "Who?"}, "outputs": {"answer": "Ann", "contexts": ["d1", "  ", "d2"]}}
    feedback = [{"key": "correctness", "score": 1}, {"key": "correctness", "score": 0}]
    runs = [run | {"id": name, "session_id": f"project {name}", "feedback": feedback} for name in "ab"]
    loaded = load(save("runs.json", json.dumps(runs)))
    assert loaded.outcomes is not None
    assert loaded.contexts is not None
    assert loaded.outcomes.frame["value"].to_list() == pytest.approx([0.5, 0.5])
    assert loaded.contexts.systems == ["project a", "project b"]
    assert loaded.collection.passages["text"].to_list() == ["d1", "d2"]
    assert "passages without any text are left out" in loaded.contexts.notes[0]


def test_mlflow_as_json_lines(save: Save) -> None:
    row = {"inputs": "Who?", "outputs": "Ann", "targets": "Ann", "retrieved_context": [{"content": "Ann did."}]}
    path = save("mlflow.jsonl", json.dumps(row))
    assert format_of(path) == "mlflow"
    assert shown_texts(load(path)) == {"Who?": ["Ann did."]}


def test_odd_values(save: Save) -> None:
    row = {"question": "Is it?", "contexts": ["", "It is."], "answer": True, "ground_truth": True}
    loaded = load(save("log.jsonl", json.dumps(row)))
    assert shown_texts(loaded) == {"Is it?": ["It is."]}
    assert loaded.contexts is not None
    assert "passages without any text are left out" in loaded.contexts.notes[0]
    assert loaded.answers is not None
    assert loaded.answers.frame["text"].to_list() == loaded.collection.answers["text"].to_list() == ["Yes"]
    with pytest.raises(FormatError, match="UTF-16"):
        load(save("log16.jsonl", json.dumps(row).encode("utf-16")))


def test_a_passage_without_a_text_beside_others_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    shown = [{"id": "a", "text": "The mill is old."}, {"id": "b", "text": None}]
    path.write_text(json.dumps({"question": "How old?", "response": "Very.", "contexts": shown}))
    contexts = load(path).contexts
    assert contexts is not None
    assert "some passages have no text, others have one" in contexts.notes[0]
