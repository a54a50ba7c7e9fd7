"""The example of conversations: its files are what its program writes, and its page prints them."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

from ragworth import formats
from ragworth.data.conversations import turns_of
from ragworth.formats.trec import read_qrels

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "conversations"


def test_the_program_writes_the_files(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "make.py", tmp_path)
    runpy.run_path(str(tmp_path / "make.py"), run_name="__main__")
    for name in ("conversations.jsonl", "passages.jsonl", "qrels.txt"):
        assert (tmp_path / name).read_text() == (FOLDER / name).read_text(), name


def test_every_turn_has_an_answer_a_label_and_after_the_first_a_rewrite() -> None:
    collection = formats.load(FOLDER / "conversations.jsonl").collection
    labels = read_qrels(FOLDER / "qrels.txt").frame
    assert set(labels["query"]) == set(collection.queries["query"]) == set(collection.answers["query"])
    for turn in turns_of(collection):
        assert (turn.rewrite is None) == (turn.number == 1)
        assert len(turn.history) == 2 * (turn.number - 1)
