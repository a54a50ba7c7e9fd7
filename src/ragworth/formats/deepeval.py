"""Read deepeval test cases, datasets (goldens) and test runs: JSON, JSON lines or CSV.

``context`` is what the answer should rest on, so its texts are relevant passages; ``retrieval_context`` is what was
retrieved. In CSV and JSON lines, deepeval joins the texts of a list with ``|``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ragworth.formats.contract import FileSample
from ragworth.formats.log_files import LogRows
from ragworth.formats.logs.engine import LogFormat, Reject, parse_rows
from ragworth.formats.logs.fields import FieldFinder
from ragworth.formats.logs.records import LogRecord
from ragworth.formats.logs.values import as_row

NAMES = {
    "query": ("query_id", "id"),
    "question": ("input",),
    "system": ("system",),
    "passages": ("retrieval_context",),
    "answer": ("actual_output",),
    "accepted": ("expected_output",),
    "relevant": ("context",),
}
LISTS = ("test_cases", "testCases", "goldens")
JOINED = ("retrieval_context", "retrievalContext", "context")


def _recognise(sample: FileSample) -> bool:
    if isinstance(sample.document, dict) and any(isinstance(sample.document.get(name), list) for name in LISTS):
        return True
    return sample.has("input") and sample.has_any(
        "actual_output", "actualOutput", "expected_output", "expectedOutput", "retrieval_context", "retrievalContext"
    )


def _unpack(value: Mapping[str, Any]) -> Iterable[Any] | None:
    lists = [value[name] for name in LISTS if isinstance(value.get(name), list)]
    return [row for each in lists for row in each] if lists else None


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    def prepared() -> Iterator[tuple[int, Any]]:
        for place, value in rows.values:
            row = as_row(value)
            if row is None or ("scenario" in row and "input" not in row):
                if row is not None:
                    reject(place, "a conversation (scenario and turns); only single questions are read")
                    continue
                yield place, value
                continue
            if rows.unit == "line":
                row = {**row, **{name: row[name].split("|") for name in JOINED if isinstance(row.get(name), str)}}
            yield place, _with_scores(row, finder)

    yield from parse_rows(rows._replace(values=prepared(), cells=False), finder, reject)


def _with_scores(row: Mapping[str, Any], finder: FieldFinder) -> Mapping[str, Any]:
    """Scores of metrics in a test run as fields of the row."""
    metrics = row.get("metricsData") or row.get("metrics_data")
    if not isinstance(metrics, list):
        return row
    named = [each for each in metrics if isinstance(each, dict) and each.get("name")]
    scores = {f"{each['name']}": each.get("score") for each in named}
    finder.grades |= {name: f"metric: {name}" for name in scores}
    return {**row, **{f"metric: {name}": score for name, score in scores.items()}}


FORMAT = LogFormat(
    name="deepeval",
    title="deepeval test cases or goldens",
    expected="input, actual_output, expected_output, retrieval_context",
    names=NAMES,
    recognise=_recognise,
    unpack=_unpack,
    parse=_parse,
).format()
