"""Passages to write from, read from the table of passages when they are needed: a large corpus is held only once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, ValuesView

import numpy as np
import polars as pl

from ragworth.build.questions.contract import SourceText

COLUMNS = ("passage", "document", "document_title", "text")
BATCH = 2048
"""Passages that are read at a time when all are read in order."""


class PassageSources(Mapping[str, SourceText]):
    """Passages by their ids.

    ``passages`` has the columns passage, document, document_title, and text with the title in front. Ids are found by
    their hashes, which takes 16 bytes for each passage.
    """

    def __init__(self, passages: pl.DataFrame) -> None:
        self._frame = passages.select(COLUMNS)
        hashes = passages["passage"].hash(seed=0).to_numpy()
        self._rows = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._rows]

    def __getitem__(self, id: str) -> SourceText:
        key = pl.Series([id], dtype=pl.String).hash(seed=0).to_numpy()[0]
        at = int(np.searchsorted(self._hashes, key))
        while at < len(self._hashes) and self._hashes[at] == key:
            if (row := self._frame.row(int(self._rows[at])))[0] == id:
                return _source(*row)
            at += 1
        raise KeyError(id)

    def __len__(self) -> int:
        return self._frame.height

    def __iter__(self) -> Iterator[str]:
        return iter(self._frame["passage"])

    def values(self) -> ValuesView[SourceText]:
        return _SourceValues(self)

    def in_order(self) -> Iterator[SourceText]:
        """All passages in the order of the table."""
        for part in self._frame.iter_slices(BATCH):
            yield from (_source(*row) for row in part.iter_rows())


def repeated_passages(passages: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """Passages whose text occurs again, whatever the titles of their documents, each with the others."""
    body = pl.col("text").str.strip_prefix(pl.col("document_title") + "\n")
    parts = [part.select(body.hash(seed=0).alias("body")) for part in passages.iter_slices(BATCH)]
    if not parts:
        return {}
    bodies = pl.concat(parts).with_columns(passages["passage"])
    groups = bodies.filter(pl.col("body").is_duplicated()).group_by("body", maintain_order=True).agg("passage")
    return {id: tuple(each for each in same if each != id) for same in groups["passage"].to_list() for id in same}


class _SourceValues(ValuesView[SourceText]):
    _mapping: PassageSources

    def __iter__(self) -> Iterator[SourceText]:
        return self._mapping.in_order()


def _source(id: str, document: str, title: str, text: str) -> SourceText:
    return SourceText(id, document, title, text.removeprefix(f"{title}\n") if title else text)
