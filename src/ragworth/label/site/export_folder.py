"""A project's labels as files in a folder, which keeps a record of the project that each file is from.

So a file of another project, or of another program, is never overwritten, and a new export deletes what the earlier one
of the same project wrote and would no longer write. A file that was changed since is neither overwritten nor deleted.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragworth.errors import FormatError, InputError, quote_short
from ragworth.label.dataset import LabelledData
from ragworth.label.exports import export_labels
from ragworth.label.exports.contract import write_json
from ragworth.label.site.models import Project
from ragworth.nested_text import parse_json
from ragworth.storage.containment import is_inside, outside_error

RECORD_NAME = ".ragworth-labels.json"
DIGEST = "sha256"
EXPECTED = "the record of an earlier export"


def export_to_folder(project: Project, data: LabelledData, name: str, folder: Path) -> list[Path]:
    """Write the labels in a format to a folder, which is created; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    record = _read_record(folder / RECORD_NAME)
    mine = {"project": project.slug, "created": project.created_at.isoformat(), "format": name}
    with tempfile.TemporaryDirectory(prefix=".labels-", dir=folder) as place:
        files = [str(file.relative_to(place)) for file in export_labels(data, name, place)]
        digests = {file: _digest(Path(place) / file) for file in files}
        for file in files:
            if not is_inside((folder / file).parent, folder):
                raise outside_error((folder / file).parent)
            _check_owner(folder / file, record.get(file, {}), mine, digests[file])
        for file in [each for each, owner in record.items() if owner == mine | {DIGEST: owner.get(DIGEST)}]:
            if file not in files and _digest(folder / file) == record.pop(file)[DIGEST]:
                (folder / file).unlink()
        for file in files:
            (folder / file).parent.mkdir(exist_ok=True)
            (Path(place) / file).replace(folder / file)
    write_json(record | {file: mine | {DIGEST: digest} for file, digest in digests.items()}, folder / RECORD_NAME)
    return [folder / file for file in files]


def _read_record(path: Path) -> dict[str, Any]:
    """The project, format and digest of each file in a folder."""
    if not path.exists():
        return {}
    try:
        record = parse_json(path.read_bytes())
    except ValueError as error:
        raise FormatError("this is not JSON", file=str(path), expected=EXPECTED) from error
    if not isinstance(record, dict) or not all(isinstance(owner, dict) for owner in record.values()):
        raise FormatError("this is not an object of objects", file=str(path), expected=EXPECTED)
    return record


def _digest(file: Path) -> str:
    """The digest of a file, empty if there is none."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def _check_owner(file: Path, owner: Mapping[str, Any], mine: Mapping[str, str], digest: str) -> None:
    """Refuse to overwrite a file of another project, one that no project has written, or one that was changed since."""
    if not file.exists():
        return
    is_mine = all(owner.get(name) == mine[name] for name in ("project", "created"))
    if (is_mine or not owner) and _digest(file) in (owner.get(DIGEST), digest):
        return
    problem = "was changed after its export" if is_mine else "is no export of labels"
    if "project" in owner and not is_mine:
        problem = f"is of another project, {quote_short(owner['project'])}"
    raise InputError(
        f"a file of this name is there already, and {problem}",
        file=str(file),
        expected="a folder for each project",
        remedy="choose another folder with -o, or delete the file",
    )
