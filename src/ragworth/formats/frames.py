"""Read and write any table as Parquet, or as CSV or TSV with a header, under our column names or the usual ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import polars as pl

from ragworth.core import parquet
from ragworth.core.errors import FormatError
from ragworth.data import Contexts, Judgments, Ratings, Table, parts
from ragworth.data.coercion import ID_ALIASES, find_id_column
from ragworth.data.collection import Collection
from ragworth.data.ranking import Ties
from ragworth.formats.contract import FileSample, Format, LoadedCollection
from ragworth.formats.csv import read_csv, read_text_csv
from ragworth.formats.files import PathOrStr, can_read_again, create_file, open_file, run_name, skipped_note
from ragworth.formats.grades import check_labels, check_ratings
from ragworth.formats.spreadsheet import write_csv

T = TypeVar("T", bound=Table)


def read_parquet(path: PathOrStr) -> pl.DataFrame:
    """Read a Parquet file, also if it was compressed again."""
    with open_file(path) as stream:
        packed = Path(path).suffix in (".gz", ".zst")
        return parquet.read_parquet(stream.read() if packed else path, name=str(path))


def read_table(
    path: PathOrStr, *, required: tuple[str, ...] = (), words: tuple[str, ...] = (), skip_bad_lines: bool = False
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Read a table by its extension, with notes on skipped rows.

    In CSV, ``required`` columns must not be empty, and those in ``words`` stay text whatever they contain.
    """
    if ".parquet" in Path(path).suffixes:
        return read_parquet(path), ()
    frame, bad = read_csv(path, required=set(required), words=words, skip_bad_lines=skip_bad_lines)
    return frame, skipped_note(path, bad)


def read_contexts(
    path: PathOrStr, *, system: str | None = None, ties: Ties = "float64", skip_bad_lines: bool = False
) -> Contexts:
    """Read contexts from a table with query, passage and score or rank; ``system`` if the table has none."""
    frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
    if "rank" not in frame.columns and "score" in frame.columns and frame["score"].null_count():
        frame, notes = read_table(path, required=("score",), skip_bad_lines=skip_bad_lines)
    if not frame.height:
        raise FormatError("no rows: the file is empty", file=str(path), expected="a contexts table")
    notes += _distance_note(frame, path)
    return Contexts(frame, system=system or run_name(path), ties=ties, source=str(path), notes=notes)


def _distance_note(frame: pl.DataFrame, path: PathOrStr) -> tuple[str, ...]:
    """A note if the scores of every query grow from row to row: those of a list that was written best first."""
    keys = [name for kind in ("system", "query") if (name := find_id_column(frame, kind)) is not None]
    if "rank" in frame.columns or "score" not in frame.columns or not frame["score"].dtype.is_numeric():
        return ()
    grows = pl.col("score").diff().drop_nulls()
    found = frame.group_by(keys).agg((grows > 0).all().alias("grows"), pl.len()) if keys else frame.clear()
    several = found.filter(pl.col("len") > 1) if keys else found
    if several.height < 2 or not several["grows"].all():
        return ()
    return (
        f"{path}: each query's first row has the lowest score, as if these were distances; higher scores come first",
    )


def line_of_row(path: PathOrStr, height: int, row: int) -> int | None:
    """The line of a row of a CSV file; None in Parquet, and where rows were skipped or a row is several judgments."""
    if ".parquet" in Path(path).suffixes or not can_read_again(path):
        return None
    lines = read_text_csv(path).line
    return int(lines[row]) if len(lines) == height and row < height else None


def _table_reader(table: type[T]) -> Callable[..., T]:
    def read(path: PathOrStr, *, skip_bad_lines: bool = False) -> T:
        frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
        if not frame.height:
            raise FormatError("no rows: the file is empty", file=str(path), expected=f"a {table.name} table")
        found = table(frame, source=str(path), notes=notes)
        if isinstance(found, Judgments):
            check_labels(found, path, lambda row: line_of_row(path, frame.height, row))
        if table is Ratings:
            check_ratings(found.frame["value"], path, lambda row: line_of_row(path, frame.height, row))
        return found

    read.__doc__ = f"{table.name.capitalize()} in long form."
    return read


def load_passages(path: PathOrStr, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read passage texts from a table with passage and text."""
    frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
    return LoadedCollection(Collection.of(passages=frame, source=str(path), notes=notes))


def write_table(table: Table, path: PathOrStr) -> None:
    """Write a table as Parquet, or as CSV or TSV with a header, depending on the extension."""
    endings = Path(path).suffixes
    if not {".parquet", ".csv", ".tsv"} & set(endings):
        raise FormatError("unknown file extension", file=str(path), expected=".parquet, .csv or .tsv")
    with create_file(path) as stream:
        if ".parquet" in endings:
            parts.write_parquet([table.frame], stream)
            return
        stream.write(write_csv(table.frame, separator="\t" if ".tsv" in endings else ","))


def _recognise(sample: FileSample) -> bool:
    """Tables of ours have ids of queries or passages, and a text, a score, a label or an outcome."""
    if sample.kind != "table" or sample.has("generated_answer"):
        return False
    system, query, passage = (sample.has_any(*ID_ALIASES[name]) for name in ("system", "query", "passage"))
    wide = {name for names in Judgments.wide.values() for name in names}
    values = sample.has_any("score", "rank", "value", "rating", "aspect", *wide)
    return (query and passage and values) or (sample.has("text") and (query or passage or system))


FORMAT = Format(
    name="table",
    title="Parquet, CSV or TSV with a header",
    endings=(".parquet", ".csv", ".tsv"),
    contexts=read_contexts,
    judgments=_table_reader(Judgments),
    ratings=_table_reader(Ratings),
    load=load_passages,
    write_contexts=write_table,
    write_judgments=write_table,
    write_ratings=write_table,
    recognise=_recognise,
    general=1,
)
