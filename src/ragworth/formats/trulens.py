"""Read records of TruLens: ``get_records_and_feedback`` as a table, or records as JSON.

Feedback is grades, and versions of an app are systems. Passages are what the app's retrieval returned, or, where that
was not recorded, those in a column of a usual name, or the contexts that feedback functions were called with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ragworth.formats.contract import FileSample
from ragworth.formats.grades import Grade, direction_of_name
from ragworth.formats.logs.engine import LogFormat
from ragworth.formats.logs.fields import FIELDS, FieldFinder
from ragworth.formats.logs.messages import parse_if_json
from ragworth.formats.logs.passages import as_passages
from ragworth.formats.logs.tool_rows import find_field
from ragworth.formats.logs.values import as_grade, as_row
from ragworth.formats.traces import TraceStep, trace_parser
from ragworth.formats.values import WrongLineError, objects

CALLS = "_calls"
"""End of the columns with the calls of a feedback function."""

STORED = ("record_json", "app_json", "cost_json", "perf_json", "num_events")
"""Columns that only TruLens has."""

COST = re.compile(r" feedback cost in \w+$")
RETRIEVAL = re.compile(r"retriev|relevant_documents|similarity_search|\bsearch\b")
"""In names of methods that return passages."""

CONTEXTS = ("context", "contexts", "source")
"""Arguments of feedback functions that are passages."""


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
    return [root, *(found or _graded_contexts(row, root))]


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


def _graded_contexts(row: Mapping[str, Any], root: TraceStep) -> Iterator[TraceStep]:
    """The contexts that feedback functions got: one in each call, or all in one."""
    for name, calls in row.items():
        arguments = (
            [as_row(call.get("args")) or {} for call in objects(parse_if_json(calls))] if name.endswith(CALLS) else []
        )
        texts = [each for args in arguments if (each := find_field(args, "context", CONTEXTS)) is not None]
        flat = [text for each in texts for text in (each if isinstance(each, list) else [each])]
        if flat and _are_passages(flat):
            yield TraceStep(root.place, root.trace, f"{root.id} contexts", root.id, "RETRIEVER", documents=flat)
            return


def _read_feedback(row: Mapping[str, Any], finder: FieldFinder) -> dict[str, Grade]:
    """Columns of feedback: those whose calls or costs are there, or with the name of a known grade."""
    costed = {COST.sub("", name) for name in row if COST.search(name)}
    return {
        name: as_grade(value, name)
        for name, value in row.items()
        if isinstance(value, str | int | float)
        and value != ""
        and not name.endswith(CALLS)
        and name not in finder.grades.values()
        and (f"{name}{CALLS}" in row or name in costed or direction_of_name(name) != 0)
    }


FORMAT = LogFormat(
    name="trulens",
    title="records of TruLens",
    expected="record_id, app_name, input, output, record_json, columns of feedback; or main_input, main_output, calls",
    names={"query": ("record_id",), "question": ("input", "main_input"), "answer": ("output", "main_output")},
    recognise=_recognise,
    parse=trace_parser(_read),
).format()
