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
from tests.evaluation.samples import Models, workspace

DOCS = Path(__file__).parents[2] / "docs"
PAGE, SERVER_PAGE = DOCS / "labelling.md", DOCS / "label-server.md"


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
