"""A project's labels as files in a folder, which keeps a record of the project that each file is from.

So a file of another project, or of another program, is never overwritten, and a new export deletes what the earlier one
of the same project wrote and would no longer write.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragworth.errors import FormatError, InputError, quote_short
from ragworth.label.dataset import LabelledData
from ragworth.label.exports import export_labels
from ragworth.label.exports.contract import write_json
from ragworth.label.site.models import Project

RECORD_NAME = ".ragworth-labels.json"
EXPECTED = "the record of an earlier export"


def export_to_folder(project: Project, data: LabelledData, name: str, folder: Path) -> list[Path]:
    """Write the labels in a format to a folder, which is created; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    record = _read_record(folder / RECORD_NAME)
    mine = {"project": project.slug, "created": project.created_at.isoformat(), "format": name}
    with tempfile.TemporaryDirectory(prefix=".labels-", dir=folder) as place:
        files = [str(file.relative_to(place)) for file in export_labels(data, name, place)]
        for file in files:
            _check_owner(folder / file, record.get(file, {}), mine)
        for file in [each for each, owner in record.items() if owner == mine and each not in files]:
            (folder / file).unlink(missing_ok=True)
            del record[file]
        for file in files:
            (folder / file).parent.mkdir(exist_ok=True)
            (Path(place) / file).replace(folder / file)
    write_json({**record, **dict.fromkeys(files, mine)}, folder / RECORD_NAME)
    return [folder / file for file in files]


def _read_record(path: Path) -> dict[str, Any]:
    """The project and format of each file in a folder."""
    if not path.exists():
        return {}
    try:
        record = json.loads(path.read_bytes())
    except ValueError as error:
        raise FormatError("this is not JSON", file=str(path), expected=EXPECTED) from error
    if not isinstance(record, dict) or not all(isinstance(owner, dict) for owner in record.values()):
        raise FormatError("this is not an object of objects", file=str(path), expected=EXPECTED)
    return record


def _check_owner(file: Path, owner: Mapping[str, Any], mine: Mapping[str, str]) -> None:
    """Refuse to overwrite a file of another project, or one that no project has written."""
    if not file.exists() or all(owner.get(name) == mine[name] for name in ("project", "created")):
        return
    of = f"is of another project, {quote_short(owner['project'])}" if "project" in owner else "is no export of labels"
    raise InputError(
        f"a file of this name is there already, and {of}",
        file=str(file),
        expected="a folder for each project",
        remedy="choose another folder with -o, or delete the file",
    )
