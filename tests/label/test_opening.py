"""Items from results, from a workspace, and from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragworth import evaluate
from ragworth.core.errors import InputError
from ragworth.data import Scores
from ragworth.label.sources import open_label_source
from ragworth.label.tasks import load_task
from ragworth.results import Results
from tests.label.samples import small_source

LOG = """\
{"query_id": "q1", "query": "Which river?", "answer": "The Ilm.", "answers": ["Ilm"], \
"retrieved_context": [{"doc_id": "p1", "text": "The river Ilm."}, {"doc_id": "p2", "text": "A river."}]}
{"query_id": "q2", "query": "When?", "answer": "1931", "retrieved_context": [{"doc_id": "p3", "text": "In 1931."}]}
"""


def test_a_log_has_passages_and_answers_to_label(tmp_path: Path) -> None:
    (tmp_path / "bot.jsonl").write_text(LOG)
    source = open_label_source([tmp_path / "bot.jsonl"], k=1)
    assert [item.meta["passage"] for item in load_task("relevance").items(source)] == ["p1", "p3"]
    grades = list(load_task("answer-grade").items(source))
    assert [item.parts["answer"] for item in grades] == ["The Ilm.", "1931"]
    assert [item.parts.get("accepted") for item in grades] == ["Ilm", None]


def test_results_are_labelled_as_they_are(tmp_path: Path) -> None:
    small = small_source()
    scores = Scores({"system": ["bm25"], "query": ["q1"], "metric": ["P@1"], "value": [1.0]})
    assert small.contexts is not None
    Results(small.collection, small.contexts, None, None, small.answers, None, scores).write(tmp_path / "results")
    source = open_label_source([tmp_path / "results"])
    for kind in ("relevance", "answerability", "preference"):
        task = load_task(kind)
        assert list(task.items(source)) == list(task.items(small_source()))


def test_a_workspace_that_has_only_retrieved_can_be_labelled(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text('{"query_id": "q1", "text": "Which river?"}\n')
    (tmp_path / "passages.jsonl").write_text('{"passage_id": "p1", "text": "The river Ilm."}\n')
    lines = ["[collection]", 'queries = "queries.jsonl"', 'passages = "passages.jsonl"', "[systems]", 'bm25 = "bm25"']
    (tmp_path / "ragworth.toml").write_text("\n".join(lines))
    with pytest.raises(InputError, match="--until retrieve"):
        open_label_source([tmp_path])
    evaluate(tmp_path, until="retrieve")
    items = load_task("relevance").items(open_label_source([tmp_path]))
    assert [(item.parts["question"], item.meta["passage"]) for item in items] == [("Which river?", "p1")]
    with pytest.raises(InputError, match="k is 0"):
        open_label_source([tmp_path], k=0)
