"""``qrels``: TREC relevance labels, one file for each judge and one for the majority."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ragworth.core.errors import InputError, quote_short
from ragworth.data import OK
from ragworth.formats.files import create_file
from ragworth.label.dataset import LabelledData
from ragworth.label.exports.contract import LabelExport, safe_file_name

ASPECT = "relevance"


def write(data: LabelledData, folder: Path) -> list[Path]:
    agreed = agreed_relevance(data)
    judged = data.tables["judgments"].filter(pl.col("aspect") == ASPECT)
    found = [_write(agreed.filter(pl.col("status") == OK), folder / "qrels.txt")]
    for (judge,), part in judged.group_by("judge", maintain_order=True):
        found.append(_write(part.drop_nulls("value"), folder / f"{safe_file_name(str(judge))}.qrels.txt"))
    return found


def agreed_relevance(data: LabelledData) -> pl.DataFrame:
    """One row for each passage: the adjudicated relevance or the majority's, or why there is none."""
    agreed = data.consensus().get("judgments")
    agreed = agreed.filter(pl.col("aspect") == ASPECT) if agreed is not None else None
    if agreed is None or not agreed.height:
        raise InputError(
            f"labels of {data.task.kind} are no relevance", expected="relevance or utility", remedy="export tables"
        )
    return agreed


def _write(frame: pl.DataFrame, path: Path) -> Path:
    with create_file(path) as file:
        file.writelines(_lines(frame))
    return path


def _lines(frame: pl.DataFrame) -> Iterator[bytes]:
    for query, passage, value in frame.select("query", "passage", "value").iter_rows():
        for text in (query, passage):
            if not text or any(sign.isspace() for sign in text):
                raise InputError(f"{quote_short(text)} has blanks, which qrels can't have", remedy="export tables")
        yield f"{query} 0 {passage} {value:g}\n".encode()


EXPORT = LabelExport("qrels", "TREC qrels, by judge and by majority", write)
