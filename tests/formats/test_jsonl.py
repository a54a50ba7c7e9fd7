"""JSON lines: contexts with their texts, and texts by id."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth import Collection, Contexts
from ragworth.core.errors import FormatError, RagworthError
from ragworth.data.collection import text_id
from ragworth.formats import load, read_contexts, write
from ragworth.formats.logs.records import NO_REFERENCE
from ragworth.workspace.files import recognise_file
from tests.strategies import examples

Save = Callable[[str, str | bytes], Path]


def line(**fields: Any) -> str:
    """One line of contexts, with two passages unless told otherwise."""
    passages = [{"doc_id": "d1", "text": "one", "score": 0.5}, {"doc_id": "d2", "text": "two", "score": 3}]
    return json.dumps({"query_id": "q1", "query": "why?", "answers": ["so"], "retrieved_context": passages} | fields)


def test_contexts_with_texts(save: Save) -> None:
    other = line(query_id="q2", query="who?", answers="me", retrieved_context=[{"doc_id": "d1", "text": "one"}])
    loaded = load(save("rag.jsonl", f"{line()}\n\n{other}\n"))
    assert loaded.contexts is not None
    # The order is the one shown, whatever the scores say.
    assert loaded.contexts.frame.rows() == [
        ("rag", "q1", 1, "d1", 0.5),
        ("rag", "q1", 2, "d2", 3.0),
        ("rag", "q2", 1, "d1", None),
    ]
    collection = loaded.collection
    assert collection.queries.rows() == [("q1", "why?"), ("q2", "who?")]
    assert collection.passages.rows() == [("d1", "one"), ("d2", "two")]
    assert collection.answers.rows() == [("q1", "so"), ("q2", "me")]
    assert read_contexts(save("rag.jsonl", f"{line()}\n\n{other}\n")) == loaded.contexts


def test_systems(save: Save) -> None:
    text = "\n".join(line(system=name) for name in ("one", "two"))
    assert read_contexts(save("a.jsonl", text)).systems == ["one", "two"]
    assert read_contexts(save("a.jsonl", line())).systems == ["a"]
    assert read_contexts(save("a.jsonl", line()), system="mine").systems == ["mine"]


def test_empty_context_is_read(save: Save) -> None:
    """The query is known though nothing was shown for it."""
    loaded = load(save("a.jsonl", f"{line()}\n{line(query_id='q2', retrieved_context=[])}"))
    assert loaded.contexts is not None
    assert loaded.contexts.frame["query"].unique().to_list() == ["q1"]
    assert loaded.collection.queries["query"].to_list() == ["q1", "q2"]


@pytest.mark.parametrize("ending", ["jsonl", "ndjson", "jsonl.gz"])
def test_endings(ending: str, save: Save) -> None:
    content = gzip.compress(line().encode()) if ending.endswith("gz") else line().encode()
    assert len(read_contexts(save(f"a.{ending}", content))) == 2


BAD = {
    "no JSON": ("{", "this is not JSON"),
    "not an object": ("[1]", "list instead of an object"),
    "Infinity": (line().replace("0.5", "-Infinity"), "score of passage"),
    "a number beyond all": (line().replace("0.5", "1e999"), "score"),
    "a whole number beyond all": (line().replace("0.5", "1" + "0" * 400), "score"),
    "no query": ('{"retrieved_context": []}', "query_id"),
    "query id is a list": (line(query_id=["q"]), "query_id"),
    "query id is a float": (line(query_id=1.5), "query_id"),
    "query id is empty": (line(query_id=""), "query_id"),
    "query id is true": (line(query_id=True), "query_id"),
    "half a character in an id": (line(query_id="\ud800"), "query_id"),
    "half a character in a text": (line(query="\ud800"), "query"),
    "query is no text": (line(query=3), "query"),
    "answers are no list": (line(answers={"a": "b"}), "answers"),
    "answer is no text": (line(answers=[{}]), "answer"),
    "no passages": (line(retrieved_context=None), "retrieved_context"),
    "passages are no list": (line(retrieved_context={"doc_id": "d"}), "retrieved_context"),
    "passage is no object": (line(retrieved_context=[3]), "passage 1"),
    "passage has nothing": (line(retrieved_context=[{"score": 1}]), "neither doc_id nor text"),
    "passage id is a list": (line(retrieved_context=[{"doc_id": []}]), "doc_id"),
    "text is no text": (line(retrieved_context=[{"doc_id": "d", "text": 1}]), "text of passage 1"),
    "score is text": (line(retrieved_context=[{"doc_id": "d", "score": "high"}]), "score of passage 1"),
    "score is true": (line(retrieved_context=[{"doc_id": "d", "score": True}]), "score of passage 1"),
    "passage twice": (line(retrieved_context=[{"doc_id": "d"}] * 2), "twice"),
    "query twice": (line(query_id="q0", answer="Ann"), "occurs twice for system"),
    "other question before": (line(query_id="q0", system="s", query="who?"), "has a different text"),
    "other answers before": (line(system="s", query_id="q0", answers=["no"]), "is 'no', but 'so' on line 1"),
    "not UTF-8": ("\udcff", "this is not JSON"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_line(kind: str, save: Save) -> None:
    bad, found = BAD[kind]
    good = line(query_id="q0")
    text = f"{good}\n\n{bad}\n{line(query_id='q9')}\n"
    path = save("rag.jsonl", text.encode("utf-8", "surrogateescape"))
    with pytest.raises(FormatError) as caught:
        read_contexts(path)
    assert (caught.value.file, caught.value.line) == (str(path), 3)
    assert found in caught.value.found
    assert "retrieved_context" in caught.value.expected
    contexts = read_contexts(path, skip_bad_lines=True)
    assert contexts.frame["query"].to_list() == ["q0", "q0", "q9", "q9"]
    assert "1 bad line skipped (line 3: " in contexts.notes[0]


@pytest.mark.parametrize("name", ["native.jsonl", "log.jsonl", "log.json", "list.json"])
def test_nan_is_a_missing_value_and_elsewhere_says_nothing(name: str, save: Save) -> None:
    row: dict[str, Any] = {"query": "Who?", "retrieved_context": [{"doc_id": "d", "text": "Ann", "score": math.nan}]}
    if name != "native.jsonl":
        row = {"question": "Who?", "answer": "Ann", "contexts": row["retrieved_context"], "ground_truth": math.nan}
    row |= {"latency": math.nan, "usage": {"price": math.inf, "tokens": -math.inf}}
    contexts = load(save(name, json.dumps([row] if name == "list.json" else row))).contexts
    assert contexts is not None and contexts.frame["score"].to_list() == [None]


def test_passages_as_plain_texts_and_numbers_as_answers(save: Save) -> None:
    loaded = load(save("a.jsonl", line(retrieved_context=["one", "two"], answers=[1577.0, 0.5], answer=3)))
    assert loaded.contexts is not None
    assert loaded.contexts.frame["passage"].to_list() == [text_id("one"), text_id("two")]
    assert loaded.collection.answers["text"].to_list() == ["1577", "0.5"]
    assert loaded.answers is not None
    assert loaded.answers.frame.select("system", "query", "text").rows() == [("a", "q1", "3")]


def test_an_id_that_means_another_text_in_another_query(save: Save) -> None:
    """Passages that are numbered within each query must not be merged."""
    other = [{"doc_id": "d1", "text": "uno"}, {"doc_id": "d3", "text": "three"}]
    loaded = load(save("a.jsonl", f"{line()}\n{line(query_id='q2', retrieved_context=other)}"))
    assert loaded.contexts is not None
    assert loaded.contexts.frame["passage"].to_list() == ["q1/d1", "d2", "q2/d1", "d3"]
    texts = dict(loaded.collection.passages.iter_rows())
    assert texts == {"q1/d1": "one", "d2": "two", "q2/d1": "uno", "d3": "three"}
    assert "1 passage id has different texts" in loaded.contexts.notes[0]
    assert "'d1' is now 'q1/d1'" in loaded.contexts.notes[0]


def test_answers_and_grades_in_the_log(save: Save) -> None:
    rows = [
        line(system="rag", answer="yes", human_label="correct"),
        line(system="closed book", retrieved_context=[], response="no idea", human_label="refused"),
        line(system="rag", query_id="q2", query="who?", answer=None, human_label="wrong"),
    ]
    loaded = load(save("a.jsonl", "\n".join(rows)))
    assert loaded.contexts is not None
    assert loaded.answers is not None
    assert loaded.outcomes is not None
    assert loaded.contexts.empty == {("closed book", "q1")}
    assert loaded.answers.frame.select("system", "query", "text", "status").rows() == [
        ("rag", "q1", "yes", "ok"),
        ("closed book", "q1", "no idea", "ok"),
        ("rag", "q2", None, "no-answer"),
    ]
    assert loaded.outcomes.frame.select("system", "query", "aspect", "value").rows() == [
        ("rag", "q1", "human", 1.0),
        ("closed book", "q1", "human", 0.0),
        ("rag", "q2", "human", -1.0),
    ]
    assert any("1 record (line 3) of 3 without an answer" in note for note in loaded.contexts.notes)


def test_passage_texts(save: Save) -> None:
    text = '{"_id": "d1", "title": "T", "text": "one"}\n{"id": 2, "text": "two"}\n{"doc_id": "d3", "text": ""}\n'
    loaded = load(save("corpus.jsonl", text))
    assert loaded.contexts is None
    assert loaded.collection.passages.rows() == [("d1", "T\none"), ("2", "two"), ("d3", "")]
    path = save("of-pyserini.jsonl", '{"id": "d1", "contents": "T\\none"}\n')
    assert load(path).collection.passages.rows() == [("d1", "T\none")]
    assert [each.kind for each in recognise_file(str(path), path.name)] == ["passages"]


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)


ACCEPTED = TEXTS.filter(lambda text: text.strip() not in NO_REFERENCE)  # "NULL" says that there is none


@st.composite
def collections(draw: st.DrawFn) -> tuple[Contexts, Collection]:
    """Contexts without gaps, some with scores, and texts for some of what they hold."""
    rows: list[tuple[str, str, int, str, float | None]] = []
    score = st.none() | st.floats(allow_nan=False, allow_infinity=False)
    for system in draw(st.lists(NAMES, min_size=1, max_size=2, unique=True)):
        for query in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)):
            passages = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
            rows += [(system, query, rank, passage, draw(score)) for rank, passage in enumerate(passages, 1)]
    schema = {"system": pl.String, "query": pl.String, "rank": pl.Int64, "passage": pl.String, "score": pl.Float64}
    contexts = Contexts(pl.DataFrame(rows, schema=schema, orient="row"))
    queries = {row[1] for row in rows if draw(st.booleans())}
    passages_with = {row[3] for row in rows if draw(st.booleans())}
    collection = Collection.of(
        queries={"query": sorted(queries), "text": [draw(TEXTS) for _ in queries]},
        passages={"passage": sorted(passages_with), "text": [draw(TEXTS) for _ in passages_with]},
        answers={"query": sorted(queries), "text": [draw(ACCEPTED) for _ in queries]},
    )
    return contexts, collection


@examples(80)
@given(made=collections())
def test_contexts_read_back_equal(made: tuple[Contexts, Collection], scratch: Path) -> None:
    contexts, collection = made
    write(contexts, scratch / "a.jsonl", collection)
    loaded = load(scratch / "a.jsonl")
    assert loaded.contexts == contexts
    for name, key in (("queries", "query"), ("passages", "passage"), ("answers", "query")):
        assert getattr(loaded.collection, name).sort(key).equals(getattr(collection, name).sort(key))


def test_gaps_are_refused_and_harm_nothing(save: Save) -> None:
    path = save("a.jsonl", "what was there before")
    gap = Contexts({"query": ["p", "q", "q"], "passage": ["x", "x", "y"], "rank": [1, 1, 3]})
    with pytest.raises(FormatError, match="gaps"):
        write(gap, path)
    assert path.read_text() == "what was there before"


def test_a_run_of_one_passage_a_line(save: Save) -> None:
    rows = [{"query_id": "q1", "doc_id": "d1", "score": 0.5}, {"query_id": "q1", "doc_id": "d2", "score": 3}]
    path = save("dense.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert read_contexts(path).frame.rows() == [("dense", "q1", 1, "d2", 3.0), ("dense", "q1", 2, "d1", 0.5)]
    found = load(save("ranks.jsonl", '{"system": "a", "query": "q1", "passage": "d1", "rank": 1}\n')).contexts
    assert found is not None and found.systems == ["a"]
    with pytest.raises(RagworthError, match="score is missing"):
        read_contexts(save("gap.jsonl", json.dumps(rows[0]) + '\n{"query_id": "q1", "doc_id": "d2"}\n'))


@pytest.mark.parametrize("spec", ["{}", "jsonl:{}"])
def test_columns_of_the_native_format_are_mapped(spec: str, save: Save) -> None:
    path = save("log.jsonl", line(answer="Ann", draft="Bob", stars=4) + "\n")
    found = load(spec.format(path), {"answer": "draft", "higher_stars": "stars"})
    assert found.answers is not None and found.answers.frame["text"].to_list() == ["Bob"]
    assert found.outcomes is not None and found.outcomes.frame["value"].to_list() == [4.0]
    assert found.contexts == read_contexts(path)
