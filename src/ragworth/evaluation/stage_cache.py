"""Cache of stage results by a hash of their inputs: a stage with the same inputs doesn't run again.

A stage is a folder ``NAME-DIGEST`` with a Parquet file for each of its frames, ``facts.json`` and the digests of both.
It is written beside its place and moved there whole, so that a killed process leaves a stage or nothing; what is
damaged is made again (`ragworth.retrieval.artifacts`).
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ragworth import __version__
from ragworth.core.errors import FormatError
from ragworth.core.nested_text import parse_json
from ragworth.data import Table
from ragworth.data.coercion import read_parquet, write_parquet
from ragworth.retrieval.artifacts import is_intact, load_or_build

STAGES_FOLDER = "stages"
"""Folder of stage results in the cache."""

DIGITS = 16
FACTS_FILE = "facts.json"
CACHE_FORMAT = 2
"""Incremented when the same inputs would give other results."""

CHUNK_ROWS = 1 << 16
"""Rows hashed at a time."""


@dataclass(frozen=True)
class StageResult:
    """The result of a stage: tables by name, and facts in JSON.

    ``lasting``: whether to cache it. ``fresh``: whether it was computed now, not read from the cache. ``tables``:
    tables with more than their frames; read back, they are among the frames.
    """

    frames: Mapping[str, pl.DataFrame]
    facts: Mapping[str, Any] = field(default_factory=dict)
    lasting: bool = True
    fresh: bool = True
    tables: Mapping[str, Table] = field(default_factory=dict)


class StageCache:
    """A folder of stage results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has(self, name: str, key: Mapping[str, Any]) -> bool:
        """Whether there is an undamaged result with this key."""
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            return is_intact(self._place(name, key))
        return False

    def read(self, name: str, key: Mapping[str, Any]) -> StageResult | None:
        """The cached result of a stage with this key, if there is one."""
        return _read_stage(self._place(name, key))

    def latest(self, name: str) -> StageResult | None:
        """The newest cached result of a stage, whatever its key."""
        places = sorted(self.folder.glob(f"{name}-{'?' * DIGITS}"), key=lambda place: -place.stat().st_mtime)
        return next((stage for place in places if (stage := _read_stage(place)) is not None), None)

    def _place(self, name: str, key: Mapping[str, Any]) -> Path:
        return self.folder / f"{name}-{key_digest(key)}"

    def of(self, name: str, key: Mapping[str, Any], make: Callable[[], StageResult]) -> StageResult:
        """The cached result of a stage with this key, or a new one."""
        place = self._place(name, key)
        if (found := _read_stage(place)) is not None:
            return found
        shutil.rmtree(place, ignore_errors=True)  # if it is there, it can't be read
        made = make()
        if made.lasting:
            load_or_build(self.folder, place.name, make=lambda: made, save=_save_stage, load=lambda _: made)
            # As it will be read the next time, so that what follows from it has the same key.
            made = _as_read(made) if _is_plain(made) else replace(_read_stage(place) or made, fresh=True)
        self._tidy(name, place)
        return made

    def _tidy(self, name: str, place: Path) -> None:
        """Remove results of the stage with other keys."""
        for other in self.folder.glob(f"{name}-{'?' * DIGITS}"):
            if other != place:
                shutil.rmtree(other, ignore_errors=True)


def _read_stage(place: Path) -> StageResult | None:
    """The result in a folder; None if it is missing or damaged."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, FormatError):
        if is_intact(place):
            facts = parse_json((place / FACTS_FILE).read_text(encoding="utf-8"))
            frames = {path.stem: read_parquet(path) for path in sorted(place.glob("*.parquet"))}
            return StageResult(frames, facts, fresh=False)
    return None


def _is_plain(made: StageResult) -> bool:
    """Whether all columns are texts or numbers, which Parquet preserves exactly."""
    kinds = {kind for frame in _all_frames(made).values() for kind in frame.dtypes}
    return all(kind == pl.String or kind.is_numeric() for kind in kinds)


def _all_frames(made: StageResult) -> dict[str, pl.DataFrame]:
    return {**made.frames, **{name: table.frame for name, table in made.tables.items()}}


def _as_read(made: StageResult) -> StageResult:
    """A plain stage as it would be read, without having its tables in memory twice."""
    return replace(made, facts=parse_json(json.dumps(made.facts, ensure_ascii=False)))


def _save_stage(made: StageResult, folder: Path) -> None:
    for name, frame in _all_frames(made).items():
        write_parquet(frame, folder / f"{name}.parquet")
    (folder / FACTS_FILE).write_text(json.dumps(made.facts, ensure_ascii=False), encoding="utf-8")


def key_digest(key: Mapping[str, Any]) -> str:
    """A short hash of JSON values and of the program's version."""
    text = json.dumps({"form": CACHE_FORMAT, "ragworth": __version__, **key}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def frame_digest(table: pl.DataFrame | Table | None) -> str:
    """A hash of a table's columns and rows in their order, regardless of its chunks."""
    if table is None:
        return ""
    frame = table.frame if isinstance(table, Table) else table
    made = hashlib.sha256(repr(dict(frame.schema)).encode())
    for part in frame.iter_slices(CHUNK_ROWS):
        for column in part.iter_columns():
            for piece in _column_bytes(column):
                made.update(piece)
    return made.hexdigest()[:DIGITS]


def _column_bytes(column: pl.Series) -> list[bytes]:
    """The values of a column as bytes; of texts and lists, lengths go in front."""
    # Without nulls, which is most often, the calls of Polars that look for them would take most of the time.
    complete = column.null_count() == 0
    absent = bytes(len(column)) if complete else column.is_null().to_numpy().tobytes()
    if isinstance(column.dtype, pl.List):
        return [
            absent,
            _length_bytes(column.list.len()),
            *_column_bytes(column.drop_nulls().explode(empty_as_null=False)),
        ]
    if isinstance(column.dtype, pl.Struct):
        return [absent, *(each for field in column.struct.unnest().iter_columns() for each in _column_bytes(field))]
    if isinstance(column.dtype, pl.Enum | pl.Categorical):
        column = column.cast(pl.String)
    if column.dtype == pl.String:
        return [absent, _length_bytes(column.str.len_bytes()), *map(str.encode, column.str.join("", ignore_nulls=True))]
    if column.dtype == pl.Null:
        return [absent]
    if column.dtype != pl.Boolean and not column.dtype.is_numeric():
        return [absent, repr(column.to_list()).encode("utf-8", "surrogatepass")]
    return [absent, (column if complete else column.fill_null(strategy="zero")).to_numpy().tobytes()]


def _length_bytes(lengths: pl.Series) -> bytes:
    return (lengths.fill_null(0) if lengths.null_count() else lengths).to_numpy().astype(np.uint32).tobytes()


def file_digest(path: Path) -> str:
    """A hash of a file; of a folder, of the files of a collection in it."""
    files = sorted([*path.glob("*.jsonl*"), *path.glob("qrels/*.tsv*")]) if path.is_dir() else [path]
    made = hashlib.sha256()
    for each in files:
        made.update(f"{each.relative_to(path)}\n".encode() if path.is_dir() else b"")
        with each.open("rb") as stream:
            made.update(hashlib.file_digest(stream, "sha256").digest())
    return made.hexdigest()[:DIGITS]
