"""``ragworth build`` from the command line, with rules and without a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ragworth.cli import main
from tests.build.samples import write_corpus

NO_MODEL = ("--reader", "none", "--encoder", "none")


def invoke(*arguments: str | int | Path) -> Result:
    return CliRunner().invoke(main, ["build", *map(str, arguments)])


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "docs")


def test_from_a_folder_to_a_workspace_that_passes_its_check(docs: Path, tmp_path: Path, unasked: str) -> None:
    folder = tmp_path / "collection"
    store = tmp_path / "calls.sqlite"
    built = invoke("questions", docs, "-o", folder, "-n", 8, "-s", store, *NO_MODEL)
    assert built.exit_code == 0, built.output
    assert "From drafts to questions" in built.output and "no reader was asked" in built.output
    assert not store.exists()
    checked = CliRunner().invoke(main, ["check", str(folder), "-M", unasked])
    assert checked.exit_code == 0, checked.output
    again = invoke("check", folder, *NO_MODEL, "-s", store, "-o", tmp_path / "findings.csv")
    assert again.exit_code == 0, again.output
    assert "unknown" in (tmp_path / "findings.csv").read_text()
    card = json.loads((folder / "card.json").read_text())
    assert card["models"]["reader"] == "none" and card["corpus"]["documents"] == 4


def test_building_again_gives_the_same_questions(docs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "collection"
    texts = []
    for _ in range(2):
        assert invoke("questions", docs, "-o", folder, "-n", 8, *NO_MODEL, "--quiet").exit_code == 0
        texts.append((folder / "queries.jsonl").read_text())
    assert texts[0] == texts[1]


def test_a_dry_run_prints_the_plan_and_writes_nothing(docs: Path, tmp_path: Path) -> None:
    found = invoke("questions", docs, "-o", tmp_path / "collection", "--dry-run", *NO_MODEL)
    assert found.exit_code == 0, found.output
    assert "4 documents" in found.output and "multi-passage" in found.output and "no model is asked" in found.output
    assert not (tmp_path / "collection").exists()


def test_an_unknown_check_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    found = invoke("check", tmp_path / "nothing", "-c", "self-contaned", *NO_MODEL)
    assert found.exit_code == 2
    assert "did you mean self-contained" in found.output


def test_files_of_somebody_else_are_in_the_way(docs: Path, tmp_path: Path) -> None:
    (tmp_path / "collection").mkdir()
    (tmp_path / "collection" / "ragworth.toml").write_text("mine")
    found = invoke("questions", docs, "-o", tmp_path / "collection", *NO_MODEL)
    assert found.exit_code == 2 and "ragworth.toml" in found.output
    assert (tmp_path / "collection" / "ragworth.toml").read_text() == "mine"


def test_a_build_that_keeps_nothing_says_so_and_keeps_its_drafts(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "rest.md").write_text("# Rest\n\nnothing to ask about\n")
    found = invoke("questions", tmp_path / "docs", "-o", tmp_path / "collection", "-n", 2, *NO_MODEL)
    assert found.exit_code == 4, found.output
    assert "none of 6 drafts was kept" in found.output and "drafts.jsonl" in found.output
    assert len((tmp_path / "collection" / "drafts.jsonl").read_text().splitlines()) == 6
