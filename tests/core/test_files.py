"""Modes of files and folders: for the owner alone, and never looser than before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragworth.calls.store import Store
from ragworth.core.files import open_folder, open_output, private_file, private_folder, write_output
from ragworth.formats.files import create_file

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes mean nothing here")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """The usual one, under which others may read."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_new_folders_are_private_and_old_ones_stay(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    private_folder(tmp_path / "a" / "b" / "c")
    assert [mode(tmp_path / each) for each in ("", "a", "a/b", "a/b/c")] == [0o755, 0o700, 0o700, 0o700]
    (tmp_path / "a").chmod(0o750)
    private_folder(tmp_path / "a")
    assert mode(tmp_path / "a") == 0o750
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        private_folder(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        private_folder(tmp_path / "file" / "below")


def test_a_stricter_umask_counts(tmp_path: Path) -> None:
    os.umask(0o277)
    private_file(tmp_path / "file")
    write_output(tmp_path / "other", b"")
    assert mode(tmp_path / "file") == mode(tmp_path / "other") == 0o400


@pytest.mark.parametrize(("old", "new"), [(None, 0o600), (0o644, 0o600), (0o400, 0o400)])
def test_a_private_file_is_never_looser_than_the_one_it_replaces(tmp_path: Path, old: int | None, new: int) -> None:
    if old is not None:
        (tmp_path / "x").write_text("old")
        (tmp_path / "x").chmod(old)
    with open_output(tmp_path / "x") as part:
        assert mode(part.path) == new
    assert mode(tmp_path / "x") == new


@pytest.mark.parametrize(("old", "new"), [(None, 0o644), (0o600, 0o600), (0o664, 0o664)])
def test_a_file_that_the_user_names_keeps_its_mode(tmp_path: Path, old: int | None, new: int) -> None:
    if old is not None:
        (tmp_path / "x.csv").write_text("old")
        (tmp_path / "x.csv").chmod(old)
    with create_file(tmp_path / "x.csv") as stream:
        stream.write(b"new")
    assert (mode(tmp_path / "x.csv"), (tmp_path / "x.csv").read_text()) == (new, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]


def test_a_folder_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    place = tmp_path / "new" / "folder"
    with open_folder(place) as part:
        (part / "a").write_text("one")
        assert not place.exists()
    with pytest.raises(ValueError, match="broken"), open_folder(place) as part:
        (part / "a").write_text("two")
        raise ValueError("broken")
    assert ((place / "a").read_text(), mode(place), mode(place / "a")) == ("one", 0o700, 0o600)
    with open_folder(place) as part:
        (part / "b").write_text("three")
    assert [path.name for path in place.parent.rglob("*")] == ["folder", "b"]


def test_writing_follows_no_link_that_somebody_has_put_there(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / ".x.csv.part").symlink_to(victim)  # the name that earlier versions wrote to
    (folder / "x.csv").symlink_to(victim)
    with create_file(folder / "x.csv") as stream:
        stream.write(b"new")
    assert victim.read_text() == "mine"
    assert (folder / "x.csv").read_text() == "new"


def test_a_store_is_private_with_all_that_sqlite_puts_beside_it(tmp_path: Path) -> None:
    with Store(tmp_path / "new" / "calls.sqlite") as store, store.writing():
        beside = {path.name: mode(path) for path in (tmp_path / "new").iterdir()}
        assert set(beside) == {f"calls.sqlite{ending}" for ending in ("", "-wal", "-shm", ".lock", ".lock-journal")}
        assert set(beside.values()) == {0o600}
    assert mode(tmp_path / "new") == 0o700
