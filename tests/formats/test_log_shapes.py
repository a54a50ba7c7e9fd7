"""Logs with several systems, splits or answers in one file: they are read, or the error says what to map."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragworth.core.errors import FormatError, InputError
from ragworth.formats import load
from ragworth.formats.logs.tables import is_error_message
from ragworth.workspace.files import read_run
from ragworth.workspace.read import read

Save = Callable[[str, str | bytes], Path]
RECORDS = [
    {"question": "Who built it?", "response": "Ann", "expected": "Ann"},
    {"question": "When?", "response": "1820", "expected": "1821"},
]


def as_lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_lists_of_rows_by_their_names(save: Save) -> None:
    document = {"note": "x", "results": RECORDS}
    for loaded in (load(save("log.json", json.dumps(document))), load(document)):
        assert loaded.answers is not None and len(loaded.answers) == 2
    for other in ({"dev": RECORDS, "test": RECORDS}, {"note": "x", "failures": RECORDS}):
        with pytest.raises(FormatError, match="no known format has these columns"):
            load(save("log.json", json.dumps(other)))


def test_a_log_whose_name_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"l\xf6g.jsonl")
    path.write_text(as_lines(RECORDS[0]))
    answers = load(path).answers
    assert answers is not None and answers.distinct("system") == ["l\ufffdg"]
    with pytest.raises(InputError, match="this path isn't UTF-8"):
        read([path])


ASKED = {"question": "Who built it?", "expected": "Ann"}


def test_empty_columns_of_a_spreadsheet(save: Save) -> None:
    log = load(save("log.csv", "question,response,,reference,,\nWho?,Ann,,Ann,,\n"))
    assert log.answers is not None and log.collection.answers["text"].to_list() == ["Ann"] and not log.answers.notes


@pytest.mark.parametrize(
    ("row", "accepted"),
    [
        ({"prediction": "Ann", "answer": "Bob"}, ["Bob"]),
        ({"model_answer": "Ann", "answer": {"text": ["Bob", "Rob"]}}, ["Bob", "Rob"]),
        ({"prediction": "Ann", "answer": "Eve", "gold": "Bob"}, ["Bob"]),
        ({"response": "Ann", "answer": "Bob"}, []),
        ({"response": "Ann", "accepted_answers": "Bob | Rob"}, ["Bob", "Rob"]),
        ({"response": "Ann", "accepted_answers": "P(A|B)"}, ["P(A|B)"]),
        ({"response": "Ann", "expected": "Bob|Rob"}, ["Bob|Rob"]),
    ],
)
def test_which_answer_is_accepted(row: dict[str, Any], accepted: list[str], save: Save) -> None:
    log = load(save("log.jsonl", as_lines({"question": "Who?"} | row)))
    assert log.answers is not None and log.answers.frame["text"].to_list() == ["Ann"]
    assert log.collection.answers["text"].to_list() == accepted
    noted = "because" in "".join(log.answers.notes)
    assert noted is ("answer" in row and bool(accepted) and "gold" not in row)


def test_equal_records_count_once(save: Save) -> None:
    answers = load(save("log.jsonl", as_lines(*RECORDS, *RECORDS))).answers
    assert answers is not None and answers.frame.height == 2
    assert "2 records equal earlier ones; each counts once" in answers.notes[0]
    with pytest.raises(FormatError, match="occurs twice") as caught:
        load(save("log.jsonl", as_lines(*RECORDS, RECORDS[0] | {"response": "Bob"})))
    assert 'columns={"repeat": "COLUMN"} if one numbers the repeats' in caught.value.remedy


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    ("columns", "remedy"),
    [
        ([{"model": "a"}, {"model": "b"}], "if 'model' names the systems"),
        ([{"trial": 0}, {"trial": 1}], "if one numbers the repeats"),
        ([{}, {"response": "Bob"}], "if each counts by itself, give it an 'id'"),
    ],
)
def test_two_answers_to_a_question_say_what_to_map(
    columns: list[dict[str, Any]], remedy: str, native: bool, save: Save
) -> None:
    shown = {"retrieved_context": [{"text": "Ann built it."}]} if native else {}
    path = save("log.jsonl", as_lines(*(RECORDS[0] | shown | each for each in columns)))
    with pytest.raises(FormatError, match="occurs twice for system 'log'") as caught:
        load(path)
    assert remedy in caught.value.remedy
    if "model" in columns[0]:
        answers = load(path, {"system": "model"}).answers
        assert answers is not None and answers.distinct("system") == ["a", "b"]


@pytest.mark.parametrize(
    "row",
    [
        {"question": "Who?", "answer_a": "Ann", "answer_b": "Bob"},
        {"question": "Who?", "baseline": {"answer": "Ann"}, "new": {"answer": "Bob"}},
        {"question": "Who?", "responses": [{"model": "x", "text": "Ann"}, {"model": "y", "text": "Bob"}]},
        {"inputs": {"question": "Who?"}, "output": {"answer": "Ann", "documents": ["Ann did."]}},
    ],
)
def test_systems_or_fields_in_columns_and_objects_are_asked_for(row: dict[str, Any], save: Save) -> None:
    with pytest.raises(FormatError, match="no known format has these columns") as caught:
        load(save("log.jsonl", as_lines(row)))
    assert all(name in caught.value.found for name in row)
    if "inputs" in row:
        mapping = {"question": "inputs.question", "answer": "output.answer", "passages": "output.documents"}
        assert json.dumps(mapping | {"accepted": "COLUMN"}) in caught.value.hint.python
        assert load(save("log.jsonl", as_lines(row)), mapping).contexts is not None


@pytest.mark.parametrize(
    ("row", "field", "column"),
    [
        ({"contexts": ["Ann built it."], "bot_answer": "Ann"}, "answer", "bot_answer"),
        ({"expected": "Ann", "answer_fid": "Ann", "judge_fid": True}, "answer", "answer_fid"),  # EVOUNA
        ({"contexts": ["Ann built it."], "outputs": {"text": "Ann"}}, "answer", "outputs"),
        ({"response": {"text": "Ann", "contexts": ["Ann built it."]}}, "passages", "response.contexts"),
        ({"response": "Ann", "context_1": "Ann built it."}, "passages", "context_1"),
        ({"response": "Ann", "retrieved_texts": ["Ann built it."]}, "passages", "retrieved_texts"),
    ],
)
def test_an_unknown_column_of_texts_is_never_left_out_silently(
    row: dict[str, Any], field: str, column: str, save: Save
) -> None:
    """Else answers would count as missing, or passages as not recorded."""
    path = save("log.jsonl", as_lines({"question": "Who built it?"} | row))
    with pytest.raises(FormatError, match=f"'{column}' may be the {field}; the columns are question, ") as caught:
        load(path)
    assert f"--map {field}={column} if it is, --map ignored={column} if not" in caught.value.hint.command
    mapped = load(path, {field: column})
    assert (mapped.answers if field == "answer" else mapped.contexts) is not None
    ignored = load(path, {"ignored": column})
    assert (ignored.answers if field == "answer" else ignored.contexts) is None


def test_several_columns_are_ignored_or_name_a_system(save: Save) -> None:
    row = {
        "question": "Who built it?",
        "contexts": ["Ann built it."],
        "answer_remark": "It is ok.",
        "answer_aim": "To be read.",
    }
    path = save("log.jsonl", as_lines(row | {"llm": "a", "k": 3}))
    with pytest.raises(FormatError, match="'answer_remark', 'answer_aim' may be the answer"):
        read_run(path)
    contexts = read_run(path, columns={"ignored": "answer_remark + answer_aim", "system": "llm + k"}).contexts
    assert contexts is not None and contexts.systems == ["a + 3"] and not contexts.notes


@pytest.mark.parametrize(
    "more",
    [{"comment": "It is ok."}, {"tags": ["mill", "dam"]}, {"history": [{"role": "user", "content": "x" * 40}]}],
)
def test_other_columns_are_named_in_a_note(more: dict[str, Any], save: Save) -> None:
    row = {"question": "Who built it?", "contexts": ["Ann built it."]} if "comment" in more else RECORDS[0]
    loaded = load(save("log.jsonl", as_lines(row | more | {"session_id": 1})))
    table = loaded.contexts or loaded.answers
    assert table is not None and f"not used: {next(iter(more))}, session_id" in table.notes[0]
    assert "turns with the same 'session_id' count as independent" in table.notes[1]


def test_a_request_with_a_text_for_input(save: Save) -> None:
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ann"}]}]
    row = {"request": {"model": "m", "input": "Who?"}, "response": {"object": "response", "output": output}}
    log = load(save("log.jsonl", as_lines(row)))
    assert log.collection.queries["text"].to_list() == ["Who?"]
    assert log.answers is not None and log.answers.frame["text"].to_list() == ["Ann"]


def test_reference_outputs_in_columns_of_langsmith(save: Save) -> None:
    log = load(save("log.csv", "inputs.question,outputs.answer,reference.answer\nWho?,Ann,Bob\n"))
    assert log.collection.answers["text"].to_list() == ["Bob"]


def test_passages_with_scores_and_an_answer_are_no_run(save: Save) -> None:
    rows = [{"query": "Who?", "passage": "Ann did.", "score": 0.3, "answer": "Ann", "reference": "Ann"}]
    with pytest.raises(FormatError, match="no known format"):
        load(save("log.json", json.dumps(rows)))


@pytest.mark.parametrize(
    "text",
    [
        "Connection error.",
        "Request timed out.",
        "Error code: 429 - {}",
        "litellm.RateLimitError: slow down",
        "ERROR: 500",
    ],
)
def test_messages_of_programs_are_no_answers(text: str) -> None:
    assert is_error_message(text, ["Ann"])
    assert not is_error_message(text, [text])


@pytest.mark.parametrize("text", ["terror: a film", "Timeout: 30 seconds", "Error by Ann: she built it"])
def test_answers_are_no_messages(text: str) -> None:
    assert not is_error_message(text, ["Ann", "terror"])


def notes_of(path: Path) -> str:
    loaded = load(path)
    table = loaded.contexts or loaded.answers
    assert table is not None
    return " | ".join(table.notes)


def test_rows_by_their_ids(save: Save) -> None:
    document = {f"q{n}": row for n, row in enumerate(RECORDS)}
    loaded = load(save("log.json", json.dumps(document)))
    assert loaded.answers is not None
    assert loaded.answers.frame.select("query", "text").rows() == [("q0", "Ann"), ("q1", "1820")]


def test_what_is_beside_a_text_in_an_object_is_noted(save: Save) -> None:
    row = {"question": "Who?", "contexts": ["Ann."], "response": {"text": "Ann", "pages": [3], "lang": ""}}
    assert "not used: response.pages" in notes_of(save("log.jsonl", as_lines(row)))


def test_a_field_in_several_columns_is_noted(save: Save) -> None:
    rows = [{"question": "Who?", "response": "Ann"}, {"question": "When?", "answer": "1820", "system": "log"}]
    assert "the field 'answer' is read from several columns: 'response', 'answer'" in notes_of(
        save("log.jsonl", as_lines(*rows))
    )


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ([{"contexts": [{"id": "a", "text": "A"}, {"id": None, "text": "B"}]}], "some passages have no id"),
        ([{"contexts": [{"text": "A", "score": 2}]}, {"contexts": [{"text": "B"}]}], "some passages have no score"),
        ([{"id": "q1"}, {"id": None}], "1 record (line 2) without an id of the question, unlike others"),
        ([{"expected": "Ann"}, {"expected": None}], "1 record (line 2) without an accepted answer, unlike others"),
        ([{"correct": 1}, {"correct_": 1}], "1 record (line 2) without a grade 'correct'"),
    ],
)
def test_what_only_some_records_have_is_noted(rows: list[dict[str, Any]], note: str, save: Save) -> None:
    lines = [{"question": f"Who {n}?", "response": "Ann"} | row for n, row in enumerate(rows)]
    assert note in notes_of(save("log.jsonl", as_lines(*lines)))


@pytest.mark.parametrize("columns", [{"question": "Qestion"}, {"answer": "respnse"}])
def test_a_mistyped_mapping_says_what_is_meant(columns: dict[str, str], save: Save) -> None:
    row = {"Question": "Who?", "response": "Ann", "expected": "Ann"}
    with pytest.raises(FormatError, match="which was given for") as caught:
        load(save("log.jsonl", as_lines(row)), columns)
    assert ("Question" if "question" in columns else "response") in caught.value.hint.command
