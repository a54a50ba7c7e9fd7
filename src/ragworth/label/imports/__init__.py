"""Labels from other programs, one file per format. `import_labels` reads one of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ragworth.core.errors import InputError
from ragworth.core.registry import Registry
from ragworth.label.imports.contract import ImportedLabels, LabelImport
from ragworth.label.tasks.contract import LabelItem, LabelTask

LABEL_IMPORTS: Registry[LabelImport] = Registry(
    "import format of labels",
    "ragworth.label_imports",
    {
        "labels": "ragworth.label.imports.labels:IMPORT",
        "crux": "ragworth.label.imports.crux:IMPORT",
        "label-studio": "ragworth.label.imports.label_studio:IMPORT",
    },
)


def import_labels(
    path: str | Path, name: str, task: LabelTask, items: Mapping[str, LabelItem] | None = None
) -> ImportedLabels:
    """Read labels of a task. With ``items``, they are of these items; otherwise the file's own items are made.

    The result's labels are checked; rules such as a required highlight are not, because other programs don't know
    them.
    """
    reader: LabelImport = LABEL_IMPORTS.get(name)
    found = reader.read(Path(path), task, items or {})
    if not found.labels.rows:
        raise InputError("there are no labels", file=str(path), expected=f"labels of {task.kind}")
    found.labels.check(task, {item.id: item for item in found.items}, str(path), imported=True)
    return found


__all__ = ["LABEL_IMPORTS", "ImportedLabels", "LabelImport", "import_labels"]
