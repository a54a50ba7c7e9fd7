"""Read Amazon Bedrock's RAG and model evaluations, and answers of knowledge bases (RetrieveAndGenerate).

Prompt datasets have the same shape as results, without the results. Each turn of a conversation is a question. The
system is the model and the knowledge base, if there are several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragworth.collection import plain_text, text_id
from ragworth.formats.contract import FileSample
from ragworth.formats.fields import FIELDS, FieldFinder
from ragworth.formats.grade_words import Grade
from ragworth.formats.log_format import LogFormat
from ragworth.formats.log_values import as_grade, as_row
from ragworth.formats.search_hits import find_hits
from ragworth.formats.tool_rows import ToolRow, tool_parser
from ragworth.formats.values import WrongLineError, objects

NAMES = {
    "query": ("query_id",),
    "question": ("prompt", *FIELDS["question"]),
    "passages": ("retrieved_passages",),
    "answer": ("output",),
    "accepted": ("reference_responses", *FIELDS["accepted"]),
}
BUILTIN = "Builtin."
LOWER = {"Stereotyping": "lower_Stereotyping"}
"""Metrics of Bedrock that are better if lower, though no word in their names says so."""

CHUNK_ID = "x-amz-bedrock-kb-chunk-id"
CITED = "only the passages that answers cite are known; others that were shown are not in the file"
TURNS = "each turn of a conversation is read as a question of its own, without the turns before it"


def _recognise(sample: FileSample) -> bool:
    first = sample.rows[0] if sample.rows else {}
    if "conversationTurns" in first or "modelResponses" in first:
        return True
    return any(_cites(_find_answer(row)) for row in sample.rows)


def _find_answer(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The response of RetrieveAndGenerate: the row, or a field of it."""
    for each in (row, *row.values()):
        if (
            isinstance(each, Mapping)
            and isinstance(each.get("output"), Mapping)
            and isinstance(each.get("citations"), list)
        ):
            return each
    return None


def _cites(answer: Mapping[str, Any] | None) -> bool:
    """Whether an answer has citations as Bedrock writes them."""
    return any("retrievedReferences" in each for each in objects((answer or {}).get("citations")))


def _read(row: Mapping[str, Any], place: int, finder: FieldFinder) -> Iterator[ToolRow]:
    if "conversationTurns" in row:
        yield from _read_turns(objects(row["conversationTurns"]), place, finder)
    elif "modelResponses" in row:
        yield from _read_model_responses(row, place)
    else:
        answer = _find_answer(row)
        if answer is None:
            raise WrongLineError("neither conversationTurns, nor modelResponses, nor output and citations")
        others = {
            name: each for name, each in row.items() if each is not answer and name not in ("output", "citations")
        }
        output = {**(as_row(answer.get("output")) or {}), "citations": answer["citations"]}
        yield ToolRow(place, {**others, **_read_output(output, finder)})


def _read_turns(turns: list[dict[str, Any]], place: int, finder: FieldFinder) -> Iterator[ToolRow]:
    if not turns:
        raise WrongLineError("conversationTurns is empty")
    if len(turns) > 1 and TURNS not in finder.notes:
        finder.notes.append(TURNS)
    asked: list[str] = []
    for turn in turns:
        record = as_row(turn.get("inputRecord")) or turn
        question = _text(record.get("prompt"))
        asked.append(plain_text(question or ""))
        output = as_row(turn.get("output")) or {}
        fields = {
            # Follow-up questions such as "And when?" differ by what was asked before.
            "query_id": text_id("\n".join(asked)) if len(asked) > 1 else None,
            "prompt": question,
            "reference_responses": [
                text for each in objects(record.get("referenceResponses")) if (text := _text(each))
            ],
            **_read_output(output, finder),
        }
        names = (output.get("modelIdentifier"), output.get("knowledgeBaseIdentifier"))
        system = ", ".join(str(name) for name in names if name) or None
        yield ToolRow(place, fields, system, _read_results(objects(turn.get("results"))))


def _text(value: Any) -> str | None:
    """The text of ``{"content": [{"text": …}]}``."""
    parts = [
        part["text"] for part in objects((as_row(value) or {}).get("content")) if isinstance(part.get("text"), str)
    ]
    return "\n".join(parts) if parts else None


def _read_output(output: Mapping[str, Any], finder: FieldFinder) -> dict[str, Any]:
    """The answer and the passages; if only citations are there, the passages in them."""
    response = as_row(output.get("retrievedPassages")) or output
    listed = find_hits(response, empty=True)
    if listed is None and isinstance(output.get("citations"), list):
        citations = objects(output["citations"])
        listed = [each for citation in citations for each in objects(citation.get("retrievedReferences"))]
        finder.notes += [CITED] if CITED not in finder.notes else []
    passages = None if listed is None else [_read_passage(each) for each in listed]
    return {"output": output.get("text"), "retrieved_passages": passages}


def _read_passage(hit: Any) -> Any:
    metadata = (as_row(hit.get("metadata")) or {}) if isinstance(hit, Mapping) else {}
    return {**hit, "id": metadata[CHUNK_ID]} if metadata.get(CHUNK_ID) else hit


def _read_results(results: list[dict[str, Any]]) -> dict[str, Grade | list[Grade]]:
    named = [(str(each.get("metricName")).removeprefix(BUILTIN), each.get("result")) for each in results]
    return {LOWER.get(name, name): as_grade(value, name) for name, value in named}


def _read_model_responses(row: Mapping[str, Any], place: int) -> Iterator[ToolRow]:
    """An evaluation of models, which has no passages. Scores of a row with several responses may be any one's."""
    record = as_row(row.get("inputRecord")) or row
    scores = objects((as_row(row.get("automatedEvaluationResult")) or {}).get("scores"))
    responses = objects(row["modelResponses"])
    grades = _read_results(scores) if len(responses) == 1 else {}
    for each in responses:
        system = each.get("modelIdentifier")
        fields = {"prompt": record.get("prompt"), "reference_responses": record.get("referenceResponse")}
        answer = {"output": each.get("response")}
        yield ToolRow(place, {**fields, **answer}, None if system is None else str(system), grades)


FORMAT = LogFormat(
    name="bedrock",
    title="an evaluation of Amazon Bedrock, or answers of its knowledge bases",
    expected='{"conversationTurns": [{"prompt": …, "output": {…}}]}, or {"query": …, "output": {…}, "citations": […]}',
    names=NAMES,
    recognise=_recognise,
    parse=tool_parser(_read),
).format()
