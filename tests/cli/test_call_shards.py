"""``ragworth calls plan``, ``run-shard`` and ``merge``."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from ragworth.cli import main
from tests.cli.test_cli_annotate import Desk, fine, refused


def ragworth(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.save("script.json", json.dumps({"*": {"NO-RESPONSE": 0.25, "I": 0.125}}))
    return made


def annotate(desk: Desk, *more: str) -> list[str]:
    asked = ["-M", f"scripted:{desk.path('script.json')}", "-s", str(desk.store), "--quiet"]
    return ["annotate", "abstention", desk.path("run.jsonl"), *asked, "-o", desk.path("out.parquet"), *more]


def test_a_command_finds_what_was_planned_run_and_merged(desk: Desk) -> None:
    plan, model = desk.path("plan"), f"scripted:{desk.path('script.json')}"
    said = fine(ragworth("calls", "plan", "--shards", "2", "-o", plan, *annotate(desk))).stdout
    assert "calls to" in said
    assert "in 2 shards" in said
    assert not Path(desk.path("out.parquet")).exists()
    refused(ragworth("calls", "merge", plan, str(desk.store)), "without an answer in shards 0, 1", code=4)
    for number in ("0", "1"):
        fine(ragworth("calls", "run-shard", plan, number, "-M", model, "--quiet"))
    fine(ragworth("calls", "merge", plan, str(desk.store)))
    nothing = desk.path("nothing")
    assert "nothing to plan" in fine(ragworth("calls", "plan", "--shards", "2", "-o", nothing, *annotate(desk))).stdout
    fine(ragworth(*annotate(desk, "--max-calls", "0")))
    assert set(pl.read_parquet(desk.path("out.parquet"))["status"]) == {"ok"}
    fine(ragworth("calls", "verify", str(desk.store)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run-shard", "none", "0"), ("there is no plan",)),
        (("merge", "none", "calls.sqlite"), ("there is no plan",)),
        (("plan", "--shards", "2", "-o", "p", "calls", "show", "x"), ("the command is 'calls'",)),
        (("plan", "--shards", "0", "-o", "p", "evaluate"), ("--shards",)),
    ],
)
def test_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(ragworth("calls", *arguments), *words)
