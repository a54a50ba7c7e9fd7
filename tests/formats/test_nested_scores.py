"""Runs and labels in JSON by query and passage, as pytrec_eval and ranx write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ragworth
from ragworth import Judgments
from ragworth.core.errors import FormatError
from ragworth.formats import read_contexts, read_judgments
from ragworth.workspace.files import recognise_file
from tests.formats.sample_files import format_of

Save = Callable[[str, str | bytes], Path]

RUN = {"q1": {"d1": 0.5, "d2": 2.5}, "q2": {"d3": 1}}
LABELS = {"q1": {"d2": 1, "d1": 0}, "q2": {"d4": 2}}


def test_files_give_the_numbers_of_the_same_dicts(save: Save) -> None:
    run, labels = save("bm25.json", json.dumps(RUN, indent=1)), save("qrels.json", json.dumps(LABELS))
    found = ragworth.score(run, labels, ["nDCG@10", "RR"]).frame
    assert found.drop("system").equals(ragworth.score(RUN, LABELS, ["nDCG@10", "RR"]).frame.drop("system"))
    assert found["system"].unique().to_list() == ["bm25"]


def test_several_systems_and_queries_that_retrieved_nothing(save: Save) -> None:
    contexts = read_contexts(save("runs.json", json.dumps({"a": RUN, "b": {"q1": {"d7": 1}, "q2": {}}})))
    assert contexts.systems == ["a", "b"]
    assert contexts.empty == {("b", "q2")}
    assert read_contexts(save("one.json", json.dumps({"q0": {}} | RUN))).empty == {("one", "q0")}


def test_a_run_in_place_of_labels_is_noted(save: Save) -> None:
    scores = {"q1": {f"d{i}": 10 / (i + 3) for i in range(20)}}
    (note,) = read_judgments(save("run.json", json.dumps(scores))).notes
    assert "such as 3.3333333333333335; check that this isn't a run" in note
    assert not read_judgments(save("halves.json", json.dumps({"q": {f"d{i}": i % 3 / 2 for i in range(20)}}))).notes


def test_labels_in_place_of_a_run_are_noted(save: Save) -> None:
    (note,) = read_contexts(save("qrels.json", json.dumps(LABELS))).notes
    assert note.endswith("qrels.json: the only scores are 0, 1, 2; check that these aren't labels")
    assert not read_contexts(save("bm25.json", json.dumps(RUN))).notes


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"q1": {"d1": 1}, "q2": {"d2": "high"}}, "query 'q2' has 'high'"),
        ({"q1": {"d1": 1}, "q2": {"d2": None}}, "query 'q2' has '?None"),
        ({"q1": {}}, "no passages by query"),
        ({"a": {"q1": {"d1": 1}}, "b": {"q1": 3}}, "query 'q1' has '?3"),
        ({"a": {"q1": {"d1": 1}}, "b": [1]}, "no passages by query"),
        ({"q1": [["d2", 2.5]]}, "no passages by query"),
        ({"q1": ["d2"], "q2": [["d2", 2.5]]}, "query 'q2' has"),
    ],
)
def test_other_documents_are_errors(save: Save, document: Any, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        read_contexts(f"pytrec_eval:{save('run.json', json.dumps(document))}")


LISTS: list[Any] = [
    {"q1": ["d2", "d1"], "q2": ["d3"]},
    [
        {"qid": "q1", "docno": "d1", "rank": 2},
        {"qid": "q1", "docno": "d2", "rank": 1},
        {"qid": "q2", "docno": "d3", "rank": 1},
    ],
    {"query_id": ["q1", "q1", "q2"], "doc_id": ["d1", "d2", "d3"], "score": [0.5, 2.5, 1]},
]


@pytest.mark.parametrize("document", LISTS)
def test_lists_and_rows_are_runs_too(save: Save, document: Any) -> None:
    found = read_contexts(save("bm25.json", json.dumps(document))).frame
    assert found.select("system", "query", "passage", "rank").equals(
        read_contexts(save("bm25.json", json.dumps(RUN))).frame.select("system", "query", "passage", "rank")
    )


@pytest.mark.parametrize(
    ("document", "values"),
    [
        ({"q1": ["d1"], "q2": ["d2", 7]}, [("d1", 1), ("d2", 1), ("7", 1)]),
        ({"qrels": {"q1": {"d1": 2}}}, [("d1", 2)]),
        ([{"query-id": "q1", "corpus-id": "d1", "score": 2}], [("d1", 2)]),
    ],
)
def test_lists_and_rows_are_labels_too(save: Save, document: Any, values: list[tuple[str, float]]) -> None:
    assert read_judgments(save("q.json", json.dumps(document))).frame.select("passage", "value").rows() == values


def test_splits_are_no_systems(save: Save) -> None:
    with pytest.raises(FormatError, match="'train', 'test' have no query in common"):
        read_contexts(save("run.json", json.dumps({"train": {"q1": {"d1": 0.5}}, "test": {"q2": {"d1": 0.7}}})))
    with pytest.raises(FormatError, match="several sets of labels: 'train', 'test'"):
        read_judgments(save("both.json", json.dumps({"train": RUN, "test": RUN})))


def test_keys_that_occur_twice_are_an_error(save: Save) -> None:
    with pytest.raises(FormatError, match="the key 'q1' occurs twice"):
        read_contexts(save("run.json", '{"q1": {"d1": 1.5}, "q1": {"d2": 2.5}}'))


@pytest.mark.parametrize(
    ("name", "document", "kind"),
    [
        ("bm25.json", RUN, "run"),
        ("bm25.json", LISTS[1], "run"),
        ("runs.json", {"a": LABELS, "b": LABELS}, "run"),
        ("test.json", LABELS, "qrels"),
        ("qrels.json", RUN, "qrels"),
        ("test.json", [{"query_id": "q1", "doc_id": "d1", "relevance": 2}], "qrels"),
    ],
)
def test_evaluate_tells_runs_from_labels(save: Save, name: str, document: Any, kind: str) -> None:
    path = save(name, json.dumps(document))
    (found,) = recognise_file(str(path), name)
    assert (found.kind, found.spec) == (kind, name)
    assert ("its only numbers are 0, 1, 2" in found.doubt) == (document is LABELS)


def test_other_json_is_not_taken_for_scores(save: Save) -> None:
    log = [{"question": "Who?", "contexts": ["Ann"], "answer": "Ann", "scores": {"a": 1}}]
    assert format_of(save("log.json", json.dumps(log))) != "pytrec_eval"
    with pytest.raises(FormatError):
        format_of(save("settings.json", json.dumps({"model": {"temperature": 0.5}, "name": "x"})))
    with pytest.raises(FormatError):  # these may be accepted answers
        format_of(save("answers.json", json.dumps({"q1": ["Paris"], "q2": ["Rome"]})))


def test_labels_of_some_passages_only_are_an_error(save: Save) -> None:
    with pytest.raises(FormatError, match="some passages have labels, and some have none"):
        read_judgments(save("qrels.json", json.dumps({"q1": ["d1"], "q2": {"d2": 2}})))


def test_scores_beside_labels_are_no_labels(save: Save) -> None:
    rows = [{"query-id": "q1", "corpus-id": "d1", "score": 0.83, "relevance": 1}]
    for table in (Judgments(rows), read_judgments(save("qrels.jsonl", json.dumps(rows[0])))):
        assert table.frame["value"].to_list() == [1.0]


def test_metrics_by_query_are_no_run(save: Save) -> None:
    with pytest.raises(FormatError):
        format_of(
            save("results.json", json.dumps({"q1": {"map": 0.5, "ndcg_cut_10": 0.7, "P_5": 1}, "q2": {"map": 0.1}}))
        )
    assert format_of(save("run.json", json.dumps({"q1": {"p_1": 0.5, "p_2": 0.7}}))) == "pytrec_eval"
