"""``ragworth evaluate``: progress, the table, JSON, exit codes, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import polars as pl
import pytest
from click.testing import CliRunner, Result

from ragworth.cli import main
from ragworth.cli.evaluate import STAGES, fit_leaderboard
from ragworth.cli.output import WORDS, StageLines
from ragworth.evaluation import stages
from ragworth.report.page.figures import FigureSet
from ragworth.results import results_record
from tests.evaluation.samples import TOML, change, workspace

PAGE = Path(__file__).parents[2] / "docs" / "evaluation.md"
SCRIPTED = TOML.replace("abstention = true", 'abstention = {model = "scripted:choose.json"}').replace(
    "length = 8", 'length = 8\nmodel = {use = "scripted:write.json", seconds = 0.001}'
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with scripted models, whose report is not drawn; commands are called from the folder above."""
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    made = workspace(tmp_path / "w", SCRIPTED.replace("judge = true", 'judge = {model = "scripted:choose.json"}'))
    (made / "choose.json").write_text(json.dumps({"*": {"NO-RESPONSE": 0.25, "CORRECT": 0.7, "INCORRECT": 0.1}}))
    (made / "write.json").write_text(json.dumps({"*": "Ann"}))
    monkeypatch.setattr("ragworth.report.page.building.build_figures", lambda *sources: FigureSet([], {}))
    monkeypatch.setattr("ragworth.report.page.building.Page.write", drawn)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.chdir(tmp_path)
    return made


def drawn(page: Any, path: Path) -> None:
    results_record(path.parent).write(path.name, b"drawn", adopt=True)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["evaluate", "w", *arguments])


@pytest.mark.slow
def test_stages_on_one_side_and_the_table_on_the_other(folder: Path) -> None:
    done = run()
    assert done.exit_code == 0, done.output
    assert [line.partition(":")[0] for line in done.stderr.splitlines() if not line.startswith("note: ")] == [
        *("load", "retrieve", "annotate.abstention", "answer", "grade.deterministic", "grade.judge", "score", "report")
    ]
    assert re.search(r"^annotate\.abstention: done · 22 calls · \d+\.\d s$", done.stderr, re.M)
    table = done.stdout.splitlines()
    assert "answers are correct" in table[0]
    assert table[1].split() == ["system", "group", "correct", "wrong", "abstained", "grade"]
    assert {table[3].split()[0], table[4].split()[0]} == {"first", "second"}
    passages = next(number for number, line in enumerate(table) if "UDCG@2" in line)
    assert table[passages].split() == ["system", "group", "UDCG@2", "nDCG@2", "misleading"]
    assert {table[passages + n].split()[0] for n in (2, 3)} == {"first", "second"}
    assert table[-1] == "Report: w/results/report.html"
    again = run()
    assert "answer: from the cache" in again.stderr
    assert again.stdout == done.stdout


def test_quiet_says_nothing_on_the_way(folder: Path) -> None:
    done = run("--quiet")
    assert done.stderr == ""
    assert "Report: " in done.stdout


def test_json_alone_is_on_standard_output(folder: Path) -> None:
    found = json.loads(run("--json").stdout)
    assert {"stages", "answers", "metric", "queries", "baseline", "ranking", "systems", "results", "report"} == (
        found.keys()
    )
    assert found["metric"] == "UDCG@2"
    assert found["answers"]["outcome"] == "correct"
    assert found["answers"]["systems"][0]["outcomes"]["correct"]["n"] == 3
    assert {each["system"] for each in found["systems"]} == {"first", "second"}
    mean = found["systems"][0]["metrics"]["nDCG@2"]
    assert mean.keys() == {"mean", "low", "high", "n", "total", "missing", "conversations"}
    assert mean["conversations"] is None
    ended = json.loads(run("--json", "--until", "answer").stdout)
    assert [stage["status"] for stage in ended["stages"]] == ["done", "kept", "kept", "kept"]
    plan = json.loads(run("--json", "--dry-run").stdout)
    assert plan["stages"][0] == {
        "name": "annotate.abstention",
        "words": "22 requests, 22 distinct, 22 answered already; 0 calls to make, about 0 tokens to read and at most "
        "0 to write; free",
    }


def test_a_dry_run_asks_nothing(folder: Path) -> None:
    done = run("--dry-run")
    assert done.exit_code == 0
    assert "22 calls to make" in done.stdout
    assert not (folder / "calls.sqlite").exists()
    change(folder, "abstention = ", "abstention = false\n# ")
    change(folder, "length = 8", "file = 'x.csv'")
    change(folder, "model = {use", "# model = {use")
    change(folder, "judge = ", "# judge = ")
    change(folder, '"UDCG@2", ', "")
    (folder / "x.csv").write_text("system,query,text\nfirst,q1,Ann\n")
    assert run("--dry-run").stdout == "grade.deterministic: no model is asked\n"


def test_a_dry_run_of_some_stages(folder: Path) -> None:
    def names(*options: str) -> list[str]:
        return [line.partition(":")[0] for line in run("--dry-run", *options).stdout.splitlines()]

    assert names("--until", "answer") == ["annotate.abstention", "answer"]


def test_the_model_may_be_named_in_the_command(folder: Path, tmp_path: Path) -> None:
    """It replaces the workspace's, not those of single tasks. Its file is found from where the command is called."""
    change(folder, 'abstention = {model = "scripted:choose.json"}', "abstention = true")
    (tmp_path / "other.json").write_text(json.dumps({"*": {"NO-RESPONSE": 0.25}}))
    other = ("--model", "scripted:other.json", "-O", "seconds=0.001")
    done = run(*other, "--quiet")
    assert done.exit_code == 0, done.output
    judged = pl.read_parquet(folder / "results" / "judgments.parquet")
    assert set(judged.filter(aspect="abstention")["value"]) == {0.25}

    log = tmp_path / "log.jsonl"
    log.write_text('{"question": "Who built it?", "contexts": ["Ann built it."], "response": "Ann", "expected": "Ann"}')
    for command in ("evaluate", "check"):
        planned = CliRunner().invoke(main, [command, "log.jsonl", *other, *(["--dry-run"] * (command == "evaluate"))])
        assert planned.exit_code == 0, planned.output
        assert f"asks scripted:{tmp_path}/other.json for abstention" in planned.stderr.replace("\n", " ")
    assert "Next: ragworth evaluate log.jsonl --model scripted:other.json -O seconds=0.001" in planned.stdout
    wrong = CliRunner().invoke(main, ["evaluate", "log.jsonl", "-O", "device"])
    assert wrong.exit_code == 2 and "NAME=VALUE" in wrong.stderr


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_options_that_contradict_each_other(dry: tuple[str, ...]) -> None:
    done = run("--limit", "1", "--all", *dry)
    assert done.exit_code == 2
    assert "one of the two" in done.stderr


def test_a_narrow_terminal_gets_fewer_metrics_and_short_names() -> None:
    names = [f"{'long ' * 12}{letter}" for letter in "ab"]
    row = {"group": "a", "UDCG@5": "0.600 [0.500, 0.700]", "nDCG@5": "0.600 [0.500, 0.700]", "misleading": "5 %"}
    table = pl.DataFrame([{"system": name} | row for name in names])
    assert fit_leaderboard(table, 200).equals(table)
    assert fit_leaderboard(table, 110).columns == ["system", "group", "UDCG@5", "misleading"]
    assert fit_leaderboard(table, 110)["system"].to_list() == names
    assert fit_leaderboard(table, 80)["system"].to_list() == ["a", "b"]


def test_names_out_of_files_cannot_speak_to_the_terminal(folder: Path) -> None:
    change(folder, "first = {run", '"\\u001b[31mred" = {run')
    done = run()
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    assert "\\x1b[31mred" in done.stdout
    assert "\x1b" not in CliRunner().invoke(main, ["check", "w"]).output


def test_a_budget_has_an_exit_code_of_its_own(folder: Path) -> None:
    with (folder / "ragworth.toml").open("a") as stream:
        stream.write("\n[budget]\ncalls = 20\n")
    done = run()
    assert done.exit_code == 4
    assert "annotate.abstention: the budget is spent (left for it: 20 calls); 2 calls to go" in done.stderr
    assert done.stdout == ""
    assert run("--until", "score").exit_code == 0


def test_mistakes_have_exit_code_2(folder: Path) -> None:
    change(folder, "k = 2", "k = 2\nlimitt = 3")
    done = run()
    assert done.exit_code == 2
    assert "ragworth.toml, line 4: there is no 'limitt'; did you mean 'limit'?" in done.stderr
    assert CliRunner().invoke(main, ["evaluate", "nowhere"]).exit_code == 2


def test_machines_get_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert StageLines().start_stage("annotate.abstention") is None
    monkeypatch.delenv("CI")
    assert StageLines().start_stage("annotate.abstention") is not None


def test_failures_are_told(folder: Path) -> None:
    change(folder, "seconds = 0.001}", "error = 0.5}")
    done = run("--until", "answer")
    assert done.exit_code == 0, done.output
    said = r"^answer: partly done · 6 calls · \d\.\d s · \d failed \(server-error \d\), tried again next time$"
    assert re.search(said, done.stderr, re.M), done.stderr


def interrupted(arguments: list[str], ready: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ragworth", *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(1200):
            if ready.exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGINT)
        out, error = process.communicate(timeout=60)
    return subprocess.CompletedProcess(command, process.returncode, out, error)


@pytest.mark.slow
def test_ctrl_c_while_a_model_is_asked(folder: Path) -> None:
    change(folder, "seconds = 0.001}", "seconds = 0.3, batch = 1}")
    change(folder, '{model = "scripted:choose.json"}', "false")
    change(folder, '"UDCG@2", ', "")
    done = interrupted(["evaluate", "w"], folder / "calls.sqlite.lock", folder.parent)
    assert done.returncode == 130, done.stderr
    assert "run the same again to go on" in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*given: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ragworth.evaluation.stages.retrieve.retrieve", pressed)
    done = run()
    assert done.exit_code == 130
    assert "interrupted; what was done is kept: run the same again to go on" in done.stderr


def test_the_page_says_what_there_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for stage in stages.STAGES:
        assert f"| `{stage}" in text, stage
    for status in WORDS:
        assert f"`{status}`" in text, status
    (options,) = [each for each in [main.get_command(click.Context(main), "evaluate")] if each is not None]
    for parameter in options.params:
        if isinstance(parameter, click.Option):
            assert f"`{parameter.opts[0]}" in text, parameter.opts
    assert list(STAGES.choices) == list(stages.STAGES)
    for code in ("0", "2", "4", "130"):
        assert f"| {code} |" in text


def test_no_model_at_all(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--model none`` compares the answers in the data; nothing may open a model."""
    monkeypatch.setattr("ragworth.evaluation.model_pool.llm", lambda *_, **__: pytest.fail("opened a model"))
    monkeypatch.setattr("ragworth.workspace.plan.LIMIT_ABOVE", 4)
    monkeypatch.setattr("ragworth.workspace.plan.FIRST_LIMIT", 2)  # for what a model judges
    rows = [
        {"system": system, "question": f"Who built mill {n}?", "contexts": [text], "answer": answer, "expected": "Ann"}
        for n in range(8)
        for system, text, answer in (("old", "It burned.", "Bob"), ("new", "Ann built it.", "Ann"))
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(json.dumps(row) for row in rows))
    done = CliRunner().invoke(main, ["evaluate", str(log), "--model", "none"])
    assert done.exit_code == 0, done.output
    assert "asks no model" in done.stderr
    assert done.stdout.startswith("new answers best: 100 % of its answers are correct")
    judged = pl.read_parquet(tmp_path / "log-results" / "judgments.parquet")
    assert set(judged["aspect"]) == {"relevance"} and judged["query"].n_unique() == len(rows) // 2
    assert "a model judges" not in done.stderr
    assert judged.group_by("passage").agg(pl.col("value").first())["value"].to_list().count(1.0) == 1
    for more, words in (("--answer-again",), "no model may be asked"), (("-O", "x=1"), "has no options"):
        refused = CliRunner().invoke(main, ["evaluate", str(log), "--model", "none", *more])
        assert refused.exit_code == 2 and words in refused.stderr

    change(folder, '"UDCG@2", ', "")
    assert run("--model", "none", "--dry-run").stdout == "no model is asked\n"
    assert run("--model", "none", "--quiet").exit_code == 0
    assert not (folder / "results" / "answers.parquet").exists()
    change(folder, "second = ", "third = \"run('first.run') >> useful\"\nsecond = ")
    asked = run("--model", "none")
    assert asked.exit_code == 2 and "the model is 'none'" in asked.stderr
