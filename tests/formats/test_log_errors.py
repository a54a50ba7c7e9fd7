"""Broken logs: an error or a note that names the file, the place and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragworth.core.errors import SURFACE, FormatError
from ragworth.formats import load, load_records
from ragworth.formats.contract import LoadedCollection
from ragworth.formats.grades import GradeError
from ragworth.workspace.files import read_run, recognise_file
from tests.formats.sample_files import HERE, format_of

Save = Callable[[str, str | bytes], Path]


def row(**fields: Any) -> dict[str, Any]:
    sample = {"user_input": "Who?", "retrieved_contexts": ["Ines did it."], "response": "Ines", "reference": "Ines"}
    return {name: value for name, value in (sample | fields).items() if value is not ...}


GOOD = row(user_input="When?", response="1958")
BAD: dict[str, tuple[Any, str]] = {
    "no question": (row(user_input=...), "no question"),
    "question is null": (row(user_input=None), "no question: 'user_input' is null"),
    "question is empty": (row(user_input=" "), "is empty"),
    "question is a number": (row(user_input=5), "not text"),
    "a conversation": (row(user_input=[{"content": "hi", "type": "human"}]), "a conversation"),
    "passages are a number": (row(retrieved_contexts=7), "not a list"),
    "a passage is null": (row(retrieved_contexts=["a", None]), "passage 2"),
    "a passage has nothing": (row(retrieved_contexts=[{"score": 1}]), "passage 1 has neither"),
    "ids and passages differ in number": (row(retrieved_context_ids=["a", "b"]), "1 passages and 2 ids"),
    "answer is an object": (row(response={"a": 1}), "the response is"),
    "two answers": (row(user_input="When?"), "occurs twice for system"),
    "accepted answers are objects": (row(reference={"a": 1}), "not a list of texts"),
    "not an object": (["Who?"], "instead of an object"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("lines", [True, False])
def test_bad_record(kind: str, lines: bool, save: Save) -> None:
    bad, found = BAD[kind]
    rows = [GOOD, bad, row(user_input="Why?")]
    text = "\n".join(json.dumps(each) for each in rows) if lines else json.dumps(rows, indent=1)
    path = save("log.jsonl" if lines else "log.json", text)
    with pytest.raises(FormatError) as caught:
        load(path)
    assert caught.value.file == str(path)
    assert found in caught.value.found
    assert caught.value.line == (2 if lines else None)
    assert lines or caught.value.found.startswith("record 2: ")
    assert "skip_bad_lines" in caught.value.hint.python
    loaded = load(path, skip_bad_lines=True)
    assert loaded.collection.queries["text"].to_list() == ["When?", "Why?"]
    assert loaded.contexts is not None
    assert (
        f"1 bad {'line' if lines else 'record'} skipped ({'line' if lines else 'record'} 2: "
        in loaded.contexts.notes[0]
    )


def test_half_of_the_rows_have_no_answer(save: Save) -> None:
    """They are missing, not wrong, and nobody can overlook it."""
    rows = [row(user_input=f"Q{i}?", response=f"A{i}" if i % 2 else None) for i in range(6)]
    loaded = load(save("log.jsonl", "\n".join(map(json.dumps, rows))))
    assert loaded.answers is not None
    assert loaded.contexts is not None
    assert loaded.answers.frame["status"].to_list() == ["no-answer", "ok"] * 3
    assert any(
        "3 records (line 1, 3, 5) of 6 without an answer; missing, not wrong" in n for n in loaded.contexts.notes
    )


def test_cut_off_document(save: Save) -> None:
    text = (HERE / "ragchecker/inputs.json").read_text()
    path = save("cut.json", text[: len(text) // 2])
    with pytest.raises(FormatError, match="the JSON ends early") as caught:
        load(path)
    assert caught.value.line == text[: len(text) // 2].count("\n") + 1
    assert "again" in caught.value.remedy


def test_mixed_shapes(save: Save) -> None:
    """A second record of another shape is an error at its place, not a silent gap."""
    path = save("mixed.json", json.dumps([row(), {"trace": "x", "spans": []}]))
    with pytest.raises(FormatError, match="record 2: no question"):
        load(path)


def test_empty_lists(save: Save) -> None:
    for name in ("a.json", "b.json"):
        with pytest.raises(FormatError):
            load(save(name, "[]" if name == "a.json" else '{"results": []}'))
    loaded = load(save("c.json", json.dumps([row(retrieved_contexts=[])])))
    assert loaded.contexts is not None
    assert len(loaded.contexts.empty) == 1
    assert loaded.answers is not None


def test_references_that_were_not_retrieved_are_no_labels(save: Save) -> None:
    """Otherwise every system would score 0 on relevance."""
    loaded = load(
        save("log.json", json.dumps([row(reference_contexts=["A text of another kind of chunks, not shown."])]))
    )
    assert loaded.collection.relevance is None
    assert loaded.contexts is not None
    assert any("not used as relevance labels" in note for note in loaded.contexts.notes)


def test_repeated_passage_is_noted(save: Save) -> None:
    loaded = load(save("log.json", json.dumps([row(retrieved_contexts=["a", "b", "a"])])))
    assert loaded.contexts is not None
    assert loaded.contexts.frame.height == 2
    assert any("1 passage shown twice in the same context" in note for note in loaded.contexts.notes)


def test_a_column_of_other_words_is_no_grade(save: Save) -> None:
    text = "question,prediction,label\nWho?,Ines,history\n"
    loaded = load(save("log.csv", text))
    assert loaded.outcomes is None
    assert loaded.answers is not None
    assert any("'label' was not read as a grade: it has 'history'" in note for note in loaded.answers.notes)
    with pytest.raises(FormatError, match="'history'"):
        load(save("log.csv", text), {"correct": "label"})


def answers_of(save: Save, *rows: dict[str, object]) -> LoadedCollection:
    return load(save("log.jsonl", "".join(json.dumps(each) + "\n" for each in rows)))


def asked(system: str, response: object, **more: object) -> dict[str, object]:
    return {"system": system, "question": "Who?", "response": response, "reference": "Ines", **more}


def test_a_system_without_any_answer_stays(save: Save) -> None:
    found = answers_of(save, asked("a", "Ines"), asked("b", None)).answers
    assert found is not None
    assert found.frame.select("system", "status").rows() == [("a", "ok"), ("b", "no-answer")]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        *((text, "no-answer") for text in ("nan", "None", "null", "<NA>")),
        ("Error: 429 Too Many Requests", "error"),
        ("Traceback (most recent call last):\n  File ...", "error"),
        ("openai.RateLimitError: Rate limit reached", "error"),
        ("Error bars show the interval.", "ok"),
        ("None of them.", "ok"),
    ],
)
def test_the_text_of_a_missing_value_is_no_answer(save: Save, text: str, status: str) -> None:
    found = answers_of(save, asked("a", "Ines"), asked("b", text)).answers
    assert found is not None
    assert found.frame["status"].to_list() == ["ok", status]
    assert any("1 record (line 2) with" in note for note in found.notes) == (status != "ok")


def test_none_is_an_answer_where_it_is_accepted(save: Save) -> None:
    found = answers_of(save, asked("a", "None", reference="None")).answers
    assert found is not None and found.frame["status"].to_list() == ["ok"]


def test_a_reference_that_says_nothing_is_none_and_true_means_yes(save: Save) -> None:
    rows = [asked("a", "x", reference="N/A"), asked("a", "y", question="Is it?", reference=False)]
    loaded = answers_of(save, *rows)
    assert loaded.collection.answers["text"].to_list() == ["No"]
    assert loaded.answers is not None and "1 record (line 1) with an accepted answer" in loaded.answers.notes[0]


def test_blanks_make_no_other_question_or_answer(save: Save) -> None:
    loaded = answers_of(save, asked("a", "x"), asked("b", "y", question=" Who? ", reference="Ines "))
    assert loaded.collection.queries.height == loaded.collection.answers.height == 1
    with pytest.raises(FormatError, match=r"line 2: the accepted answer to 'Who\?' is 'Ada', but 'Ines' on line 1"):
        answers_of(save, asked("a", "x"), asked("b", "y", reference="Ada"))


def test_a_grade_that_is_none_is_missing_and_another_word_an_error(save: Save) -> None:
    graded = [asked("a", "x", human_label="correct"), asked("b", "y", human_label="n/a")]
    loaded = answers_of(save, *graded)
    assert loaded.outcomes is not None and loaded.answers is not None
    assert loaded.outcomes.frame["value"].to_list() == [1.0, None]
    assert any(
        "1 record (line 2) without a grade 'human_label': it says 'n/a'" in note for note in loaded.answers.notes
    )
    with pytest.raises(GradeError, match=r"log.jsonl, line 2: 'human_label' has 'splendid', which is no grade"):
        answers_of(save, graded[0], asked("b", "y", human_label="splendid"))


UNKNOWN = "Frage_ID,User Utterance,Bot says,Found chunks,Gold\n1,Wer?,Ines,\"['a']\",Ines\n"


def test_unknown_columns(save: Save) -> None:
    path = save("bot.csv", UNKNOWN)
    with pytest.raises(FormatError) as caught:
        format_of(path)
    error = caught.value
    assert "Frage_ID, User Utterance, Bot says, Found chunks, Gold" in error.found
    assert error.file == str(path)
    surface = SURFACE.set("command")
    try:
        assert "--map question=COLUMN --map answer=COLUMN --map passages=COLUMN --map accepted=Gold" in error.remedy
    finally:
        SURFACE.reset(surface)
    assert '[columns]\n    question = "COLUMN"' in error.hint.workspace


def test_mapping_of_columns(save: Save) -> None:
    path = save("bot.csv", UNKNOWN)
    columns = {"query_id": "Frage_ID", "question": "User Utterance", "answer": "Bot says", "contexts": "Found chunks"}
    loaded = load(path, columns | {"reference": "Gold"})
    assert loaded.collection.queries.rows() == [("1", "Wer?")]
    assert loaded.collection.answers.rows() == [("1", "Ines")]
    assert loaded.answers is not None
    assert loaded.answers.frame["text"].to_list() == ["Ines"]
    assert loaded.collection.passages["text"].to_list() == ["a"]
    [named] = recognise_file(f"table:{path}", path.name, columns | {"reference": "Gold"})
    assert named.kind == "log" and named.texts.equals(loaded.collection)
    assert read_run(f"table:{path}", columns=columns).contexts == loaded.contexts


def test_mapping_into_objects_and_of_grades() -> None:
    rows = [{"request": {"text": "Who?"}, "reply": "Ines", "rated": "yes"}]
    loaded = load_records(rows, {"question": "request.text", "answer": "reply", "higher_helpful": "rated"})
    assert loaded.collection.queries["text"].to_list() == ["Who?"]
    assert loaded.outcomes is not None
    assert loaded.outcomes.frame.select("aspect", "value").rows() == [("higher_helpful", 1.0)]


def test_mapping_that_does_not_fit(save: Save) -> None:
    path = save("bot.csv", UNKNOWN)
    with pytest.raises(FormatError, match="no 'Users Utterance', which was given for 'question'") as caught:
        load(path, {"question": "Users Utterance", "answer": "Bot says", "query": "Frage_ID"})
    assert "User Utterance" in caught.value.remedy
    with pytest.raises(FormatError, match="unknown field 'qestion'") as caught:
        load(path, {"qestion": "User Utterance"})
    assert "question=User Utterance" in caught.value.remedy


def test_an_answer_that_may_be_the_accepted_one(save: Save) -> None:
    """A QA dataset calls accepted answers so, a log the answers of a system."""
    path = save("qa.jsonl", json.dumps({"question": "Who?", "answer": "Ines", "context": "Ines did it."}))
    with pytest.raises(FormatError, match="'answer' may be the answer of a system, or the accepted answer"):
        load(path)
    assert load(path, {"accepted": "answer"}).answers is None
    answers = load(path, {"answer": "answer"}).answers
    assert answers is not None
    assert answers.frame["text"].to_list() == ["Ines"]


@pytest.mark.parametrize("name", ["log.json", "log.csv", "log.parquet", "log.jsonl"])
@pytest.mark.parametrize("content", [b"", b"\n", b"hello", b"\x00\x01", b"{", b"[", b'"a"', b"{}", b"[1, 2]"])
def test_files_of_something_else(name: str, content: bytes, save: Save) -> None:
    with pytest.raises(FormatError) as caught:
        load(save(name, content))
    assert caught.value.file
