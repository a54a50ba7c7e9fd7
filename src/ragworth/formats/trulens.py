"""Read records of TruLens: ``get_records_and_feedback`` as a table, or records as JSON.

Feedback is grades, and versions of an app are systems. Passages are what the app's retrieval returned, or, where that
was not recorded, those in a column of a usual name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ragworth.formats.contract import FileSample
from ragworth.formats.fields import FIELDS, FieldFinder, plain_name, quote_argument
from ragworth.formats.grade_names import direction_of_name
from ragworth.formats.grade_words import Grade
from ragworth.formats.log_files import LogRows
from ragworth.formats.log_format import LogFormat, Reject
from ragworth.formats.log_passages import as_passages
from ragworth.formats.log_record import LogRecord
from ragworth.formats.log_values import as_grade, as_row
from ragworth.formats.tool_rows import find_field
from ragworth.formats.traces import TraceStep, parse_if_json, trace_parser
from ragworth.formats.values import WrongLineError, objects

CALLS = "_calls"
"""End of the columns with the calls of a feedback function."""

OTHERS = {"app_id", "app_json", "type", "record_id", "input", "output", "tags", "record_json", "cost_json", "perf_json"}
OTHERS |= {"ts", "latency", "total_tokens", "total_cost", "cost_currency", "app_name", "app_version", "num_events"}
OTHERS |= {"unnamed:_0", "__index_level_0__", "events"}
OTHERS |= {"expected_response", *(name for names in FIELDS.values() for name in names)}
STORED = ("record_json", "app_json", "cost_json", "perf_json", "num_events")
"""Columns that only TruLens has."""

COST = re.compile(r" feedback cost in \w+$")
UNKNOWN = "{} isn't known as feedback; if it is, say so: --map NAME={}, or [columns]"
RETRIEVAL = re.compile(r"retriev|relevant_documents|similarity_search|\bsearch\b")
"""In names of methods that return passages."""


def _recognise(sample: FileSample) -> bool:
    if sample.has("main_input", "main_output"):
        return True
    graded = any(f"{name}{CALLS}" in sample.columns for name in sample.columns)
    return sample.has("record_id", "input", "output") and (graded or sample.has_any(*STORED))


def _read(row: Mapping[str, Any], place: int, finder: FieldFinder) -> list[TraceStep]:
    """The steps of a record."""
    record = as_row(parse_if_json(row.get("record_json"))) or row
    name = str(row.get("record_id") or record.get("record_id") or f"row {place}")
    version = row.get("app_version")
    app = row.get("app_name") or row.get("app_id") or record.get("app_id")
    root = TraceStep(
        place,
        name,
        name,
        None,
        "",
        input=record.get("main_input", row.get("input")),
        output=record.get("main_output", row.get("output")),
        system=", ".join(str(each) for each in (app, version) if each) or None,
        grades={} if "main_input" in row else _read_feedback(row, finder),
        accepted=find_field(row, "accepted", ("expected_response", *FIELDS["accepted"])),
        failed=bool(record.get("main_error")),
    )
    found = list(_retrievals(objects(record.get("calls")), root))
    shown = find_field(row, "passages", FIELDS["passages"])
    if not found and shown is not None:
        found = [TraceStep(place, name, f"{name} contexts", name, "RETRIEVER", documents=shown)]
    return [root, *found]


def _retrievals(calls: list[dict[str, Any]], root: TraceStep) -> Iterator[TraceStep]:
    """The outermost calls that returned passages: those within them return the same."""
    found: list[tuple[int, dict[str, Any]]] = []
    for call in calls:
        stack = objects(call.get("stack"))
        method = as_row(stack[-1].get("method")) if stack else None
        if method and RETRIEVAL.search(str(method.get("name")).lower()) and _are_passages(call.get("rets")):
            found.append((len(stack), call))
    outermost = min((depth for depth, _ in found), default=0)
    for number, (depth, call) in enumerate(found):
        if depth == outermost:
            name = f"{root.id} call {number}"
            yield TraceStep(
                root.place, root.trace, name, root.id, "RETRIEVER", input=call.get("args"), documents=call["rets"]
            )


def _are_passages(value: Any) -> bool:
    try:
        return isinstance(value, list) and all(each.text is not None for each in as_passages(value) or ())
    except WrongLineError:
        return False


def _read_feedback(row: Mapping[str, Any], finder: FieldFinder) -> dict[str, Grade]:
    """Columns of feedback: those whose calls or costs are there, or numbers from 0 to 1 whose name says so."""
    grades: dict[str, Grade] = {}
    costed = {COST.sub("", name) for name in row if COST.search(name)}
    for name, value in row.items():
        about = plain_name(name) in OTHERS or name.endswith(CALLS) or COST.search(name)
        if about or name in finder.grades.values() or value == "" or not isinstance(value, str | int | float):
            continue
        grade = as_grade(value, name)
        number = grade if isinstance(grade, int | float) and not isinstance(grade, bool) else None
        named = number is not None and 0 <= number <= 1 and direction_of_name(name) != 0
        if f"{name}{CALLS}" in row or name in costed or named:
            grades[name] = grade
        elif number is not None and (note := _unknown_note(name)) not in finder.notes:
            finder.notes.append(note)
    return grades


def _unknown_note(name: str) -> str:
    return UNKNOWN.format(repr(name), quote_argument(name))


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    """Make a record of each row. A column that isn't feedback in one row is feedback in none."""
    for record in list(trace_parser(_read)(rows, finder, reject)):
        known = {name: each for name, each in record.outcomes.items() if _unknown_note(name) not in finder.notes}
        yield replace(record, outcomes=known)


FORMAT = LogFormat(
    name="trulens",
    title="records of TruLens",
    expected="record_id, app_name, input, output, record_json, columns of feedback; or main_input, main_output, calls",
    names={"query": ("record_id",), "question": ("input", "main_input"), "answer": ("output", "main_output")},
    recognise=_recognise,
    parse=_parse,
).format()
