"""Symbolic links as inputs and outputs: followed where they lead to a file, refused in words where they don't."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ragworth.core.errors import FormatError
from ragworth.data import Contexts
from ragworth.formats import read_contexts, write
from ragworth.workspace.read import list_folder

RUN = "q1 Q0 d1 1 2.5 t\n"


@pytest.fixture
def links(tmp_path: Path) -> Path:
    (tmp_path / "file.run").write_text(RUN)
    (tmp_path / "good.run").symlink_to("file.run")
    (tmp_path / "dangling.run").symlink_to("nowhere.run")
    (tmp_path / "self.run").symlink_to("self.run")
    (tmp_path / "a.run").symlink_to("b.run")
    (tmp_path / "b.run").symlink_to("a.run")
    (tmp_path / "folder").symlink_to(tmp_path)
    return tmp_path


def test_a_link_to_a_file(links: Path) -> None:
    contexts = read_contexts(links / "good.run")
    assert contexts.systems == ["good"]
    assert contexts.frame["passage"].to_list() == ["d1"]


@pytest.mark.parametrize("prefix", ["trec:", "table:", "jsonl:", "exam:"])
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("dangling.run", "no such file"),
        ("self.run", "cannot be read: Too many levels of symbolic links"),
        ("a.run", "cannot be read: Too many levels of symbolic links"),
        ("folder", "this is a folder, not a file"),
    ],
)
def test_links_that_lead_nowhere(prefix: str, name: str, found: str, links: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read_contexts(f"{prefix}{links / name}")
    assert (caught.value.found, caught.value.file) == (found, str(links / name))


def test_writing_does_not_follow_a_planted_link(tmp_path: Path) -> None:
    """The name of the unfinished file can be guessed: a link there must not lead the writer to another file."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / ".run.csv.part").symlink_to(precious)
    write(Contexts({"q": {"d": 1.0}}), tmp_path / "run.csv")
    assert precious.read_text() == "mine"
    assert not (tmp_path / "run.csv").is_symlink()
    assert read_contexts(tmp_path / "run.csv").frame.height == 1


def test_links_back_to_the_folder_are_not_followed(tmp_path: Path) -> None:
    folder, other = tmp_path / "here", tmp_path / "other"
    (folder / "sub").mkdir(parents=True)
    other.mkdir()
    for place in (folder, other):
        (place / "a.run").write_text(RUN)
    (folder / "again").symlink_to(folder)
    (folder / "sub" / "up").symlink_to("..")
    (folder / "beside").symlink_to(other)
    assert list_folder(folder)[0] == ["a.run", "beside/a.run"]


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text there")
def test_a_name_that_is_no_utf8_names_a_system(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/gr\xfcn.run")
    Path(path).write_text(RUN)
    assert read_contexts(path).systems == ["gr�n"]
