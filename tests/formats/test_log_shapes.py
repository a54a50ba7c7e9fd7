"""Logs with several systems, splits or answers in one file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragworth.errors import InputError
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
