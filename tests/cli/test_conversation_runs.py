"""``score`` and ``compare`` of runs whose queries are turns of conversations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragworth.cli import main

TURNS = 2


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Six conversations of two turns; run ``b`` finds the relevant passage of every turn, ``a`` of half of them."""
    rows, labels, runs = [], [], {"a": [], "b": []}  # type: ignore[var-annotated]
    for at in range(12):
        query, first = f"q{at}", at % TURNS == 0
        history = [] if first else [{"role": "user", "text": "What is it?"}, {"role": "assistant", "text": "A tower."}]
        rows.append({"query": query, "text": "Where?", "conversation": f"c{at // TURNS}", "turn": 1 + at % TURNS})
        rows[-1]["history"] = history
        labels.append(f"{query} 0 good{at} 1")
        for name, place in (("a", "bad" if first else "good"), ("b", "good")):
            runs[name].append(f"{query} Q0 {place}{at} 1 1.0 {name}")
    (tmp_path / "conversations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "qrels.txt").write_text("\n".join(labels) + "\n")
    for name, lines in runs.items():
        (tmp_path / f"{name}.run").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_a_collection_of_conversations_makes_runs_be_compared_by_conversation(files: Path) -> None:
    given = ["-q", str(files / "qrels.txt"), "-m", "P@1", str(files / "a.run"), str(files / "b.run"), "-f", "json"]
    turns = ["-c", str(files / "conversations.jsonl")]
    found = CliRunner().invoke(main, ["compare", *turns, *given])
    assert found.exit_code == 0, found.output
    assert "12 turns of 6 conversations: intervals and tests draw whole conversations" in found.stderr
    (row,) = json.loads(found.stdout)["differences"]
    assert (row["n"], row["conversations"], row["wins"]) == (12, 6, 6)
    # In every conversation b wins one turn: of 2⁶ flips of the conversations, two are as far from 0.
    assert row["p"] == pytest.approx(2 / 2**6)
    (alone,) = json.loads(CliRunner().invoke(main, ["compare", *given]).stdout)["differences"]
    assert "conversations" not in alone
    scored = json.loads(CliRunner().invoke(main, ["score", *turns, *given]).stdout)
    assert [row["conversations"] for row in scored] == [6, 6]
