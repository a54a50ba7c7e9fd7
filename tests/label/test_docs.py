"""The snippets in docs/labelling.md and docs/label-server.md."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from ragworth import evaluate
from ragworth.cli import main
from ragworth.label.labels import Label, Labels
from tests.evaluation.samples import Models, workspace

DOCS = Path(__file__).parents[2] / "docs"
PAGE, SERVER_PAGE = DOCS / "labelling.md", DOCS / "label-server.md"


def test_seconds_are_grouped_by_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [("anna", "i1", "yes", 4.0), ("anna", "i2", "no", 9.0), ("ben", "i1", "yes", 6.0)]
    (tmp_path / "out").mkdir()
    labels = Labels(Label(who, item, {"grade": said}, seconds=seconds) for who, item, said, seconds in given)
    labels.write(tmp_path / "out" / "labels.parquet")
    monkeypatch.chdir(tmp_path)
    after = PAGE.read_text(encoding="utf-8").partition("by answer rather than by person")[2]
    exec(after.partition("```python\n")[2].partition("```")[0], {})
    lines = [line for line in capsys.readouterr().out.splitlines() if "grade" in line]
    rows = [[cell.strip() for cell in line.split("┆")] for line in lines]
    assert sorted(cells[1] for cells in rows) == ["1", "2"]
    assert any("yes" in cells[0] and cells[2].startswith("5.0") for cells in rows)


@pytest.mark.slow
def test_the_commands_of_the_server_page_run_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ragworth.evaluation.model_pool.llm", Models())
    evaluate(workspace(tmp_path / "demo"), until="score")
    listening = SimpleNamespace(effective_port=8765, run=lambda: None)
    monkeypatch.setattr("ragworth.label.site.server._listen", lambda options: listening)
    monkeypatch.setattr("ragworth.cli.label.webbrowser.open", lambda link: True)
    shown = re.findall(r"```console\n(.*?)```", SERVER_PAGE.read_text(encoding="utf-8"), re.DOTALL)
    first, *others = [each for each in shown if "RAGWORTH_LABEL_DATABASE" not in each]
    assert ragworth("label", "new", "demo", "--task", "relevance").startswith("Project relevance: ")
    (line, *expected) = first.splitlines()
    assert ragworth(*shlex.split(line)[2:]).splitlines() == expected
    lines = [line for each in others for line in each.splitlines()]
    assert len(lines) >= 3 and all(line.startswith("$ ragworth label ") for line in lines)
    said = [ragworth(*shlex.split(line)[2:]) for line in lines]
    for line, text in zip(lines, said, strict=True):
        assert "https://label.example.org" in text
        names = re.findall("ana|ben|cleo", line)
        assert re.findall(r"^(\w+): https://label.example.org/join/", text, re.MULTILINE) == names
    from django.db import connections

    connections.close_all()


def ragworth(*words: str) -> str:
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout
