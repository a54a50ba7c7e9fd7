"""Read results of open-rag-eval's connectors: a CSV with one row for each passage of a query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ragworth.core.errors import quote_short
from ragworth.formats.contract import FileSample
from ragworth.formats.log_files import LogRows
from ragworth.formats.logs.engine import LogFormat, Reject
from ragworth.formats.logs.fields import FieldFinder
from ragworth.formats.logs.records import LoggedPassage, LogRecord
from ragworth.formats.logs.values import as_answer, as_name, as_repeat, as_row, as_texts
from ragworth.formats.values import WrongLineError, as_text

NAMES = {
    "query": ("query_id",),
    "question": ("query",),
    "system": ("system", "run_id"),
    "repeat": ("query_run",),
    "passages": ("passage",),
    "passage_ids": ("passage_id",),
    "answer": ("generated_answer",),
    "accepted": ("expected_answer",),
}
FAILED = ("NO_ANSWER", "API_ERROR")
"""What open-rag-eval writes where there is no answer."""


def _recognise(sample: FileSample) -> bool:
    return sample.has("query", "passage", "generated_answer")


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    """Rows of the same query and run, which need not be neighbours, are one record."""
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for place, value in rows.values:
        try:
            row = as_row(value)
            if row is None:
                raise WrongLineError("not an object")
            _add(groups, row, finder, place)
        except WrongLineError as error:
            reject(place, str(error))
    for group in groups.values():
        answer = group.pop("answer")
        failed = answer in FAILED
        status = answer.lower().replace("_", "-") if failed else ""
        yield LogRecord(**group, answer=None if failed else answer, status=status)


def _add(groups: dict[tuple[Any, ...], dict[str, Any]], row: Any, finder: FieldFinder, place: int) -> None:
    question = as_text(finder.get(row, "question"), "query")
    query = as_name(finder.get(row, "query"), "query_id", cells=True)
    system = as_name(finder.get(row, "system"), "system", cells=True)
    run = as_repeat(finder.get(row, "repeat"))
    passage, name = finder.get(row, "passages"), as_name(finder.get(row, "passage_ids"), "passage_id", cells=True)
    answer = as_answer(finder.get(row, "answer"), "generated_answer")
    group = groups.setdefault(
        (system, query, question, run),
        {
            "place": place,
            "query": query,
            "question": question,
            "system": system,
            "repeat": max(run - 1, 0),  # runs count from 1
            "passages": [],
            "answer": answer,
            "accepted": as_texts(finder.get(row, "accepted"), cells=True),
        },
    )
    if answer is not None and group["answer"] not in (None, answer):
        raise WrongLineError(f"query {quote_short(query or question, 24)} has two different answers in one run")
    group["answer"] = answer if group["answer"] is None else group["answer"]
    if passage is not None and str(passage).strip() and answer not in FAILED:
        group["passages"].append(LoggedPassage(as_text(passage, "passage"), name))


FORMAT = LogFormat(
    name="open-rag-eval",
    title="results of open-rag-eval",
    expected="query_id, query, query_run, passage_id, passage, generated_answer",
    names=NAMES,
    recognise=_recognise,
    parse=_parse,
).format()
