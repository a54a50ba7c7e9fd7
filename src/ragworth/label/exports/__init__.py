"""Labels for other programs, one file per format. `export_labels` writes one of them."""

from __future__ import annotations

from pathlib import Path

from ragworth.core.errors import InputError
from ragworth.core.registry import Registry
from ragworth.label.dataset import LabelledData
from ragworth.label.exports.contract import LabelExport

LABEL_EXPORTS: Registry[LabelExport] = Registry(
    "export format of labels",
    "ragworth.label_exports",
    {
        "tables": "ragworth.label.exports.tables:EXPORT",
        "labels": "ragworth.label.exports.labels:EXPORT",
        "qrels": "ragworth.label.exports.qrels:EXPORT",
        "crux": "ragworth.label.exports.crux:EXPORT",
        "label-studio": "ragworth.label.exports.label_studio:EXPORT",
    },
)


def export_labels(data: LabelledData, name: str, folder: str | Path) -> list[Path]:
    """Write labels in a format to a folder, which is created; return the files."""
    export: LabelExport = LABEL_EXPORTS.get(name)
    if not (export.has_items or data.labelled):
        raise InputError(
            "there are no labels to export",
            expected="at least one label of an item that is no gold item and no repeat",
            remedy="label some items first; --to labels has the items without them",
        )
    Path(folder).mkdir(parents=True, exist_ok=True)
    return export.write(data, Path(folder))


__all__ = ["LABEL_EXPORTS", "LabelExport", "export_labels"]
