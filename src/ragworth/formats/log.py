"""Read RAG logs with usual names of fields that belong to no library: JSON, JSON lines, CSV or Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ragworth.formats.contract import FileSample
from ragworth.formats.log_files import LogRows
from ragworth.formats.logs.engine import LogFormat, Reject, parse_rows
from ragworth.formats.logs.fields import FIELDS, GRADE_FIELDS, PREDICTIONS, FieldFinder, plain_name, quote_argument
from ragworth.formats.logs.records import LogRecord

NAMES = FIELDS | GRADE_FIELDS
TABLE_COLUMNS = {"passage", "passage_id", "doc_id", "docno", "docid", "corpus-id", "aspect", "text"}
"""Columns of our own tables."""

UNSURE_ANSWERS = ("answer", "output", "result")
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
    if "accepted" in found:
        return True
    if "answer" in found:
        return found["answer"].lower() not in UNSURE_ANSWERS or _is_graded(found)
    return "passages" in found and found["passages"].lower() not in ("context", "sources", "docs", "documents")


def _is_graded(found: Mapping[str, str]) -> bool:
    """Whether the columns of the fields that were found say that a system answered: its name, or a person's grade."""
    return bool(OF_SYSTEMS & {plain_name(column) for column in found.values()})


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    """Records, with a note if an ``answer`` beside a prediction is read as the accepted one."""
    yield from parse_rows(rows, finder, reject, doubt=True)
    found = {field: key for keys in finder.known_keys() for field, key in keys.items()}
    if plain_name(found.get("accepted", "")) == "answer" and "accepted" not in finder.columns:
        finder.notes.append(
            f"{found['accepted']!r} is read as the accepted answer, because {found['answer']!r} is the system's; to "
            f"change that: --map {quote_argument('answer=' + found['accepted'])}"
        )


FORMAT = LogFormat(
    name="log",
    title="a RAG log",
    expected="a question in each record, and an answer or passages",
    names=FIELDS,
    recognise=_recognise,
    general=2,
    parse=_parse,
).format()
