"""Conversations through a whole evaluation: notes, results, the report, and what a changed history runs again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ragworth.cli import main
from ragworth.data.collection import Collection
from ragworth.data.conversations import turns_of
from ragworth.evaluation.run import evaluate
from ragworth.report.page import building, explorer
from ragworth.report.page.explorer import _turns
from ragworth.results import Results
from ragworth.workspace.files import FileReader
from ragworth.workspace.problems import Problems
from tests.report.unpack import unpack_json

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "conversations"
SPACE = """
k = 3

[collection]
queries = "conversations.jsonl"
passages = "passages.jsonl"
qrels = "qrels.txt"
turns = "{turns}"

[systems]
last = 'bm25 % 3'
human = 'rewritten(by="human") >> bm25 % 3'

[metrics]
use = ["nDCG@3"]
"""


def workspace(folder: Path, turns: str = "conversation") -> Path:
    for name in ("conversations.jsonl", "passages.jsonl", "qrels.txt"):
        shutil.copy(EXAMPLE / name, folder / name)
    (folder / "ragworth.toml").write_text(SPACE.format(turns=turns))
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    made = evaluate(workspace(tmp_path_factory.mktemp("talk"), "rewrite")).results
    assert made is not None
    return made


def test_results_keep_the_turns(results: Results, tmp_path: Path) -> None:
    collection = results.collection
    assert collection.turns.height == 12
    results.write(tmp_path / "results")
    again = Results.read(tmp_path / "results").collection
    assert again.turns.equals(collection.turns)
    assert again.turn_form == collection.turn_form == "rewrite"


def test_human_rewrites_find_more(results: Results) -> None:
    means = {
        system: rows["value"].mean() for (system,), rows in results.scores.frame.group_by("system", maintain_order=True)
    }
    assert means["human"] > means["last"]  # type: ignore[operator]


def test_results_and_report_have_what_was_searched(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path / "results")
    searches = Results.read(tmp_path / "results").said["searches"]
    assert ("human", "ferry_2", "How often does the Aldermere ferry cross in winter?") in searches.rows()
    assert set(searches["system"]) == {"human"}
    made = building.build(results)
    data = explorer.build_explorer(made.results, made.facts, made.overview, made.diagnosis)
    told = unpack_json(data.pieces[0])["searches"]["columns"]
    assert "How often does the Aldermere ferry cross in winter?" in told["search"]["v"]


def test_the_report_has_the_history(results: Results) -> None:
    turns = _turns(results, ["ferry_2", "ferry_1"])
    second, first = turns
    assert second is not None
    assert first is not None
    assert (second["conversation"], second["number"]) == ("ferry", 2)
    assert second["history"][1] == ["assistant", "Every half hour, from May to September."]
    assert first["history"] == []


def test_check_counts_conversations(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["check", str(workspace(tmp_path))])
    assert done.exit_code == 0, done.output
    assert "12 queries, 12 turns, 3 conversations" in done.output
    assert "12 turns of 3 conversations: intervals and tests draw whole conversations" in done.output


def test_a_changed_history_is_another_evaluation(tmp_path: Path) -> None:
    def key(folder: Path) -> list[str]:
        from ragworth.evaluation.inputs import load_inputs
        from ragworth.workspace.config import read

        found = load_inputs(read(folder), Problems())
        assert found is not None
        return found.texts_key

    before = key(workspace(tmp_path))
    file = tmp_path / "conversations.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows[1]["history"][1]["text"] = "Hourly."
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    after = key(tmp_path)
    assert before != after
    assert before[:4] == after[:4]
    (tmp_path / "ragworth.toml").write_text(SPACE.format(turns="turn"))
    assert key(tmp_path) != after


def test_files_as_they_are(tmp_path: Path, unasked: str) -> None:
    workspace(tmp_path)
    (tmp_path / "ragworth.toml").unlink()
    names = [str(tmp_path / name) for name in ("conversations.jsonl", "passages.jsonl", "qrels.txt")]
    done = CliRunner().invoke(main, ["check", *names, "-M", unasked])
    assert done.exit_code == 0, done.output
    assert "12 turns, 3 conversations" in done.output


def test_queries_bring_their_answers(tmp_path: Path) -> None:
    from ragworth.workspace.config import CollectionConfig

    workspace(tmp_path)
    config: dict[str, Any] = {"queries": str(tmp_path / "conversations.jsonl"), "turns": "turn"}
    found = FileReader(Problems()).with_runs(CollectionConfig(**config), [])
    assert isinstance(found.collection, Collection)
    assert found.collection.answers.height == 12
    assert len(turns_of(found.collection)) == 12
    assert found.collection.turn_form == "turn"
