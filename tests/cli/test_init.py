"""``ragworth init`` as somebody at a terminal meets it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ragworth.cli.init import NAMES, command
from ragworth.core.errors import InputError
from ragworth.workspace import config
from ragworth.workspace.init import TEMPLATES

RUN = "q1 Q0 d1 1 2.5 tag\n"


def init(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def test_what_was_found_assumed_and_left_out_is_said(tmp_path: Path) -> None:
    (tmp_path / "bm25.run").write_text(RUN)
    (tmp_path / "labels.txt").write_text("q1 1 d1 1\nq2 2 d1 1\n")
    (tmp_path / "kinds.tsv").write_text("query\tkind\nq1\tgood\n")
    result = init(str(tmp_path))
    assert result.exit_code == 0
    assert f"Wrote {tmp_path}/ragworth.toml." in result.output
    assert "a run, called 'bm25'  bm25.run" in result.output
    assert "Assumed:\n  labels.txt: its second column may number sub-questions" in result.output
    assert "Not used:\n  kinds.tsv: no known format has these columns: query, kind" in result.output
    assert "Missing:\n  texts of queries and passages" in result.output
    assert result.output.endswith(f"\n  ragworth check {tmp_path}\n  ragworth evaluate {tmp_path}\n")
    assert set(config.read(tmp_path).systems) == {"bm25"}


def test_folders_with_blanks_are_quoted_and_odd_signs_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "my \x1b[31mdata"
    folder.mkdir()
    (folder / "bell\a.run").write_text(RUN)
    output = init(str(folder)).output
    assert "\x1b" not in output
    assert "\a" not in output
    assert f"ragworth init '{tmp_path}/my " in output


@pytest.mark.parametrize("name", NAMES)
def test_templates(name: str, tmp_path: Path) -> None:
    result = init(str(tmp_path), "--template", name)
    assert result.exit_code == 0
    assert f"This is the template {name}" in result.output
    assert config.read(tmp_path).systems


def test_all_templates_can_be_named(tmp_path: Path) -> None:
    assert set(NAMES) == set(TEMPLATES)
    result = init(str(tmp_path), "--template", "nonsense")
    assert result.exit_code == 2
    assert "'demo', 'runs', 'rag-log'" in result.output


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    init(str(tmp_path), "-t", "runs")
    before = (tmp_path / "ragworth.toml").read_bytes()
    refused = init(str(tmp_path), "-t", "demo")
    assert isinstance(refused.exception, InputError)
    assert "--force" in str(refused.exception)
    assert (tmp_path / "ragworth.toml").read_bytes() == before
    assert init(str(tmp_path), "-t", "demo", "--force").exit_code == 0
    assert config.read(tmp_path).collection.qrels == ("qrels.txt",)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom ragworth.cli.init import command\n"
        "assert 'FOLDER' in CliRunner().invoke(command, ['--help']).output\n"
        "print([m for m in ('polars', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("{}\n")
    result = init(str(log))
    assert isinstance(result.exception, InputError)
    assert "this is a file, not a folder" in str(result.exception)
    assert f"ragworth evaluate {log}" in str(result.exception)
