"""Segments of a store: files beside it, one for each merged shard, that are looked up by key and never change.

``calls.sqlite.shards/index.json`` lists them with the first and last key of each. Only those that may hold a key are
opened, one at a time, so memory doesn't grow with their number.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ragworth.errors import StoreError
from ragworth.storage.output import write_output

INDEX = "index.json"
SUFFIX = ".shards"


class StoreSegment(NamedTuple):
    """A file with answers whose keys lie between two keys, both included; ``source`` is the hash of the answers."""

    file: str
    first: str
    last: str
    calls: int
    source: str


@dataclass(frozen=True)
class Segments:
    """All segments of a store."""

    folder: Path
    found: tuple[StoreSegment, ...] = ()

    @classmethod
    def beside(cls, store: Path) -> Segments:
        folder = store.with_name(store.name + SUFFIX)
        path = folder / INDEX
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))["segments"]
            found = tuple(StoreSegment(**row) for row in rows)
        except FileNotFoundError:
            return cls(folder)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise StoreError(
                f"it can't be read: {error}", file=str(path), remedy="ragworth calls merge writes it again"
            ) from error
        if strange := [one.file for one in found if Path(one.file).name != one.file]:
            raise StoreError(f"{strange[0]!r} is no file name", file=str(path), remedy="merge again")
        return cls(folder, found)

    def __bool__(self) -> bool:
        return bool(self.found)

    @property
    def files(self) -> list[Path]:
        return [self.folder / segment.file for segment in self.found]

    def split(self, keys: Set[bytes]) -> Iterator[tuple[Path, list[bytes]]]:
        """For each segment that may hold some of the keys, these keys; those found meanwhile are left out."""
        ordered = sorted(keys)
        for segment in self.found:
            first, last = bytes.fromhex(segment.first), bytes.fromhex(segment.last)
            between = ordered[bisect_left(ordered, first) : bisect_right(ordered, last)]
            if within := [key for key in between if key in keys]:
                yield self.folder / segment.file, within

    def add(self, new: StoreSegment) -> Segments:
        """Add a segment to the index on disk, or replace the one of the same file."""
        found = (*(segment for segment in self.found if segment.file != new.file), new)
        text = json.dumps({"segments": [segment._asdict() for segment in found]}, indent=1)
        write_output(self.folder / INDEX, text.encode(), durable=True)
        return Segments(self.folder, found)
