"""Exports of CRUX's labelling app, as judgments."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragworth.core.errors import FormatError
from ragworth.label import judge_tables
from ragworth.label.imports import import_labels
from ragworth.label.imports.crux import is_export
from ragworth.label.tasks import load_task
from tests.conftest import Save


def test_exports(save: Save) -> None:
    labels = judge_tables.read(Path(save("ann_qlabels.jsonl", '{"id": "q", "answerability": [1, -2, 0, -1]}\n')))
    assert labels.rows() == [
        ("answerability", "q", "0", "ann", 1.0, None),
        ("answerability", "q", "2", "ann", 0.0, None),
    ]
    rows = '{"id": "q", "document": "d", "relevances": {"0": 3, "1": -1}}\n'
    rated = Path(save("ann_qrels.jsonl", rows))
    assert judge_tables.read(rated).rows() == [("rating", "q", "d · 0", "ann", 3.0, None)]
    with pytest.raises(FormatError, match="these are labels of coverage"):
        import_labels(rated, "crux", load_task("answerability"))
    assert not is_export(Path(save("other.jsonl", '{"query": "q", "passage": "d", "value": 1}\n')))
    assert not is_export(Path(save("qrels.txt", "q 0 d 1\n")))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"id": "q", "answerability": [2]}', "line 1: the answerability is 2"),
        ('{"id": "q", "document": "d", "relevances": {"0": 6}}', "line 1: the rating is 6"),
        ('{"id": "q", "relevances": {"0": 5}}', "line 1: the document is missing"),
    ],
)
def test_wrong_exports(line: str, words: str, save: Save) -> None:
    with pytest.raises(FormatError, match=words):
        judge_tables.read(Path(save("ann_qlabels.jsonl", line + "\n")))
