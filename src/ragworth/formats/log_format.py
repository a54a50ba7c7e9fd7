"""Make formats of RAG logs: each says what its fields are called and by which signs it knows its files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Any

from ragworth.collection import Collection, text_id
from ragworth.errors import BadLine, FormatError, Hint, format_count, quote_short
from ragworth.formats.columns import skipped_note
from ragworth.formats.contract import FileSample, Format, LoadedCollection
from ragworth.formats.document_rows import DocumentRows, find_rows
from ragworth.formats.fields import GRADE_FIELDS, SYSTEM_COLUMNS, FieldFinder, Names, plain_name, quote_argument
from ragworth.formats.files import PathOrStr, run_name
from ragworth.formats.log_collector import TWICE
from ragworth.formats.log_files import (
    MAX_REPORTED,
    LogRows,
    bad_rows_error,
    read_log,
    reject_row,
    sample_rows,
    unpack_rows,
)
from ragworth.formats.log_passages import as_passage
from ragworth.formats.log_record import LogRecord
from ragworth.formats.log_rows import read_record
from ragworth.formats.log_values import as_row
from ragworth.formats.rag_log import LogBuilder
from ragworth.formats.unused_columns import UnusedColumns
from ragworth.formats.values import WrongLineError
from ragworth.tables import Contexts
from ragworth.tables.ranking import Ties

REPEAT_COLUMNS = ("run", "run_id", "trial", "attempt", "iteration", "repetition", "replicate", "seed", "sample")
"""Names of columns that may number the answers of a system to a question."""

PASSAGE_COLUMNS = ("rank", "position", "chunk_id", "chunk_index", "passage_id", "passage_rank", "doc_id", "doc_rank")
"""Names of columns of files with a row for each passage."""

Reject = Callable[[int, str], None]
"""Reports a row that can't be used, by place and reason."""

Parser = Callable[[LogRows, FieldFinder, Reject], Iterator[LogRecord]]


def parse_rows(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    """Make a record of each row."""
    unused = UnusedColumns()
    for place, value in rows.values:
        try:
            row = as_row(value)
            if row is None:
                raise WrongLineError(f"{type(value).__name__} instead of an object: {quote_short(value, 48)}")
            unused.see(row, finder)
            yield read_record(row, finder, place, cells=rows.cells)
        except WrongLineError as error:
            reject(place, str(error))
    finder.notes += unused.notes(finder)


def _skipped_note(rows: LogRows, bad: list[BadLine]) -> tuple[str, ...]:
    notes = skipped_note(rows.source, bad)
    return notes if rows.unit == "line" else tuple(note.replace("line", rows.unit) for note in notes)


def _load_documents(rows: LogRows, bad: list[BadLine], reject: Reject) -> LoadedCollection:
    """Read documents as passages; equal ones count once."""
    texts: dict[str, str] = {}
    repeats = 0
    for place, value in rows.values:
        try:
            passage = as_passage(value, place)
            if passage.text is None:
                raise WrongLineError("the document has no text")
            name = text_id(passage.text) if passage.id is None else passage.id
            repeats += name in texts
            if texts.setdefault(name, passage.text) != passage.text:
                raise WrongLineError(f"the id {quote_short(name, 24)} has another text on an earlier {rows.unit}")
        except WrongLineError as error:
            reject(place, str(error))
    notes = _skipped_note(rows, bad)
    if repeats:
        notes += (f"{rows.source}: {format_count(repeats, 'document')} occur twice; each counts once",)
    frame = {"passage": list(texts), "text": list(texts.values())}
    return LoadedCollection(Collection.of(passages=frame, source=rows.source, notes=notes))


@dataclass(frozen=True)
class LogFormat:
    """How a kind of RAG log is read.

    Attributes
    ----------
    names: what the files call our fields. Grades of answers have the same names in all formats.
    recognise: whether a file is one of these, from its beginning.
    unpack: the rows in a document that holds several; None if it is a row itself.
    parse: makes records of rows; by default one of each row.
    is_document: whether a row is a document of the library. A file of these holds passages and no log.
    """

    name: str
    title: str
    expected: str
    names: Names
    recognise: Callable[[FileSample], bool]
    unpack: Callable[[Any], Iterable[Any] | None] = field(default=lambda value: None)
    parse: Parser = parse_rows
    is_document: Callable[[Any], bool] | None = None

    def load(
        self,
        path: PathOrStr,
        *,
        columns: Mapping[str, str] | None = None,
        system: str | None = None,
        skip_bad_lines: bool = False,
    ) -> LoadedCollection:
        """Read a file."""
        bad: list[BadLine] = []
        # All bad lines are reported together.
        rows = read_log(path, bad, skip=True, expected=self.expected, find_rows=partial(self._find_rows, columns))
        return self._build(rows, bad, columns, system or run_name(path), skip_bad_lines)

    def _find_rows(self, columns: Mapping[str, str] | None, document: Mapping[str, Any]) -> DocumentRows | None:
        """The rows in a JSON object that isn't in the format itself."""
        known = self.recognise(sample_rows("", "json", [document], document=document))
        return find_rows(document, known=known, columns=columns)

    def load_rows(
        self,
        values: Iterable[Any],
        *,
        columns: Mapping[str, str] | None = None,
        source: str = "",
        cells: bool = False,
        note: str = "",
    ) -> LoadedCollection:
        """Make tables of rows in memory. In rows of a data frame, ``cells`` may hold lists as text."""
        rows = LogRows(source, "record", enumerate(values, 1), cells, note)
        return self._build(rows, [], columns, run_name(source) if source else "run", False)

    def _build(
        self, rows: LogRows, bad: list[BadLine], columns: Mapping[str, str] | None, system: str, skip: bool
    ) -> LoadedCollection:
        finder = FieldFinder(GRADE_FIELDS | dict(self.names), columns)
        finder.notes += [rows.note] if rows.note else []
        builder = LogBuilder(rows.source, system, unit=rows.unit, grades=finder.columns)

        def reject(place: int, problem: str) -> None:
            reject_row(rows, bad, place, problem, skip=True, expected=self.expected)
            if len(bad) >= MAX_REPORTED:
                self._check_bad(rows, bad, finder, skip)

        rows = unpack_rows(rows, self.unpack)
        if self.is_document is not None:
            values = iter(rows.values)
            first = list(islice(values, 1))
            rows = rows._replace(values=chain(first, values))
            if first and self.is_document(first[0][1]):
                documents = _load_documents(rows, bad, reject)
                self._check_bad(rows, bad, finder, skip)
                return documents
        for record in self.parse(rows, finder, reject):
            try:
                builder.add(record)
            except WrongLineError as error:
                reject(record.place, str(error))
        self._check_bad(rows, bad, finder, skip)
        if not builder.seen:
            finder.check_mapped(rows.source)
            why = f" except for {format_count(len(bad), 'bad ' + rows.unit)}" if bad else ""
            raise FormatError(f"no rows: the file is empty{why}", file=rows.source, expected=self.expected)
        finder.check_mapped(rows.source)
        for keys in finder.known_keys():
            builder.columns = {**builder.columns, **keys, **finder.grades}
        builder.system_column = next((key for key in finder.seen if plain_name(key) in SYSTEM_COLUMNS), None)
        notes = (f"{rows.source}: {note}" if rows.source else note for note in finder.notes)
        return builder.build((*_skipped_note(rows, bad), *notes))

    def _check_bad(self, rows: LogRows, bad: list[BadLine], finder: FieldFinder, skip: bool) -> None:
        """Raise an error with all rows that can't be used."""
        if not bad or skip:
            return
        error = bad_rows_error(rows, bad, self.expected)
        kinds = {"system": ("names the systems", SYSTEM_COLUMNS), "repeat": ("numbers the repeats", REPEAT_COLUMNS)}
        for field_name, (does, names) in kinds.items():
            column = next((key for key in finder.seen if plain_name(key) in names), None)
            if column is None or field_name in finder.columns or not any(TWICE in each.found for each in bad):
                continue
            raise error.copy(
                remedy=Hint(
                    f"if {column!r} {does}: --map {quote_argument(f'{field_name}={column}')}",
                    f"if {column!r} {does}, write under [columns]: {field_name} = {json.dumps(column)}",
                    f"if {column!r} {does}: columns={json.dumps({field_name: column})}",
                    option="columns",
                )
            )
        column = next((key for key in finder.seen if plain_name(key) in PASSAGE_COLUMNS), None)
        if column is not None and any(TWICE in each.found for each in bad):
            advice = "write a row for each question with a list of passages"
            raise error.copy(remedy=f"if {column!r} is of one passage in each row, {advice}")
        raise error

    def read_contexts(
        self,
        path: PathOrStr,
        *,
        system: str | None = None,
        ties: Ties = "float64",
        skip_bad_lines: bool = False,
    ) -> Contexts:
        """Read the contexts only. The file determines the order, so ``ties`` has no effect."""
        contexts = self.load(path, system=system, skip_bad_lines=skip_bad_lines).contexts
        if contexts is None:
            raise FormatError("no record says which passages were shown", file=str(path), expected=self.expected)
        return contexts

    def format(self) -> Format:
        """The format as the registry has it."""
        return Format(
            name=self.name,
            title=self.title,
            contexts=self.read_contexts,
            load=self.load,
            recognise=self.recognise,
            columns=tuple(dict.fromkeys(name for names in self.names.values() for name in names[:1])),
            load_rows=self.load_rows,
        )
