"""Read RAG logs with usual names of fields that belong to no library: JSON, JSON lines, CSV or Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ragworth.formats.contract import FileSample
from ragworth.formats.fields import FIELDS, GRADE_FIELDS, PREDICTIONS, FieldFinder, plain_name, quote_argument
from ragworth.formats.log_files import LogRows
from ragworth.formats.log_format import LogFormat, Reject, parse_rows
from ragworth.formats.log_passages import are_retrieved
from ragworth.formats.log_record import LogRecord
from ragworth.formats.values import WrongLineError

NAMES = FIELDS | GRADE_FIELDS
TABLE_COLUMNS = {"passage", "passage_id", "doc_id", "docno", "docid", "corpus-id", "aspect", "text"}
"""Columns of our own tables."""

DESCRIPTIONS = {"category", "topic", "type", "question_type", "difficulty", "level", "domain", "tags", "split"}
DESCRIPTIONS |= {"subset", "source", "language", "lang", "title", "url", "date", "comment", "notes", "author"}
"""Columns that say something of a question."""

UNSURE_ANSWERS = ("answer", "output", "result", "final_answer")
"""Names of answers that don't say whose they are."""

OF_SYSTEMS = {"system", "system_id", "system_name", "is_correct", "correctness", "human_label", "human_grade"}
"""Columns that only answers of systems have."""


def _recognise(sample: FileSample) -> bool:
    """Questions with answers, passages or accepted answers. ``answer`` alone may be an accepted one."""
    if not sample.rows or TABLE_COLUMNS & set(sample.columns):
        return False
    found = FieldFinder(NAMES).keys(dict.fromkeys(sample.columns))
    if "question" not in found:
        certain = "passages" in found or plain_name(found.get("answer", "")) in PREDICTIONS
        return "query" in found and "answer" in found and certain
    if "accepted" in found and not {"answer", "passages"} & found.keys():
        return _are_references(sample, found)
    if "answer" in found:
        return not _may_be_accepted(found) or (
            _is_retrieved(sample, found.get("passages")) and not _other_answers(sample.columns, found["answer"])
        )
    return "passages" in found and found["passages"].lower() not in ("context", "sources", "docs", "documents")


def _are_references(sample: FileSample, found: Mapping[str, str]) -> bool:
    """Whether a file has questions with accepted answers, and no other column that may be a system's answer."""
    others = {name for name in sample.columns if name not in found.values() and plain_name(name) not in DESCRIPTIONS}
    return not any(isinstance(row.get(name), str | list | dict) for row in sample.rows for name in others)


def _may_be_accepted(found: Mapping[str, str]) -> bool:
    """Whether nothing but scores of passages may say that a system gave the answer."""
    return found["answer"].lower() in UNSURE_ANSWERS and "accepted" not in found and not _is_graded(found)


def _other_answers(columns: Iterable[str], used: str) -> bool:
    """Whether another column may have the answers of systems, so that the one that is used has the accepted ones."""
    return any(plain_name(name) in FIELDS["answer"] for name in columns if name != used)


def _is_graded(found: Mapping[str, str]) -> bool:
    """Whether the columns of the fields that were found say that a system answered: its name, or a person's grade."""
    return bool(OF_SYSTEMS & {plain_name(column) for column in found.values()})


def _is_retrieved(sample: FileSample, column: str | None) -> bool:
    """Whether a search found the passages, so that a system answered from them."""
    try:
        return column is not None and any(are_retrieved(row.get(column)) for row in sample.rows)
    except WrongLineError:
        return False


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    """Records, with a note if only the scores of passages say whose the answers are."""
    yield from parse_rows(rows, finder, reject)
    found = {field: key for keys in finder.known_keys() for field, key in keys.items()}
    if {"answer", "passages"} <= found.keys() and "answer" not in finder.columns and _may_be_accepted(found):
        finder.notes.append(
            f"{found['answer']!r} is read as the system's answer, because a search found the passages; if it is the "
            f"accepted one: --map {quote_argument('accepted=' + found['answer'])}"
        )


FORMAT = LogFormat(
    name="log",
    title="a RAG log",
    expected="a question in each record, and an answer or passages",
    names=FIELDS,
    recognise=_recognise,
    parse=_parse,
).format()
