"""Traces of the tools that are known: OpenTelemetry, Phoenix, Langfuse, LangSmith, MLflow and TruLens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ragworth.formats.grades import direction_of_name
from ragworth.formats.logs.names import FIELDS, plain_name
from ragworth.formats.logs.paths import find
from ragworth.formats.logs.traces import Span, TraceSpec, list_objects
from ragworth.formats.logs.values import as_row, parse_if_json
from ragworth.formats.values import as_dict, as_list, as_text, objects

NamedGrades = Iterator[tuple[Any, Any]]

INDEXED = re.compile(r"^(.+?)\.(\d+)\.(.+)$")


def read_spans(document: Span) -> Iterator[Span]:
    """Read the spans of OTLP, with the attributes of their resource."""
    for resource in list_objects(find(document, "resourceSpans | resource_spans"), "resourceSpans"):
        about = read_attributes(find(resource, "resource.attributes") or [])
        for scope in list_objects(find(resource, "scopeSpans | scope_spans"), "scopeSpans"):
            for span in list_objects(scope.get("spans"), "spans"):
                attributes = group_indexed(read_attributes(span.get("attributes", [])))
                yield {**span, "attributes": attributes, "resource": about}


def read_attributes(attributes: Any) -> dict[str, Any]:
    """Read OTLP's list of keys and typed values."""
    pairs = [as_dict(each, "an attribute") for each in as_list(attributes, "attributes")]
    return {as_text(pair.get("key"), "key of an attribute"): _read_typed(pair.get("value")) for pair in pairs}


def _read_typed(value: Any) -> Any:
    """A value of OTLP: ``{"stringValue": …}`` and the like."""
    kind, inner = next(iter(as_dict(value, "the value of an attribute").items()), ("", None))
    if kind in ("arrayValue", "array_value"):
        return [_read_typed(each) for each in as_list(as_dict(inner, "an array").get("values", []), "values")]
    return read_attributes(as_dict(inner, "a list of keys").get("values", [])) if kind.startswith("kvlist") else inner


def group_indexed(attributes: Span) -> dict[str, Any]:
    """Gather attributes such as ``retrieval.documents.0.document.content`` in lists of objects."""
    lists: dict[str, dict[int, dict[str, Any]]] = {}
    for name, value in attributes.items():
        if value is not None and (match := INDEXED.match(name)):
            lists.setdefault(match[1], {}).setdefault(int(match[2]), {})[match[3]] = value
    return {**{name: [items[number] for number in sorted(items)] for name, items in lists.items()}, **attributes}


def read_evaluations(span: Span) -> NamedGrades:
    """Read ``gen_ai.evaluation.result`` events."""
    for event in list_objects(span.get("events"), "events"):
        if event.get("name") == "gen_ai.evaluation.result":
            facts = read_attributes(event.get("attributes", []))
            score, label = (facts.get(f"gen_ai.evaluation.score.{part}") for part in ("value", "label"))
            yield facts.get("gen_ai.evaluation.name"), label if score is None else score


OTLP = TraceSpec(
    name="otlp",
    title="OpenTelemetry traces (OTLP JSON)",
    expected='{"resourceSpans": [{"scopeSpans": [{"spans": […]}]}]}, with retriever and LLM spans',
    signs=("resourceSpans|resource_spans",),
    spans=read_spans,
    trace="traceId | trace_id",
    id="spanId | span_id",
    parent="parentSpanId | parent_span_id",
    kind="attributes.openinference.span.kind | attributes.gen_ai.operation.name",
    input="attributes.llm.input_messages | attributes.input.value | attributes.gen_ai.retrieval.query.text"
    " | attributes.gen_ai.input.messages | attributes.traceloop.entity.input",
    output="attributes.llm.output_messages | attributes.gen_ai.output.messages | attributes.output.value"
    " | attributes.traceloop.entity.output | attributes.gen_ai.completion",
    retrieved="attributes.reranker.output_documents | attributes.retrieval.documents"
    " | attributes.gen_ai.retrieval.documents",
    system="resource.openinference.project.name | resource.service.name",
    grades=read_evaluations,
)


def read_columns(row: Span) -> Iterator[Span]:
    """Read a span whose attributes are columns, such as ``attributes.input.value``, or an object."""
    columns = {name.removeprefix("attributes."): row[name] for name in row if name.startswith("attributes.")}
    yield {**row, "attributes": group_indexed({**(as_row(row.get("attributes")) or {}), **columns})}


def read_annotations(row: Span) -> NamedGrades:
    """Read columns such as ``eval.QA Correctness.score``, or of labels if there is no score."""
    columns = {name: row[name] for name in row if name.startswith("eval.") and row[name] not in (None, "")}
    for column, value in columns.items():
        name, _, part = column.removeprefix("eval.").rpartition(".")
        if part == "score" or (part == "label" and f"eval.{name}.score" not in columns):
            yield name, value


PHOENIX = replace(
    OTLP,
    name="phoenix",
    title="spans exported from Phoenix",
    expected="context.trace_id, context.span_id, parent_id, span_kind, attributes.input.value, …",
    signs=("context.span_id", "context.trace_id"),
    rows="data | spans",
    spans=read_columns,
    trace="context.trace_id",
    id="context.span_id",
    parent="parent_id",
    kind=f"span_kind | {OTLP.kind}",
    system="",
    grades=read_annotations,
)


def read_scores(row: Span) -> NamedGrades:
    """Read the scores of a trace. The number of a category is only its place in a list, so its word counts."""
    for score in list_objects(find(row, "scores | trace.scores"), "scores"):
        category = score.get("dataType") == "CATEGORICAL"
        if score.get("name") and score.get("dataType") != "TEXT":
            yield score["name"], find(score, "stringValue | value" if category else "value | stringValue")


LANGFUSE = TraceSpec(
    name="langfuse",
    title="traces exported from Langfuse",
    expected='traces: {"id": …, "input": …, "output": …, "observations": […], "scores": […]}; or observations',
    signs=(
        "observations id|trace",
        "traceId|trace_id type input|output",
        "id input output sessionId|session_id|userId|user_id|projectId|project_id|htmlPath|bookmarked",
    ),
    rows="data",
    inside="observations",
    trace="traceId | trace_id | trace.id | id",
    id="trace.id | id",
    parent="parentObservationId | parent_observation_id",
    kind="type",
    input="trace.input | input",
    output="trace.output | output",
    retrieved="output@documents | output.results | output.nodes | output",
    grades=read_scores,
)


def join_columns(row: Span) -> Iterator[Span]:
    """Join columns such as ``inputs.question`` to the objects that they are of."""
    objects: dict[str, dict[str, Any]] = {}
    for name, value in row.items():
        outer, _, inner = name.partition(".")
        if inner and outer in ("inputs", "outputs", "reference", "reference_outputs", "feedback") and value is not None:
            objects.setdefault(outer, {})[inner] = value
    yield {**row, **objects}


def read_feedback(run: Span) -> NamedGrades:
    """Read feedback by its key: numbers or words, or objects with one. The statistics are those of the feedback."""
    stats, feedback = parse_if_json(run.get("feedback_stats")), parse_if_json(run.get("feedback"))
    values = [(each.get("key"), each) for each in objects(feedback)]
    values += [*feedback.items()] if isinstance(feedback, Mapping) else []
    named = {name for name, _ in values}
    values += [pair for pair in stats.items() if pair[0] not in named] if isinstance(stats, Mapping) else []
    for name, value in values:
        grade = find(value, "avg | score") if isinstance(value, Mapping) else value
        if grade is not None:
            yield name, grade


LANGSMITH = TraceSpec(
    name="langsmith",
    title="runs of LangSmith",
    expected='runs: {"id": …, "inputs": {…}, "outputs": {…}, "reference_outputs": {…}}',
    signs=(
        "inputs outputs run_type|dotted_order|child_runs|feedback_stats|session_id|reference_example_id|example_id",
        "inputs outputs reference_outputs|reference",
        "inputs.* outputs.* !inputs !inputs.response !inputs.answer",
    ),
    spans=join_columns,
    ids=False,
    inside="child_runs",
    trace="trace_id | id",
    id="id",
    parent="parent_run_id",
    kind="run_type",
    input="inputs",
    output="outputs",
    retrieved="outputs@documents | outputs.output | outputs",
    shown="outputs@documents",
    system="session_name | project_name | experiment | experiment_name | session_id",
    accepted="reference_outputs | reference_output | reference | targets | ground_truth | expected",
    grades=read_feedback,
)

METRIC = re.compile(r"(.+?)(?:/v\d+)?/(?:score|value)")
"""Columns of grades: ``answer_correctness/v1/score`` and ``correctness/value``."""


def join_trace(row: Span) -> Iterator[Span]:
    """Join what is known of a trace of MLflow: its info, its data, and the row of a table that it is in."""
    trace = as_row(parse_if_json(row.get("trace"))) or row
    info, data = (as_row(parse_if_json(trace.get(part))) or {} for part in ("info", "data"))
    joined = {**row, **info, **data}
    expected = {name[: -len("/value")]: value for name, value in row.items() if name.endswith("/value")}
    stated = parse_if_json(row.get("expectations"))
    expected |= stated if isinstance(stated, Mapping) else {"expected_response": stated} if stated else {}
    joined["assessments"] = list_objects(joined.get("assessments"), "assessments")
    for each in joined["assessments"]:
        if (value := find(each, "expectation.value")) is not None:
            expected[str(find(each, "assessment_name | name"))] = value
    yield {**joined, "expectations": expected}


def read_assessments(row: Span) -> NamedGrades:
    """Read columns of metrics, and feedback. People's is apart from judges'; what was replaced isn't valid."""
    columns = {match[1]: value for name, value in row.items() if (match := METRIC.fullmatch(name)) and value != ""}
    for name, value in columns.items():
        expectation = name.startswith("expected_") or plain_name(name) in FIELDS["accepted"]
        if not expectation and not isinstance(value, Mapping | list):
            yield name, value
    for each in list_objects(row.get("assessments"), "assessments"):
        name = str(find(each, "assessment_name | name"))
        if each.get("feedback") is None or each.get("valid") is False:
            continue
        feedback = as_dict(each["feedback"], "feedback")
        if find(each, "source.source_type") == "HUMAN" and "human" not in name.lower():
            name = f"human_{name}"
        value = None if feedback.get("error") or each.get("error") else feedback.get("value")
        values = value if isinstance(value, list) else [value]
        yield from ((name, None if isinstance(grade, Mapping) else grade) for grade in values if name not in columns)


MLFLOW = TraceSpec(
    name="mlflow",
    title="traces or evaluation tables of MLflow",
    expected='traces {"info": {…}, "data": {"spans": […]}}, or rows with inputs, outputs, targets or expectations',
    signs=(
        "info.trace_id|info.request_id data.spans",
        "request response trace_metadata|request_metadata|spans",
        "inputs outputs targets|retrieved_context|expectations|*/score|*/value !run_type !reference_outputs",
    ),
    rows="traces",
    spans=join_trace,
    inside="spans",
    ids=False,
    whole=True,
    trace="trace_id | request_id",
    id="span_id | context.span_id",
    parent="parent_span_id | parent_id",
    kind="attributes.mlflow.spanType",
    input="request | inputs | spans.0.attributes.mlflow.spanInputs | attributes.mlflow.spanInputs",
    output="outputs | predictions | response | spans.0.attributes.mlflow.spanOutputs | attributes.mlflow.spanOutputs",
    retrieved="attributes.mlflow.spanOutputs@documents | attributes.mlflow.spanOutputs",
    shown="@passages | outputs@documents | response@documents",
    system="trace_metadata.mlflow.sourceRun | request_metadata.mlflow.sourceRun | trace_metadata.mlflow.modelId",
    accepted="expectations.expected_response | expectations@accepted | targets | @accepted",
    failed="state | status",
    grades=read_assessments,
)


def read_record(row: Span) -> Iterator[Span]:
    """Read a record of TruLens: its outermost retrievals, and its system."""
    record = as_row(parse_if_json(row.get("record_json"))) or row
    names = (find(row, "app_name | app_id") or record.get("app_id"), row.get("app_version"))
    retrievals: dict[int, list[Span]] = {}
    for call in list_objects(record.get("calls"), "calls"):
        stack = objects(call.get("stack"))
        method = str(find(stack, f"{len(stack) - 1}.method.name")).lower()
        if ("retriev" in method or "relevant_documents" in method) and isinstance(call.get("rets"), list):
            retrievals.setdefault(len(stack), []).append({**call, "kind": "RETRIEVER"})
    yield {
        **row,
        "system": ", ".join(str(each) for each in names if each),
        "state": "ERROR" if record.get("main_error") else None,
        "retrievals": retrievals[min(retrievals)] if retrievals else [],
    }


def read_feedback_columns(row: Span) -> NamedGrades:
    """Read columns of feedback: the calls of the function are in another one, or the name is that of a known grade."""
    for name, value in row.items():
        if value not in (None, "") and (f"{name}_calls" in row or direction_of_name(name)):
            yield name, value


TRULENS = TraceSpec(
    name="trulens",
    title="records of TruLens",
    expected="record_id, app_name, input, output, record_json, columns of feedback; or main_input, main_output, calls",
    signs=("main_input main_output", "record_id input output *_calls|record_json"),
    spans=read_record,
    inside="retrievals",
    ids=False,
    whole=True,
    trace="record_id | record_json.record_id",
    id="record_id | record_json.record_id",
    kind="kind",
    input="record_json.main_input | main_input | input | args",
    output="record_json.main_output | main_output | output",
    retrieved="rets",
    shown="@passages",
    system="system",
    accepted="expected_response | @accepted",
    failed="state",
    grades=read_feedback_columns,
)

OTLP_FORMAT, PHOENIX_FORMAT, LANGFUSE_FORMAT = OTLP.format(), PHOENIX.format(), LANGFUSE.format()
LANGSMITH_FORMAT, MLFLOW_FORMAT, TRULENS_FORMAT = LANGSMITH.format(), MLFLOW.format(), TRULENS.format()
