"""Read Langfuse exports: traces with their observations and scores, or tables of traces or observations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ragworth.formats.contract import FileSample
from ragworth.formats.log_files import LogRows
from ragworth.formats.logs.engine import LogFormat, Reject
from ragworth.formats.logs.fields import FieldFinder
from ragworth.formats.logs.messages import parse_if_json
from ragworth.formats.logs.passages import as_passages
from ragworth.formats.logs.records import LoggedPassage, LogRecord
from ragworth.formats.logs.rows import mapped_grades
from ragworth.formats.logs.values import as_row
from ragworth.formats.traces import TraceStep, trace_records, unless_mapped
from ragworth.formats.values import WrongLineError, as_dict, as_list

KINDS = {"GENERATION": "LLM", "RETRIEVER": "RETRIEVER"}
TRACE_SIGNS = ("sessionId", "session_id", "userId", "user_id", "projectId", "project_id", "htmlPath", "bookmarked")
SEARCH = re.compile(r"search|vector|lookup|rerank|knowledge|\brag\b")
"""In names of steps that may have found passages."""

LISTS = ("documents", "docs", "results", "context", "contexts", "chunks", "passages", "nodes", "source_documents")


def _recognise(sample: FileSample) -> bool:
    document = sample.document
    if isinstance(document, dict) and isinstance(document.get("data"), list) and document["data"]:
        first = document["data"][0]
        return isinstance(first, dict) and _is_langfuse(set(first))
    return _is_langfuse(set(sample.columns))


def _is_langfuse(columns: set[str]) -> bool:
    if "observations" in columns:
        return bool(columns & {"id", "trace"})
    if columns & {"traceId", "trace_id"}:
        return "type" in columns and bool(columns & {"input", "output"})
    return {"id", "input", "output"} <= columns and bool(columns & set(TRACE_SIGNS))


def _unpack(value: Mapping[str, Any]) -> Iterable[Any] | None:
    data = value.get("data")
    return data if isinstance(data, list) else None


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    def steps() -> Iterator[TraceStep]:
        for place, value in rows.values:
            try:
                row = as_row(value)
                if row is None:
                    raise WrongLineError("not an object")
                first, *others = _read(row, place)
                yield first._replace(grades={**first.grades, **mapped_grades(row, finder)})
                yield from others
            except WrongLineError as error:
                reject(place, str(error))

    yield from trace_records(steps(), finder, reject)


def _read(row: Mapping[str, Any], place: int) -> Iterator[TraceStep]:
    """The steps of a trace, or a single observation."""
    if (trace := row.get("traceId") or row.get("trace_id")) and "observations" not in row:
        yield _read_observation(row, str(trace), place)
        return
    facts = as_dict(row["trace"], "trace") if isinstance(row.get("trace"), Mapping) else row
    if not facts.get("id"):
        raise WrongLineError("a trace has no id")
    trace, scores = str(facts["id"]), row.get("scores") or facts.get("scores") or []
    observations = parse_if_json(row.get("observations")) or []
    ids = isinstance(observations, list) and all(isinstance(each, str) for each in observations)
    yield TraceStep(
        place, trace, f"trace {trace}", None, "TRACE", input=facts.get("input"), output=facts.get("output"),
        grades=_read_scores(parse_if_json(scores)),
    )  # fmt: skip
    for each in [] if ids else as_list(observations, "observations"):
        yield _read_observation(as_dict(each, "an observation"), trace, place)


def _read_observation(row: Mapping[str, Any], trace: str, place: int) -> TraceStep:
    if not row.get("id"):
        raise WrongLineError(f"an observation of trace {trace!r} has no id")
    parent = row.get("parentObservationId") or row.get("parent_observation_id")
    kind, output = str(row.get("type") or "").upper(), parse_if_json(row.get("output"))
    name = str(row.get("name")).lower()
    retrieves = kind == "RETRIEVER" or (kind == "SPAN" and "retriev" in name)
    documents = _find_documents(output) if retrieves or (kind in ("SPAN", "TOOL") and SEARCH.search(name)) else None
    if not retrieves and not _are_passages(documents):
        documents = None
    return TraceStep(
        place,
        trace,
        str(row["id"]),
        str(parent) if parent else f"trace {trace}",
        "RETRIEVER" if documents is not None else KINDS.get(kind, kind),
        input=row.get("input"),
        output=output,
        documents=documents,
    )


def _are_passages(documents: Any) -> bool:
    """Whether what a search returned are passages with a text."""
    try:
        return all(each.text is not None for each in as_passages(documents) or [LoggedPassage(None)])
    except WrongLineError:
        return False


def _find_documents(output: Any) -> Any:
    if isinstance(output, list):
        return output
    if isinstance(output, Mapping):
        return next((output[name] for name in LISTS if isinstance(output.get(name), list)), None)
    return None


def _read_scores(scores: Any) -> dict[str, list[Any]]:
    """Scores of a trace by name: numbers, or words."""
    found = (
        [as_dict(each, "a score") for each in scores if not isinstance(each, str)] if isinstance(scores, list) else []
    )
    grades: dict[str, list[Any]] = {}
    for each in found:
        if each.get("name") and each.get("dataType") != "TEXT":
            grades.setdefault(str(each["name"]), []).append(_score_value(each))
    return grades


def _score_value(score: Mapping[str, Any]) -> Any:
    """A number, or the word of a category: its number is only its place in a list of categories, or always 0."""
    value, word = score.get("value"), score.get("stringValue")
    return word if value is None or (score.get("dataType") == "CATEGORICAL" and word) else value


FORMAT = LogFormat(
    name="langfuse",
    title="traces exported from Langfuse",
    expected='traces: {"id": …, "input": …, "output": …, "observations": […], "scores": […]}; or observations',
    names={},
    recognise=_recognise,
    unpack=_unpack,
    parse=unless_mapped(_parse),
).format()
