"""Read grounded answers of Gemini on Vertex AI, also from batch prediction, and tables of its evaluation service.

Passages are the chunks that the answer is grounded in, in the order of the response. Chunks of the web have an address
and no text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import cycle
from typing import Any

from ragworth.errors import format_count
from ragworth.formats.chat import EARLIER
from ragworth.formats.contract import FileSample
from ragworth.formats.fields import FIELDS, FieldFinder
from ragworth.formats.grade_words import Grade
from ragworth.formats.log_format import LogFormat
from ragworth.formats.log_values import as_grade, as_row
from ragworth.formats.missing_answers import ERROR
from ragworth.formats.tool_rows import ToolRow, find_field, tool_parser
from ragworth.formats.traces import find_question
from ragworth.formats.values import WrongLineError, objects
from ragworth.tables.definitions import TRUNCATED

NAMES = {
    "query": FIELDS["query"],
    "question": ("contents",),
    "passages": ("grounding_chunks",),
    "answer": ("candidates",),
    "accepted": FIELDS["accepted"],
}
QUESTIONS = ("question", "instruction", "content", *FIELDS["question"])
"""What tables call the question. The whole prompt comes last: it has the passages in it."""

SCORE, EXPLANATION, CHOICE = "/score", "/explanation", "/pairwise_choice"
PAIRS = "choices between two models are not read: they are no grades of an answer"


def _recognise(sample: FileSample) -> bool:
    first = sample.rows[0] if sample.rows else {}
    answered = any(_find_response(row) is not None for row in sample.rows)  # the first request may have failed
    return answered or (sample.has("response") and _has_scores(first))


def _has_scores(row: Mapping[str, Any]) -> bool:
    """Whether there are metrics of the evaluation service. Those of MLflow have a version in their names."""
    names = [name for name in row if name.endswith(SCORE) and name.count("/") == 1]
    return any(name.removesuffix(SCORE) + EXPLANATION in row for name in names) or (bool(names) and "prompt" in row)


def _find_response(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The response of a model: the row, or a field of it."""
    return next((each for each in (row, *row.values()) if isinstance(each, Mapping) and _is_response(each)), None)


def _is_response(value: Mapping[str, Any]) -> bool:
    return any(
        isinstance(each.get("content"), Mapping) or "finishReason" in each or "finish_reason" in each
        for each in objects(value.get("candidates"))
    )


def _read(row: Mapping[str, Any], place: int, finder: FieldFinder) -> Iterator[ToolRow]:
    response = _find_response(row)
    if response is None and _has_scores(row):
        yield _read_table_row(row, place, finder)
        return
    request = as_row(row.get("request")) or row
    messages = objects(request.get("contents"))
    if sum(each.get("role") == "user" for each in messages) > 1 and EARLIER not in finder.notes:
        finder.notes.append(EARLIER)
    question = find_question(messages) or find_field(row, "question", QUESTIONS)
    others = {
        name: each for name, each in row.items() if each is not response and name not in ("candidates", "contents")
    }
    fields = {**others, "contents": question}
    if response is None:
        blocked = find_field(as_row(row.get("response")) or row, "feedback", ("prompt_feedback",))
        if not row.get("status") and blocked is None:  # batch prediction says in its status why it failed
            raise WrongLineError("no response with candidates")
        yield ToolRow(place, fields, _find_model(as_row(row.get("response")) or row, request), status=ERROR)
        return
    system = _find_model(response, request)
    for candidate in objects(response["candidates"]):
        text = _join_parts(candidate.get("content"))
        cut = find_field(candidate, "status", ("finish_reason",)) == "MAX_TOKENS"
        answer = {"candidates": text, "grounding_chunks": _read_chunks(candidate)}
        yield ToolRow(place, fields | answer, system, status=TRUNCATED if cut else "")


def _find_model(response: Mapping[str, Any], request: Mapping[str, Any]) -> str | None:
    found = (find_field(each, "system", (name,)) for each, name in ((response, "model_version"), (request, "model")))
    return next((str(each) for each in found if each), None)


def _name_failed(rows: list[ToolRow], finder: FieldFinder) -> list[ToolRow]:
    """Give failed requests of several models to those that have no answer to the question.

    They are left out if it isn't clear to which: to one model all, to several one each.
    """
    systems = {row.system for row in rows if row.system}
    if len(systems) < 2 or "system" in finder.columns:
        return rows
    asked: dict[str, list[ToolRow]] = {}
    for row in rows:
        asked.setdefault(str(row.fields["contents"]), []).append(row)
    owners: dict[str, Iterator[str]] = {}
    for question, mine in asked.items():
        missing = sorted(systems - {row.system for row in mine})
        if len(missing) in (1, sum(_is_unnamed(row) for row in mine)):
            owners[question] = cycle(missing)
    named: list[ToolRow] = []
    for row in rows:
        if not _is_unnamed(row):
            named.append(row)
        elif (names := owners.get(str(row.fields["contents"]))) is not None:
            named.append(row._replace(system=next(names)))
    if left_out := len(rows) - len(named):
        which = format_count(left_out, "failed request doesn't", "failed requests don't")
        finder.notes.append(f"{which} say which model failed, and {'is' if left_out == 1 else 'are'} left out")
    return named


def _is_unnamed(row: ToolRow) -> bool:
    return not row.system and row.status == ERROR


def _join_parts(content: Any) -> str | None:
    """The text of an answer without the model's thoughts."""
    parts = objects((as_row(content) or {}).get("parts"))
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought")]
    return "".join(texts) if texts else None


def _read_chunks(candidate: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The passages; None if the answer isn't grounded. Several chunks have the address of their file."""
    metadata = as_row(find_field(candidate, "metadata", ("grounding_metadata",)))
    if metadata is None:
        return None
    passages: list[dict[str, Any]] = []
    for chunk in objects(find_field(metadata, "chunks", ("grounding_chunks",))):
        about = next((each for each in chunk.values() if isinstance(each, Mapping)), {})
        passages.append(
            {"text": about["text"]} if about.get("text") else {"id": about.get("uri") or about.get("title")}
        )
    return passages


def _read_table_row(row: Mapping[str, Any], place: int, finder: FieldFinder) -> ToolRow:
    if any(name.endswith(CHOICE) for name in row) and PAIRS not in finder.notes:
        finder.notes.append(PAIRS)
    fields = {
        **row,
        "contents": find_field(row, "question", QUESTIONS),
        "candidates": row.get("response"),
        "grounding_chunks": find_field(row, "passages", FIELDS["passages"]),
    }
    scores = {name.removesuffix(SCORE): each for name, each in row.items() if name.endswith(SCORE)}
    grades: dict[str, Grade | list[Grade]] = {
        name: None if each in ("", "Error") else as_grade(each, name) for name, each in scores.items()
    }
    return ToolRow(place, fields, grades=grades)


FORMAT = LogFormat(
    name="vertex",
    title="grounded answers or evaluations of Vertex AI",
    expected='{"request": {"contents": […]}, "response": {"candidates": […]}}, or prompt, response, METRIC/score',
    names=NAMES,
    recognise=_recognise,
    parse=tool_parser(_read, _name_failed),
).format()
