"""``ragworth label``: a project from items to exported labels, without a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ragworth.cli import main
from ragworth.label.items import write_items
from ragworth.label.labels import Label, Labels
from tests.label.site.conftest import passage_items


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["label", *arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def workspace(tmp_path: Path) -> str:
    write_items(passage_items(4), tmp_path / "items.jsonl")
    run("new", str(tmp_path), "--task", "relevance", "--items", str(tmp_path / "items.jsonl"), "--judgments", "2")
    return str(tmp_path)


@pytest.mark.slow
def test_from_items_to_labels(workspace: str, tmp_path: Path) -> None:
    links = run("assign", workspace, "ana", "--url", "https://label.example")
    assert links.startswith("ana: https://label.example/join/")
    labels = Labels([Label(name, f"i{at}", {"relevance": "2"}) for name in ("ana", "ben") for at in range(4)])
    labels.write(tmp_path / "labels.jsonl")
    assert "8 labels added, 0 were there already" in run("import", workspace, str(tmp_path / "labels.jsonl"))
    assert "0 labels added, 8 were there already" in run("import", workspace, str(tmp_path / "labels.jsonl"))
    status = run("status", workspace, "--format", "json")
    assert '"labelled":8' in status.replace(" ", "")
    assert "wrote" in run("export", workspace, "--to", "labels", "-o", str(tmp_path / "out"))
    assert len(Labels.read(tmp_path / "out" / "labels.jsonl")) == 8
    assert "expected: a new or an empty folder" in run("export", workspace, "-o", str(tmp_path / "out"), code=2)


@pytest.mark.parametrize("link", ["labels", "labels/labels.sqlite", "labels/labels.sqlite-journal"])
def test_a_project_is_created_through_no_link(tmp_path: Path, link: str) -> None:
    write_items(passage_items(4), tmp_path / "items.jsonl")
    (tmp_path / "beyond").mkdir()
    (tmp_path / "w" / link).parent.mkdir(parents=True)
    (tmp_path / "w" / link).symlink_to(tmp_path / "beyond" / ("" if link == "labels" else "file"))
    said = run("new", str(tmp_path / "w"), "--task", "relevance", "--items", str(tmp_path / "items.jsonl"), code=2)
    assert "leads out of its folder, to" in said
    assert not list((tmp_path / "beyond").iterdir())


def test_mistakes_are_named(workspace: str, tmp_path: Path) -> None:
    items = str(tmp_path / "items.jsonl")
    assert "already" in run("new", workspace, "--task", "relevance", "--items", items, code=2)
    assert "follows the task answerability" in run(
        "new", workspace, "--task", "coverage", "--items", str(_coverage_items(tmp_path)), code=2
    )
    assert "there is no labelling project" in run("status", str(tmp_path / "nowhere"), code=2)
    assert "one of relevance" in run("export", workspace, "-p", "other", "-o", str(tmp_path / "out"), code=2)
    assert "can't be the name of a person" in run("assign", workspace, "a b", code=2)
    assert "postgresql://" in run("status", workspace, "--database", "mysql://x/y", code=2)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--judges", "a.csv"), "--judges has no effect with no disputed items"),
        (("--after", "relevance"), "--after has no effect with the task relevance, which follows no other"),
        (("-k", "3"), "-k has no effect with the items of a file"),
        (("--suggestions",), "no item has a suggestion to show"),
        (("more",), "'more' has no effect"),
        (("--name", "x" * 61), "at most 60"),
    ],
)
def test_options_without_effect_are_refused(tmp_path: Path, arguments: tuple[str, ...], problem: str) -> None:
    write_items(passage_items(1), tmp_path / "items.jsonl")
    items = ("--items", str(tmp_path / "items.jsonl"))
    assert problem in run("new", str(tmp_path), "--task", "relevance", *items, *arguments, code=2)


def test_a_task_that_follows_another_one_draws_no_items(tmp_path: Path) -> None:
    items = ("--items", str(_coverage_items(tmp_path)))
    for option in ("--judgments", "--repeats", "--random-queries"):
        assert f"{option} has no effect" in run("new", str(tmp_path), "-t", "coverage", *items, option, "2", code=2)


def test_labels_of_unnamed_items_create_no_project(tmp_path: Path) -> None:
    chosen = {"from_name": "relevance", "to_name": "passage", "type": "choices", "value": {"choices": ["Perfect"]}}
    annotation = {"completed_by": 3, "result": [chosen]}
    task: dict[str, Any] = {"data": {"question": "?", "passage": "!"}, "annotations": [annotation]}
    (tmp_path / "export.json").write_text(json.dumps([task]))
    arguments = ("import", str(tmp_path), str(tmp_path / "export.json"), "--from", "label-studio", "-t", "relevance")
    assert "meta has no query, passage" in run(*arguments, code=2)
    assert "there is no project" in run("status", str(tmp_path), code=2)
    task["data"]["ragworth_meta"] = {"query": "q", "passage": "p"}
    (tmp_path / "export.json").write_text(json.dumps([task]))
    assert "1 label added" in run(*arguments)


def _coverage_items(folder: Path) -> Path:
    path = folder / "coverage.jsonl"
    path.write_text('{"id": "c", "parts": {"passage": "P", "subquestion": "Q?"}, "meta": {"query": "q"}}\n')
    return path
