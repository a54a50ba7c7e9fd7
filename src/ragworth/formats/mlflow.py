"""Read traces of MLflow, tables of traces, and tables of ``mlflow.evaluate`` and ``mlflow.genai.evaluate``.

Expectations are accepted answers, feedback is grades. Feedback of people is kept apart from that of judges. Several
runs in a file are several systems. Tables may be JSON with ``columns`` and ``data``, as MLflow stores them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ragworth.formats.contract import FileSample
from ragworth.formats.grades import Grade
from ragworth.formats.logs.engine import LogFormat
from ragworth.formats.logs.fields import FIELDS, FieldFinder, plain_name
from ragworth.formats.logs.messages import find_question, parse_if_json
from ragworth.formats.logs.tool_rows import find_field
from ragworth.formats.logs.values import as_grade, as_row
from ragworth.formats.traces import TraceStep, find_documents, trace_parser
from ragworth.formats.values import objects

KINDS = {"CHAT_MODEL": "LLM"}
METRIC = re.compile(r"(.+?)(?:/v\d+)?/(?:score|value)")
"""Columns of grades: ``answer_correctness/v1/score`` and ``correctness/value``."""

QUESTIONS = ("inputs", "request", *FIELDS["question"])
ANSWERS = ("outputs", "predictions", *FIELDS["answer"])
REFERENCES = ("expected_response", "targets", *FIELDS["accepted"])
SIGNS = ("targets", "retrieved_context", "expectations")
RUNS = ("mlflow.sourceRun", "mlflow.modelId")
"""What tells systems apart in the metadata of traces."""

WRAPPERS = ("model_input", "inputs", "request", "state")
"""Names of arguments in which applications get a question."""

FACTS = "expected facts are not read as accepted answers, because an answer needs all of them"
FAILED = ("ERROR", "STATUS_CODE_ERROR")


def _recognise(sample: FileSample) -> bool:
    document = sample.document if isinstance(sample.document, Mapping) else {}
    rows = _unpack(document) or sample.rows
    row = rows[0] if rows else {}
    if not isinstance(row, Mapping):
        return False
    spans = _spans(row)
    if any("mlflow.spanInputs" in (as_row(span.get("attributes")) or {}) for span in spans):
        return True
    graded = any(METRIC.fullmatch(str(column)) for column in row)
    return {"inputs", "outputs"} <= set(row) and (graded or any(name in row for name in SIGNS))


def _unpack(value: Mapping[str, Any]) -> list[Any] | None:
    """The traces of a search, or the rows of a table that is written by columns."""
    if isinstance(value.get("traces"), list):
        return value["traces"]  # type: ignore[no-any-return]
    columns, data = value.get("columns"), value.get("data")
    if not isinstance(columns, list) or not isinstance(data, list):
        return None
    names = [str(column) for column in columns]
    return [dict(zip(names, row, strict=False)) if isinstance(row, list) else row for row in data]


def _spans(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    data = as_row(row.get("data")) or row
    return objects(parse_if_json(data.get("spans")))


def _read(row: Mapping[str, Any], place: int, finder: FieldFinder) -> list[TraceStep]:
    """The steps of a trace, or of a row of a table that may have a trace in it. The first has the question."""
    trace = as_row(parse_if_json(row.get("trace"))) or row
    info, data = as_row(trace.get("info")) or trace, as_row(trace.get("data")) or trace
    name = str(info.get("trace_id") or info.get("request_id") or f"row {place}")
    if trace is row and "inputs" in row:
        name = f"row {place}"  # in a table without traces, the id is that of the inputs
    metadata = {**(as_row(info.get("request_metadata")) or {}), **(as_row(info.get("trace_metadata")) or {})}
    steps = [_read_span(span, name, place) for span in _spans(trace)]
    known, whole = {step.id for step in steps}, f"trace {name}"
    steps = [step if step.parent in known else step._replace(parent=whole) for step in steps]
    outer = next((step for step in steps if step.parent == whole), TraceStep(place, name, whole, None, ""))
    asked = (find_field(data, "question", QUESTIONS), find_field(row, "question", QUESTIONS), outer.input)
    answered = (find_field(data, "answer", ANSWERS), find_field(row, "answer", ANSWERS), outer.output)
    assessments = objects(parse_if_json(info.get("assessments")))
    root = TraceStep(
        place,
        name,
        whole,
        None,
        "",
        input=next((found for each in asked if (found := _find_question(each))), None),
        output=next((each for each in answered if each is not None), None),
        system=next((str(metadata[each]) for each in RUNS if metadata.get(each)), None),
        grades={**_read_feedback(assessments), **_read_metrics(row)},
        accepted=_find_references(row, assessments, finder),
        failed=outer.failed or info.get("state", info.get("status")) in FAILED or bool(row.get("error_message")),
    )
    shown = find_field(row, "passages", FIELDS["passages"])
    shown = find_documents(parse_if_json(root.output)) if shown is None else shown
    if shown is not None and not any(step.kind in ("RETRIEVER", "RERANKER") for step in steps):
        steps.append(TraceStep(place, name, f"{whole} documents", whole, "RETRIEVER", documents=shown))
    return [root, *steps]


def _read_span(span: Mapping[str, Any], trace: str, place: int) -> TraceStep:
    """A span; its attributes are JSON. In older versions, its id is in its context."""
    facts = as_row(span.get("attributes")) or {}
    context, status = as_row(span.get("context")) or {}, as_row(span.get("status")) or {}
    inputs, output, kind = (parse_if_json(facts.get(f"mlflow.span{part}")) for part in ("Inputs", "Outputs", "Type"))
    kind = KINDS.get(str(kind), str(kind))
    documents = output if isinstance(output, list) else find_documents(output)
    return TraceStep(
        place,
        trace,
        str(span.get("span_id") or context.get("span_id") or f"span {span.get('name')}"),
        str(span.get("parent_span_id") or span.get("parent_id") or ""),
        kind,
        input=inputs,
        output=output,
        documents=(documents or []) if kind in ("RETRIEVER", "RERANKER") else None,
        failed=status.get("code", span.get("status_code")) in FAILED,
    )


def _find_question(value: Any) -> str | None:
    """The question in an input: under a usual name, within an argument of the application, or the only text."""
    value = parse_if_json(value)
    if (found := find_question(value)) is not None or not isinstance(value, Mapping):
        return found
    inside = (find_question(value[name]) for name in WRAPPERS if name in value)
    texts = [each for each in value.values() if isinstance(each, str) and each.strip()]
    return next((text for text in inside if text), texts[0] if len(texts) == 1 else None)


def _find_references(row: Mapping[str, Any], assessments: list[dict[str, Any]], finder: FieldFinder) -> Any:
    """The expected response: of a trace, of a row, or in a column of its own. Expected facts are parts of an answer.

    Expectations that are a plain text are the expected response.
    """
    expected = {str(each.get("assessment_name") or each.get("name")): each.get("expectation") for each in assessments}
    values = {name: each["value"] for name, each in expected.items() if isinstance(each, Mapping) and "value" in each}
    columns = {name.removesuffix("/value"): each for name, each in row.items()}
    given = parse_if_json(row.get("expectations"))
    plain = {"expected_response": given} if isinstance(given, str) and given.strip()[:1] not in ("", "{", "[") else {}
    places = (values, as_row(given) or plain, columns)
    found = next((each for place in places if (each := find_field(place, "accepted", REFERENCES)) is not None), None)
    if found is None and any("expected_facts" in place for place in places) and FACTS not in finder.notes:
        finder.notes.append(FACTS)
    return found


def _read_feedback(assessments: list[dict[str, Any]]) -> dict[str, list[Grade]]:
    """Feedback by name. An assessment that another replaced is not valid any more."""
    grades: dict[str, list[Grade]] = {}
    for about in assessments:
        feedback, source = as_row(about.get("feedback")), as_row(about.get("source")) or {}
        if feedback is None or about.get("valid") is False:
            continue
        name = str(about.get("assessment_name") or about.get("name"))
        person = source.get("source_type") == "HUMAN" and "human" not in name.lower()
        failed = feedback.get("error") or about.get("error")
        value = feedback.get("value")
        of_name = grades.setdefault(f"human_{name}" if person else name, [])
        of_name += [
            None if failed or isinstance(each, Mapping) else as_grade(each, name)
            for each in (value if isinstance(value, list) else [value])
        ]
    return grades


def _read_metrics(row: Mapping[str, Any]) -> dict[str, list[Grade]]:
    """Columns of grades, except for expectations."""
    named = [(match[1], value) for name, value in row.items() if (match := METRIC.fullmatch(str(name))) and value != ""]
    kept = [
        (name, value)
        for name, value in named
        if plain_name(name) not in REFERENCES and not isinstance(value, Mapping | list)
    ]
    return {name: [as_grade(value, name)] for name, value in kept if not name.startswith("expected_")}


FORMAT = LogFormat(
    name="mlflow",
    title="traces or evaluation tables of MLflow",
    expected='traces {"info": {…}, "data": {"spans": […]}}, or rows with inputs, outputs, targets or expectations',
    names={
        "question": ("inputs",),
        "answer": ("outputs",),
        "accepted": ("targets",),
        "passages": ("retrieved_context",),
    },
    recognise=_recognise,
    unpack=_unpack,
    parse=trace_parser(_read),
).format()
