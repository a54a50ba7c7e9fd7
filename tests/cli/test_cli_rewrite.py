"""``ragworth rewrite``: from conversations to candidates, labels and pairs, with a scripted model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ragworth.cli import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "conversations"
DATA = ("-c", "conversations.jsonl", "-p", "passages.jsonl")
LABELLED = (*DATA, "-q", "qrels.txt")
FERRY = "How often does the Aldermere ferry cross in winter? twice a day"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example of twelve turns, nine with a history, and a model that always says the same."""
    for name in ("conversations.jsonl", "passages.jsonl", "qrels.txt"):
        shutil.copy(EXAMPLE / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    Path("says.json").write_text(json.dumps({"*": FERRY}))
    Path("other.json").write_text(json.dumps({"*": "Who makes butter?"}))
    return tmp_path


def rewrite(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["rewrite", *arguments])
    assert result.exit_code == code, result.output
    return result


def rows(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_from_conversations_to_pairs() -> None:
    made = rewrite("candidates", *DATA, "-n", "1", "--temperature", "0", "-M", "scripted:says.json", "-o", "c.jsonl")
    assert "42 candidates of 9 turns" in made.output
    assert sum(row["candidate"] == "sample-1" and row["text"] == FERRY for row in rows("c.jsonl")) == 9
    labelled = rewrite("label", "c.jsonl", *LABELLED, "-u", "gold-rank", "--pipeline", "bm25 % 3", "-o", "l.jsonl")
    assert "42 rewrites" in labelled.output
    labels = rows("l.jsonl")
    assert len(labels) == 42
    assert {row["status"] for row in labels} == {"ok", "empty-context"}
    assert all((row["status"] == "ok") == ("value" in row) for row in labels)
    paired = rewrite("pairs", "l.jsonl", "-o", "p.jsonl", "--best", "b.jsonl", "--random", "r.jsonl")
    pairs = rows("p.jsonl")
    assert f"{len(pairs)} pairs of 9 turns" in paired.output
    values = {(row["query"], row["text"]): row["value"] for row in labels if "value" in row}
    for pair in pairs:
        gap = values[pair["query"], pair["chosen"]] - values[pair["query"], pair["rejected"]]
        assert gap == pytest.approx(pair["gap"])
        assert gap > 0
    assert {row["query"] for row in rows("b.jsonl")} == {row["query"] for row in rows("r.jsonl")}
    rewrite("pairs", "l.jsonl", "-o", "s.jsonl", "--shuffle", "1")
    assert {row["query"] for row in rows("s.jsonl")} == {pair["query"] for pair in pairs}


def test_a_plan_asks_nothing_and_writes_nothing() -> None:
    asked = ("-n", "2", "-M", "scripted:says.json")
    assert "9 calls to make" in rewrite("candidates", *DATA, *asked, "-o", "c.jsonl", "--dry-run").output
    assert not Path("c.jsonl").exists()
    rewrite("candidates", *DATA, "-o", "c.jsonl")
    label = ("label", "c.jsonl", *LABELLED, "-M", "scripted:says.json", "-o", "l.jsonl", "--dry-run")
    assert "calls to make" in rewrite(*label, "-u", "answerability").output
    assert "no model is asked" in rewrite(*label, "-u", "gold-rank").output
    assert not Path("l.jsonl").exists()


def test_mistakes_are_found_before_a_model_is_asked() -> None:
    rewrite("candidates", *DATA, "-o", "c.jsonl")
    asked = ("label", "c.jsonl", *LABELLED, "-M", "scripted:says.json", "-o", "l.jsonl", "--store", "calls.sqlite")
    assert "no step that rewrites" in rewrite(*asked, "--pipeline", "rewritten >> bm25", code=2).output
    assert not Path("calls.sqlite").exists()
    no_passages = rewrite("candidates", "-c", "conversations.jsonl", "-o", "c.jsonl", code=2)
    assert "history-terms needs passages" in no_passages.output


def test_conversations_of_another_layout_are_told_what_is_expected() -> None:
    Path("talk.jsonl").write_text(json.dumps({"id": "1", "dialogue": [{"who": "a", "said": "hi"}], "topic": "x"}))
    said = rewrite("candidates", "-c", "talk.jsonl", "-p", "passages.jsonl", "-o", "c.jsonl", code=2).output
    assert '"history": [{"role": "user"' in said and "[columns]" not in said


def test_labels_without_a_pair_say_why() -> None:
    label = {"query": "a", "candidate": "c", "text": "x", "context": "1", "utility": "u", "value": 1.0, "status": "ok"}
    Path("l.jsonl").write_text(json.dumps(label) + "\n")
    assert "there is no pair (only one rewrite: 1 turn)" in rewrite("pairs", "l.jsonl", "-o", "p.jsonl", code=2).output
    assert not Path("p.jsonl").exists()
