"""``tables``: ragworth's tables, with every judge, and with one row for each thing.

``judgments.csv`` and the like have a column ``judge``: `ragworth study judges` reads them. Labels given after a model's
suggestion was shown agree too well; they are in ``suggested-judgments.csv``. ``consensus-judgments.csv``
has one value for each thing, which `ragworth evaluate` and `ragworth score` read. ``estimate-judgments.csv`` has those
of the random share alone, which `ragworth estimate --expensive` reads, and ``corrections-judgments.csv`` those of the
items drawn because judges disagree, for ``--corrections``. ``people.csv`` is coverage by people, for
`ragworth study long-form --people`.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ragworth.formats.csv import write_csv
from ragworth.formats.files import create_file
from ragworth.formats.grades import THREE_WAY
from ragworth.label.dataset import LabelledData
from ragworth.label.exports.contract import LabelExport
from ragworth.label.labels import ADJUDICATED
from ragworth.two_judges.strata import CORRECTION_STRATA, SAMPLE_STRATA


def write(data: LabelledData, folder: Path) -> list[Path]:
    files: dict[str, pl.DataFrame] = {}
    for name, frame in data.tables.items():
        seen = pl.col("seen_suggestion")
        parts = {f"{name}.csv": frame.filter(~seen), f"suggested-{name}.csv": frame.filter(seen)}
        files |= {file: _grades_as_labels(part) for file, part in parts.items() if part.height}
    files |= {f"consensus-{name}.csv": _grades_as_values(frame) for name, frame in data.consensus().items()}
    if data.has_random_share:
        for prefix, strata in (("estimate", SAMPLE_STRATA), ("corrections", CORRECTION_STRATA)):
            drawn = {} if prefix == "corrections" and data.unfinished_disputed else data.consensus(strata=strata)
            files |= {f"{prefix}-{name}.csv": _grades_as_values(frame) for name, frame in drawn.items()}
    if "subquestions" in data.tables and "system" in data.tables["subquestions"].columns:
        people = data.tables["subquestions"].filter(pl.col("judge") != ADJUDICATED)
        files["people.csv"] = people.select("system", "query", "subquestion", "judge", "value")
    for file_name, made in files.items():
        with create_file(folder / file_name) as file:
            file.write(write_csv(made))
    return [folder / name for name in files]


def _are_grades(frame: pl.DataFrame) -> bool:
    """Whether the labels are grades of answers. A number such as −1 doesn't say that, so they are written as words."""
    words = set(frame["label"].drop_nulls())
    return bool(words) and words <= set(THREE_WAY)


def _grades_as_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """As the study of judges reads words."""
    return frame.drop("value") if _are_grades(frame) else frame


def _grades_as_values(frame: pl.DataFrame) -> pl.DataFrame:
    """As evaluations read words."""
    return frame.with_columns(value="label").drop("label") if _are_grades(frame) else frame


EXPORT = LabelExport("tables", "ragworth's tables, by judge and by majority (CSV)", write)
