"""``ragworth study``: what is printed, what is written, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.simulated_reader import collection
from click.testing import CliRunner, Result

from ragworth.cli import main
from tests.studies.conftest import Opened
from tests.studies.conftest import opened as opened


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["study", *map(str, arguments)])


@pytest.mark.slow
def test_a_study_prints_tables_and_last_what_they_say(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=8)
    planned = run("alignment", place, "--dry-run")
    assert planned.exit_code == 0 and "80 calls to make" in planned.output and opened.calls == 0
    found = run("alignment", place, "--quiet")
    assert found.exit_code == 0, found.output
    lines = found.output.splitlines()
    assert lines[0].startswith("Alignment") and any(
        " metric " in line or "highest" in line or line.startswith("Use ") for line in lines
    )
    assert lines[-1].startswith("Page: ") and (place / "results" / "studies" / "alignment" / "study.html").is_file()


def test_json_has_everything(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=8)
    found = run("alignment", place, "--json", "--quiet", "-m", "nDCG@5", "-m", "P@5")
    facts = json.loads(found.output)
    assert {row["metric"] for row in facts["tables"]["alignment"]} == {"nDCG@5", "P@5"}
    assert facts["settings"]["settings"]["k"] == 5 and Path(facts["page"]).is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["alignment", "nowhere"], "no such file"),
        (["alinment"], "did you mean alignment"),
        (["alignment", "--contexts", "1"], "1 is not in the range"),
        (["alignment", "--limit", "3", "--all"], "give one of the two"),
    ],
)
def test_what_cannot_be_is_refused(arguments: list[str], words: str, opened: Opened) -> None:
    found = run(*arguments)
    assert found.exit_code == 2 and words in found.output and opened.calls == 0
