"""What all tests share: where files are written, where real data is, and how hypothesis runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# Machines differ in speed, so no single example is timed.
settings.register_profile("ragworth", deadline=None, print_blob=True)
settings.load_profile("ragworth")

# Models are built once for all tests and all workers, apart from the user's own cache.
os.environ.setdefault("RAGWORTH_CACHE", str(Path(__file__).parents[1] / ".pytest_cache" / "ragworth"))

# What a user has allowed is never looked for in their own settings, nor written there.
os.environ["RAGWORTH_CONFIG"] = str(Path(__file__).parents[1] / ".pytest_cache" / "settings")

Save = Callable[[str, str | bytes], Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write a small file and give its path; text goes out as UTF-8, line ends as they are."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for property tests, which cannot have a fresh one for every example."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data. Nothing of it is part of the project, so tests that read it may be skipped."""
    folder = os.environ.get("RAGWORTH_DATA")
    if not folder:
        pytest.skip("RAGWORTH_DATA is not set: it names the folder of real data")
    if not Path(folder).is_dir():
        pytest.fail(f"RAGWORTH_DATA names no folder: {folder}")
    return Path(folder)
