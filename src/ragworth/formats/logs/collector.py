"""Collect the records of a RAG log as rows, before tables are made of them."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ragworth.core.errors import FormatError, Hint, format_list, format_places, quote_short
from ragworth.data.collection import plain_text, text_id
from ragworth.data.definitions import TRUNCATED
from ragworth.formats.grades import Grade
from ragworth.formats.logs.fields import SYSTEM_COLUMNS, FieldFinder, plain_name, quote_argument
from ragworth.formats.logs.missing_answers import ERROR, NO_REFERENCE, is_error_message, is_missing_answer
from ragworth.formats.logs.records import LoggedPassage, LogRecord
from ragworth.formats.logs.values import as_grade
from ragworth.formats.values import WrongLineError, as_text

TWICE = "occurs twice"

TRACE_SOURCE = "trace:"
"""Before the id of a trace, the source of an answer from it."""
REPEATS = "if these are repeats, number them in a column 'repeat'; if each counts by itself, give it an 'id'"

REPEAT_COLUMNS = ("trial", "attempt", "iteration", "seed", "sample", "run", "run_id")
"""Names of columns that may number the answers of a system to a question."""

PASSAGE_COLUMNS = ("rank", "position", "chunk_id", "chunk_index", "passage_id", "doc_id")
"""Names of columns of files with a row for each passage."""


class ShownContext(NamedTuple):
    """Where the passages of a context are among the rows."""

    start: int
    end: int


def _check_values(record: LogRecord) -> None:
    """Check what a reader took as it is: texts must be ones that can be encoded, and grades numbers or words."""
    texts = {"question": record.question, "system": record.system, "answer": record.answer, "trace": record.trace}
    for name, text in (*texts.items(), *(("accepted answer", each) for each in record.accepted)):
        if text is not None:
            as_text(text, name)
    for aspect, value in record.outcomes.items():
        for grade in value if isinstance(value, list) else [value]:
            as_grade(grade, as_text(aspect, "name of a grade"))


class LogCollector:
    """Collects records as rows of tables.

    ``unit`` says what places count: lines, rows or records. With ``strict``, a passage id may occur only once in a
    context. ``grades`` are the aspects that must be grades, because the user said so.
    """

    def __init__(
        self, source: str, system: str, *, unit: str = "line", strict: bool = False, grades: Container[str] = ()
    ) -> None:
        self.source, self.system, self.unit, self.strict = source, system, unit, strict
        self.grades = grades
        self.columns: Mapping[str, str] = {}
        """What the file calls the aspects."""
        self.queries: dict[str, str] = {}
        self.accepted: dict[str, Sequence[str]] = {}
        self.texts: dict[str, str] = {}
        self.rows: list[tuple[str, str, int, str, float | None]] = []
        self.other_texts: dict[int, str] = {}
        """By row: a text that differs from the first one of the same passage id."""
        self.hops: dict[int, tuple[int, str | None]] = {}
        """By row: in which hop a passage was found, and by which search."""
        self.found_again: list[tuple[str | None, int, str | None]] = []
        """Passages of the current record that a later search found once more: id, hop and search. No id: the search
        found nothing."""
        self.other_hops: list[tuple[str, str, str | None, int, str | None]] = []
        """Such passages of all records: system, query, passage, hop and search."""
        self.shown: dict[tuple[str, str], ShownContext] = {}
        self.unrecorded: dict[tuple[str, str], int] = {}
        """Contexts that the log does not say anything about, with their places."""
        self.answers: list[tuple[str, str, int, str | None, str, int, str]] = []
        self.seen: set[tuple[str, str, int]] = set()
        self.judged: dict[tuple[int, str], float] = {}
        """By row and query: relevance of a passage shown."""
        self.relevant: dict[str, list[LoggedPassage]] = {}
        self.outcomes: dict[tuple[str, str, str], list[tuple[Grade, int]]] = {}
        self.no_answers: dict[str, list[int]] = {}
        """Places of texts that are no answers, by what they say."""
        self.no_references: list[int] = []
        self.accepted_places: dict[str, int] = {}
        self.contents: set[tuple[tuple[str, str, int], int | None]] = set()
        self.duplicates = 0
        self.repeated_passages = 0
        self.different_repeats = 0

    def add(self, record: LogRecord) -> None:
        """Add a record; one that can't be used raises a :class:`WrongLineError` and changes nothing."""
        if record.query is None and not record.question:
            raise WrongLineError("the record has neither a question nor the id of one")
        _check_values(record)
        record = self._without_blanks(record)
        key = system, query, _ = self._key(record)
        if record.content is not None and (key, record.content) in self.contents:
            self.duplicates += 1
            return
        if key in self.seen:
            raise WrongLineError(self._twice(record))
        self._check_texts(query, record)
        passages = self._distinct(record, query)
        self.seen.add(key)
        self.contents.add((key, record.content))
        if record.question is not None:
            self.queries.setdefault(query, record.question)
        if record.accepted:
            self.accepted.setdefault(query, record.accepted)
            self.accepted_places.setdefault(query, record.place)
        self._show((system, query), passages, record.place)
        if record.relevant:
            self.relevant.setdefault(query, []).extend(record.relevant)
        source = f"{TRACE_SOURCE}{record.trace}" if record.trace else self.source or "given"
        answer, status = self._read_answer(record)
        self.answers.append((system, query, record.repeat, answer, status, record.place, source))
        for aspect, value in record.outcomes.items():
            grades = value if isinstance(value, list) else [value]
            self.outcomes.setdefault((system, query, aspect), []).extend((grade, record.place) for grade in grades)

    def _key(self, record: LogRecord) -> tuple[str, str, int]:
        """System, query and repeat of a record. The query of a question without id is derived from its text."""
        system = (record.system if self.strict else (record.system or "").strip()) or self.system
        return system, record.query or text_id(plain_text(record.question or "")), record.repeat

    def _twice(self, record: LogRecord) -> str:
        """Describe the problem with a record if an earlier one has the same system, query and repeat."""
        query = record.question if record.query is None else record.query
        return f"query {quote_short(query, 40)} {TWICE} for system {quote_short(self._key(record)[0], 24)}" + (
            "" if self.strict else "; if these are answers of several systems, map the column that names them"
        )

    def places(self, places: Iterable[int]) -> str:
        return format_places(places, self.unit)

    def _without_blanks(self, record: LogRecord) -> LogRecord:
        """The record without accepted answers that say that there is none, such as "N/A"."""
        known = [text for text in record.accepted if text.strip() not in NO_REFERENCE]
        if len(known) == len(record.accepted):
            return record
        self.no_references.append(record.place)
        return replace(record, accepted=known)

    def _check_texts(self, query: str, record: LogRecord) -> None:
        question = self.queries.get(query)
        if record.question is not None and question is not None and plain_text(question) != plain_text(record.question):
            raise WrongLineError(f"the query {quote_short(query, 24)} has a different text on an earlier {self.unit}")
        before = self.accepted.get(query, record.accepted)
        if record.accepted and sorted(map(plain_text, before)) != sorted(map(plain_text, record.accepted)):
            name = quote_short(record.question or question or query, 60)
            here, there = (
                format_list([quote_short(text, 24) for text in each], 3) for each in (record.accepted, before)
            )
            raise WrongLineError(
                f"the accepted answer to {name} is {here}, but {there} on {self.unit} {self.accepted_places[query]}"
            )

    def _read_answer(self, record: LogRecord) -> tuple[str | None, str]:
        """The answer and its status; the text of a missing value or of an error is no answer."""
        text = (record.answer or "").strip()
        if is_missing_answer(text, record.accepted):
            self.no_answers.setdefault(f"with the answer {text!r}", []).append(record.place)
            return None, record.status if record.status != TRUNCATED else ""
        if is_error_message(text, record.question or "", record.accepted):
            self.no_answers.setdefault("with an error message for an answer", []).append(record.place)
            return None, ERROR
        return record.answer, record.status

    def _distinct(self, record: LogRecord, query: str) -> list[LoggedPassage] | None:
        """The passages with ids, each once."""
        if record.passages is None:
            return None
        named: dict[tuple[str, str | None], LoggedPassage] = {}
        ids: set[str] = set()
        self.found_again = []
        for rank, passage in enumerate(record.passages, 1):
            if passage.is_empty_search:
                self._find_again(None, passage)
                continue
            if passage.id is None and passage.text is None:
                raise WrongLineError(f"passage {rank} has neither doc_id nor text")
            name = passage.id if passage.id is not None else text_id(passage.text or "")
            if name in ids and (self.strict or passage.text is None):
                if self.strict and passage.hop is None:
                    raise WrongLineError(f"a passage occurs twice for query {quote_short(query, 24)}")
                self._find_again(name, passage)
                continue
            if (name, passage.text) in named:
                self._find_again(name, passage)
            ids.add(name)
            named.setdefault((name, passage.text), passage._replace(id=name))
        self.repeated_passages += sum(not each.is_empty_search for each in record.passages) - len(named)
        return list(named.values())

    def _find_again(self, name: str | None, passage: LoggedPassage) -> None:
        """Note that another search found a passage, too, or nothing: it is shown once, but that search was made."""
        if passage.hop is not None:
            self.found_again.append((name, passage.hop, passage.search))

    def _show(self, key: tuple[str, str], passages: list[LoggedPassage] | None, place: int) -> None:
        if passages is None:
            if key not in self.shown:
                self.unrecorded.setdefault(key, place)
            return
        if key in self.shown:
            start, end = self.shown[key]
            self.different_repeats += [row[3] for row in self.rows[start:end]] != [each.id for each in passages]
            return
        self.unrecorded.pop(key, None)
        start = len(self.rows)
        for rank, passage in enumerate(passages, 1):
            assert passage.id is not None
            if passage.text is not None and self.texts.setdefault(passage.id, passage.text) != passage.text:
                self.other_texts[len(self.rows)] = passage.text
            if passage.relevance is not None:
                self.judged[len(self.rows), key[1]] = passage.relevance
            if passage.hop is not None:
                self.hops[len(self.rows)] = passage.hop, passage.search
            self.rows.append((*key, rank, passage.id, passage.score))
        self.other_hops += [(*key, *again) for again in self.found_again]
        self.shown[key] = ShownContext(start, len(self.rows))


def repeats_error(error: FormatError, finder: FieldFinder) -> FormatError:
    """The error for questions that occur twice, with advice on the column that may tell the rows apart."""
    kinds = {"system": ("names the systems", SYSTEM_COLUMNS), "repeat": ("numbers the repeats", REPEAT_COLUMNS)}
    for field_name, (does, names) in kinds.items():
        column = next((key for key in finder.seen if plain_name(key) in names), None)
        if column is None or field_name in finder.columns:
            continue
        return error.copy(
            remedy=Hint(
                f"if {column!r} {does}: --map {quote_argument(f'{field_name}={column}')}; {REPEATS}",
                f"if {column!r} {does}, write under [columns]: {field_name} = {json.dumps(column)}; {REPEATS}",
                f"if {column!r} {does}: columns={json.dumps({field_name: column})}; {REPEATS}",
                option="columns",
            )
        )
    column = next((key for key in finder.seen if plain_name(key) in PASSAGE_COLUMNS), None)
    if column is None:
        return error.copy(remedy=Hint(REPEATS, REPEATS, f"{REPEATS}; skip_bad_lines=True keeps the first"))
    advice = "write a row for each question with a list of passages"
    return error.copy(remedy=f"if {column!r} is of one passage in each row, {advice}")
