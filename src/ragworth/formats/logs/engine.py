"""Make formats of RAG logs: each says what its fields are called and by which signs it knows its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from ragworth.core.errors import BadLine, FormatError, format_count, quote_short
from ragworth.data import Contexts
from ragworth.data.collection import Collection, text_id
from ragworth.data.ranking import Ties
from ragworth.formats.contract import FileSample, Format, Head, LoadedCollection
from ragworth.formats.files import PathOrStr, run_name, skipped_note
from ragworth.formats.log_files import (
    MAX_REPORTED,
    LogRows,
    bad_rows_error,
    read_log,
    reject_row,
    unpack_rows,
)
from ragworth.formats.logs.collector import TWICE, repeats_error
from ragworth.formats.logs.document_rows import DocumentRows, find_rows
from ragworth.formats.logs.fields import GRADE_FIELDS, FieldFinder, Names
from ragworth.formats.logs.passages import as_passage
from ragworth.formats.logs.records import LogRecord
from ragworth.formats.logs.rows import read_record
from ragworth.formats.logs.tables import LogBuilder
from ragworth.formats.logs.unused_columns import UnusedColumns
from ragworth.formats.logs.values import as_row
from ragworth.formats.values import WrongLineError

Reject = Callable[[int, str], None]
"""Reports a row that can't be used, by place and reason."""

Parser = Callable[[LogRows, FieldFinder, Reject], Iterator[LogRecord]]


def parse_rows(rows: LogRows, finder: FieldFinder, reject: Reject, *, doubt: bool = False) -> Iterator[LogRecord]:
    """Make a record of each row. With ``doubt``, unused columns that may be answers or passages are an error."""
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
    if doubt:
        unused.check(finder, rows.source)
    finder.notes += unused.notes()


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


class ParsedLog(NamedTuple):
    """A log whose rows were read, before tables are made of them."""

    rows: LogRows
    bad: list[BadLine]
    finder: FieldFinder
    builder: LogBuilder
    expected: str
    documents: LoadedCollection | None = None

    def build(self, skip: bool) -> LoadedCollection:
        """Make the tables; rows that can't be used are an error unless ``skip``."""
        self._check_bad(skip)
        if self.documents is not None:
            return self.documents
        rows, finder, builder = self.rows, self.finder, self.builder
        finder.check_mapped(rows.source)
        if not builder.seen:
            why = f" except for {format_count(len(self.bad), 'bad ' + rows.unit)}" if self.bad else ""
            raise FormatError(f"no rows: the file is empty{why}", file=rows.source, expected=self.expected)
        for keys in finder.known_keys():
            builder.columns = {**builder.columns, **keys, **finder.grades}
        notes = (f"{rows.source}: {note}" if rows.source else note for note in finder.notes)
        return builder.build((*_skipped_note(rows, self.bad), *notes))

    def _check_bad(self, skip: bool) -> None:
        """Raise an error with all rows that can't be used."""
        if self.bad and not skip:
            error = bad_rows_error(self.rows, self.bad, self.expected)
            raise repeats_error(error, self.finder) if any(TWICE in each.found for each in self.bad) else error


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
    general: int = 0

    def load(
        self,
        path: PathOrStr,
        *,
        columns: Mapping[str, str] | None = None,
        system: str | None = None,
        skip_bad_lines: bool = False,
    ) -> LoadedCollection:
        """Read a file."""

        def read(bad: list[BadLine]) -> LogRows:
            # All bad lines are reported together.
            return read_log(path, bad, skip=True, expected=self.expected, find_rows=partial(self._find_rows, columns))

        return self._build(read, columns, system or run_name(path), skip_bad_lines)

    def _find_rows(self, columns: Mapping[str, str] | None, document: Mapping[str, Any]) -> DocumentRows | None:
        """The rows in a JSON object that isn't in the format itself."""
        known = self.recognise(Head("", "json", document=document).of_rows([document]))
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
        kept = list(values)

        def read(bad: list[BadLine]) -> LogRows:
            return LogRows(source, "record", enumerate(kept, 1), cells, note)

        return self._build(read, columns, run_name(source) if source else "run", False)

    def _build(
        self,
        read: Callable[[list[BadLine]], LogRows],
        columns: Mapping[str, str] | None,
        system: str,
        skip: bool,
    ) -> LoadedCollection:
        return self._parse(read, columns, system, skip).build(skip)

    def _parse(
        self,
        read: Callable[[list[BadLine]], LogRows],
        columns: Mapping[str, str] | None,
        system: str,
        skip: bool,
    ) -> ParsedLog:
        bad: list[BadLine] = []
        rows = unpack_rows(read(bad), self.unpack)
        finder = FieldFinder(GRADE_FIELDS | dict(self.names), columns)
        finder.notes += [rows.note] if rows.note else []
        log = ParsedLog(
            rows, bad, finder, LogBuilder(rows.source, system, unit=rows.unit, grades=finder.columns), self.expected
        )

        def reject(place: int, problem: str) -> None:
            reject_row(rows, bad, place, problem, skip=True, expected=self.expected)

        if self.is_document is not None:
            values = iter(rows.values)
            first = list(islice(values, 1))
            rows = rows._replace(values=chain(first, values))
            if first and self.is_document(first[0][1]):
                return log._replace(documents=_load_documents(rows, bad, reject))
        for record in self.parse(rows, finder, reject):
            try:
                log.builder.add(record)
            except WrongLineError as error:
                reject(record.place, str(error))
            if not skip and len(bad) >= MAX_REPORTED:
                break
        return log

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
            load_rows=self.load_rows,
            general=self.general,
        )
