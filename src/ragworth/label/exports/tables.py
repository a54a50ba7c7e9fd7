"""``tables``: ragworth's tables, with every judge, and with one row for each thing.

``judgments.csv`` and the like have a column ``judge``: `ragworth study judges` reads them. ``consensus-judgments.csv``
has one value for each thing, which `ragworth evaluate` and `ragworth score` read. ``estimate-judgments.csv`` has those
of the random share alone, which `ragworth estimate --expensive` reads. ``people.csv`` is coverage by people, for
`ragworth study long-form --people`.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ragworth.formats.files import create_file
from ragworth.label.dataset import LabelledData
from ragworth.label.exports.contract import LabelExport
from ragworth.label.selection import RANDOM


def write(data: LabelledData, folder: Path) -> list[Path]:
    found = [_write_csv(frame, folder / f"{name}.csv") for name, frame in data.tables.items()]
    one_each = data.consensus()
    found += [_write_csv(frame, folder / f"consensus-{name}.csv") for name, frame in one_each.items()]
    if any(item.stratum == RANDOM and item.probability is not None for item in data.items.values()):
        random = data.consensus(random_only=True)
        found += [_write_csv(frame, folder / f"estimate-{name}.csv") for name, frame in random.items()]
    if "subquestions" in data.tables and "system" in data.tables["subquestions"].columns:
        people = data.tables["subquestions"].select("system", "query", "subquestion", "judge", "value")
        found.append(_write_csv(people, folder / "people.csv"))
    return found


def _write_csv(frame: pl.DataFrame, path: Path) -> Path:
    with create_file(path) as file:
        frame.write_csv(file)
    return path


EXPORT = LabelExport("tables", "ragworth's tables, by judge and by majority (CSV)", write)
