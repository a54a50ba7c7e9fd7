"""Read traces in OpenTelemetry's JSON (OTLP), with the attributes of OpenInference or of the GenAI conventions.

Results of evaluations (``gen_ai.evaluation.result`` events) become outcomes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ragworth.formats.contract import FileSample
from ragworth.formats.log_files import LogRows
from ragworth.formats.logs.engine import LogFormat, Reject
from ragworth.formats.logs.fields import FieldFinder
from ragworth.formats.logs.messages import parse_if_json
from ragworth.formats.logs.records import LogRecord
from ragworth.formats.logs.values import as_row
from ragworth.formats.traces import TraceStep, trace_records
from ragworth.formats.values import WrongLineError, as_dict, as_list

KINDS = {"chat": "LLM", "text_completion": "LLM", "generate_content": "LLM", "retrieval": "RETRIEVER"}
"""Kinds of steps by the operation of GenAI's conventions."""

INPUTS = ("input.value", "gen_ai.retrieval.query.text", "gen_ai.input.messages", "traceloop.entity.input")
OUTPUTS = ("gen_ai.output.messages", "output.value", "traceloop.entity.output", "gen_ai.completion.0.content")
DOCUMENTS = ("reranker.output_documents", "retrieval.documents", "gen_ai.retrieval.documents")
INDEXED = re.compile(r"^(.+?)\.(\d+)\.(.+)$")


def _recognise(sample: FileSample) -> bool:
    return sample.has_any("resourceSpans", "resource_spans")


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    def steps() -> Iterator[TraceStep]:
        for place, value in rows.values:
            try:
                yield from _read_spans(as_dict(as_row(value), "a line of traces"), place)
            except WrongLineError as error:
                reject(place, str(error))

    yield from trace_records(steps(), finder, reject)


def _read_spans(value: Mapping[str, Any], place: int) -> Iterator[TraceStep]:
    for resource in as_list(value.get("resourceSpans", value.get("resource_spans", [])), "resourceSpans"):
        about = read_attributes(
            as_dict(as_dict(resource, "an element of resourceSpans").get("resource", {}), "resource").get(
                "attributes", []
            )
        )
        system = about.get("openinference.project.name") or about.get("service.name")
        for scope in as_list(resource.get("scopeSpans", resource.get("scope_spans", [])), "scopeSpans"):
            for span in as_list(as_dict(scope, "an element of scopeSpans").get("spans", []), "spans"):
                fields = as_dict(span, "a span")
                yield make_step(
                    place,
                    _first(fields, "traceId", "trace_id"),
                    _first(fields, "spanId", "span_id"),
                    _first(fields, "parentSpanId", "parent_span_id") or None,
                    read_attributes(fields.get("attributes", [])),
                    system=str(system) if system else None,
                    events=[as_dict(event, "an event") for event in as_list(fields.get("events", []), "events")],
                )


def _first(fields: Mapping[str, Any], *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name)), None)


def make_step(
    place: int,
    trace: Any,
    span: Any,
    parent: Any,
    attributes: Mapping[str, Any],
    *,
    kind: Any = None,
    system: str | None = None,
    events: Iterable[Mapping[str, Any]] = (),
) -> TraceStep:
    """Make a step of a span's attributes."""
    if not trace or not span:
        raise WrongLineError("a span has no trace id or no span id")
    grouped = group_indexed(attributes)
    kind = str(kind or attributes.get("openinference.span.kind") or "").upper()
    kind = kind if kind and kind != "UNKNOWN" else KINDS.get(str(attributes.get("gen_ai.operation.name")), "")
    messages = grouped.get("llm.output_messages")
    return TraceStep(
        place,
        str(trace),
        str(span),
        str(parent) if parent else None,
        kind,
        input=grouped.get("llm.input_messages")
        if kind == "LLM" and "llm.input_messages" in grouped
        else _first(grouped, *INPUTS),
        output=messages if kind == "LLM" and messages else _first(grouped, *OUTPUTS),
        documents=next(
            (parse_if_json(grouped[name]) for name in DOCUMENTS if grouped.get(name) is not None),
            [] if kind == "RETRIEVER" else None,
        ),
        system=system,
        grades=_read_evaluations(events),
    )


def read_attributes(attributes: Any) -> dict[str, Any]:
    """Attributes as a dict: from OTLP's list of keys and typed values, or from a dict."""
    if isinstance(attributes, Mapping):
        return flatten(attributes)
    pairs = [as_dict(each, "an attribute") for each in as_list(attributes, "attributes")]
    return {str(pair.get("key")): _read_typed(pair.get("value")) for pair in pairs}


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested objects as names with dots."""
    flat: dict[str, Any] = {}
    for key, each in value.items():
        if isinstance(each, Mapping) and each:
            flat |= flatten(each, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = each
    return flat


def _read_typed(value: Any) -> Any:
    """A value of OTLP: ``{"stringValue": …}`` and the like."""
    if not isinstance(value, Mapping) or not value:
        return None
    kind, inner = next(iter(value.items()))
    kind = kind.replace("_v", "V")
    if kind == "intValue":
        try:
            return int(inner)
        except (TypeError, ValueError) as error:
            raise WrongLineError(f"an attribute is {str(inner)[:24]!r}, not a whole number") from error
    if kind == "arrayValue":
        return [_read_typed(each) for each in as_list(as_dict(inner, "an array").get("values", []), "values")]
    if kind == "kvlistValue":
        return read_attributes(as_dict(inner, "a list of keys").get("values", []))
    return inner


def group_indexed(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes such as ``retrieval.documents.0.document.content`` as a list of objects."""
    grouped: dict[str, Any] = {}
    lists: dict[str, dict[int, dict[str, Any]]] = {}
    for name, value in attributes.items():
        if match := INDEXED.match(name):
            lists.setdefault(match[1], {}).setdefault(int(match[2]), {})[match[3]] = value
        if value is not None:
            grouped[name] = value
    return {name: [items[number] for number in sorted(items)] for name, items in lists.items()} | grouped


def _read_evaluations(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    grades: dict[str, Any] = {}
    for event in events:
        if event.get("name") == "gen_ai.evaluation.result":
            facts = read_attributes(event.get("attributes", []))
            if name := facts.get("gen_ai.evaluation.name"):
                grades[str(name)] = facts.get(
                    "gen_ai.evaluation.score.value", facts.get("gen_ai.evaluation.score.label")
                )
    return grades


FORMAT = LogFormat(
    name="otlp",
    title="OpenTelemetry traces (OTLP JSON)",
    expected='{"resourceSpans": [{"scopeSpans": [{"spans": […]}]}]}, with retriever and LLM spans',
    names={},
    recognise=_recognise,
    parse=_parse,
).format()
