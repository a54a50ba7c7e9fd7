"""Read RAG logs. A :class:`LogSpec` says where a kind of log has our fields, and one engine reads all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ragworth.core.errors import BadLine, FormatError, format_count, format_names, quote_short
from ragworth.data import Contexts
from ragworth.data.collection import Collection, text_id
from ragworth.data.ranking import Ties
from ragworth.formats.contract import Contents, Format, Head, LoadedCollection
from ragworth.formats.files import PathOrStr, run_name, skipped_note
from ragworth.formats.logs.fields import FieldFinder, Names
from ragworth.formats.logs.fields import Row as Row
from ragworth.formats.logs.names import (
    FIELDS,
    GRADE_FIELDS,
    JOIN,
    PREDICTIONS,
    SYSTEM_COLUMNS,
    mapping_hint,
    plain_name,
)
from ragworth.formats.logs.passages import as_passage
from ragworth.formats.logs.paths import find, follow
from ragworth.formats.logs.records import LogRecord, read_record
from ragworth.formats.logs.rows import MAX_REPORTED, LogRows, bad_rows_error, find_rows, read_log, reject_row
from ragworth.formats.logs.tables import TWICE, LogBuilder
from ragworth.formats.logs.values import (
    as_row,
)
from ragworth.formats.values import WrongLineError

PlacedRows = Iterable[tuple[int, Row]]
Reject = Callable[[int, str], None]
"""Reports a row that can't be used, by place and reason."""

NAMES = FIELDS | GRADE_FIELDS
TABLE_COLUMNS = {"passage", "passage_id", "doc_id", "docno", "docid", "corpus-id", "aspect", "text"}
"""Columns of our own tables."""

UNSURE_ANSWERS = ("answer", "output", "result")
"""Names of answers that don't say whose they are."""

OF_SYSTEMS = {"system", "system_id", "system_name", "is_correct", "correctness", "human_label", "human_grade"}
"""Columns that only answers of systems have."""

MAY_BE = {
    "answer": re.compile("answer|response|reply|pred|output|generat|completion|assistant|bot"),
    "passages": re.compile("context|passage|document|chunk|retriev"),
}
"""Words in the names of columns that may be the answers or the passages."""

OF_CONVERSATIONS = re.compile("(conversation|session|thread)(_id)?")
"""Names of columns that the turns of a conversation share."""


@dataclass(frozen=True)
class LogSpec:
    """Where a kind of RAG log has our fields.

    Attributes
    ----------
    signs: keys that only these logs have, in a row or in the document around it. Each of the signs is enough. In
        ``"query gt_answer|answer !prediction"``, all keys must be there, or one of those with a bar between them, and
        none after an exclamation mark. ``*`` is any text, as in ``*_calls``, and any key in ``*.documents``.
    fields: paths of our fields, see :mod:`ragworth.formats.logs.paths`; the others have their usual names, for which
        ``*`` stands, also inside an object (``vars.*``). ``status`` says why there is no answer, and ``grades`` has
        grades by name.
    rows: path of the rows in a document that holds several, or a function that returns them or None.
    documents: signs of a document of the library. A file of these holds passages and no log.
    prepare: makes a row whose fields have paths of one that hasn't.
    collect: makes rows of all rows, where a record is spread over several.
    quiet: the other fields are the tool's own, and no note names them.
    exact: JSON lines with ids of our own format, see :class:`ragworth.formats.logs.tables.LogBuilder`.
    general: how general the signs are, as in :class:`ragworth.formats.contract.Format`. In logs with usual
        names, a column that may be the missing answer or passages is an error, which asks what it is.
    expected: what a row should have, for errors; by default the main fields.
    """

    name: str
    title: str
    signs: tuple[str, ...]
    fields: Mapping[str, str]
    rows: str | Callable[[Row], list[Any] | None] = ""
    documents: str = ""
    prepare: Callable[[Row, FieldFinder], Row] = lambda row, finder: row
    collect: Callable[[PlacedRows, FieldFinder, Reject], PlacedRows] = lambda rows, finder, reject: rows
    quiet: bool = False
    exact: bool = False
    general: int = 0
    expected: str = ""

    @property
    def names(self) -> Names:
        """What the files call our fields. Grades of answers have the same names in all formats."""
        return FIELDS | {name: _usual_names(name, paths) for name, paths in self.fields.items()}

    @property
    def expectation(self) -> str:
        """What a row should have."""
        main = (self.fields.get(name, "").split(" | ")[0] for name in ("question", "passages", "answer", "accepted"))
        return self.expected or ", ".join(path.partition("@")[0] for path in main if path)

    def recognise(self, sample: Head) -> bool:
        """Return whether a file is one of these, from its beginning."""
        document = sample.document if isinstance(sample.document, Mapping) else {}
        inner = self.find_rows(document)
        row: dict[str, Any] = {}
        for each in reversed(sample.rows if inner is None else inner[:20]):
            row |= as_row(each) or {}
        return any(has_keys({**document, **row}, sign) for sign in (*self.signs, self.documents) if sign)

    def find_rows(self, document: Row) -> list[Any] | None:
        """Return the rows in a document; None if it is a row itself."""
        inner = self.rows(document) if callable(self.rows) else find(document, self.rows) if self.rows else None
        return inner if isinstance(inner, list) else None

    def parse(self, rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
        """Make a record of each row. A note names the unused columns."""

        def prepared() -> Iterator[tuple[int, Row]]:
            for place, value in rows.values:
                try:
                    if (row := as_row(value)) is None:
                        raise WrongLineError(f"{type(value).__name__} instead of an object: {quote_short(value, 48)}")
                    yield place, self.prepare(row, finder)
                except WrongLineError as error:
                    reject(place, str(error))

        for place, row in self.collect(prepared(), finder, reject):
            try:
                yield read_record(row, finder, place, cells=rows.cells)
            except WrongLineError as error:
                reject(place, str(error))
        unused = {
            name: value for name, value in finder.unused.items() if name not in finder.graded | finder.mapped_columns
        }
        if self.general:
            _check_unused(unused, finder, rows.source)
        finder.notes += [] if self.quiet else _unused_notes(list(map(str, unused)), finder)
        finder.notes += finder.place_notes()

    def load(
        self,
        path: PathOrStr,
        *,
        columns: Mapping[str, str] | None = None,
        system: str | None = None,
        skip_bad_lines: bool = False,
    ) -> LoadedCollection:
        """Read a file. All bad lines are reported together."""

        def find_inner(document: Row) -> list[Any] | None:
            known = self.recognise(Head("", "json", document=document).of_rows([document]))
            return find_rows(document, known=known, columns=columns)

        bad: list[BadLine] = []
        rows = read_log(path, bad, skip=True, expected=self.expectation, lines=self.exact, find_rows=find_inner)
        return self._make_tables(rows, bad, columns, system or run_name(path), skip=skip_bad_lines)

    def load_rows(
        self,
        values: Iterable[Any],
        *,
        columns: Mapping[str, str] | None = None,
        source: str = "",
        cells: bool = False,
    ) -> LoadedCollection:
        """Make tables of rows in memory. In rows of a data frame, ``cells`` may hold lists as text."""
        rows = LogRows(source, "record", enumerate(values, 1), cells)
        return self._make_tables(rows, [], columns, run_name(source) if source else "run", skip=False)

    def _make_tables(
        self, rows: LogRows, bad: list[BadLine], columns: Mapping[str, str] | None, system: str, *, skip: bool
    ) -> LoadedCollection:
        """Make tables of rows; those that can't be used are an error unless ``skip``."""
        finder = FieldFinder({**GRADE_FIELDS, **self.names}, columns)
        rows = rows._replace(values=self._inner_rows(rows))
        first = next(iter(rows.values), None)
        rows = rows._replace(values=chain([] if first is None else [first], rows.values))
        builder = LogBuilder(rows.source, system, unit=rows.unit, exact=self.exact)
        passages: dict[str, str] = {}

        def reject(place: int, problem: str) -> None:
            reject_row(rows, bad, place, problem, skip=True, expected=self.expectation)

        if first is not None and self.documents and has_keys(as_row(first[1]) or {}, self.documents):
            passages = _read_documents(rows, finder, reject)
        else:
            for record in self.parse(rows, finder, reject):
                try:
                    builder.add(record)
                except WrongLineError as error:
                    reject(record.place, str(error))
                if not skip and len(bad) >= MAX_REPORTED:
                    break
            finder.check_mapped(rows.source)
        if bad and not skip:
            problem = bad_rows_error(rows, bad, self.expectation)
            raise _repeats_error(problem, finder) if any(TWICE in each.found for each in bad) else problem
        notes = [note.replace("line", rows.unit) for note in skipped_note(rows.source, bad)]
        notes += [f"{rows.source}: {note}" if rows.source else note for note in finder.notes]
        if passages:
            columns_of = {"passage": list(passages), "text": list(passages.values())}
            return LoadedCollection(Collection.of(passages=columns_of, source=rows.source, notes=tuple(notes)))
        if not builder.records:
            why = f" except for {format_count(len(bad), 'bad ' + rows.unit)}" if bad else ""
            raise FormatError(f"no rows: the file is empty{why}", file=rows.source, expected=self.expectation)
        return builder.build(finder.columns, finder.mapped, notes)

    def _inner_rows(self, rows: LogRows) -> Iterator[tuple[int, Any]]:
        """Yield the rows, also those in documents that hold several."""
        for place, value in rows.values:
            inner = self.find_rows(value) if isinstance(value, Mapping) else None
            if inner is None:
                yield place, value
            else:
                yield from ((place if rows.unit == "line" else number, each) for number, each in enumerate(inner, 1))

    def read_contexts(
        self, path: PathOrStr, *, system: str | None = None, ties: Ties = "float64", skip_bad_lines: bool = False
    ) -> Contexts:
        """Read the contexts only. The file determines the order, so ``ties`` has no effect."""
        contexts = self.load(path, system=system, skip_bad_lines=skip_bad_lines).contexts
        if contexts is None:
            raise FormatError("no record says which passages were shown", file=str(path), expected=self.expectation)
        return contexts

    def format(self) -> Format:
        """Return the format as the registry has it."""
        return Format(
            name=self.name,
            title=self.title,
            contexts=self.read_contexts,
            load=self.load,
            inspect=lambda head: [Contents("log")] if self.recognise(head) else [],
            load_rows=self.load_rows,
            general=self.general,
        )


def has_keys(row: Row, sign: str) -> bool:
    """Return whether a row has the keys of a sign, such as ``"query gt_answer|answer !prediction"``."""
    return all(_has_one(row, term.lstrip("!")) != term.startswith("!") for term in sign.split())


def _has_one(row: Any, names: str) -> bool:
    """Return whether there is one of the names; ``*`` in it is any text, and ``*.`` any key of an object."""
    if not isinstance(row, Mapping):
        return False
    for name in names.split("|"):
        start, star, end = name.partition("*")
        if end.startswith("."):
            has = any(_has_one(each, end[1:]) for each in row.values())
        elif star:
            has = any(str(key).startswith(start) and str(key).endswith(end) for key in row)
        else:
            has = name in row or follow(row, name) is not None
        if has:
            return True
    return False


def _usual_names(field_name: str, paths: str) -> tuple[str, ...]:
    """Return the paths with the usual names of a field in place of ``*``."""
    parts = [path.strip() for path in paths.split("|")]
    return tuple(
        path.replace("*", name) for path in parts for name in (FIELDS[field_name] if "*" in path else [field_name])
    )


def _read_documents(rows: LogRows, finder: FieldFinder, reject: Reject) -> dict[str, str]:
    """Read documents as passages by id; equal ones count once."""
    texts: dict[str, str] = {}
    named: set[bool] = set()
    for place, value in rows.values:
        try:
            passage = as_passage(value, place)
            if passage.text is None:
                raise WrongLineError("the document has no text")
            name = text_id(passage.text) if passage.id is None else passage.id
            named.add(passage.id is not None)
            if texts.setdefault(name, passage.text) != passage.text:
                raise WrongLineError(f"the id {quote_short(name, 24)} has another text on an earlier {rows.unit}")
        except WrongLineError as error:
            reject(place, str(error))
    finder.notes += ["some passages have no id, others have one"] if len(named) == 2 else []
    return texts


def _repeats_error(error: FormatError, finder: FieldFinder) -> FormatError:
    """Return the error for questions that occur twice, with advice on the columns that may tell the rows apart."""
    column = next((key for key in finder.keys if plain_name(key) in SYSTEM_COLUMNS), "")
    systems = f" if {column!r} names the systems, " if column else " if a column names the systems, "
    repeats = " if one numbers the repeats; if each counts by itself, give it an 'id'"
    hint = mapping_hint(({"system": column or "COLUMN"}, systems), ({"repeat": "COLUMN"}, repeats))
    return error.copy(remedy=hint._replace(python=f"{hint.python}; skip_bad_lines=True keeps the first"))


def _unused_notes(names: list[str], finder: FieldFinder) -> list[str]:
    """Return a note that names the unused columns, and one on turns of conversations."""
    turns = [name for name in names if OF_CONVERSATIONS.fullmatch(plain_name(name))]
    missing = [f"--map {field}=COLUMN" for field in MAY_BE if field not in finder.columns]
    advice = f"; if one of these has what is missing: {' or '.join(missing)}" if missing else ""
    notes = [f"not used: {format_names(names, 8)}{advice}"] if names else []
    return notes + [
        f"turns with the same {name!r} count as independent, see docs/howto/conversations.md" for name in turns
    ]


def _check_unused(unused: Row, finder: FieldFinder, source: str) -> None:
    """Raise an error if the name of a column says that it may be the answers or the passages, which no column is."""
    for field, words in MAY_BE.items():
        names = [name for name, value in unused.items() if words.search(plain_name(name)) and _may_be_text(value)]
        if names and field not in finder.columns:
            raise FormatError(
                f"{format_names([repr(name) for name in names], 4)} may be the {field}; the columns are "
                f"{format_names(list(finder.keys), 16)}",
                file=source,
                remedy=mapping_hint(({field: names[0]}, " if it is, "), ({"ignored": JOIN.join(names)}, " if not")),
            )


def _may_be_text(value: Any) -> bool:
    return isinstance(value, Mapping | list) or (
        isinstance(value, str) and re.search(r"[^\W\d_]{2}", value) is not None
    )


class GeneralSpec(LogSpec):
    """Logs whose columns have usual names."""

    def recognise(self, sample: Head) -> bool:
        """Return whether there are questions with answers, passages or accepted answers; ``answer`` may be either."""
        if not sample.rows or TABLE_COLUMNS & set(sample.columns):
            return False
        columns = FieldFinder(NAMES).layout(dict.fromkeys(sample.columns)).columns
        answer, passages = columns.get("answer", "").lower(), columns.get("passages", "").lower()
        if "question" not in columns:
            certain = passages or plain_name(answer) in PREDICTIONS
            return bool("query" in columns and answer and certain)
        if "accepted" in columns:
            return True
        if answer:
            graded = bool(OF_SYSTEMS & {plain_name(column) for column in columns.values()})
            return answer not in UNSURE_ANSWERS or graded
        return bool(passages) and passages not in ("context", "sources", "docs", "documents")


FORMAT = GeneralSpec(
    name="log",
    title="a RAG log",
    signs=(),
    fields={},
    general=2,
    expected="a question in each record, and an answer or passages",
).format()
