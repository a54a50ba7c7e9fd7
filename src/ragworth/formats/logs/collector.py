"""Collect the records of a RAG log as rows, before tables are made of them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence

from ragworth.core.errors import FormatError, format_list, format_places, quote_short
from ragworth.data.collection import plain_text, text_id
from ragworth.data.tables import TRUNCATED
from ragworth.formats.logs.fields import FieldFinder, mapping_hint
from ragworth.formats.logs.names import SYSTEM_COLUMNS, plain_name
from ragworth.formats.logs.records import LoggedPassage, LogRecord
from ragworth.formats.logs.values import as_grade
from ragworth.formats.outcomes import GradeRow
from ragworth.formats.values import WrongLineError, as_text

ERROR = "error"
"""Status of an answer that is the message of an error."""

NO_REFERENCE = frozenset(("N/A", "n/a", "nan", "NaN", "null", "NULL", "<NA>", "#N/A", "#REF!", "#VALUE!", "#NAME?"))
"""A missing accepted answer, as programs and spreadsheets write it. "None" may be one."""

NO_ANSWER_TEXTS = (NO_REFERENCE - {"N/A", "n/a"}) | {"None", "-", "–", "—", "[]", "{}", "[object Object]"}
"""A missing answer. "N/A" may be one: the question has no answer."""

ERROR_TEXT = re.compile(
    r"Traceback \(most recent call last\)|\[?(?:Error|ERROR|Exception)\b\]?\s*(?::|\d{3}\b|code: \d{3}\b|$)"
    r"|(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Timeout)\b\s*(?:[:(]|$)|HTTPS?ConnectionPool\(|\{\s*[\"']error[\"']\s*:"
    r"|(?:HTTP\S*\s+)?(?:429 Too Many|500 Internal|502 Bad|503 Service|(?:504 )?Gateway T|401 Unauth|403 Forbidden)"
    r"|(?:An (?:unexpected |internal )?error (?:has )?occurred|(?:The )?[Rr]equest (?:timed out|failed with status)"
    r"|Connection (?:error|refused|reset|timed out)|Rate limit (?:reached|exceeded)|Service Unavailable)"
    r"\s*(?:[.:!,(]|$|code\b|for\b|while\b|when\b|with\b|by peer\b)"
)
"""Beginnings of messages that programs write in place of an answer."""

ABOUT_ERRORS = re.compile(r"(?i)errors?\b|exceptions?\b|traceback|status code|http|rate limit|time-?out|\b[45]\d\d\b")
"""In questions whose answer may be about an error."""


def is_missing_answer(text: str, accepted: Sequence[str]) -> bool:
    """Tell whether a text stands for a missing value, and isn't accepted."""
    return text in NO_ANSWER_TEXTS and text.casefold() not in {each.strip(" .").casefold() for each in accepted}


def is_error_message(text: str, question: str, accepted: Sequence[str]) -> bool:
    """Tell whether a text is the message of a program, and not an answer about errors or one that is accepted."""
    if not ERROR_TEXT.match(text) or ABOUT_ERRORS.search(question):
        return False
    plain = plain_text(text).casefold()
    names = [plain_text(each).casefold() for each in accepted if not each.strip().isdecimal()]  # 500 is in many errors
    return not any(name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", plain) for name in names)


TWICE = "occurs twice"

TRACE_SOURCE = "trace:"
"""Before the id of a trace, the source of an answer from it."""


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
        """Where the file has the aspects."""
        self.queries: dict[str, str] = {}
        self.accepted: dict[str, tuple[Sequence[str], int]] = {}
        """Accepted answers by query, with their place."""
        self.texts: dict[str, str] = {}
        self.rows: list[tuple[str, str, int, str, float | None]] = []
        self.other_texts: dict[int, str] = {}
        """By row: a text that differs from the first one of the same passage id."""
        self.hops: dict[int, tuple[int, str | None]] = {}
        """By row: in which hop a passage was found, and by which search."""
        self.other_hops: list[tuple[str, str, str | None, int, str | None]] = []
        """Later searches that found a passage once more, or nothing: system, query, passage or None, hop and search."""
        self.shown: dict[tuple[str, str], list[str]] = {}
        """The passages of each context."""
        self.unrecorded: dict[tuple[str, str], int] = {}
        """Contexts that the log does not say anything about, with their places."""
        self.answers: list[tuple[str, str, int, str | None, str, int, str]] = []
        self.judged: dict[tuple[int, str], float] = {}
        """By row and query: relevance of a passage shown."""
        self.relevant: dict[str, list[LoggedPassage]] = {}
        self.outcomes: list[GradeRow] = []
        self.no_answers: dict[str, list[int]] = {}
        """Places of texts that are no answers, by what they say."""
        self.no_references: list[int] = []
        self.seen: dict[tuple[str, str, int], set[int | None]] = {}
        """Hashes of the rows by system, query and repeat."""
        self.duplicates = self.repeated_passages = self.different_repeats = 0

    def add(self, record: LogRecord) -> None:
        """Add a record; one that can't be used raises a :class:`WrongLineError` and changes nothing."""
        if record.query is None and not record.question:
            raise WrongLineError("the record has neither a question nor the id of one")
        _check_values(record)
        # The query of a question without id is derived from its text.
        query = record.query or text_id(plain_text(record.question or ""))
        system = (record.system if self.strict else (record.system or "").strip()) or self.system
        key = system, query, record.repeat
        if key in self.seen:
            if record.content is None or record.content not in self.seen[key]:
                name = record.question if record.query is None else record.query
                raise WrongLineError(f"query {quote_short(name, 40)} {TWICE} for system {quote_short(system, 24)}")
            self.duplicates += 1
            return
        # "N/A" and the like are no accepted answers.
        accepted = [text for text in record.accepted if text.strip() not in NO_REFERENCE]
        self._check_texts(query, record, accepted)
        passages, again = self._distinct(record, query)
        self.no_references += [record.place] if len(accepted) < len(record.accepted) else []
        self.seen[key] = {record.content}
        if record.question is not None:
            self.queries.setdefault(query, record.question)
        if accepted:
            self.accepted.setdefault(query, (accepted, record.place))
        self._show((system, query), passages, again, record.place)
        if record.relevant:
            self.relevant.setdefault(query, []).extend(record.relevant)
        source = f"{TRACE_SOURCE}{record.trace}" if record.trace else self.source or "given"
        answer, status = self._read_answer(record, accepted)
        self.answers.append((system, query, record.repeat, answer, status, record.place, source))
        for aspect, value in record.outcomes.items():
            grades = value if isinstance(value, list) else [value]
            self.outcomes += [GradeRow(system, query, aspect, grade, record.place) for grade in grades]

    def places(self, places: Iterable[int]) -> str:
        """Count the records at these places, and name the first."""
        return format_places(places, self.unit)

    def _check_texts(self, query: str, record: LogRecord, accepted: Sequence[str]) -> None:
        """Check that a query has the same question and accepted answers everywhere."""
        question = self.queries.get(query)
        if record.question is not None and question is not None and plain_text(question) != plain_text(record.question):
            raise WrongLineError(f"the query {quote_short(query, 24)} has a different text on an earlier {self.unit}")
        before, place = self.accepted.get(query, (accepted, record.place))
        if accepted and sorted(map(plain_text, before)) != sorted(map(plain_text, accepted)):
            name = quote_short(record.question or question or query, 60)
            here, there = (format_list([quote_short(text, 24) for text in each], 3) for each in (accepted, before))
            raise WrongLineError(f"the accepted answer to {name} is {here}, but {there} on {self.unit} {place}")

    def _read_answer(self, record: LogRecord, accepted: Sequence[str]) -> tuple[str | None, str]:
        """The answer and its status; the text of a missing value or of an error is no answer."""
        text = (record.answer or "").strip()
        if is_missing_answer(text, accepted):
            self.no_answers.setdefault(f"with the answer {text!r}", []).append(record.place)
            return None, record.status if record.status != TRUNCATED else ""
        if is_error_message(text, record.question or "", accepted):
            self.no_answers.setdefault("with an error message for an answer", []).append(record.place)
            return None, ERROR
        return record.answer, record.status

    def _distinct(self, record: LogRecord, query: str) -> tuple[list[LoggedPassage] | None, list[LoggedPassage]]:
        """The passages with ids, each once, and those that a later search found again, or searches without any."""
        if record.passages is None:
            return None, []
        named: dict[tuple[str, str | None], LoggedPassage] = {}
        ids: set[str] = set()
        again: list[LoggedPassage] = []
        for rank, passage in enumerate(record.passages, 1):
            if passage.is_empty_search:
                again.append(passage)
                continue
            if passage.id is None and passage.text is None:
                raise WrongLineError(f"passage {rank} has neither doc_id nor text")
            name = passage.id if passage.id is not None else text_id(passage.text or "")
            known = (name, passage.text) in named or (name in ids and (self.strict or passage.text is None))
            if known and self.strict and passage.hop is None:
                raise WrongLineError(f"a passage occurs twice for query {quote_short(query, 24)}")
            if known:
                again += [passage._replace(id=name)] if passage.hop is not None else []
                continue
            ids.add(name)
            named[name, passage.text] = passage._replace(id=name)
        self.repeated_passages += sum(not each.is_empty_search for each in record.passages) - len(named)
        return list(named.values()), again

    def _show(
        self, key: tuple[str, str], passages: list[LoggedPassage] | None, again: list[LoggedPassage], place: int
    ) -> None:
        if passages is None:
            if key not in self.shown:
                self.unrecorded.setdefault(key, place)
            return
        names = [passage.id or "" for passage in passages]
        if key in self.shown:
            self.different_repeats += self.shown[key] != names
            return
        self.unrecorded.pop(key, None)
        self.shown[key] = names
        for rank, (name, passage) in enumerate(zip(names, passages, strict=True), 1):
            if passage.text is not None and self.texts.setdefault(name, passage.text) != passage.text:
                self.other_texts[len(self.rows)] = passage.text
            if passage.relevance is not None:
                self.judged[len(self.rows), key[1]] = passage.relevance
            if passage.hop is not None:
                self.hops[len(self.rows)] = passage.hop, passage.search
            self.rows.append((*key, rank, name, passage.score))
        self.other_hops += [(*key, each.id, each.hop, each.search) for each in again if each.hop is not None]


def repeats_error(error: FormatError, finder: FieldFinder) -> FormatError:
    """Return the error for questions that occur twice, with advice on the columns that may tell the rows apart."""
    column = next((key for key in finder.seen if plain_name(key) in SYSTEM_COLUMNS), "")
    systems = f" if {column!r} names the systems, " if column else " if a column names the systems, "
    repeats = " if one numbers the repeats; if each counts by itself, give it an 'id'"
    hint = mapping_hint(({"system": column or "COLUMN"}, systems), ({"repeat": "COLUMN"}, repeats))
    return error.copy(remedy=hint._replace(python=f"{hint.python}; skip_bad_lines=True keeps the first"))
