"""Files that other tools wrote can be evaluated as they are, by their path alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragworth.cli import main
from tests.formats.sample_files import HERE

PASSAGES = ("documents", "nodes")
"""Files with passages alone, which are no logs."""
FILES = [path for path in sorted(HERE.rglob("*.*")) if path.is_file() and path.stem not in PASSAGES]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_file_is_checked_as_it_is(path: Path, tmp_path: Path, unasked: str) -> None:
    given = shutil.copy(path, tmp_path)
    done = CliRunner().invoke(main, ["check", str(given), "-M", unasked])
    assert done.exit_code == 0, done.output
    assert "All is well" in done.stdout
