"""Read runs exported from LangSmith: JSON, JSON lines, CSV or Parquet.

A request is called ``inputs``, and its result ``outputs``. A trace may also have the runs inside it, such as those of
retrievers. In CSV, objects are JSON, or spread over columns: ``inputs.question``, ``outputs.answer``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragworth.formats.contract import FileSample
from ragworth.formats.grades import Grade
from ragworth.formats.log_files import LogRows
from ragworth.formats.logs.engine import LogFormat, Reject, parse_rows
from ragworth.formats.logs.fields import FIELDS, FieldFinder
from ragworth.formats.logs.records import LogRecord
from ragworth.formats.logs.values import as_grade, as_grades, as_row, parse_cell
from ragworth.formats.traces import TraceStep, find_documents, trace_records
from ragworth.formats.values import WrongLineError

SIGNS = {"run_type", "trace_id", "dotted_order", "reference_example_id", "example_id", "session_id", "feedback_stats"}
REFERENCES = ("reference_outputs", "reference_output", "reference", "targets", "ground_truth", "expected")
SYSTEMS = ("session_name", "project_name", "experiment", "experiment_name", "session_id")
SPREAD = ("inputs.", "outputs.", "feedback.", *(f"{name}." for name in REFERENCES))
KINDS = {"retriever": "RETRIEVER", "llm": "LLM"}
_OWN = " documents"
"""End of the id of a step that stands for the documents in the output of a request."""


def _recognise(sample: FileSample) -> bool:
    if any(column.startswith("inputs.") for column in sample.columns):
        answered = any(f"inputs.{name}" in sample.columns for name in FIELDS["answer"])  # evaluations of Azure
        return not answered and any(column.startswith("outputs.") for column in sample.columns)
    return sample.has("inputs", "outputs") and sample.has_any(*SIGNS, *REFERENCES)


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    if set(finder.columns) & set(FIELDS):  # the user says where everything is
        yield from parse_rows(rows, finder, reject)
        return
    steps: list[TraceStep] = []
    for place, value in rows.values:
        row = as_row(value)
        if row is None:
            reject(place, "not an object")
            continue
        try:
            mapped = {name: as_grades(finder.get(row, name), name) for name in finder.grades}
            for run in _with_inner_runs(_gather(row)):
                steps += _read_run(run, place, mapped)
                mapped = {}  # they are those of the request
        except WrongLineError as error:
            reject(place, str(error))
    searched = {step.trace for step in steps if step.kind == "RETRIEVER" and not step.id.endswith(_OWN)}
    # The documents in the output of a request are those of its retriever, if the file has that.
    yield from trace_records((s for s in steps if not (s.id.endswith(_OWN) and s.trace in searched)), finder, reject)


def _gather(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the columns of an object put together again."""
    gathered: dict[str, Any] = {}
    for name, value in row.items():
        prefix = next((each for each in SPREAD if name.startswith(each)), None)
        if prefix is None:
            gathered.setdefault(name, parse_cell(value, name))
        elif value not in (None, ""):
            gathered.setdefault(prefix[:-1], {})[name.removeprefix(prefix)] = parse_cell(value, name)
    return gathered


def _with_inner_runs(row: Mapping[str, Any], trace: str = "", parent: str = "") -> Iterator[Mapping[str, Any]]:
    """A run, and those in its ``child_runs``, however deep."""
    trace = trace or str(row.get("trace_id") or row.get("id") or "")
    known = {"trace_id": trace, "parent_run_id": parent} if parent else {}
    run = {**row, **{name: value for name, value in known.items() if not row.get(name)}}
    yield run
    inner = row.get("child_runs")
    for number, each in enumerate(inner if isinstance(inner, list) else []):
        if isinstance(each, Mapping):
            name = str(each.get("id") or f"{row.get('id')}/{number}")
            yield from _with_inner_runs({**each, "id": name}, trace, str(row.get("id") or trace))


def _read_run(row: Mapping[str, Any], place: int, mapped: Mapping[str, Grade | list[Grade]]) -> Iterator[TraceStep]:
    trace = str(row.get("trace_id") or row.get("id") or f"row {place}")
    name, parent = str(row.get("id") or trace), row.get("parent_run_id")
    kind, outputs = KINDS.get(str(row.get("run_type")), ""), row.get("outputs")
    documents = find_documents(outputs)
    yield TraceStep(
        place,
        trace,
        name,
        str(parent) if parent else None,
        kind,
        input=row.get("inputs"),
        output=outputs,
        documents=documents if kind == "RETRIEVER" else None,
        system=next((str(row[each]) for each in SYSTEMS if row.get(each)), None),
        grades={**_read_grades(row), **mapped},
        accepted=next((row[each] for each in REFERENCES if row.get(each) not in (None, "", [], {})), None),
    )
    if not parent and kind != "RETRIEVER" and documents is not None:
        yield TraceStep(place, trace, f"{name}{_OWN}", name, "RETRIEVER", documents=documents)


def _read_grades(row: Mapping[str, Any]) -> dict[str, list[Grade]]:
    """Feedback by its key: numbers or words, or objects with one."""
    grades: dict[str, list[Grade]] = {}
    for part in (row.get("feedback_stats"), row.get("feedback")):
        named = list(part.items()) if isinstance(part, Mapping) else []
        if isinstance(part, list):
            named = [(each.get("key"), each) for each in part if isinstance(each, Mapping)]
        given: dict[str, list[Grade]] = {}
        for name, value in named:
            inner = value.get("avg", value.get("score")) if isinstance(value, Mapping) else value
            given.setdefault(str(name), []).append(as_grade(inner, str(name)))
        grades |= given  # the statistics are those of the feedback
    return {name: each for name, each in grades.items() if any(grade is not None for grade in each)}


FORMAT = LogFormat(
    name="langsmith",
    title="runs of LangSmith",
    expected='runs: {"id": …, "inputs": {…}, "outputs": {…}, "reference_outputs": {…}}',
    names={"question": ("inputs",), "answer": ("outputs",), "accepted": ("reference_outputs",)},
    recognise=_recognise,
    parse=_parse,
).format()
