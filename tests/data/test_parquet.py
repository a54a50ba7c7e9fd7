"""Damaged Parquet files are errors that name the file."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import polars as pl
import pytest

from ragworth.core.errors import FormatError
from ragworth.data.coercion import read_parquet
from ragworth.formats import read_contexts

RUN = pl.DataFrame({"query": ["q1", "q1"], "passage": ["d1", "d2"], "score": [2.0, 1.0]})


def encoded() -> bytes:
    stream = io.BytesIO()
    RUN.write_parquet(stream)
    return stream.getvalue()


def test_files_and_bytes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a[1].parquet"  # not a pattern
    path.write_bytes(encoded())
    assert read_parquet(path).equals(read_parquet(encoded())) and read_parquet(path).equals(RUN)
    assert read_parquet(path, rows=1).equals(RUN.head(1))
    path = tmp_path / "run.parquet.gz"
    path.write_bytes(gzip.compress(encoded()))
    assert read_contexts(path).frame.height == RUN.height


@pytest.mark.parametrize("size", [0, 1, 4, 12, 400, -1, -5, -9])
def test_truncated_files(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(encoded()[:size])
    with pytest.raises(FormatError, match="can't be read as Parquet") as caught:
        read_parquet(path)
    assert caught.value.file == str(path)


def test_a_panic_of_the_reader_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(*_: object, **__: object) -> pl.DataFrame:
        raise pl.exceptions.PanicException("called `Option::unwrap()` on a `None` value")

    monkeypatch.setattr(pl, "read_parquet", panic)
    with pytest.raises(FormatError, match="unwrap"):
        read_parquet(encoded(), name="a.parquet")
