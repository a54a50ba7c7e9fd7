"""Read Phoenix exports: spans as JSON, CSV or Parquet, and retrieved documents as a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ragworth.formats.contract import FileSample
from ragworth.formats.log_files import LogRows
from ragworth.formats.logs.engine import LogFormat, Reject
from ragworth.formats.logs.fields import FieldFinder
from ragworth.formats.logs.records import LogRecord
from ragworth.formats.logs.rows import mapped_grades
from ragworth.formats.logs.values import as_grade, as_row, parse_cell
from ragworth.formats.openinference import flatten, make_step
from ragworth.formats.traces import TraceStep, trace_records, unless_mapped
from ragworth.formats.values import WrongLineError

PREFIX = "attributes."
EVALUATION = re.compile(r"eval\.(.+)\.(score|label)")
"""Columns of evaluations: ``eval.QA Correctness.score``."""


def _recognise(sample: FileSample) -> bool:
    return sample.has_any("context.span_id", "context.trace_id") or (
        sample.has("context", "attributes") and sample.has_any("span_kind", "parent_id", "name")
    )


def _unpack(value: Mapping[str, Any]) -> Iterable[Any] | None:
    for name in ("data", "spans"):
        if isinstance(value.get(name), list):
            return value[name]  # type: ignore[no-any-return]
    return None


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    def steps() -> Iterator[TraceStep]:
        documents: dict[str, tuple[int, list[Any], dict[str, Any]]] = {}
        for place, value in rows.values:
            try:
                row = as_row(value)
                if row is None:
                    raise WrongLineError("not an object")
                flat = flatten({name: _cell(name, each) for name, each in row.items()} if rows.cells else row)
                if "document_position" in flat or "document_score" in flat:
                    span = str(flat.get("context.span_id") or flat.get("context.trace_id"))
                    _, listed, _ = documents.setdefault(span, (place, [], flat))
                    listed.append(
                        {"text": flat.get("reference") or flat.get("document"), "score": flat.get("document_score")}
                    )
                    continue
                step = _read_span(flat, place)
                yield step._replace(grades={**step.grades, **mapped_grades(row, finder)})
            except WrongLineError as error:
                reject(place, str(error))
        for span, (place, listed, flat) in documents.items():
            trace = str(flat.get("context.trace_id") or span)
            yield TraceStep(place, trace, span, None, "RETRIEVER", input=flat.get("input"), documents=listed)

    yield from trace_records(steps(), finder, reject)


def _cell(name: str, value: Any) -> Any:
    """Lists and objects in cells; other cells stay text."""
    return parse_cell(value, "document") if name.endswith(("documents", "messages")) else value


def _read_span(flat: Mapping[str, Any], place: int) -> TraceStep:
    attributes = {name.removeprefix(PREFIX): value for name, value in flat.items() if name.startswith(PREFIX)}
    step = make_step(
        place,
        flat.get("context.trace_id"),
        flat.get("context.span_id"),
        flat.get("parent_id"),
        attributes,
        kind=flat.get("span_kind"),
    )
    return step._replace(grades={**step.grades, **_evaluations(flat)})


def _evaluations(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluations of a span by name: the score, or else the label."""
    found: dict[str, Any] = {}
    for column, value in flat.items():
        match = EVALUATION.fullmatch(column)
        if match and value not in (None, "") and (match[2] == "score" or match[1] not in found):
            found[match[1]] = as_grade(value, column)
    return found


FORMAT = LogFormat(
    name="phoenix",
    title="spans exported from Phoenix",
    expected="context.trace_id, context.span_id, parent_id, span_kind, attributes.input.value, …",
    names={},
    recognise=_recognise,
    unpack=_unpack,
    parse=unless_mapped(_parse),
).format()
