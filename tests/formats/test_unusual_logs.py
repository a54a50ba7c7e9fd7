"""Logs of shapes that people have and no library's documentation shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ragworth import evaluate
from ragworth.core.errors import FormatError, InputError
from ragworth.formats import load, read_contexts, read_judgments
from ragworth.formats.outcomes import read as read_outcomes

Save = Callable[[str, str | bytes], Path]
MILL = {"question": "Who built the mill?", "response": "Ann", "expected": "Ann"}


def as_lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    "hit",
    [
        {"_id": "d1", "_score": 3.2, "_source": {"text": "Ann built it."}},  # Elasticsearch
        {"id": "d1", "score": 0.3, "metadata": {"text": "Ann built it."}},  # Pinecone
        {"id": "d1", "payload": {"text": "Ann built it."}},  # Qdrant
        {"uuid": "d1", "properties": {"content": "Ann built it."}},  # Weaviate
        {"id": "d1", "content": {"text": "Ann built it."}, "metadata": {"source": "a.pdf"}},  # Bedrock
        {"id": "d1", "snippet": "Ann built it."},  # Cohere
        {"document": {"pageContent": "Ann built it.", "id": "d1"}, "score": 0.3},  # LangChain in JavaScript
        {"DocId": "d1", "Content": "Ann built it.", "Score": 0.3},
        {"@search.score": 0.3, "chunk_id": "d1", "chunk": "Ann built it."},  # Azure AI Search
    ],
)
def test_hits_of_search_engines_keep_their_text(hit: dict[str, Any], save: Save) -> None:
    passages = load(save("log.jsonl", as_lines({**MILL, "contexts": [hit]}))).collection.passages
    assert passages.rows() == [("d1", "Ann built it.")]


DOCUMENTS = (
    "[Document(id='d1', metadata={'source': 'a.pdf', 'page': nan, 'at': datetime.date(2024, 1, 2)}, "
    "page_content='Ann, \"the miller\", built it (n=1).'), (Document(page_content='It burnt down.'), 0.5)]"
)


def test_documents_as_python_writes_them(save: Save) -> None:
    cells = [MILL | {"contexts": DOCUMENTS}, MILL | {"question": "When?", "contexts": "[see Foo(x=1) and more]"}]
    pl.DataFrame(cells).write_csv(path := save("log.csv", ""))
    with pytest.raises(FormatError, match="line 2: the passages start like a list, but can't be read"):
        load(path)
    loaded = load(path, skip_bad_lines=True)
    assert loaded.collection.passages["text"].to_list() == ["[see Foo(x=1) and more]"]
    code = MILL | {"response": "[Foo(x=1)]", "expected": "[Foo(x=1)]"}
    assert load(save("log.jsonl", as_lines(code))).collection.answers["text"].to_list() == ["[Foo(x=1)]"]


def test_a_text_for_passages_is_one_passage_with_a_note(save: Save) -> None:
    loaded = load(save("log.jsonl", as_lines(MILL | {"contexts": "[1] Ann built it. [2] It burnt down."})))
    assert loaded.contexts is not None and loaded.collection.passages.height == 1
    assert "'contexts' is read as one passage; if several are joined" in loaded.contexts.notes[0]


def test_a_text_under_an_unknown_name_is_noted(save: Save) -> None:
    hit = {"id": "d1", "inhalt": "Ann built the mill at Arden in 1820."}
    contexts = load(save("log.jsonl", as_lines({**MILL, "contexts": [hit]}))).contexts
    assert contexts is not None and "inhalt isn't read as one" in contexts.notes[0]
    with pytest.raises(FormatError, match="neither doc_id nor text; it has inhalt"):
        load(save("log.jsonl", as_lines({**MILL, "contexts": [{"inhalt": "Ann"}]})))


@pytest.mark.parametrize(
    "record",
    [
        {"query": {"text": "Who?", "lang": "en"}, "response": {"text": "Ann", "lang": "de"}},
        {"question": "Who?", "response": "Ann", "steps": [{"question": "Where?", "response": "Bob"}]},
    ],
)
def test_one_record_with_objects_is_not_a_table(record: dict[str, Any], save: Save) -> None:
    answers = load(save("log.json", json.dumps(record))).answers
    assert answers is not None and answers.frame["text"].to_list() == ["Ann"]


def test_examples_beside_other_lists_are_not_the_log(save: Save) -> None:
    shots = [{"question": "Where?", "response": "Bob", "expected": "Bob"}]
    with pytest.raises(FormatError, match="no known format"):
        load(save("log.json", json.dumps({"inputs": ["Who?"], "outputs": ["Ann"], "few_shot": shots})))


@pytest.mark.parametrize("name", ["documents", "output"])
def test_runs_inside_a_run_of_langsmith(name: str, save: Save) -> None:
    """LangChain's retrievers return ``documents``; what a traced function returns is its ``output``."""
    found = {"page_content": "Ann built it.", "metadata": {}}
    retriever = {"run_type": "retriever", "inputs": {"query": "mill"}, "outputs": {name: [found]}}
    chain = {"id": "c", "run_type": "chain", "inputs": {}, "outputs": {}, "child_runs": [retriever]}
    run = {"id": "t", "run_type": "chain", "inputs": {"question": "Who?"}, "outputs": {"answer": "Ann"}}
    log = load(save("runs.jsonl", as_lines({**run, "child_runs": [chain]})))
    assert log.collection.passages["text"].to_list() == ["Ann built it."]
    assert log.answers is not None and log.answers.frame["text"].to_list() == ["Ann"]


def test_a_retriever_that_returned_no_list_is_an_error(save: Save) -> None:
    search = {"id": "o", "type": "RETRIEVER", "input": "mill", "output": {"text": "Ann built it."}}
    trace = {"id": "t", "input": "Who?", "output": "Ann", "observations": [search]}
    with pytest.raises(FormatError, match=r"the retriever 'o' returned .*, not a list of passages"):
        load(save("traces.jsonl", as_lines(trace)))


def test_a_category_of_langfuse_is_its_word(save: Save) -> None:
    def trace(number: int, word: str) -> dict[str, Any]:
        score = {"name": "correctness", "dataType": "CATEGORICAL", "value": 0, "stringValue": word}
        return {"id": f"t{number}", "input": f"Who {number}?", "output": "Ann", "observations": [], "scores": [score]}

    outcomes = load(save("traces.jsonl", as_lines(trace(1, "correct"), trace(2, "incorrect")))).outcomes
    assert outcomes is not None and outcomes.frame["value"].to_list() == [1.0, 0.0]
    excellent = {**trace(3, "excellent"), "scores": [{**trace(3, "excellent")["scores"][0], "value": 2}]}
    assert load(save("traces.jsonl", as_lines(trace(1, "good"), excellent))).outcomes is None  # 2 is only its place


def test_the_ids_of_autorag_are_relevance_labels(save: Save) -> None:
    row = {"qid": "q1", "query": "Who?", "expected": ["Ann"], "response": "Ann"}
    shown = {"passage_ids": ["a", "b", "c"], "contexts": ["Ann", "Bob", "Cid"]}
    groups = {"retrieval_gt": [["a", "d"], ["c"]]}  # a or d, and c
    relevance = load(save("result.json", json.dumps([row | shown | groups]))).collection.relevance
    assert relevance is not None
    assert relevance.frame.select("query", "passage", "value").rows() == [("q1", name, 1.0) for name in "adc"]


def test_the_scores_of_ragas_are_in_the_order_of_the_file(save: Save) -> None:
    names = ["faithfulness", "answer_relevancy", "factual_correctness(mode=f1)", "noise_sensitivity(mode=relevant)"]
    others = {"latency": 0.5, "ours": 0.5}
    row = {"user_input": "Who?", "retrieved_contexts": ["Ann"], "response": "Ann"} | dict.fromkeys(names, 0.5) | others
    outcomes = load(save("ragas.jsonl", as_lines(row))).outcomes
    assert outcomes is not None and outcomes.distinct("aspect") == names


@pytest.mark.parametrize(
    ("grade", "value"),
    [
        ("80%", 0.8),
        ("FALSE", -1.0),
        ([1, 0, 0, 1], 0.5),
        ("75.5 %", 0.755),
    ],
)
def test_grades_of_spreadsheets_and_of_several_judges(grade: Any, value: float, save: Save) -> None:
    outcomes = load(save("log.jsonl", as_lines({**MILL, "grade": grade}))).outcomes
    assert outcomes is not None and outcomes.frame["value"][0] == pytest.approx(value)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("Request timed out.", "error"),
        ('{"error": {"message": "Rate limit"}}', "error"),
        ("Error code: 429 - {'error': {'message': 'Rate limit reached'}}", "error"),
        ("HTTPSConnectionPool(host='api.example.org', port=443): Read timed out. (read timeout=60)", "error"),
        ("requests.exceptions.ReadTimeout: 60 s", "error"),
        ("An error occurred: 500", "error"),
        ("503 Service Unavailable", "error"),
        ("Rate limit exceeded errors go away after a minute.", "ok"),
        ("Error analysis is a branch of mathematics.", "ok"),
        ("Connection errors are rare.", "ok"),
    ],
)
def test_errors_in_place_of_an_answer(answer: str, status: str, save: Save) -> None:
    answers = load(save("log.jsonl", as_lines(MILL | {"question": "Who?"}, MILL | {"response": answer}))).answers
    assert answers is not None and answers.frame["status"][1] == status


@pytest.mark.parametrize(
    "names", [["https://example.org/a"], ["doc_17", "chunk-3"], ["guide/use.md#install"], ["a.pdf"]]
)
def test_passages_that_are_names_are_ids(names: list[str], save: Save) -> None:
    contexts = load(save("log.jsonl", as_lines({**MILL, "contexts": names}))).contexts
    assert contexts is not None and contexts.frame["passage"].to_list() == names
    assert any("names of files or addresses are ids" in note for note in contexts.notes)


@pytest.mark.parametrize(
    "texts", [["The mill stands by the Ilm."], ["Paris", "doc_17"], ["磨坊建于1820年。"], ["COVID-19"]]
)
def test_passages_that_are_texts_are_no_ids(texts: list[str], save: Save) -> None:
    passages = load(save("log.jsonl", as_lines({**MILL, "contexts": texts}))).collection.passages
    assert passages["text"].to_list() == texts


def test_an_output_beside_an_expected_output_is_the_answer(save: Save) -> None:
    row = {"input": "Who built it?", "output": "Ann", "context": ["Ann did."], "expected_output": "Bob"}
    loaded = load(save("log.jsonl", as_lines(row)))
    assert loaded.answers is not None and loaded.answers.frame["text"].to_list() == ["Ann"]
    assert loaded.contexts is not None and loaded.collection.answers["text"].to_list() == ["Bob"]


@pytest.mark.parametrize(
    ("more", "note"),
    [
        ({"system": "A"}, "1 record (line 2) without a system, unlike others"),
        ({"contexts": [{"text": "b", "rank": 2}, {"text": "a", "rank": 1}]}, "ranks in passages contradict the order"),
    ],
)
def test_what_contradicts_other_rows_or_the_order_is_noted(more: dict[str, Any], note: str, save: Save) -> None:
    row = {"question": "Who?", "response": "Ann", "contexts": ["Ann did."]}
    contexts = load(save("log.jsonl", as_lines(row | more, row | {"question": "When?"}))).contexts
    assert contexts is not None and any(note in each for each in contexts.notes)


def test_scores_of_tools_in_words_are_no_missing_ones(save: Save) -> None:
    rows = [
        {"user_input": f"Who {n}?", "response": "Ann", "reference": "Ann", "faithfulness": cell}
        for n, cell in enumerate(["80%", 0.5])
    ]
    outcomes = load(save("log.jsonl", as_lines(*rows))).outcomes
    assert outcomes is not None and outcomes.frame["value"].to_list() == [0.8, 0.5]
    answers = load(save("log.jsonl", as_lines(rows[0], rows[1] | {"faithfulness": "high"}))).answers
    assert answers is not None and "'faithfulness' was not read as a grade: it has 'high'" in answers.notes[0]


def test_unused_columns_may_have_what_is_missing(save: Save) -> None:
    contexts = load(save("log.jsonl", as_lines({"question": "Who?", "contexts": ["Ann did."], "says": "Ann"}))).contexts
    assert contexts is not None
    assert "not used: says; if one of these has what is missing: --map answer=COLUMN" in contexts.notes[0]


def test_dates_and_decimals_in_parquet(tmp_path: Path) -> None:
    day, cost = date(1912, 5, 3), Decimal("1.50")
    frame = pl.DataFrame({"question": ["When?", "When exactly?"], "response": [day, day], "reference": [day, day]})
    frame.write_parquet(tmp_path / "days.parquet")
    frame = pl.DataFrame({"question": ["How much?"], "response": [cost], "reference": [cost], "grade": [cost]})
    frame.write_parquet(tmp_path / "costs.parquet")
    days, costs = load(tmp_path / "days.parquet").answers, load(tmp_path / "costs.parquet")
    assert days is not None and days.frame["text"][0] == "1912-05-03"
    assert costs.answers is not None and costs.answers.frame["text"][0] == "1.50"
    assert costs.outcomes is not None and costs.outcomes.frame["value"].to_list() == [1.5]


def test_a_log_in_another_encoding(save: Save) -> None:
    text = "question;response;expected\nWho?;Ann;Ann\nWo?;Café;Café\n"
    with pytest.raises(FormatError, match=r"line 3: not UTF-8(.|\n)*iconv"):
        load(save("log.csv", text.encode("cp1252")))


def test_a_score_beside_an_answer_is_no_run(save: Save) -> None:
    answers = load(save("log.jsonl", as_lines({"question": "Who?", "response": "Ann", "score": 80}))).answers
    assert answers is not None and answers.frame.height == 1


def test_labels_that_may_be_classes_are_no_grades_unless_mapped(save: Save) -> None:
    rows = [MILL | {"question": f"Who {i}?", "label": i} for i in range(4)]
    path = save("log.jsonl", as_lines(*rows))
    log = load(path)
    assert log.outcomes is None and log.answers is not None
    assert "'label' was not read as a grade: its numbers from 0 to 3" in log.answers.notes[0]
    mapped = load(path, {"human": "label"}).outcomes
    assert mapped is not None and mapped.frame["value"].to_list() == [0, 1, 2, 3]


def test_scores_that_may_be_distances_and_unknown_json(save: Save) -> None:
    rows = "".join(f"q{i},d{j},0.{j}\n" for i in range(3) for j in range(1, 4))
    assert "as if these were distances" in read_contexts(save("run.csv", f"query,passage,score\n{rows}")).notes[0]
    for read in (read_contexts, read_judgments):
        with pytest.raises(FormatError, match=r'expected: {"q1": {"d7": 14.25'):
            read(save("run.json", '{"q1": "d1", "q2": "d2"}'))


def test_ids_that_number_records_do_not_part_the_systems(save: Save) -> None:
    rows = [
        MILL | {"id": f"{name}{i}", "question": f"Who {i}?", "system": name, "contexts": [{"id": "d", "text": f"{i}"}]}
        for name in "ab"
        for i in range(3)
    ]
    with pytest.raises(FormatError, match="no ids of questions in common, but the same texts") as caught:
        load(save("log.jsonl", as_lines(*rows)))
    assert "--map query=question" in caught.value.hint.command
    log = load(save("log.jsonl", as_lines(*rows)), {"query": "question"})
    assert log.collection.queries.height == 3
    assert log.contexts is not None and log.contexts.frame["query"].n_unique() == 3


def test_other_ids_in_another_log_are_an_error_that_says_how_to_map_them(tmp_path: Path) -> None:
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path in paths:
        path.write_text(as_lines(MILL | {"id": path.stem}))
    with pytest.raises(InputError, match=r"--map query=question"):
        evaluate(paths)
    found = evaluate(paths, columns={"query": "question"})
    assert found.results is not None and found.results.outcomes is not None
    assert found.results.outcomes.frame["query"].n_unique() == 1


def test_evaluations_of_phoenix_spans(save: Save) -> None:
    span = {"context.trace_id": "t", "context.span_id": "s", "span_kind": "CHAIN", "attributes.input.value": "Who?"}
    rated = {
        "attributes.output.value": "Ann",
        "eval.QA.label": "correct",
        "eval.QA.score": 1.0,
        "eval.Tone.label": "pass",
    }
    outcomes = load(save("spans.jsonl", as_lines({**span, **rated}))).outcomes
    assert outcomes is not None and dict(outcomes.frame.select("aspect", "value").rows()) == {"QA": 1.0, "Tone": 1.0}


def test_traces_without_a_retriever_say_what_to_map(save: Save) -> None:
    search = {"id": "o", "type": "SPAN", "name": "vector-search", "input": "mill", "output": ["Ann built it."]}
    output = {"answer": "Ann", "documents": [{"content": "Ann built it."}]}
    path = save("traces.jsonl", as_lines({"id": "t", "input": "Who?", "output": output, "observations": [search]}))
    traces = load(path)
    assert traces.contexts is None and traces.answers is not None
    assert "--map question=input --map answer=output.answer --map passages=output.documents" in traces.answers.notes[0]
    columns = {"question": "input", "answer": "output.answer", "passages": "output.documents"}
    assert load(path, columns=columns).collection.passages["text"].to_list() == ["Ann built it."]


def test_an_evaluation_table_of_mlflow_with_a_ground_truth(save: Save) -> None:
    text = "inputs,ground_truth,outputs,answer_correctness/v1/score\nWho?,Ann,Bob,1\n"
    log = load(save("eval_results_table.csv", text))
    assert log.collection.answers["text"].to_list() == ["Ann"] and log.outcomes is not None


FOUND = [{"file_id": "f", "text": "Ann built it."}, {"file_id": "f", "text": "In 1820."}]


@pytest.mark.parametrize(
    ("row", "passages"),
    [
        (
            {
                "messages": [
                    {"role": "user", "content": "Who?"},
                    {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
                    {"role": "tool", "content": json.dumps([{"id": "d", "text": "Ann built it."}])},
                    {"role": "tool", "content": "In 1820."},
                    {"role": "assistant", "content": "Ann"},
                ]
            },
            ["Ann built it.", "In 1820."],
        ),
        (
            {
                "input": "Who?",
                "output": [
                    {"type": "file_search_call", "results": FOUND},
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ann"}]},
                ],
            },
            ["Ann built it.", "In 1820."],
        ),
        (
            {
                "question": "Who?",
                "response": {
                    "choices": [
                        {
                            "message": {
                                "role": "assistant",
                                "content": "Ann",
                                "context": {"citations": [{"content": "Ann built it.", "chunk_id": "0"}]},
                            }
                        }
                    ]
                },
            },
            ["Ann built it."],
        ),
    ],
)
def test_logs_of_chat_models(row: dict[str, Any], passages: list[str], save: Save) -> None:
    log = load(save("chat.jsonl", as_lines({"id": "resp_1", **row})))
    assert log.collection.queries["text"].to_list() == ["Who?"]
    assert log.collection.passages["text"].to_list() == passages
    assert log.answers is not None and log.answers.frame["text"].to_list() == ["Ann"]


def test_questions_under_several_ids_in_one_system_are_noted(save: Save) -> None:
    rows = [MILL | {"id": f"{name}{i}", "question": f"Who {i}?", "model": "x"} for name in "ab" for i in range(2)]
    answers = load(save("log.jsonl", as_lines(*rows))).answers
    assert answers is not None and "--map system=COLUMN" in " ".join(answers.notes)


@pytest.mark.parametrize(
    ("question", "answer", "accepted", "kept"),
    [
        ("What does error 404 mean?", "Error 404: the page was not found.", "not found", True),
        ("How many requests are free?", "Rate limit exceeded for more than 60 requests.", "60 requests", True),
        ("Who built the mill?", "Error: model overloaded", "Ann", False),
        ("Which wheel is broken?", "None", "none", True),
        ("Which wheel is broken?", "None", "the third", False),
    ],
)
def test_an_answer_about_errors_is_an_answer(question: str, answer: str, accepted: str, kept: bool, save: Save) -> None:
    rows = [{"question": question, "response": answer, "expected": accepted}, {**MILL, "question": "Who else?"}]
    answers = load(save("log.jsonl", as_lines(*rows))).answers
    assert answers is not None and (answers.frame["text"][0] == answer) == kept


def test_a_log_of_only_missing_values_says_so(save: Save) -> None:
    log = load(
        save("log.jsonl", as_lines({**MILL, "response": "None"}, {**MILL, "response": "nan", "question": "Who?"}))
    )
    assert any("with the answer 'None'" in note for note in log.collection.notes)


@pytest.mark.parametrize("name", ["response", "output", "answer"])
def test_the_answer_to_messages_may_be_a_field_of_its_own(name: str, save: Save) -> None:
    asked = {"messages": [{"role": "user", "content": "Who built the mill?"}], "expected": "Ann", name: "Ann"}
    answers = load(save("log.jsonl", as_lines(asked))).answers
    assert answers is not None and answers.frame["text"].to_list() == ["Ann"]


@pytest.mark.parametrize("cells", [("80%", "80"), ("correct", "5"), ("no", "0"), ("wrong", "0")])
def test_grades_on_different_scales_are_an_error(cells: tuple[str, str], save: Save) -> None:
    rows = [{**MILL, "question": f"Who {cell}?", "grade": cell} for cell in cells]
    with pytest.raises(FormatError, match="on different scales"):
        load(save("log.jsonl", as_lines(*rows)))
    table = "system,query,grade\n" + "".join(f"a,q{cell},{cell}\n" for cell in cells)
    with pytest.raises(FormatError, match="on different scales"):
        read_outcomes(save("grades.csv", table))


def test_fields_beside_those_of_ragas_are_read_or_noted(save: Save) -> None:
    row = {"question": "Who built the mill?", "contexts": ["Ann built it."], "answer": "Ann"}
    log = load(save("log.jsonl", as_lines({**row, "expected_answer": "Bob"})))
    assert log.collection.answers["text"].to_list() == ["Bob"]
    contexts = load(save("log.jsonl", as_lines({**row, "output": "Bob"}))).contexts
    assert contexts is not None and any("not used: output" in note for note in contexts.notes)


@pytest.mark.parametrize("name", ["grade", "is_correct", "human_label"])
def test_a_column_of_grades_that_has_none_is_an_error(name: str, save: Save) -> None:
    path = save("log.jsonl", as_lines(MILL | {name: "B"}))
    with pytest.raises(FormatError, match=f"'{name}' has 'B', which is no grade") as caught:
        load(path)
    assert caught.value.hint.command.startswith(f"--map ignored={name} if '{name}' has no grades")
    assert load(path, {"ignored": name}).outcomes is None


@pytest.mark.parametrize("name", ["splendour", "schulnote", "latency_ms"])
def test_a_mapped_grade_says_which_way_it_is_better(name: str, save: Save) -> None:
    path = save("log.jsonl", as_lines(MILL | {"mine": 0.5}))
    with pytest.raises(FormatError, match=f"nothing says which way the grade '{name}' is better") as caught:
        load(path, {name: "mine"})
    assert caught.value.hint.command == f"--map higher_{name}=mine, or lower_{name} if lower is better"
    outcomes = load(path, {f"lower_{name}": "mine"}).outcomes
    assert outcomes is not None and outcomes.distinct("aspect") == [f"lower_{name}"]


def test_letters_need_numbers(save: Save) -> None:
    rows = [{**MILL, "mark": "A"}, {**MILL, "question": "When?", "mark": "B+"}]
    with pytest.raises(FormatError, match=r"'mark' has 'A', 'B\+', which is no grade"):
        load(save("log.jsonl", as_lines(*rows)), columns={"higher_mark": "mark"})


COLUMNS = {"question": ["Who built it?", "When?"], "response": ["Ann", "1820"], "expected": ["Ann", "1821"]}
RECORDS = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]


@pytest.mark.parametrize(
    "document",
    [
        COLUMNS,
        COLUMNS | {"contexts": [["Ann built it."], []]},
        {name: dict(zip(["0", "1"], values, strict=True)) for name, values in COLUMNS.items()},  # to_json of pandas
        {"columns": list(COLUMNS), "index": [0, 1], "data": [list(row.values()) for row in RECORDS]},
        {"total": 2, "has_more": False, "rows": RECORDS},
        {"one": {name: dict(enumerate(values)) for name, values in COLUMNS.items()}},
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_rows_in_one_json_object(document: dict[str, Any], indent: int | None, save: Save) -> None:
    if "one" in document:
        for data in (save("log.json", json.dumps(document, indent=indent)), document):
            with pytest.raises(FormatError, match="no known format"):
                load(data)
        return
    for loaded in (load(save("log.json", json.dumps(document, indent=indent))), load(document)):
        assert loaded.answers is not None and loaded.answers.frame["text"].to_list() == ["Ann", "1820"]
        assert loaded.collection.answers["text"].to_list() == ["Ann", "1821"]
        assert loaded.answers.frame["system"].n_unique() == 1


def test_a_json_object_that_is_a_record_stays_one(save: Save) -> None:
    record = {"asked": {"text": "Who?"}, "said": "Ann", "hits": [{"text": "Ann built it."}, {"text": "It burnt down."}]}
    columns = {"question": "asked.text", "answer": "said", "passages": "hits"}
    for loaded in (load(save("log.json", json.dumps(record)), columns), load(record, columns)):
        assert loaded.contexts is not None and loaded.contexts.frame.height == 2
    several = {"question": "Who?", "response": "Ann", "contexts": [{"text": "Ann built it."}]}
    loaded = load(save("log.json", json.dumps(several)))
    assert loaded.answers is not None and loaded.answers.frame.height == 1


def test_rows_of_a_long_json_object(save: Save) -> None:
    number = 9000
    columns = {name: dict(enumerate([f"{name} {n}, and more of it" for n in range(number)])) for name in COLUMNS}
    path = save("log.json", json.dumps(columns))
    assert path.stat().st_size > 1 << 19
    answers = load(path).answers
    assert answers is not None and answers.frame.height == number
    found = pl.read_json(json.dumps([{"Frage": "Wer?", "Antwort": "Ann"}]).encode())
    mapped = load(
        save("de.json", json.dumps({"n": 1, "rows": found.to_dicts()})), {"question": "Frage", "answer": "Antwort"}
    )
    assert mapped.answers is not None and mapped.answers.frame["text"].to_list() == ["Ann"]


@pytest.mark.parametrize(
    ("accepted", "texts"),
    [
        ({"text": ["Ann", "Ann Smith"], "answer_start": [3, 3]}, ["Ann", "Ann Smith"]),  # SQuAD
        ({"answer": "Ann", "source": "p. 1"}, ["Ann"]),
    ],
)
@pytest.mark.parametrize("name", ["log.jsonl", "log.csv"])
def test_accepted_answers_in_an_object(accepted: dict[str, Any], texts: list[str], name: str, save: Save) -> None:
    rows = [MILL | {"expected": accepted if name.endswith("jsonl") else repr(accepted)}]
    path = save(name, as_lines(*rows))
    if name.endswith("csv"):
        pl.DataFrame(rows).write_csv(path)
    assert load(path).collection.answers["text"].to_list() == texts


def test_missing_contexts_are_no_passages(save: Save) -> None:
    shown: list[Any] = [{}, "nan", "N/A", "Nan is a district of Thailand.", ["nan"]]
    rows = [MILL | {"question": f"Who {n}?", "contexts": each} for n, each in enumerate(shown)]
    loaded = load(save("log.jsonl", as_lines(*rows)))
    assert loaded.contexts is not None and len(loaded.contexts.empty) == 3
    assert loaded.collection.passages["text"].to_list() == ["Nan is a district of Thailand.", "nan"]
    assert sum("are read as no passages" in note for note in loaded.contexts.notes) == 2


@pytest.mark.parametrize(
    ("more", "known"),
    [
        ({"system": "a"}, True),
        ({"human_label": "correct"}, True),
        ({"is_correct": "yes"}, True),
        ({"correct": "B"}, False),  # of a question with choices
        ({"run_id": "7"}, False),
        ({"label": "x"}, False),
    ],
)
def test_an_answer_beside_a_system_or_a_grade_is_the_systems(more: dict[str, Any], known: bool, save: Save) -> None:
    path = save("log.jsonl", as_lines({"question": "Who built it?", "answer": "Ann", **more}))
    if known:
        answers = load(path).answers
        assert answers is not None and answers.frame["text"].to_list() == ["Ann"]
        return
    with pytest.raises(FormatError, match="may be the answer of a system, or the accepted answer"):
        load(path)


def test_an_answer_beside_a_prediction_is_accepted_also_with_contexts(save: Save) -> None:
    row = {"question": "Who built it?", "prediction": "Bo", "answer": "Ada", "contexts": ["Ada built it."]}
    loaded = load(save("log.jsonl", as_lines(row)))
    assert loaded.answers is not None
    assert loaded.answers.frame["text"].to_list() == ["Bo"]
    assert loaded.collection.answers["text"].to_list() == ["Ada"]


def test_a_history_beside_a_question_is_not_the_log_of_a_chat(save: Save) -> None:
    history = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hi."}]
    row = {"question": "Who built it?", "messages": history, "answer": "Ada", "ground_truth": "Ada"}
    loaded = load(save("log.jsonl", as_lines(row)))
    assert loaded.answers is not None
    assert loaded.answers.frame["text"].to_list() == ["Ada"]
