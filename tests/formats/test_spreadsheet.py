"""Cells that a spreadsheet would run as formulas."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from ragworth.cli import main
from ragworth.cli.task_output import encode_rows
from ragworth.core.errors import InputError
from ragworth.data import Contexts
from ragworth.formats import read_contexts, write
from ragworth.formats.csv import SAFE_CSV_VARIABLE, escape_formulas, write_csv
from ragworth.report.render import render

RISKY = ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "-", "=", "＝1", "--5", "+1-1", "-1;2"]
HARMLESS = ["-5", "+5", "-.5", "-1.5e-7", "d1", "a=b", "", "'quoted", " =1", "5-3", "ünï"]


@pytest.mark.parametrize("cell", RISKY)
def test_a_formula_gets_an_apostrophe(cell: str) -> None:
    assert escape_formulas(pl.DataFrame({"a": [cell]}))["a"].to_list() == [f"'{cell}"]


@pytest.mark.parametrize("cell", [*HARMLESS, None])
def test_everything_else_stays(cell: str | None) -> None:
    assert escape_formulas(pl.DataFrame({"a": [cell, "x"]}))["a"].to_list() == [cell, "x"]


def test_numbers_stay_numbers_and_names_are_cells() -> None:
    frame = pl.DataFrame({"score": [-1.5, 2.0], "n": [-1, 3], "=x": pl.Series(["@a", "b"], dtype=pl.Categorical)})
    assert escape_formulas(frame).rows() == [(-1.5, -1, "'@a"), (2.0, 3, "b")]
    assert escape_formulas(frame).columns == ["score", "n", "'=x"]


def rows(text: bytes) -> list[list[str]]:
    return list(csv.reader(text.decode().splitlines(keepends=True)))


def test_every_writer_knows_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"query": ["=q"], "value": [-0.5]})
    contexts = Contexts({"=q": {"@d": -1.5}}, system="-s")

    def written() -> list[str]:
        write(contexts, tmp_path / "run.csv")
        first = [rows((tmp_path / "run.csv").read_bytes())[1][column] for column in (0, 1, 3)]
        return [*first, rows(render(frame, "csv"))[1][0], rows(encode_rows(frame, ".csv"))[1][0]]

    assert written() == ["-s", "=q", "@d", "=q", "=q"]
    assert read_contexts(tmp_path / "run.csv") == contexts
    monkeypatch.setenv(SAFE_CSV_VARIABLE, "1")
    assert written() == ["'-s", "'=q", "'@d", "'=q", "'=q"]
    assert rows(render(frame, "csv"))[1][1] == "-0.5"


def test_the_option_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("=1+1 0 d 1\n")
    (tmp_path / "@run").write_text("=1+1 Q0 d 1 1 t\n")
    command = ["score", "-q", str(tmp_path / "qrels"), "-m", "AP", "--per-query", "-f", "csv", str(tmp_path / "@run")]
    plain = CliRunner().invoke(main, command)
    assert plain.exit_code == 0, plain.output
    assert "\n@run,=1+1,AP,1.0" in plain.stdout
    safe = CliRunner().invoke(main, ["--safe-csv", *command])
    assert "\n'@run,'=1+1,AP,1.0" in safe.stdout
    assert CliRunner().invoke(main, command).stdout == plain.stdout


def test_a_setting_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SAFE_CSV_VARIABLE, "perhaps")
    with pytest.raises(InputError, match=SAFE_CSV_VARIABLE):
        write_csv(pl.DataFrame({"a": ["x"]}))
