"""Logs with several systems, splits or answers in one file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ragworth.errors import FormatError, InputError
from ragworth.formats import load
from ragworth.inputs.sources import open_source

Save = Callable[[str, str | bytes], Path]
RECORDS = [
    {"question": "Who built it?", "response": "Ann", "expected": "Ann"},
    {"question": "When?", "response": "1820", "expected": "1821"},
]


def as_lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("document", "systems", "note"),
    [
        ({"train": RECORDS[:1], "test": RECORDS[1:]}, 1, "'train', 'test' are read as one log"),
        ({"dev": RECORDS, "test": RECORDS}, 2, ""),
        ({"note": "x", "failures": RECORDS}, 1, "'failures' is read as the log: it is the only list of objects"),
        ({"note": "x", "results": RECORDS}, 1, ""),
    ],
)
def test_lists_of_rows_by_their_names(document: dict[str, Any], systems: int, note: str, save: Save) -> None:
    for loaded in (load(save("log.json", json.dumps(document))), load(document)):
        assert loaded.answers is not None and len(loaded.answers.distinct("system")) == systems
        assert [each.rpartition("json: ")[2] for each in loaded.answers.notes] == [note] * bool(note)


def test_a_prompt_beside_a_question_is_not_the_question(save: Save) -> None:
    row = {"prompt": "Answer briefly: Who?", "user_question": "Who?", "response": "Ann"}
    assert load(save("log.jsonl", as_lines(row))).collection.queries["text"].to_list() == ["Who?"]


def test_a_log_whose_name_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"l\xf6g.jsonl")
    path.write_text(as_lines(RECORDS[0]))
    answers = load(path).answers
    assert answers is not None and answers.distinct("system") == ["l\ufffdg"]
    with pytest.raises(InputError, match="this path isn't UTF-8"):
        open_source([path])


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ([{"model": "a"}, {"model": "b"}], "'model' names the systems ('a', 'b')"),
        ([{"trial": 0}, {"trial": 1}], "'trial' numbers the repeats"),
        ([{"top_k": 3}, {"top_k": 5}], "'top_k' names the systems ('3', '5')"),
        (
            [{"model": name, "seed": seed} for name in "ab" for seed in (7, 8)],
            "'model' names the systems ('a', 'b') and 'seed' numbers the repeats",
        ),
        ([{"id": f"{name}{{}}", "model": name} for name in "ab"], "'model' names the systems ('a', 'b')"),
    ],
)
@pytest.mark.parametrize("contexts", [True, False])
def test_a_column_that_tells_answers_to_a_question_apart(
    more: list[dict[str, Any]], told: str, contexts: bool, save: Save
) -> None:
    shown = {"contexts": ["Ann built it."]} if contexts else {}
    rows = [
        record | shown | {name: value.format(n) if name == "id" else value for name, value in each.items()}
        for each in more
        for n, record in enumerate(RECORDS)
    ]
    log = load(save("log.jsonl", as_lines(*rows)))
    noted, answers = log.contexts or log.answers, log.answers
    assert noted is not None and noted.notes[0].endswith(f"questions recur, and {told}") and answers is not None
    assert log.collection.queries.height == 2 and answers.frame.height == len(rows) and log.outcomes is None
    assert len(answers.distinct("system")) == (2 if "trial" not in more[0] else 1)
    framed = load(pl.DataFrame(rows)).answers
    assert framed is not None and framed.frame["system"].n_unique() == answers.frame["system"].n_unique()


def test_two_columns_that_together_name_the_systems(save: Save) -> None:
    rows = [
        record | {"llm": llm, "retriever": search, "host": "x"}
        for llm in "ab"
        for search in ("bm25", "dense")
        for record in RECORDS
    ]
    answers = load(save("log.jsonl", as_lines(*rows))).answers
    assert answers is not None
    assert sorted(answers.distinct("system")) == ["a + bm25", "a + dense", "b + bm25", "b + dense"]
    assert "'llm + retriever' names the systems" in answers.notes[-1]


def test_a_column_that_tells_some_answers_apart_is_not_mapped(save: Save) -> None:
    rows = [record | {"model": name, "n": n} for n, name in enumerate("aab") for record in RECORDS]
    with pytest.raises(FormatError, match="occurs twice for system 'log'") as caught:
        load(save("log.jsonl", as_lines(*rows)))
    assert "if 'model' names the systems" in caught.value.remedy


def test_systems_that_follow_the_beginning_of_a_long_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragworth.inputs.file_heads.HEAD_BYTES", 300)
    rows = [{**RECORDS[0], "question": f"Who built it {n}?", "model": name} for name in "ab" for n in range(9)]
    (tmp_path / "log.jsonl").write_text(as_lines(*rows))
    plan = open_source([tmp_path / "log.jsonl"]).plan
    assert plan is not None and plan.used[0][0].startswith("logs of 2 systems")


ASKED = {"question": "Who built it?", "expected": "Ann"}


@pytest.mark.parametrize(
    ("row", "answers"),
    [
        ({"answer_a": "Ann", "answer_b": "Bob"}, {"a": "Ann", "b": "Bob"}),
        ({"GPT-4o Answer": "Ann", "Acme Answer": "Bob"}, {"gpt_4o": "Ann", "acme": "Bob"}),
        ({"rag_answer": "Ann", "no_rag_answer": "Bob"}, {"rag": "Ann", "no_rag": "Bob"}),
        ({"model_a": "x", "model_b": "y", "response_a": "Ann", "response_b": "Bob"}, {"x": "Ann", "y": "Bob"}),
        ({"baseline": {"answer": "Ann"}, "acme": {"answer": "Bob"}}, {"baseline": "Ann", "acme": "Bob"}),
        ({"answers": {"gpt-4": "Ann", "acme": "Bob"}}, {"gpt-4": "Ann", "acme": "Bob"}),
        ({"systems": {"x": {"output": "Ann"}, "y": {"output": "Bob"}}}, {"x": "Ann", "y": "Bob"}),
        ({"responses": [{"model": "x", "text": "Ann"}, {"model": "y", "text": "Bob"}]}, {"x": "Ann", "y": "Bob"}),
        ({"llm_answer": "Ann", "human_answer": "Bob"}, {"log": "Ann"}),
        ({"final_answer": "Ann", "dense_docs": ["a"], "sparse_docs": ["b"]}, {"log": "Ann"}),
        ({"answer": "Ann", "answer_a": "Bob", "answer_b": "Bob"}, {"log": "Ann"}),
        ({"response": "Ann", "outputs": {"answer": "Bob", "reasoning": "why"}}, {"log": "Ann"}),
    ],
)
def test_several_systems_in_a_row(row: dict[str, Any], answers: dict[str, str], save: Save) -> None:
    path = save("log.jsonl", as_lines(ASKED | row, {**ASKED, **row, "question": "Who else?"}))
    found = load(path).answers
    assert found is not None and dict(found.frame.select("system", "text").iter_rows()) == answers
    assert found.frame.height == 2 * len(answers)
    told = "each line has several systems: " + ", ".join(map(repr, answers))
    assert any(told in note for note in found.notes) is (len(answers) > 1)


@pytest.mark.parametrize(
    "row",
    [
        {"answer_a": "Ann", "answer_b": "Bob", "answer_c": "Eve", "answer_d": "Kim"},  # choices
        {"short_answer": "Ann", "long_answer": "Ann built it."},
        {"runs": [{"name": "search", "output": "x"}, {"name": "llm", "output": "Ann"}]},
    ],
)
def test_columns_that_are_no_systems(row: dict[str, Any], save: Save) -> None:
    with pytest.raises(FormatError, match="no known format"):
        load(save("log.jsonl", as_lines(ASKED | row)))


@pytest.mark.parametrize("answers", [["Ann", "Bob"], [{"text": "Ann", "logprob": -1}, {"text": "Bob"}]])
def test_several_answers_of_a_system_in_a_row_are_repeats(answers: list[Any], save: Save) -> None:
    found = load(save("log.jsonl", as_lines(ASKED | {"responses": answers}))).answers
    assert found is not None and found.frame.select("system", "repeat", "text").rows() == [
        ("log", 0, "Ann"),
        ("log", 1, "Bob"),
    ]
    assert "each line has several answers of a system, read as repeats" in found.notes[0]


def test_empty_columns_of_a_spreadsheet(save: Save) -> None:
    log = load(save("log.csv", "question,response,,reference,,\nWho?,Ann,,Ann,,\n"))
    assert log.answers is not None and log.collection.answers["text"].to_list() == ["Ann"] and not log.answers.notes


def test_passages_and_grades_of_several_systems_in_a_row(save: Save) -> None:
    row = ASKED | {"gpt4_answer": "Ann", "gpt4_contexts": ["Ann built it."], "gpt4_correct": "yes"}
    row |= {"llama_answer": "Bob", "llama_contexts": ["Bob built it.", "It burnt down."], "llama_correct": "no"}
    log = load(save("log.jsonl", as_lines(row)))
    assert log.contexts is not None and log.contexts.frame["system"].to_list() == ["gpt4", "llama", "llama"]
    assert log.outcomes is not None and log.outcomes.frame["value"].to_list() == [1.0, 0.0]
    mapped = load(save("log.jsonl", as_lines(row)), {"answer": "llama_answer"})
    assert mapped.answers is not None and mapped.answers.frame["text"].to_list() == ["Bob"]


def test_a_system_without_retrieval_is_shown_no_passages(save: Save) -> None:
    row = ASKED | {"contexts": ["Ann built it."], "rag_answer": "Ann", "no_rag_answer": "Bob"}
    log = load(save("log.jsonl", as_lines(row)))
    assert log.contexts is not None and log.contexts.frame["system"].to_list() == ["rag"]
    assert [system for system, _ in log.contexts.empty] == ["no_rag"]


def test_a_row_that_lacks_a_system(save: Save) -> None:
    rows = [{"question": f"Who built it {n}?", "x": {"answer": "Ann"}, "y": {"answer": "Bob"}} for n in range(3)]
    answers = load(save("log.jsonl", as_lines({**rows[0], "y": None}, *rows[1:]))).answers
    assert answers is not None and answers.frame["system"].to_list() == ["x", "x", "y", "x", "y"]


@pytest.mark.parametrize(
    "row",
    [
        {"inputs": {"question": "Who?"}, "output": {"answer": "Ann", "documents": ["Ann did."]}, "expected": "Bob"},
        {"json": {"chatInput": "Who?", "output": "Ann", "docs": [{"pageContent": "Ann did."}]}, "gold_answer": "Bob"},
        {"example": {"question": "Who?", "answer": "Bob"}, "prediction": {"answer": "Ann", "context": ["Ann did."]}},
        {"question": "Who?", "golden_answers": ["Bob"], "output": {"pred": "Ann", "retrieval_result": ["Ann did."]}},
        {"inputs.query": "Who?", "inputs.response": "Ann", "inputs.context": "Ann did.", "inputs.ground_truth": "Bob"},
        {"item": {"question": "Who?", "answer": "Bob"}, "sample": {"output_text": "Ann", "docs": ["Ann did."]}},
        {"id": 1, "data": {"inputs": {"query": "Who?"}, "run": {"response": "Ann", "sources": ["Ann did."]}}}
        | {"target": {"answer": "Bob"}, "metadata": {"result": "ok", "question": "x"}},
    ],
)
def test_fields_in_objects(row: dict[str, Any], save: Save) -> None:
    for log in (load(save("log.jsonl", as_lines(row))), load([row])):
        assert log.collection.queries["text"].to_list() == ["Who?"]
        assert log.answers is not None and log.answers.frame["text"].to_list() == ["Ann"]
        assert log.collection.answers["text"].to_list() == ["Bob"]
        assert log.collection.passages["text"].to_list() == ["Ann did."]
        assert log.contexts is not None and "fields are read from objects: " in log.contexts.notes[0]


def test_metrics_in_objects_of_their_name_are_grades(save: Save) -> None:
    row = {"inputs": {"query": "Who?", "response": "Ann"}, "scores": {"fluency": {"fluency": 4, "why": "x"}}}
    log = load(save("log.jsonl", as_lines(row)))
    assert log.outcomes is not None and log.outcomes.frame.select("aspect", "value").rows() == [("fluency", 4.0)]
    mapped = load(save("log.jsonl", as_lines(row)), {"answer": "scores.fluency.why"})
    assert mapped.answers is not None and mapped.answers.frame["text"].to_list() == ["x"]


@pytest.mark.parametrize(
    "row",
    [
        {"data": {"question": "Who?", "answer": "Ann"}},
        {"question": "Who?", "answer": "Ann", "documents": [{"text": "Ann did."}]},
    ],
)
def test_an_answer_may_be_the_accepted_one(row: dict[str, Any], save: Save) -> None:
    with pytest.raises(FormatError):
        load(save("log.jsonl", as_lines(row)))


@pytest.mark.parametrize("score", [{"score": 0.3}, {"distance": 0.3}])
def test_an_answer_beside_passages_with_scores_is_the_systems(score: dict[str, float], save: Save) -> None:
    row = {"question": "Who?", "answer": "Ann", "documents": [{"text": "Ann did."} | score]}
    log = load(save("log.jsonl", as_lines(row)))
    assert log.answers is not None and log.answers.frame["text"].to_list() == ["Ann"]
    assert log.contexts is not None and "'answer' is read as the system's answer" in log.contexts.notes[0]


def test_numbered_columns_are_lists(save: Save) -> None:
    text = "question,response,context_2,context_1,context_10,gold_answer_1,gold_answer_2\nWho?,Ann,b,a,,Ann,Ann Lee\n"
    log = load(save("log.csv", text))
    assert log.collection.answers["text"].to_list() == ["Ann", "Ann Lee"] and log.contexts is not None
    texts = dict(log.collection.passages.select("passage", "text").iter_rows())
    assert [texts[name] for name in log.contexts.frame["passage"]] == ["a", "b"]
    assert "context_1, context_2, context_10 are read as passages" in log.contexts.notes[0]
    other = load(save("log.jsonl", as_lines(ASKED | {"response": "Ann", "contexts": ["a"], "context_1": "b"})))
    assert other.collection.passages["text"].to_list() == ["a"]
    choices = load(
        save("log.jsonl", as_lines({"question": "Who?", "contexts": ["a"], "answer_1": "x", "answer_2": "y"}))
    )
    assert not choices.collection.answers.height


@pytest.mark.parametrize(
    ("row", "accepted"),
    [
        ({"prediction": "Ann", "answer": "Bob"}, ["Bob"]),
        ({"llm_answer": "Ann", "answer": {"value": "Bob", "aliases": ["Rob"]}}, ["Bob", "Rob"]),
        ({"prediction": "Ann", "answer": "Eve", "gold": "Bob"}, ["Bob"]),
        ({"response": "Ann", "answer": "Bob"}, []),
        ({"response": "Ann", "accepted_answers": "Bob | Rob"}, ["Bob", "Rob"]),
        ({"response": "Ann", "expected": "Bob|Rob"}, ["Bob|Rob"]),
    ],
)
def test_which_answer_is_accepted(row: dict[str, Any], accepted: list[str], save: Save) -> None:
    log = load(save("log.jsonl", as_lines({"question": "Who?"} | row)))
    assert log.answers is not None and log.answers.frame["text"].to_list() == ["Ann"]
    assert log.collection.answers["text"].to_list() == accepted
    noted = "because" in "".join(log.answers.notes)
    assert noted is ("answer" in row and bool(accepted) and "gold" not in row)


@pytest.mark.parametrize("shown", [["handbook.pdf", "http://x.org/a"], "Annual report 2024.docx", ["doc_17", "doc_3"]])
def test_names_of_files_are_no_texts(shown: Any, save: Save) -> None:
    log = load(save("log.jsonl", as_lines(ASKED | {"response": "Ann", "sources": shown})))
    assert log.contexts is not None and not log.collection.passages.height
    assert log.contexts.frame["passage"].to_list() == ([shown] if isinstance(shown, str) else shown)
    assert "names of files or addresses" in log.contexts.notes[0]
    texts = load(save("log.jsonl", as_lines(ASKED | {"response": "Ann", "sources": ["Read handbook.pdf first."]})))
    assert texts.collection.passages["text"].to_list() == ["Read handbook.pdf first."]


def test_equal_records_count_once(save: Save) -> None:
    answers = load(save("log.jsonl", as_lines(*RECORDS, *RECORDS))).answers
    assert answers is not None and answers.frame.height == 2
    assert "2 records equal earlier ones; each counts once" in answers.notes[0]
    with pytest.raises(FormatError, match="occurs twice") as caught:
        load(save("log.jsonl", as_lines(*RECORDS, RECORDS[0] | {"response": "Bob"})))
    assert "number them in a column 'repeat'" in caught.value.remedy
    same = [record | {"model": name} for name in "ab" for record in RECORDS]
    both = load(save("log.jsonl", as_lines(*same))).answers
    assert both is not None and both.distinct("system") == ["a", "b"]


@pytest.mark.parametrize(
    ("names", "first"),
    [
        ("question,response,chunk,rank", "second"),
        ("query,answer,ground_truth,context,score", "first"),
        ("query_id,query,generated_answer,doc_id,doc_text", "first"),
    ],
)
def test_a_row_for_each_passage(names: str, first: str, save: Save) -> None:
    columns = names.split(",")
    values = {"question": "Who?", "query": "Who?", "query_id": "1", "ground_truth": "Ann", "score": "0.5"}
    values |= dict.fromkeys(("response", "answer", "generated_answer"), "Ann")
    parts = [{"chunk": text, "context": text, "doc_text": text, "doc_id": text} for text in ("first", "second")]
    rows = [values | part | {"rank": str(2 - n)} for n, part in enumerate(parts)]
    log = load(save("log.csv", "\n".join([names, *(",".join(row[name] for name in columns) for row in rows)]) + "\n"))
    assert log.answers is not None and log.answers.frame["text"].to_list() == ["Ann"]
    assert log.contexts is not None and log.contexts.frame.height == 2
    texts = dict(log.collection.passages.select("passage", "text").iter_rows())
    assert texts[log.contexts.frame["passage"][0]] == first
    assert "each line is read as a passage" in log.contexts.notes[0]


def test_rows_of_systems_that_answer_alike_are_no_passages(save: Save) -> None:
    rows = [ASKED | {"response": "Ann", "model": name, "context": f"{name} says Ann."} for name in "ab"]
    log = load(save("log.jsonl", as_lines(*rows)))
    assert log.answers is not None and log.answers.distinct("system") == ["a", "b"]


def test_a_request_with_a_text_for_input(save: Save) -> None:
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ann"}]}]
    row = {"request": {"model": "m", "input": "Who?"}, "response": {"object": "response", "output": output}}
    log = load(save("log.jsonl", as_lines(row)))
    assert log.collection.queries["text"].to_list() == ["Who?"]
    assert log.answers is not None and log.answers.frame["text"].to_list() == ["Ann"]


def test_reference_outputs_in_columns_of_langsmith(save: Save) -> None:
    log = load(save("log.csv", "inputs.question,outputs.answer,reference.answer\nWho?,Ann,Bob\n"))
    assert log.collection.answers["text"].to_list() == ["Bob"]


def test_systems_in_our_own_format(save: Save) -> None:
    shown = {
        "query_id": "q1",
        "query": "Who?",
        "retrieved_context": [{"doc_id": "d1", "text": "Ann did."}],
        "answer": "Ann",
    }
    answers = load(save("log.jsonl", as_lines(*(shown | {"model": name} for name in "ab")))).answers
    assert answers is not None and answers.distinct("system") == ["a", "b"]
    with pytest.raises(FormatError, match="occurs twice"):
        load(save("log.jsonl", as_lines(shown, shown | {"answer": "Bob"})))


def test_frames_by_the_names_of_systems_or_splits() -> None:
    frame = pl.DataFrame(RECORDS)
    answers = load({"a": frame, "b": frame}).answers
    assert answers is not None and answers.distinct("system") == ["a", "b"]
    split = load({"train": frame[:1], "test": frame[1:]}).answers
    assert split is not None and len(split.distinct("system")) == 1 and split.frame.height == 2


@pytest.mark.parametrize(
    ("texts", "ids"),
    [
        (["guide/setup.md", "guide/use.md#install"], True),
        (["https://example.org/a", "https://example.org/b"], True),
        (["doc_17", "chunk-3"], True),
        (["COVID-19"], False),
        (["Ann is in README.md"], False),
        (["Annual report 2024.pdf"], True),
        (["The settings are in config.json", "Ann built the mill."], False),
        (["The mill that Ann built in 1850 has its settings in config.json"], False),
    ],
)
def test_passages_are_names_if_all_look_like_names(texts: list[str], ids: bool, save: Save) -> None:
    log = load(save("log.jsonl", as_lines(ASKED | {"response": "Ann", "contexts": texts})))
    assert log.contexts is not None
    assert log.collection.passages["text"].to_list() == ([] if ids else texts)
    assert not ids or log.contexts.frame["passage"].to_list() == texts


@pytest.mark.parametrize(
    "more",
    [
        {"answerA": "Ann", "answerB": "Bob", "answerC": "Eve", "correct": "B"},
        {"answerA": "Ann", "answerB": "Bob", "label": "1"},
        {"short_answer": "Ann", "gpt4_answer": "Bob"},
        {"human_answer": "Ann", "gpt4_answer": "Bob"},
    ],
)
def test_choices_and_answers_of_people_are_no_systems(more: dict[str, str], save: Save) -> None:
    with pytest.raises(FormatError, match="no known format"):
        load(save("log.jsonl", as_lines({"question": "Who built it?"} | more)))


def test_a_few_questions_that_recur_say_nothing_of_a_column(save: Save) -> None:
    rows = [{"question": f"Who built {n}?", "response": "Ann", "model": "ab"[n > 4], "sample": n} for n in range(9)]
    rows.append(rows[0] | {"response": "Bob", "model": "b", "sample": 9})
    answers = load(save("log.jsonl", as_lines(*rows))).answers
    assert answers is not None and answers.distinct("system") == ["log"]
    assert "--map system=model" in answers.notes[0]
    assert "1 record (line 10) with a question that was asked before" in " ".join(answers.notes)


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "native.jsonl"])
def test_a_question_that_recurs_is_a_question_of_its_own(name: str, save: Save) -> None:
    """It keeps its answer, its context and its accepted answer."""
    rows: list[dict[str, Any]] = [
        {"question": f"Who {n}?", "response": "Ann", "context": f"Ann did {n}.", "gold": "Ann"} for n in range(20)
    ]
    other = rows[0] | {"response": "Bob", "context": "Bob did.", "gold": "Bob"}
    rows += [other, rows[0], other, rows[0] | {"response": "Cid", "context": "Cid did.", "gold": "Cid"}]
    if name == "native.jsonl":
        shown = [{"retrieved_context": [{"doc_id": row["context"], "text": row["context"]}]} for row in rows]
        rows = [{**row, **more, "context": None} for row, more in zip(rows, shown, strict=True)]
    as_csv = pl.DataFrame(rows).write_csv() if name == "log.csv" else ""
    loaded = load(save(name, as_csv or as_lines(*rows)))
    assert loaded.contexts is not None and loaded.answers is not None
    assert loaded.collection.queries["text"].to_list()[-3:] == ["Who 19?", "Who 0?", "Who 0?"]
    last = loaded.collection.queries["query"].to_list()[-2:]
    assert loaded.answers.frame["text"].to_list()[-2:] == ["Bob", "Cid"]
    assert loaded.collection.answers.filter(pl.col("query").is_in(last))["text"].to_list() == ["Bob", "Cid"]
    assert loaded.contexts.frame.filter(pl.col("query").is_in(last)).height == 2
    notes = " ".join(loaded.contexts.notes)
    assert "2 records equal earlier ones" in notes and "2 records (line " in notes


def test_a_question_that_recurs_with_its_id_is_an_error(save: Save) -> None:
    rows = [{"id": n, "question": f"Who {n}?", "response": "Ann", "gold": "Ann"} for n in range(20)]
    with pytest.raises(FormatError, match="query '0' occurs twice"):
        load(save("log.jsonl", as_lines(*rows, rows[0] | {"response": "Bob"})))


def test_an_answer_beside_an_output_may_be_the_accepted_one_despite_scores(save: Save) -> None:
    row = {"question": "Who?", "answer": "Ann", "output": "Bob", "docs": [{"text": "Ann did.", "score": 0.3}]}
    with pytest.raises(FormatError, match="may be the answer of a system"):
        load(save("log.jsonl", as_lines(row)))


def test_passages_with_scores_and_an_answer_are_no_run(save: Save) -> None:
    rows = [{"query": "Who?", "passage": "Ann did.", "score": 0.3, "answer": "Ann", "reference": "Ann"}]
    with pytest.raises(FormatError, match="no known format"):
        load(save("log.json", json.dumps(rows)))


@pytest.mark.parametrize("text", ["P(A|B)", "|x| = 3", "|x|"])
def test_a_bar_in_mathematics_separates_no_answers(text: str, save: Save) -> None:
    log = load(save("log.jsonl", as_lines({"question": "Who?", "response": "Ann", "answers": text})))
    assert log.collection.answers["text"].to_list() == [text]


@pytest.mark.parametrize(
    ("row", "fields"),
    [
        ({"query": "Who?", "retrieval": {"question": "Ann who?", "documents": ["a"]}}, ("Who?", "Ann")),
        ({"question": "Who?", "judge": {"prompt": "Is it right?", "response": "PASS"}}, ("Who?", "Ann")),
    ],
)
def test_fields_in_objects_are_not_those_of_other_steps(
    row: dict[str, Any], fields: tuple[str, str], save: Save
) -> None:
    log = load(save("log.jsonl", as_lines(row | {"output": {"answer": "Ann"}, "expected": "Ann"})))
    assert log.answers is not None
    assert (log.collection.queries["text"][0], log.answers.frame["text"][0]) == fields


def test_texts_in_objects_of_their_own(save: Save) -> None:
    row = {"request": {"query": "Who?"}, "response": {"text": "Ann", "docs": [{"text": "Ann did."}]}}
    answers = load(save("log.jsonl", as_lines(row))).answers
    assert answers is not None and answers.frame["text"].to_list() == ["Ann"]


def test_lists_of_one_answer_are_no_repeats(save: Save) -> None:
    answers = load(save("log.jsonl", as_lines(ASKED | {"completions": ["Ann"]}))).answers
    assert answers is not None and answers.frame["text"].to_list() == ["Ann"] and not answers.notes


@pytest.mark.parametrize(
    "more",
    [
        {"gpt4_judge_response": "PASS", "model_response": "Ann"},
        {"evaluation": {"response": "PASS"}, "response": "Ann"},
        {"responses": [{"role": "assistant", "content": "Wait."}, {"role": "tool", "content": "Eve"}], "reply": "Ann"},
    ],
)
def test_what_judges_and_tools_say_is_no_answer(more: dict[str, Any], save: Save) -> None:
    answers = load(save("log.jsonl", as_lines(ASKED | more))).answers
    assert answers is not None and answers.frame["text"].to_list() == ["Ann"]


def test_rows_of_systems_in_an_unusual_column_are_no_passages(save: Save) -> None:
    rows = [
        {"question": f"Who {n}?", "response": "Ann", "context": f"{name} {n}", "engine": name, "gold": "Ann"}
        for n in range(2)
        for name in ("bm25", "dense")
    ]
    with pytest.raises(FormatError, match="occurs twice"):
        load(save("log.jsonl", as_lines(*rows)))
