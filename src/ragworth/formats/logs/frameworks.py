"""Logs of frameworks: LangChain, LlamaIndex, Haystack, and chat models."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from ragworth.formats.logs.engine import LogSpec, Row
from ragworth.formats.logs.fields import FieldFinder
from ragworth.formats.logs.passages import are_passages
from ragworth.formats.logs.paths import converter, find, find_answer, role_of
from ragworth.formats.logs.values import as_row, parse_if_json
from ragworth.formats.values import objects

DOCUMENT = "page_content|kwargs.page_content"
LANGCHAIN = LogSpec(
    name="langchain",
    title="LangChain documents, or results of chains",
    signs=tuple(
        f"{name}.0.page_content|{name}.0.kwargs.page_content" for name in ("context", "source_documents", "documents")
    ),
    documents=DOCUMENT,
    fields={
        "query": "query_id | id",
        "question": "input | question | query",
        "system": "system | run_id",
        "passages": "context | source_documents | documents",
        "answer": "answer | result | output",
        "accepted": "reference | ground_truth | expected | reference_answer",
    },
).format()

LLAMAINDEX = LogSpec(
    name="llamaindex",
    title="LlamaIndex nodes, responses or labelled datasets",
    signs=("source_nodes", "query reference_answer query_by|reference_answer_by"),
    documents="id_|node.id_",
    rows="examples | predictions",
    fields={
        "query": "query_id",
        "question": "query | question",
        "system": "system | run_id",
        "passages": "source_nodes | contexts | nodes",
        "answer": "response | answer",
        "accepted": "reference_answer",
    },
).format()


def _haystack_evaluation(document: Row) -> list[Any] | None:
    """Return the rows of an evaluation: its inputs and the scores of each metric are columns."""
    inputs, results = as_row(document.get("inputs")), as_row(document.get("results")) or {}
    scores = {str(name): each["individual_scores"] for name, each in results.items() if find(each, "individual_scores")}
    if inputs is None or not scores:
        return None
    columns = {str(name): each for name, each in inputs.items() if isinstance(each, list)}
    if {"predicted_answer", "predicted_answers"} & columns.keys():  # then an answer is the right one
        columns = {f"ground_truth_{name}" if name in ("answer", "answers") else name: columns[name] for name in columns}
    rows = (dict(zip(columns, row, strict=True)) for row in zip_longest(*columns.values()))
    graded = (dict(zip(scores, row, strict=True)) for row in zip_longest(*scores.values()))
    run = {"run_name": document.get("run_name"), "individual_scores": True}
    return [{**(row or {}), **run, "scores": grades or {}} for row, grades in zip_longest(rows, graded)]


OUTPUTS = ("documents", "answers", "replies", "query", "question")
"""Outputs of components that are fields of ours; those with a question only may be inputs."""


def _haystack_output(row: Row, finder: FieldFinder) -> Row:
    """Return a row with the outputs of a pipeline's components as fields.

    Of several components with documents, a ranker's count, or else the last one's. The answer knows its question.
    """
    fields = dict(as_row(row.get("init_parameters")) or row)  # GeneratedAnswer.to_dict
    for whole in [each for each in fields.values() if isinstance(each, Mapping)]:
        if any(isinstance(part, Mapping) and {*OUTPUTS[:3]} & part.keys() for part in whole.values()):
            fields = {**whole, **fields}  # the output is in a field of its own
    parts = {name: part for name, part in fields.items() if isinstance(part, Mapping) and name != "scores"}
    outputs: dict[str, Any] = {}
    for _, part in sorted(parts.items(), key=lambda each: "rank" in each[0].lower()):
        outputs |= {name: part[name] for name in OUTPUTS if name in part}
    fields = {**outputs, **fields}
    replies = fields.get("replies", fields.get("answers"))
    if isinstance(replies, list):
        if len(replies) > 1:
            finder.note("only the first of several replies to a question is read")
        first = as_row(replies[0]) if replies else None
        inner = as_row((first or {}).get("init_parameters")) or first or {}
        of_answer = {name: inner[name] for name in ("query", "documents") if inner.get(name)}
        fields = {**of_answer, **fields, "replies": find_answer([inner] if inner else replies[:1])}
    return {name: each for name, each in fields.items() if name not in parts}


HAYSTACK = LogSpec(
    name="haystack",
    title="documents, answers, pipeline outputs or evaluations of Haystack",
    signs=(
        "documents.0.content documents.0.meta|documents.0.blob|documents.0.score",
        "*.documents.0.meta|*.*.documents.0.meta|*.answers.0.init_parameters !inputs !observations !input !spans",
        "init_parameters.documents",
        "inputs results individual_scores",
    ),
    documents="content meta|blob|score|sparse_embedding !role",
    rows=_haystack_evaluation,
    prepare=_haystack_output,
    fields={
        "question": "query | question | questions",
        "query": "query_id | id",
        "system": "system | run_id | run_name",
        "passages": "documents | retrieved_documents | contexts | context",
        "answer": "predicted_answers | predicted_answer | replies | data | responses | response | answer",
        "accepted": "ground_truth_answers | ground_truth_answer | reference | expected | ground_truth",
        "relevant": "ground_truth_documents",
        "grades": "scores",
    },
).format()


@converter
def reply(messages: Any) -> Any:
    """Return the assistant's answer to the user's last message."""
    return find_answer([each for each in _after_question(messages) if role_of(each) == "assistant"])


@converter
def tool_results(messages: Any) -> list[Any] | None:
    """Return what tools returned after the user's last message: passages, or texts."""
    results = [each for each in _after_question(messages) if each.get("role") in ("tool", "function")]
    passages: list[Any] = []
    for message in results:
        content = parse_if_json(message.get("content"))
        listed = find(content, "results | documents | chunks | passages | hits | matches | data")
        items = listed if isinstance(listed, list) else content if isinstance(content, list) else [content]
        passages += items if are_passages(items) else [str(message["content"])] if message.get("content") else []
    return passages if results else None


def _after_question(messages: Any) -> list[dict[str, Any]]:
    listed = objects(messages)
    last = max((number for number, each in enumerate(listed) if each.get("role") == "user"), default=-1)
    return listed[last + 1 :]


@converter
def search_results(output: Any) -> list[Any] | None:
    """Return the chunks that a file search found."""
    return [each for item in objects(output) for each in objects(item.get("results"))] or None


def _note_turns(row: Row, finder: FieldFinder) -> Row:
    messages = objects(find(row, "messages | input | request.messages"))
    if sum(each.get("role") == "user" for each in messages) > 1:
        finder.note("only the last question of each conversation is read")
    return row


CHAT = LogSpec(
    name="chat",
    title="a log of a chat model",
    signs=(
        "messages.0.role|input.0.role|request.messages.0.role !question|user_input"
        " !observations !traceId !trace_id !run_type !vars",
        "response.choices|response.output.0.type|output.choices|completion.choices|choices !vars !run_type !traceId",
        "input output.0.type !observations !traceId !trace_id",
    ),
    prepare=_note_turns,
    fields={
        "query": "query_id | qid | question_id",
        "question": "messages@user | input@user | request.messages@user | request.input@user | *",
        "passages": "messages@tool_results | input@tool_results | request.messages@tool_results"
        " | response.output@search_results | output@search_results"
        " | response.choices.0.message.context.citations | choices.0.message.context.citations | *",
        "answer": "response@assistant | completion@assistant | output@assistant | choices@assistant"
        " | messages@reply | input@reply | request.messages@reply | *",
    },
).format()
