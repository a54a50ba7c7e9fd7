"""``ragworth report`` and ``ragworth open``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragworth.cli import main

pytestmark = pytest.mark.usefixtures("whole_report")

SCORING = Path(__file__).parents[2] / "examples" / "scoring"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small workspace that needs no model, evaluated."""
    folder = tmp_path_factory.mktemp("workspace")
    shutil.copy(SCORING / "qrels.txt", folder)
    for name in ("bm25", "dense"):
        shutil.copy(SCORING / "runs" / f"{name}.run", folder)
    (folder / "ragworth.toml").write_text(
        'title = "Gate"\n[collection]\nqrels = "qrels.txt"\n[systems]\nbm25 = {run = "bm25.run"}\n'
        'dense = {run = "dense.run"}\n[metrics]\nuse = ["nDCG@5", "P@5"]\n'
    )
    done = CliRunner().invoke(main, ["evaluate", str(folder), "--quiet"])
    assert done.exit_code == 0, done.output
    return folder


@pytest.mark.slow
def test_a_report_is_written_again_from_its_tables(workspace: Path) -> None:
    page = workspace / "results" / "report.html"
    before = page.read_text()
    page.unlink()
    done = CliRunner().invoke(main, ["report", str(workspace)])
    assert done.exit_code == 0, done.output
    assert page.read_text() == before


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory mean nothing here")
def test_a_report_is_written_where_memory_is_limited(workspace: Path, tmp_path: Path) -> None:
    """Its pictures need more, and the library that draws them kills its process."""
    shutil.copytree(workspace / "results", tmp_path / "w", ignore=shutil.ignore_patterns("figures", "report.*"))
    command = f'ulimit -v 6000000; exec "{sys.executable}" -m ragworth report "{tmp_path / "w"}"'
    done = subprocess.run(["bash", "-c", command], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "no pictures beside the page, which draws its charts itself" in done.stderr
    assert (tmp_path / "w" / "report.html").is_file()
    assert not (tmp_path / "w" / "figures").exists()


@pytest.mark.parametrize("link", ["figures", "figures/means-0.svg", "report.html", "report.md"])
def test_a_report_is_written_through_no_link(workspace: Path, tmp_path: Path, link: str) -> None:
    """Not even into the results of somebody else, who put links among them."""
    results, beyond = tmp_path / "w", tmp_path / "beyond"
    shutil.copytree(workspace / "results", results, ignore=shutil.ignore_patterns(Path(link).name))
    (results / link).parent.mkdir(exist_ok=True)
    beyond.mkdir()
    (beyond / "own.txt").write_text("the user's")
    (results / link).symlink_to(beyond / "own.txt" if "." in link else beyond)
    done = CliRunner().invoke(main, ["report", str(results)])
    assert (done.exit_code == 0) == link.startswith("report."), "its own files replace links"
    assert [path.name for path in beyond.iterdir()] == ["own.txt"]
    assert (beyond / "own.txt").read_text() == "the user's"


def test_other_metrics_can_come_first(workspace: Path) -> None:
    done = CliRunner().invoke(main, ["report", str(workspace / "results"), "-m", "P@5"])
    assert done.exit_code == 0, done.output
    text = (workspace / "results" / "report.md").read_text()
    assert "P@5" in text
    assert "nDCG@5" not in text


def test_a_folder_without_results_is_an_error(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["report", str(tmp_path)])
    assert done.exit_code == 2
    assert "ragworth evaluate" in done.output
