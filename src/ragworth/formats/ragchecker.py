"""Read RAGChecker's inputs, results with metrics, and human labels, which compare two systems.

A label of a pair, from −2 to 2, says how much better the second answer is. Each system gets half of it, with its sign,
so that the difference of the two is the label. Labels of several people and several pairs are averaged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ragworth.core.errors import quote_short
from ragworth.formats.contract import FileSample
from ragworth.formats.log_files import LogRows
from ragworth.formats.logs.engine import LogFormat, Reject
from ragworth.formats.logs.fields import FieldFinder
from ragworth.formats.logs.records import LogRecord
from ragworth.formats.logs.rows import read_record
from ragworth.formats.logs.unused_columns import UnusedColumns
from ragworth.formats.logs.values import as_answer, as_row, as_texts
from ragworth.formats.values import WrongLineError, as_dict, as_id, as_number, as_text

NAMES = {
    "query": ("query_id",),
    "question": ("query",),
    "system": ("system", "model_name"),
    "passages": ("retrieved_context",),
    "answer": ("response",),
    "accepted": ("gt_answer",),
}
PAIR = ("model1", "model2")


def _recognise(sample: FileSample) -> bool:
    rows: Any = sample.rows
    if isinstance(sample.document, dict) and isinstance(sample.document.get("results"), list):
        rows = [row for row in sample.document["results"][:1] if isinstance(row, dict)]
    keys = {key for row in rows for key in row}
    return "query" in keys and ("gt_answer" in keys or keys >= set(PAIR))


def _unpack(value: Mapping[str, Any]) -> Iterable[Any] | None:
    results = value.get("results")
    return results if isinstance(results, list) else None


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    pairs: dict[tuple[str, str], LogRecord] = {}
    labels: dict[tuple[str, str], dict[str, list[float]]] = {}
    unused = UnusedColumns()
    for place, value in rows.values:
        try:
            row = as_row(value)
            if row is None:
                raise WrongLineError(f"{quote_short(value, 48)} instead of an object")
            read = (*PAIR, "dataset", "metrics")
            unused.see({name: each for name, each in row.items() if name not in read and not _is_label(name)}, finder)
            if not set(PAIR) <= set(row):
                yield _with_metrics(read_record(row, finder, place, cells=rows.cells), row)
                continue
            for record, given in _read_pair(row, place):
                key = record.system or "", record.query or ""
                if pairs.setdefault(key, record).answer != record.answer:
                    system, query = (quote_short(part, 24) for part in key)
                    raise WrongLineError(f"query {query} has two answers of system {system}")
                for name, number in given.items():
                    labels.setdefault(key, {}).setdefault(name, []).append(number)
        except WrongLineError as error:
            reject(place, str(error))
    for key, record in pairs.items():
        means = {name: sum(numbers) / len(numbers) for name, numbers in labels.get(key, {}).items()}
        yield _replace_outcomes(record, means)
    finder.notes += unused.notes()


def _is_label(name: str) -> bool:
    return name.endswith("_label")


def _with_metrics(record: LogRecord, row: Mapping[str, Any]) -> LogRecord:
    metrics = row.get("metrics")
    if not isinstance(metrics, Mapping):
        return record
    numbers = {str(name): None if each is None else as_number(each, str(name)) for name, each in metrics.items()}
    return _replace_outcomes(record, numbers)


def _replace_outcomes(record: LogRecord, outcomes: Mapping[str, float | None]) -> LogRecord:
    return replace(record, outcomes={**record.outcomes, **outcomes})


def _read_pair(row: Mapping[str, Any], place: int) -> Iterator[tuple[LogRecord, dict[str, float]]]:
    """The answers of two systems, and half of each label."""
    query = as_id(row.get("query_id"), "query_id")
    if row.get("dataset") is not None:
        query = f"{as_id(row['dataset'], 'dataset')}:{query}"  # ids are unique within a dataset only
    labels = {
        f"human-{name.removesuffix('_label')}-preference": as_number(value, name)
        for name, value in row.items()
        if _is_label(name) and value is not None
    }
    for name, sign in zip(PAIR, (-0.5, 0.5), strict=True):
        model = as_dict(row[name], name)
        record = LogRecord(
            place=place,
            query=query,
            question=as_text(row.get("query"), "query"),
            system=as_id(model.get("model_name"), f"model_name of {name}"),
            answer=as_answer(model.get("response"), f"response of {name}"),
            accepted=as_texts(row.get("gt_answer"), "gt_answer"),
        )
        yield record, {aspect: sign * value for aspect, value in labels.items()}


FORMAT = LogFormat(
    name="ragchecker",
    title="RAGChecker's inputs, results or human labels",
    expected='{"results": [{"query_id": …, "query": …, "gt_answer": …, "response": …, "retrieved_context": […]}]}',
    names=NAMES,
    recognise=_recognise,
    unpack=_unpack,
    parse=_parse,
).format()
