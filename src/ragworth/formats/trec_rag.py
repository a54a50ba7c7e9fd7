"""Read runs of TREC's RAG track, requests with candidates, and assigned nuggets of the AutoNuggetizer.

An answer is a list of sentences that cite the ``references``, which are ids of passages in the order shown. Assigned
nuggets become outcomes: the share of (vital) nuggets that an answer supports; ``strict`` gives no credit for partial
support. The text of a passage is not in a run: give the collection's passages besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragworth.formats.contract import FileSample
from ragworth.formats.fields import FieldFinder
from ragworth.formats.log_files import LogRows
from ragworth.formats.log_format import LogFormat, Reject
from ragworth.formats.log_passages import as_passages
from ragworth.formats.log_record import LogRecord
from ragworth.formats.log_rows import mapped_grades
from ragworth.formats.log_values import as_answer, as_row, as_texts
from ragworth.formats.values import WrongLineError, as_dict, as_id, as_list, as_text

NAMES = {
    "query": ("topic_id", "qid", "narrative_id"),
    "question": ("topic", "query", "narrative"),
    "system": ("run_id",),
    "passages": ("references", "candidates"),
    "answer": ("answer", "answer_text"),
}
SUPPORT = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}


def _recognise(sample: FileSample) -> bool:
    first = sample.rows[0] if sample.rows else {}
    if isinstance(first.get("nuggets"), list):
        return bool({"qid", "query_id", "topic_id"} & set(first))
    if isinstance(first.get("candidates"), list):
        return "query" in first
    sentences = first.get("answer")
    return "references" in first and isinstance(sentences, list) and all(isinstance(s, dict) for s in sentences)


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    for place, value in rows.values:
        try:
            row = as_row(value)
            if row is None:
                raise WrongLineError("not an object")
            yield _read(row, finder, place)
        except WrongLineError as error:
            reject(place, str(error))


def _read(row: Mapping[str, Any], finder: FieldFinder, place: int) -> LogRecord:
    metadata = row.get("metadata")
    row = {**metadata, **row} if isinstance(metadata, Mapping) else row
    question: Any = finder.get(row, "question")
    query = finder.get(row, "query")
    if isinstance(question, Mapping):  # {"qid": …, "text": …}
        question, query = question.get("text"), question.get("qid", query)
    references, passages = finder.get(row, "passages"), None
    if "passages" in finder.columns:
        passages = as_passages(references)
    elif references is not None:
        listed = as_list(references, "the list of references")
        passages = as_passages(
            [{"doc_id": each} if isinstance(each, str) and "candidates" not in row else each for each in listed]
        )
    system = finder.get(row, "system")
    if query is None and question is None:
        raise WrongLineError("neither a topic_id nor a topic")
    return LogRecord(
        place=place,
        query=None if query is None else as_id(query, "topic_id"),
        question=None if question is None else as_text(question, "topic"),
        system=None if system is None else as_id(system, "run_id"),
        passages=passages,
        answer=_answer_text(finder.get(row, "answer")),
        accepted=as_texts(finder.get(row, "accepted")),
        outcomes={**_nugget_scores(row.get("nuggets")), **mapped_grades(row, finder)},
    )


def _answer_text(answer: Any) -> str | None:
    """The sentences of an answer as one text."""
    if not isinstance(answer, list):
        return as_answer(answer)
    return " ".join(
        as_text(as_dict(part, "a sentence of the answer").get("text"), "text of a sentence") for part in answer
    )


def _nugget_scores(nuggets: Any) -> dict[str, float]:
    """Shares of nuggets supported; nothing if they were not assigned."""
    if nuggets is None:
        return {}
    parts = [as_dict(each, "a nugget") for each in as_list(nuggets, "the list of nuggets")]
    assigned = [each for each in parts if each.get("assignment") is not None]
    for each in assigned:
        if each["assignment"] not in SUPPORT:
            raise WrongLineError(
                f"the assignment of a nugget is {each['assignment']!r}, not one of {', '.join(SUPPORT)}"
            )
    scores: dict[str, float] = {}
    for name, some in (("all", assigned), ("vital", [each for each in assigned if each.get("importance") == "vital"])):
        if some:
            values = [SUPPORT[each["assignment"]] for each in some]
            scores[f"nuggets-{name}"] = sum(values) / len(values)
            scores[f"nuggets-{name}-strict"] = sum(value == 1 for value in values) / len(values)
    return scores


FORMAT = LogFormat(
    name="trec-rag",
    title="a run of TREC's RAG track, or assigned nuggets",
    expected='{"run_id": …, "topic_id": …, "topic": …, "references": […], "answer": [{"text": …, "citations": […]}]}',
    names=NAMES,
    recognise=_recognise,
    parse=_parse,
).format()
