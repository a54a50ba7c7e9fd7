"""Read and write any table as Parquet, CSV, TSV or JSON lines, under our column names or the usual ones.

In CSV, fields stay text except in numeric columns. A row is bad if it lacks an id, or has something else in a numeric
column. Only a search of an agent that found nothing has no passage. In JSON lines, a row is an object.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl

from ragworth.core.errors import BadLine, FormatError, format_names, quote_short
from ragworth.core.nested_text import parse_json
from ragworth.data import Answers, Contexts, Judgments, Ratings, Table, coercion
from ragworth.data import collection as texts
from ragworth.data.coercion import ID_ALIASES, find_id_column, to_frame
from ragworth.data.contexts import MAYBE_SYSTEMS
from ragworth.data.ranking import Ties
from ragworth.formats.columns import NUMBER
from ragworth.formats.contract import Contents, Format, Head, Kind, LoadedCollection
from ragworth.formats.csv import CsvRows, read_text_csv, write_csv
from ragworth.formats.files import (
    BOM,
    PathOrStr,
    bad_lines_error,
    create_file,
    empty_file_error,
    open_file,
    read_parquet,
    run_name,
    skipped_note,
    suffix_of,
)
from ragworth.formats.grades import LABEL, RATING, check_scale
from ragworth.formats.kinds import LOGGED, pair_kinds, row_kinds
from ragworth.formats.values import read_objects

T = TypeVar("T", bound=Table)

LINES = (".jsonl", ".ndjson")
"""Extensions of files with one JSON object per line."""

NUMBER_COLUMNS = {"score", "rank", "value", "rating", "tokens", "repeat"}
"""Columns of numbers; empty cells are allowed."""

WIDE_COLUMNS = {name for names in Judgments.wide.values() for name in names}
"""Also numeric if there is no ``value`` column; beside one, a label may be a word."""

IDS = {alias for names in ID_ALIASES.values() for alias in names}
COLUMNS = IDS | MAYBE_SYSTEMS | NUMBER_COLUMNS | WIDE_COLUMNS | {*Judgments.schema, *Ratings.schema, "text", "shown"}
"""Keys of JSON objects that are columns; others may hold anything."""

EXPECTED_OBJECT = '{"query": …, "passage": …, "score": …}, or an object with other columns of a table, on each line'


class TableRows(NamedTuple):
    """The rows of a file, notes on skipped ones, and the line of each; None in Parquet."""

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()
    lines: Sequence[int] | None = None


def read_table(
    path: PathOrStr, *, required: tuple[str, ...] = (), words: Collection[str] = (), skip_bad_lines: bool = False
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Read Parquet, CSV or TSV, with notes on skipped rows.

    In CSV, ``required`` columns must not be empty, and those in ``words`` stay text whatever they contain.
    """
    return read_rows(path, required=required, words=words, skip_bad_lines=skip_bad_lines)[:2]


def read_rows(
    path: PathOrStr, *, required: Collection[str] = (), words: Collection[str] = (), skip_bad_lines: bool = False
) -> TableRows:
    """Read Parquet, CSV, TSV or JSON lines as :func:`read_table` does, with the lines of rows."""
    bad: list[BadLine] = []
    if suffix_of(path) == ".parquet":
        rows = TableRows(read_parquet(path))
    elif suffix_of(path) in LINES or _begins_as_json(path):
        rows = rows_of_objects(read_objects(path, bad, skip=skip_bad_lines, expected=EXPECTED_OBJECT), path)
    else:
        cells = _convert_numbers(read_text_csv(path), required, words)
        bad, rows = cells.bad, TableRows(cells.frame, lines=cells.line.tolist())
        if bad and not (skip_bad_lines and rows.frame.height):
            raise bad_lines_error(path, bad, f"{format_names(rows.frame.columns)}, as in the header")
    if not rows.frame.height:
        raise empty_file_error(path, "a table with rows")
    return rows._replace(notes=skipped_note(path, bad))


def _begins_as_json(path: PathOrStr) -> bool:
    with open_file(path) as stream:
        return stream.read(1 << 10).removeprefix(BOM).lstrip()[:1] in (b"{", b"[")


def _convert_numbers(rows: CsvRows, required: Collection[str], words: Collection[str]) -> CsvRows:
    """Convert numeric columns, dropping rows that lack an id or a required number."""
    frame, problems = rows.frame, dict[int, str]()
    numbers = (NUMBER_COLUMNS if "value" in frame.columns else NUMBER_COLUMNS | WIDE_COLUMNS).difference(words)
    needed = {*required, *(alias for name in ID_ALIASES if (alias := find_id_column(frame, name)))}
    needed -= {"score"} if "rank" in frame.columns else set()
    for name in rows.frame.columns:
        column = rows.frame[name]
        if name in numbers:
            for row in (~column.str.contains(f"^(?i:{NUMBER.pattern.decode()})$")).arg_true():
                problems.setdefault(row, f"the {name} is not a number ({quote_short(column[row], 24)})")
            frame = frame.with_columns(column.cast(pl.Float64, strict=False))
        if name in needed:
            missing = column.is_null() & (~_searches(frame) if name == find_id_column(frame, "passage") else True)
            for row in missing.arg_true():
                problems.setdefault(row, f"the {name} is missing")
    if not problems:
        return rows._replace(frame=frame)
    keep = np.ones(frame.height, dtype=bool)
    keep[list(problems)] = False
    bad = [*rows.bad, *(BadLine(int(rows.line[row]), problem) for row, problem in problems.items())]
    return CsvRows(frame.filter(pl.Series(keep)), rows.line[keep], sorted(bad, key=lambda each: each.line))


def _searches(frame: pl.DataFrame) -> pl.Series:
    """Tell which rows have the hop of an agent, but neither rank nor score: a search that may have found nothing."""
    if "hop" not in frame.columns:
        return pl.repeat(False, frame.height, eager=True)
    empty = (pl.col(name).is_null() for name in ("rank", "score") if name in frame.columns)
    return frame.select(pl.all_horizontal(pl.col("hop").is_not_null(), *empty)).to_series()


def rows_of_objects(numbered: Iterable[tuple[int, Mapping[str, Any]]], path: PathOrStr) -> TableRows:
    """Make rows of a table from objects with their line numbers."""
    pairs: list[tuple[int, dict[str, Any]]] = []
    keys: Iterable[str] = ()
    for line, row in numbered:
        keys = keys or row
        pairs.append((line, {name: value for name, value in row.items() if name in COLUMNS}))
    names = dict.fromkeys(name for _, row in pairs for name in row)
    if keys and not names:
        raise FormatError(f"none of its keys is a column of a table: {format_names(list(keys))}", file=str(path))
    if "status" in names and "rating" not in names:
        names.setdefault("value")  # JSON lines of ours have no nulls
    frame = to_frame({name: [row.get(name) for _, row in pairs] for name in names}, source=str(path))
    return TableRows(frame, lines=[line for line, _ in pairs])


def kind_of_row(row: Mapping[str, Any]) -> Kind | None:
    """Return what JSON rows like this one are if that is a run or labels; rows with texts or answers are no run."""
    head = Head("", "lines").of_rows([row])
    kind = next((each.kind for each in row_kinds(head)), None)
    if kind == "run" and head.has_any("text", *LOGGED):
        return None
    return kind if kind in ("run", "qrels", "judgments") else None


def make_contexts(rows: TableRows, path: PathOrStr, *, system: str | None = None, ties: Ties = "float64") -> Contexts:
    """Make contexts of rows with query, passage and score or rank; ``system`` names them if the rows have no name."""
    notes = (*rows.notes, *_distance_note(rows.frame, path))
    return Contexts(rows.frame, system=system or run_name(path), ties=ties, source=str(path), notes=notes)


def _distance_note(frame: pl.DataFrame, path: PathOrStr) -> tuple[str, ...]:
    """A note if the scores of every query grow from row to row: those of a list that was written best first."""
    keys = [name for kind in ("system", "query") if (name := find_id_column(frame, kind)) is not None]
    if not keys or "rank" in frame.columns or "score" not in frame.columns or not frame["score"].dtype.is_numeric():
        return ()
    grows = (pl.col("score").diff().drop_nulls() > 0).all()
    several = frame.group_by(keys).agg(grows.alias("grows"), pl.len()).filter(pl.col("len") > 1)
    if several.height < 2 or not several["grows"].all():
        return ()
    return (
        f"{path}: each query's first row has the lowest score, as if these were distances; higher scores come first",
    )


def make_table(table: type[T], rows: TableRows, path: PathOrStr) -> T:
    """Make judgments or ratings of rows, and check their scale."""
    values = table(rows.frame, source=str(path), notes=rows.notes)

    def line_of(row: int) -> int | None:
        """The line of a row; None in Parquet, and where a row is several judgments."""
        return rows.lines[row] if rows.lines is not None and len(values) == len(rows.lines) else None

    if isinstance(values, Judgments):
        relevance = pl.when(pl.col("aspect") == "relevance").then("value")
        check_scale(values.frame.select(relevance).to_series(), LABEL, path, line_of)
    if isinstance(values, Ratings):
        check_scale(values.frame["value"], RATING, path, line_of)
    return values


def read_contexts(
    path: PathOrStr, *, system: str | None = None, ties: Ties = "float64", skip_bad_lines: bool = False
) -> Contexts:
    """Read contexts, a passage with its score or rank in each row."""
    rows = read_rows(path, required=("score",), skip_bad_lines=skip_bad_lines)
    return make_contexts(rows, path, system=system, ties=ties)


def read_judgments(path: PathOrStr, *, skip_bad_lines: bool = False) -> Judgments:
    """Read judgments, in long form or with a column for each aspect."""
    return make_table(Judgments, read_rows(path, skip_bad_lines=skip_bad_lines), path)


def read_ratings(path: PathOrStr, *, skip_bad_lines: bool = False) -> Ratings:
    """Read ratings of sub-questions."""
    return make_table(Ratings, read_rows(path, skip_bad_lines=skip_bad_lines), path)


def read_answer_table(path: PathOrStr, *, skip_bad_lines: bool = False) -> tuple[Answers, pl.DataFrame]:
    """Read answers, and the same frame with a ``shown`` column, the passages shown, that is null where unknown.

    A row has ``system``, ``query`` and ``text``; ``repeat``, ``tokens``, ``status``, ``source`` and ``shown`` (a list
    of passage ids in the order shown) are optional.
    """
    frame, notes, _ = read_rows(path, skip_bad_lines=skip_bad_lines)
    if "text" in frame.columns and "status" not in frame.columns and suffix_of(path) in (".csv", ".tsv"):
        # In CSV, an empty answer can only be an empty field.
        frame = frame.with_columns(pl.col("text").fill_null(""))
    table = Answers(frame, source=str(path), notes=notes)
    return table, table.frame.with_columns(parse_shown(frame, path))


def parse_shown(frame: pl.DataFrame, path: PathOrStr = "") -> pl.Series:
    """Return the ``shown`` column as lists of ids, parsed from JSON if it is text; nulls if there is none."""
    kind = pl.List(pl.String)
    if "shown" not in frame.columns:
        return pl.Series("shown", [None] * frame.height, dtype=kind)
    column = frame["shown"]
    try:
        if column.dtype != pl.String:
            return column.cast(kind)
        return pl.Series("shown", [None if cell is None else parse_json(cell) for cell in column], dtype=kind)
    except (ValueError, TypeError, pl.exceptions.PolarsError) as error:
        first = quote_short(column.drop_nulls().head(1).to_list()[0])
        raise FormatError(
            f"the column 'shown' holds {first}", file=str(path), expected="lists of passage ids, in JSON"
        ) from error


def load_passages(path: PathOrStr, *, skip_bad_lines: bool = False) -> LoadedCollection:
    """Read passage texts from a table with passage and text."""
    frame, notes = read_table(path, skip_bad_lines=skip_bad_lines)
    return LoadedCollection(texts.Collection.of(passages=frame, source=str(path), notes=notes))


def write_table(table: Table, path: PathOrStr) -> None:
    """Write a table as Parquet, or as CSV or TSV with a header, depending on the extension."""
    endings = Path(path).suffixes
    if not {".parquet", ".csv", ".tsv"} & set(endings):
        raise FormatError("unknown file extension", file=str(path), expected=".parquet, .csv or .tsv")
    with create_file(path) as stream:
        if ".parquet" in endings:
            coercion.write_parquet(table.frame, stream)
            return
        stream.write(write_csv(table.frame, separator="\t" if ".tsv" in endings else ","))


def _inspect(head: Head) -> list[Contents]:
    return row_kinds(head) or pair_kinds(head) if head.kind == "table" else []


FORMAT = Format(
    name="table",
    title="Parquet, CSV or TSV with a header",
    endings=(".csv", ".tsv", ".parquet"),
    contexts=read_contexts,
    judgments=read_judgments,
    ratings=read_ratings,
    load=load_passages,
    write_contexts=write_table,
    write_judgments=write_table,
    write_ratings=write_table,
    inspect=_inspect,
    general=1,
)
