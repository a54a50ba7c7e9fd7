"""Files of labels in a folder: those of other projects and programs stay."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from ragworth.errors import FormatError, InputError
from tests.label.site.conftest import Site, answer


def export(project: Any, folder: Path, form: str = "qrels") -> list[str]:
    from ragworth.label.site.export_folder import export_to_folder
    from ragworth.label.site.exporting import labelled_data

    return [file.name for file in export_to_folder(project, labelled_data(project), form, folder)]


def label_first(site: Site, project: Any, name: str, value: str = "1") -> None:
    from ragworth.label.site.leases import next_item

    person = site.person(name, "annotator", project)
    row = next_item(person, project)
    assert row is not None
    assert answer(site.client(person), project, row.item_id, {"relevance": value}).json()["stored"]


def test_an_export_replaces_its_own_files_and_no_others(site: Site, tmp_path: Path) -> None:
    project, other = site.project(1, judgments=2), site.project(1, slug="other")
    label_first(site, project, "ana")
    label_first(site, other, "ben")
    folder = tmp_path / "out"
    assert export(project, folder) == ["qrels.txt", "ana.qrels.txt"]
    label_first(site, project, "cleo")
    assert export(project, folder) == ["qrels.txt", "ana.qrels.txt", "cleo.qrels.txt"]
    before = (folder / "qrels.txt").read_bytes()
    with pytest.raises(InputError, match="another project, 'relevance'"):
        export(other, folder)
    assert (folder / "qrels.txt").read_bytes() == before and not (folder / "ben.qrels.txt").exists()
    assert export(other, folder, "labels") == ["items.jsonl", "labels.jsonl", "labels.parquet"]
    assert not [each for each in folder.iterdir() if each.is_dir()]


def test_files_that_an_export_would_no_longer_write_are_deleted(site: Site, tmp_path: Path) -> None:
    from ragworth.label.site.events import undo
    from ragworth.label.site.models import User

    project = site.project(1, judgments=2)
    label_first(site, project, "ana")
    label_first(site, project, "ben")
    export(project, tmp_path)
    assert undo(User.objects.get(name="ben"), project, uuid.uuid4()) is not None
    assert export(project, tmp_path) == ["qrels.txt", "ana.qrels.txt"]
    assert not (tmp_path / "ben.qrels.txt").exists()


def test_a_file_that_was_changed_stays(site: Site, tmp_path: Path) -> None:
    from ragworth.label.site.events import undo
    from ragworth.label.site.models import User

    project = site.project(1, judgments=2)
    label_first(site, project, "ana")
    label_first(site, project, "ben")
    export(project, tmp_path)
    assert undo(User.objects.get(name="ben"), project, uuid.uuid4()) is not None
    (tmp_path / "ben.qrels.txt").write_text("q 0 p 1\n")
    assert export(project, tmp_path) == ["qrels.txt", "ana.qrels.txt"]
    assert (tmp_path / "ben.qrels.txt").read_text() == "q 0 p 1\n"
    (tmp_path / "qrels.txt").write_text("q 0 p 2\n")
    with pytest.raises(InputError, match="was changed after its export"):
        export(project, tmp_path)
    assert (tmp_path / "qrels.txt").read_text() == "q 0 p 2\n"


def test_a_file_from_elsewhere_stays(site: Site, tmp_path: Path) -> None:
    project = site.project(1)
    label_first(site, project, "ana")
    (tmp_path / "qrels.txt").write_text("q 0 p 1\n")
    with pytest.raises(InputError, match="is no export of labels"):
        export(project, tmp_path)
    assert (tmp_path / "qrels.txt").read_text() == "q 0 p 1\n"
    (tmp_path / ".ragworth-labels.json").write_text("[]")
    with pytest.raises(FormatError, match="object of objects"):
        export(project, tmp_path)
