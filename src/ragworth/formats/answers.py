"""Read tables of answers from Parquet, CSV, TSV or JSONL, with the passages shown if the file lists them.

A line of JSONL is ``{"system": …, "query": …, "text": …}``. As in tables, ``repeat``, ``tokens``, ``status``,
``source`` and ``shown`` (a list of passage ids in the order shown) are optional.
"""

from __future__ import annotations

import polars as pl

from ragworth.core.errors import BadLine, FormatError, quote_short
from ragworth.core.nested_text import parse_json
from ragworth.data import Answers
from ragworth.data.coercion import ID_ALIASES, to_frame
from ragworth.formats.files import PathOrStr, skipped_note
from ragworth.formats.frames import read_table
from ragworth.formats.jsonl import read_objects

EXPECTED = '{"system": …, "query": …, "text": …} on each line'
COLUMNS = {*ID_ALIASES["system"], *ID_ALIASES["query"], "text", "repeat", "tokens", "status", "source", "shown"}


def read(path: PathOrStr, *, skip_bad_lines: bool = False) -> tuple[Answers, pl.DataFrame]:
    """Read the answers, and the same frame with a ``shown`` column that is null where unknown."""
    name = str(path).lower().removesuffix(".gz").removesuffix(".zst")
    if name.endswith((".jsonl", ".ndjson")):
        bad: list[BadLine] = []
        rows = [item for _, item in read_objects(path, bad, skip=skip_bad_lines, expected=EXPECTED)]
        known = [{key: value for key, value in row.items() if key in COLUMNS} for row in rows]
        frame, notes = to_frame(known, source=str(path)), skipped_note(path, bad)
    elif name.endswith((".parquet", ".csv", ".tsv")):
        frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
    else:
        raise FormatError("unknown file extension", file=str(path), expected=".parquet, .jsonl, .csv or .tsv")
    if "text" in frame.columns and "status" not in frame.columns and name.endswith((".csv", ".tsv")):
        # In CSV, an empty answer can only be an empty field.
        frame = frame.with_columns(pl.col("text").fill_null(""))
    if not frame.height:
        raise FormatError("no rows: the file is empty", file=str(path), expected="a table of answers")
    table = Answers(frame, source=str(path), notes=notes)
    return table, table.frame.with_columns(parse_shown(frame, path))


def parse_shown(frame: pl.DataFrame, path: PathOrStr = "") -> pl.Series:
    """Return the ``shown`` column as lists of ids, parsed from JSON if it is text; nulls if there is none."""
    kind = pl.List(pl.String)
    if "shown" not in frame.columns:
        return pl.Series("shown", [None] * frame.height, dtype=kind)
    column = frame["shown"]
    if column.dtype == pl.String:
        try:
            lists = [None if cell is None else parse_json(cell) for cell in column]
            return pl.Series("shown", lists, dtype=kind)
        except (ValueError, TypeError, pl.exceptions.PolarsError) as error:
            first = quote_short(column.drop_nulls().head(1).to_list()[0])
            raise FormatError(
                f"the column 'shown' holds {first}", file=str(path), expected="lists of passage ids, in JSON"
            ) from error
    try:
        return column.cast(kind)
    except pl.exceptions.PolarsError as error:
        raise FormatError(
            f"the column 'shown' holds {column.dtype} values", file=str(path), expected="lists of passage ids"
        ) from error
