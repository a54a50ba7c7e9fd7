"""Read what Haystack programs save: documents, answers, outputs of pipelines, and results of evaluations.

The output of a pipeline has that of each component: the documents of the last one that ranked or retrieved them, and
the answers or replies. An evaluation has its inputs as columns, and a score of each metric for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from ragworth.formats.contract import FileSample
from ragworth.formats.log_files import LogRows
from ragworth.formats.logs.engine import LogFormat, Reject, parse_rows
from ragworth.formats.logs.fields import FIELDS, FieldFinder
from ragworth.formats.logs.messages import find_answer
from ragworth.formats.logs.records import LogRecord
from ragworth.formats.logs.values import as_row
from ragworth.formats.values import objects

NAMES = {
    "query": ("query_id", "id"),
    "question": ("query", "question", "questions"),
    "system": ("system", "run_id", "run_name"),
    "passages": ("documents", "retrieved_documents", "contexts", "context"),
    "answer": (
        "predicted_answers",
        "predicted_answer",
        "data",
        "replies",
        "responses",
        "response",
        "answer",
        "answers",
    ),
    "accepted": (
        "ground_truth_answers",
        "ground_truth_answer",
        *(name for name in FIELDS["accepted"] if name != "answers"),
    ),
    "relevant": ("ground_truth_documents",),
}
GENERATED = "init_parameters"
"""Where GeneratedAnswer.to_dict puts the fields of an answer."""

OUTPUTS = frozenset(("documents", "answers", "replies"))
"""What components return."""

PREDICTED = {"predicted_answer", "predicted_answers"}
ACCEPTED = {"answer": "ground_truth_answer", "answers": "ground_truth_answers"}
GRADES = "names of scores"
SEVERAL = "only the first of several replies to a question is read"


def is_document(item: Any) -> bool:
    """Whether an object is a document of Haystack."""
    if not isinstance(item, Mapping):
        return hasattr(item, "content") and hasattr(item, "meta")
    return "content" in item and bool({"meta", "blob", "score", "sparse_embedding"} & set(item)) and "role" not in item


def _recognise(sample: FileSample) -> bool:
    first = sample.rows[0] if sample.rows else {}
    if is_document(first) or _unpack(first) is not None:
        return True
    plain = _plain(first)
    if isinstance(first.get(GENERATED), Mapping):
        return "documents" in plain
    documents = plain.get("documents")
    return isinstance(documents, list) and bool(documents) and is_document(documents[0])


def _unpack(value: Mapping[str, Any]) -> list[Any] | None:
    """The rows of an evaluation: what was evaluated, and the scores."""
    inputs, results = value.get("inputs"), value.get("results")
    scores = {
        f"{name}_score" if name in (as_row(inputs) or {}) else str(name): each["individual_scores"]
        for name, each in (as_row(results) or {}).items()
        if isinstance(each, Mapping) and isinstance(each.get("individual_scores"), list)
    }
    if not isinstance(inputs, Mapping) or not scores:
        return None
    lists = {str(name): each for name, each in inputs.items() if isinstance(each, list)}
    if PREDICTED & set(lists):  # then an answer is the right one
        lists = {ACCEPTED.get(name, name): each for name, each in lists.items()}
    columns = {**lists, **scores}
    about = {"run_name": value.get("run_name"), GRADES: list(scores)}
    return [dict(zip(columns, row, strict=True)) | about for row in zip_longest(*columns.values())]


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    def plain() -> Iterator[tuple[int, Any]]:
        for place, row in rows.values:
            if not isinstance(row, Mapping):
                yield place, row
                continue
            finder.grades |= {name: name for name in row.get(GRADES) or () if name not in finder.grades}
            fields = _plain(row)
            for name in ("replies", "answers"):
                if isinstance(fields.get(name), list):
                    if len(fields[name]) > 1 and SEVERAL not in finder.notes:
                        finder.notes.append(SEVERAL)
                    fields[name] = find_answer(fields[name])
            yield place, {name: each for name, each in fields.items() if name != GRADES}

    yield from parse_rows(rows._replace(values=plain()), finder, reject)


def _has_parts(value: Mapping[str, Any]) -> bool:
    """Whether an object is the output of a pipeline."""
    return any(isinstance(part, Mapping) and OUTPUTS & set(part) for part in value.values())


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the fields of its components, without the wrapping of GeneratedAnswer.

    Of several components with documents, a ranker's count, or else the last one's. The answer knows its question.
    """
    fields = dict(row[GENERATED] if isinstance(row.get(GENERATED), Mapping) else row)
    for whole in [each for each in fields.values() if isinstance(each, Mapping) and _has_parts(each)]:
        fields = {**whole, **fields}  # the output is in a field of its own
    parts = {name: part for name, part in fields.items() if isinstance(part, Mapping) and OUTPUTS & set(part)}
    if "documents" not in fields:
        for _, part in sorted(parts.items(), key=lambda each: "rank" in each[0].lower()):
            if "documents" in part:
                fields["documents"] = part["documents"]
    for part in parts.values():
        fields = {name: part[name] for name in (*OUTPUTS, "query", "question") if name in part} | fields
    answers = [as_row(each.get(GENERATED)) or each for each in objects(fields.get("answers"))]
    if answers:
        known = {name: answers[0][name] for name in ("query", "documents") if answers[0].get(name)}
        fields = {**known, **fields, "answers": answers}
    return {name: each for name, each in fields.items() if name not in parts}


FORMAT = LogFormat(
    name="haystack",
    title="documents, answers, pipeline outputs or evaluations of Haystack",
    expected='documents {"id": …, "content": …}, or {"query": …, "documents": [document, …], "replies": […]}',
    names=NAMES,
    recognise=_recognise,
    unpack=_unpack,
    parse=_parse,
    is_document=is_document,
).format()
