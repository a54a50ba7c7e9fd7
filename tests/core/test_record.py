"""Only what ragworth wrote is replaced or deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragworth.core.errors import InputError
from ragworth.core.file_record import RECORD_NAME, FileRecord


def test_what_was_written_is_replaced_and_deleted(tmp_path: Path) -> None:
    record = FileRecord(tmp_path / "out")
    record.write("said/a.txt", b"1")
    record.write("b.txt", b"1")
    record.finish()
    again = FileRecord(tmp_path / "out")
    assert again.names == {"said/a.txt", "b.txt"}
    again.write("b.txt", b"2")
    again.remove(["said/a.txt"])
    again.finish()
    assert FileRecord(tmp_path / "out").names == {"b.txt"}
    assert sorted(path.name for path in (tmp_path / "out").rglob("*")) == [RECORD_NAME, "b.txt", "said"]


def test_what_somebody_else_wrote_stays(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    record = FileRecord(tmp_path, remedy="move it")
    with pytest.raises(InputError, match=r"1 file in the way: ragworth did not write it.*\n  a\.txt\n  to do: move it"):
        record.write("a.txt", b"ours")
    record.write("b.txt", b"ours")
    record.finish()
    FileRecord(tmp_path).remove(["a.txt", "c.txt"])
    assert (tmp_path / "a.txt").read_text() == "mine"
    record.write("a.txt", b"ours", adopt=True)
    assert (tmp_path / "a.txt").read_text() == "ours"


@pytest.mark.parametrize("link", ["a.txt", "sub"])
def test_links_are_never_written_through_and_what_they_lead_to_is_never_deleted(tmp_path: Path, link: str) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    record = FileRecord(folder)
    name = "a.txt" if link == "a.txt" else "sub/a.txt"
    record.write(name, b"same")
    record.finish()
    (outside / "a.txt").write_bytes(b"same")
    (folder / name).unlink()
    if link == "sub":
        (folder / "sub").rmdir()
    (folder / link).symlink_to(outside / "a.txt" if link == "a.txt" else outside)
    with pytest.raises(InputError, match="in the way"):
        FileRecord(folder).write(name, b"new")
    FileRecord(folder).remove([name])
    assert (outside / "a.txt").read_bytes() == b"same"


@pytest.mark.parametrize("link", ["sub", "sub/in"])
def test_a_folder_that_leads_outside_is_not_written_to(tmp_path: Path, link: str) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    (folder / link).parent.mkdir(parents=True)
    (folder / link).symlink_to(outside)
    with pytest.raises(InputError, match=r"leads out of its folder, to .*outside.*\n  to do: replace the link"):
        FileRecord(folder).write("sub/in/deep/a.txt", b"ours")
    assert not list(outside.iterdir())


@pytest.mark.parametrize(
    "text",
    ["", "[]", "7", '{"files": 1}', '["../a.txt", "/a", 7]'],
)
def test_a_record_that_cannot_be_right_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / RECORD_NAME).write_text(text)
    (tmp_path / "a.txt").write_text("mine")
    record = FileRecord(tmp_path)
    with pytest.raises(InputError, match="in the way"):
        record.refuse_foreign(["a.txt"])
