"""``labels``: ``labels.jsonl`` or ``.parquet`` of the export of the same name, with ``items.jsonl`` beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ragworth.core.errors import FormatError
from ragworth.label.imports.contract import ImportedLabels, LabelImport
from ragworth.label.items import read_items
from ragworth.label.labels import Labels
from ragworth.label.tasks.contract import LabelItem, LabelTask


def read(path: Path, task: LabelTask, items: Mapping[str, LabelItem]) -> ImportedLabels:
    file = path / "labels.jsonl" if path.is_dir() else path
    labels = Labels.read(file)
    if not items:
        beside = file.parent / "items.jsonl"
        if not beside.is_file():
            raise FormatError("there is no items.jsonl beside it", file=str(file), expected="the export of a project")
        items = {item.id: item for item in read_items(beside, task)}
    wanted = {label.item for label in labels}
    return ImportedLabels(tuple(item for item in items.values() if item.id in wanted), labels)


IMPORT = LabelImport("labels", "labels of another project (JSONL, Parquet)", read)
