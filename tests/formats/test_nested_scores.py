"""Runs and labels in JSON by query and passage, as pytrec_eval and ranx write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ragworth
from ragworth import Judgments
from ragworth.errors import FormatError, TableError
from ragworth.formats import read_contexts, read_judgments
from ragworth.formats.detection import detect

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
        ({"q1": {}}, "no numbers by query and passage"),
        ({"a": {"q1": {"d1": 1}}, "b": {"q1": 3}}, "query 'q1' has '?3"),
        ({"a": {"q1": {"d1": 1}}, "b": [1]}, "no numbers by query and passage"),
    ],
)
def test_other_documents_are_errors(save: Save, document: Any, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        read_contexts(f"pytrec_eval:{save('run.json', json.dumps(document))}")


def test_other_json_is_not_taken_for_scores(save: Save) -> None:
    log = [{"question": "Who?", "contexts": ["Ann"], "answer": "Ann", "scores": {"a": 1}}]
    assert detect(save("log.json", json.dumps(log))).name != "pytrec_eval"
    with pytest.raises(FormatError):
        detect(save("settings.json", json.dumps({"model": {"temperature": 0.5}, "name": "x"})))


def test_labels_may_be_named_tuples_as_ir_datasets_gives_them() -> None:
    from typing import NamedTuple

    class Qrel(NamedTuple):
        query_id: str
        doc_id: str
        relevance: int
        iteration: str

    found = Judgments([Qrel("q1", "d1", 1, "0"), Qrel("q1", "d2", 0, "0")])
    assert found.frame["value"].to_list() == [1.0, 0.0]
    with pytest.raises(TableError, match="not dicts"):
        Judgments([("q1", "d1", 1)])
