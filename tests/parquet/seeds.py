"""Small Parquet files as different programs write them, and what damage does to them."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl
import pyarrow.parquet as pq

ROWS = 60

FLAT = pl.DataFrame(
    {
        "query": [f"q{row // 6}" for row in range(ROWS)],
        "passage": [f"d{row * 7 % 97}-{row}" for row in range(ROWS)],
        "score": [100 - row * 0.37 for row in range(ROWS)],
        "rank": [row % 6 + 1 for row in range(ROWS)],
        "text": [None if row % 7 == 0 else "word " * (row % 5) for row in range(ROWS)],
    }
)
NESTED = FLAT.with_columns(
    pl.Series("list", [[1.5, 2.5][: row % 3] for row in range(ROWS)]),
    pl.Series("struct", [{"a": row, "b": [str(row)]} for row in range(ROWS)]),
    pl.Series("category", [f"c{row % 3}" for row in range(ROWS)], dtype=pl.Categorical),
    pl.Series("flag", [row % 3 == 0 for row in range(ROWS)]),
)
DELTA = {
    "query": "DELTA_BYTE_ARRAY",
    "passage": "DELTA_LENGTH_BYTE_ARRAY",
    "score": "BYTE_STREAM_SPLIT",
    "rank": "DELTA_BINARY_PACKED",
    "text": "DELTA_BYTE_ARRAY",
}


class Change(NamedTuple):
    """One byte, and what it becomes."""

    at: int
    byte: int


def polars(frame: pl.DataFrame, **options: Any) -> bytes:
    stream = io.BytesIO()
    frame.write_parquet(stream, **options)
    return stream.getvalue()


def arrow(frame: pl.DataFrame, **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(frame.to_arrow(), stream, **options)
    return stream.getvalue()


SEEDS: dict[str, bytes] = {
    **{f"polars {name}": polars(FLAT, compression=name) for name in ("zstd", "snappy", "gzip", "lz4", "uncompressed")},
    "polars in pieces": polars(FLAT, row_group_size=20, data_page_size=200),
    "polars nested": polars(NESTED, compression="uncompressed"),
    "polars without rows": polars(FLAT.clear()),
    "polars tiny": polars(pl.DataFrame({"query": ["q1", "q1"], "passage": ["d1", "d2"], "score": [1.5, 0.5]})),
    "arrow": arrow(FLAT),
    "arrow plain": arrow(FLAT, use_dictionary=False, compression="none"),
    "arrow version 2": arrow(FLAT, data_page_version="2.0", compression="none"),
    "arrow with page index": arrow(FLAT, write_page_index=True, compression="none", data_page_size=100),
    "arrow with checksums": arrow(FLAT, write_page_checksum=True, compression="none"),
    "arrow delta": arrow(FLAT, use_dictionary=False, compression="none", column_encoding=DELTA),
}


def changes(data: bytes, number: int, seed: int) -> Iterator[Change]:
    """Changes of single bytes, half of them in the footer."""
    dice = random.Random(seed)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    while number:
        at = dice.randrange(footer if dice.random() < 0.5 else 0, len(data))
        byte = dice.choice([data[at] ^ 1 << dice.randrange(8), dice.randrange(256), 255, data[at] | 128])
        if byte != data[at]:
            number -= 1
            yield Change(at, byte)


def changed(data: bytes, change: Change) -> bytes:
    return data[: change.at] + bytes([change.byte]) + data[change.at + 1 :]
