"""Read results of promptfoo: JSON or JSON lines.

The system is the provider, and the prompt if there are several. The variables of a test hold the question, and maybe
the passages and the accepted answer. Higher scores are better, whatever the name of the metric.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ragworth.core.errors import format_count, quote_short
from ragworth.data.collection import plain_text, text_id
from ragworth.data.definitions import TRUNCATED
from ragworth.formats.contract import FileSample
from ragworth.formats.grades import Grade, name_with_direction
from ragworth.formats.logs.engine import LogFormat
from ragworth.formats.logs.fields import FIELDS, FieldFinder, plain_name
from ragworth.formats.logs.messages import find_answer
from ragworth.formats.logs.missing_answers import ERROR
from ragworth.formats.logs.tool_rows import ToolRow, find_field, tool_parser, unknown_question
from ragworth.formats.logs.values import as_answer, as_grades, as_row
from ragworth.formats.values import objects

NAMES = {
    "query": ("query",),
    "question": ("vars.question",),
    "passages": ("vars.context",),
    "answer": ("response.output",),
    "accepted": ("vars.expected",),
}
REFERENCE = re.compile(
    r"equals|similar(:\w+)?|(model-graded-)?factuality|levenshtein|rouge-n|[bg]leu|meteor|i?contains-any"
)
"""Assertions whose value is an accepted answer."""

PART = re.compile(r"i?contains")
"""Assertions whose value is an accepted answer if it is the only one: an answer must contain all of them."""

PARTS = "texts are not read as accepted answers where an answer must contain several"
VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
FAILED_BY_ERROR = 2
"""``failureReason`` of a result that has no answer. An answer that an assertion rejected has 1, and also an error."""

LABEL = 40
"""Characters up to which the label of a prompt is its name. By default, the label is the whole prompt."""


def _recognise(sample: FileSample) -> bool:
    inner = _unpack(sample.document) if isinstance(sample.document, Mapping) else None
    first = next(iter(sample.rows if inner is None else inner), None)
    return isinstance(first, Mapping) and bool({"vars", "testCase"} & set(first)) and "success" in first


def _unpack(value: Mapping[str, Any]) -> list[Any] | None:
    inner = value.get("results")
    inner = inner.get("results") if isinstance(inner, Mapping) else inner
    return inner if isinstance(inner, list) else None


def _read(row: Mapping[str, Any], place: int, finder: FieldFinder) -> Iterator[ToolRow]:
    test, response, graded = (as_row(row.get(name)) or {} for name in ("testCase", "response", "gradingResult"))
    variables = as_row(row.get("vars")) or as_row(test.get("vars")) or {}
    prompt, provider = as_row(row.get("prompt")) or {}, as_row(row.get("provider"))
    answer = _find_answer(response.get("output"))
    error = response.get("error") or (answer is None and row.get("error"))
    assertions, parts = objects(test.get("assert")), objects(graded.get("componentResults"))
    fields = {
        "vars.question": _find_question(variables, finder, prompt.get("raw")),
        "vars.context": _find_passages(response, variables, parts),
        "vars.expected": _find_references(variables, assertions, finder),
        "response.output": answer,
        "vars": variables,
        "response": response,
        "metadata": row.get("metadata"),
        "prompt": str(prompt.get("label") or row.get("promptIdx", "")),  # "raw" has the question in it
    }
    status = ERROR if error or row.get("failureReason") == FAILED_BY_ERROR else ""
    if not status and response.get("finishReason") == "length":
        status = TRUNCATED
    system = (provider.get("label") or provider.get("id")) if provider else row.get("provider")
    # Without assertions, promptfoo passes every answer, which says nothing.
    grades = _read_grades(row, parts) if parts or assertions else {}
    yield ToolRow(place, fields, None if system is None else str(system), grades, status)


def _find_answer(output: Any) -> str | None:
    answer = find_answer(output)
    return json.dumps(output, ensure_ascii=False) if answer is None and output not in (None, "") else answer


def _find_question(variables: Mapping[str, Any], finder: FieldFinder, prompt: Any = None) -> Any:
    """The variable of a usual name, or the only text; without any variable, the prompt."""
    found = find_field(variables, "question", FIELDS["question"])
    if found is not None or "question" in finder.columns:
        return found
    others = {*FIELDS["passages"], *FIELDS["accepted"], *FIELDS["query"]}
    texts = [each for name, each in variables.items() if isinstance(each, str) and plain_name(name) not in others]
    if len(texts) == 1:
        return texts[0]
    if variables or prompt is None:
        raise unknown_question(variables, "vars")
    return prompt


def _find_passages(response: Mapping[str, Any], variables: Mapping[str, Any], parts: list[dict[str, Any]]) -> Any:
    """What the provider retrieved, or else the passages that the test gives, or those that were graded."""
    retrieved = (as_row(response.get("metadata")), as_row(response.get("output")), variables)
    for place in (*retrieved, *(as_row(part.get("metadata")) for part in parts)):
        if place and (found := find_field(place, "passages", FIELDS["passages"])) is not None:
            return found
    return None


def _find_references(variables: Mapping[str, Any], assertions: list[dict[str, Any]], finder: FieldFinder) -> Any:
    """The variable of a usual name, or else the values of assertions."""
    given = find_field(variables, "accepted", FIELDS["accepted"])
    if given is not None:
        return given
    parts = [each.get("value") for each in assertions if PART.fullmatch(str(each.get("type")))]
    whole = [each.get("value") for each in assertions if REFERENCE.fullmatch(str(each.get("type")))]
    if len(parts) > 1 and not whole and PARTS not in finder.notes:
        finder.notes.append(PARTS)
    values = whole or (parts if len(parts) == 1 else [])
    texts = [each for value in values for each in (value if isinstance(value, list) else [value])]
    filled = (
        VARIABLE.sub(lambda match: str(variables.get(match[1], match[0])), text)
        for value in texts
        if not isinstance(value, Mapping | list) and (text := as_answer(value))
    )
    return list(dict.fromkeys(text for text in filled if "{{" not in text and "://" not in text)) or None


def _read_grades(row: Mapping[str, Any], parts: list[dict[str, Any]]) -> dict[str, Grade | list[Grade]]:
    """The verdict on an answer and its score, those of single assertions by their kind, and named metrics."""
    named: dict[str, Any] = {"pass": row.get("success"), "score": row.get("score")}
    for part in parts:
        about, facts = as_row(part.get("assertion")) or {}, as_row(part.get("metadata")) or {}
        if about.get("type") and not about.get("metric"):
            named.setdefault(str(about["type"]), []).append(None if facts.get("graderError") else part.get("score"))
    return _name_grades({**named, **(as_row(row.get("namedScores")) or {})})


def _name_grades(named: Mapping[str, Any]) -> dict[str, Grade | list[Grade]]:
    return {name_with_direction(name, 1): as_grades(value, name) for name, value in named.items()}


def _name_systems(rows: list[ToolRow], finder: FieldFinder) -> list[ToolRow]:
    """Add the prompt to the name of the system, if there are several, and tell apart tests with the same question."""
    prompts: dict[str, str] = {}
    for label in dict.fromkeys(row.fields.get("prompt", "") for row in rows):
        short = len(label) <= LABEL and "\n" not in label
        prompts[label] = label if short else f"prompt {len(prompts) + 1}"
    if len(prompts) > 1:
        rows = [row._replace(system=f"{row.system}, {prompts[row.fields.get('prompt', '')]}") for row in rows]
        long = [f"{name} is {quote_short(text, 48)}" for text, name in prompts.items() if name != text]
        finder.notes += [f"names of systems end in the prompt; {'; '.join(long)}"] if long else []
    tests: dict[str, dict[str, int]] = {}
    named: list[ToolRow] = []
    for row in rows:
        question = plain_text(str(row.fields["vars.question"]))
        same = tests.setdefault(question, {})
        test = json.dumps(row.fields["vars"], sort_keys=True, default=str)
        number = same.setdefault(test, len(same) + 1)
        query = f"{text_id(question)}-{number}" if number > 1 and "question" not in finder.columns else None
        named.append(row._replace(fields={**row.fields, "query": query}))
    if again := sum(len(same) > 1 for same in tests.values()):
        which = format_count(again, "question occurs", "questions occur")
        finder.notes.append(f"{which} with different variables; each is read as a question of its own")
    return named


FORMAT = LogFormat(
    name="promptfoo",
    title="results of promptfoo",
    expected='results: {"provider": …, "vars": {"question": …}, "response": {"output": …}, "success": …, "score": …}',
    names=NAMES,
    recognise=_recognise,
    unpack=_unpack,
    parse=tool_parser(_read, _name_systems),
).format()
