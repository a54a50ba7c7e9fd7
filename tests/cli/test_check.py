"""``ragworth check``: what there is, what it would take, and what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ragworth.cli import main
from tests.evaluation.samples import TOML, change, workspace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    made = workspace(tmp_path / "w", TOML.replace("k = 2", 'k = 2\nlimit = 2\nmodel = "scripted:say.json"'))
    (made / "say.json").write_text(json.dumps({"*": "Ann"}))
    return made


def test_what_there_is_and_what_it_would_take(folder: Path) -> None:
    done = CliRunner().invoke(main, ["check", str(folder)])
    assert done.exit_code == 0, done.output
    assert [line.partition(";")[0] for line in done.stdout.splitlines()] == [
        "collection: 2 queries, 12 passages, 2 accepted answers, 4 relevance labels",
        "systems: first, second",
        "note: the first 2 of 3 queries",
        "annotate.abstention: 19 requests, 19 distinct, 0 answered already",
        "answer: 4 requests, 4 distinct, 0 answered already",
        "grade.deterministic: no model is asked",
        "grade.judge: 4 answers to grade, with one call for each",
        f"All is well. Next: ragworth evaluate {folder}",
    ]
    assert "3 queries" in CliRunner().invoke(main, ["check", str(folder), "--all"]).stdout
    assert "1 query" in CliRunner().invoke(main, ["check", str(folder), "--limit", "1"]).stdout
    assert "give one of the two" in CliRunner().invoke(main, ["check", str(folder), "--limit", "1", "--all"]).stderr
    assert CliRunner().invoke(main, ["check", str(folder), "--quiet"]).output == ""
    assert not (folder / "calls.sqlite").exists()


def test_what_was_noticed_is_told_each_time(folder: Path) -> None:
    change(folder, 'second = {run = "second.run"}', "second = 'bm25 % 2 >> oracle(level=9, fill=false)'")
    note = "second: nothing was retrieved for "
    for _ in range(2):
        assert f"note: {note}" in CliRunner().invoke(main, ["check", str(folder)]).stdout
    dry = CliRunner().invoke(main, ["evaluate", str(folder), "--dry-run"])
    assert f"note: {note}" in dry.stderr
    assert note not in dry.stdout
    for _ in range(2):
        done = CliRunner().invoke(main, ["evaluate", str(folder), "--until", "retrieve"])
        assert "retrieve: from the cache" in done.stderr
        assert f"note: {note}" in done.stderr


@pytest.mark.parametrize("command", [["check"], ["evaluate", "--dry-run"]])
def test_ctrl_c_while_systems_retrieve(folder: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    def pressed(*given: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ragworth.evaluation.stages.retrieve.retrieve", pressed)
    done = CliRunner().invoke(main, [*command, str(folder)])
    assert done.exit_code == 130
    assert "interrupted; what was done is kept: run the same again to go on" in done.stderr


@pytest.mark.model
def test_no_library_of_models_is_loaded(folder: Path) -> None:
    text = (folder / "ragworth.toml").read_text()
    (folder / "ragworth.toml").write_text(text.replace('model = "scripted:say.json"\n', ""))  # the embedded one
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom ragworth.cli import main\n"
        "done = CliRunner().invoke(main, ['check', sys.argv[1]])\nassert done.exit_code == 0, done.output\n"
        "print([m for m in ('torch', 'transformers', 'onnxruntime', 'aiohttp', 'vl_convert') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (
            [{"question": "Who?", "contexts": ["Ann."], "answer": each, "reference": "Ann"} for each in ("Ann", "Bo")],
            "occurs twice",
        ),
        ([{"question": "Who?", "answer": "Ann", "feedback": "up"}], "may be the answer of a system"),
    ],
)
def test_a_log_with_a_mistake_is_not_taken_for_accepted_answers(
    rows: list[dict[str, Any]], found: str, tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = CliRunner().invoke(main, ["check", str(path)])
    assert done.exit_code == 2
    assert found in done.stderr
    assert "accepted answers, but" not in done.stderr


def test_labels_are_counted_by_what_they_are_about(tmp_path: Path) -> None:
    """Labels of the task utility say two things of each passage, and some have no majority."""
    rows = "".join(f"q1,p{at},human-utility,-1,ok\nq1,p{at},relevance,{at % 2},ok\n" for at in range(3))
    rows += "q1,p3,human-utility,,no-majority\nq1,p3,relevance,0,ok\n"
    (tmp_path / "labels.csv").write_text(f"query,passage,aspect,value,status\n{rows}")
    (tmp_path / "first.run").write_text("q1 Q0 p1 1 2 first\nq1 Q0 p3 2 1 first\n")
    (tmp_path / "ragworth.toml").write_text(
        '[collection]\nqrels = "labels.csv"\n[systems]\nfirst = {run = "first.run"}\n[model]\nuse = "none"\n'
    )
    done = CliRunner().invoke(main, ["check", str(tmp_path)])
    assert "4 relevance labels, 3 human-utility labels, 1 label without a value" in done.stdout, done.output


@pytest.mark.parametrize("command", [("check",), ("evaluate",)])
def test_standard_input_is_named(command: tuple[str, ...]) -> None:
    done = CliRunner().invoke(main, [*command, "-"])
    assert done.exit_code == 2 and "standard input isn't read: save it as a file" in done.output
