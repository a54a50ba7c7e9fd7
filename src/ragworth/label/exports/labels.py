"""``labels``: items and labels as they are, to import them again or to keep them."""

from __future__ import annotations

from pathlib import Path

from ragworth.label.dataset import LabelledData
from ragworth.label.exports.contract import LabelExport
from ragworth.label.items import write_items


def write(data: LabelledData, folder: Path) -> list[Path]:
    items, labels, table = folder / "items.jsonl", folder / "labels.jsonl", folder / "labels.parquet"
    write_items(data.items.values(), items)
    data.labels.write(labels)
    data.labels.write(table)
    return [items, labels, table]


EXPORT = LabelExport("labels", "items and labels as they are (JSONL, Parquet)", write, has_items=True)
