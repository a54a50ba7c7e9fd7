"""Logs of evaluation tools; those of frameworks are in ``frameworks.py``.

Adding a tool is one more :class:`LogSpec`, and a line in the catalogue. A sign must be one that no other log has.
Converters (``@name``) that only tools need are here, too.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ragworth.core.errors import quote_short
from ragworth.data.tables import TRUNCATED
from ragworth.formats.grades import direction_of_name, name_with_direction
from ragworth.formats.logs.engine import LogSpec, PlacedRows, Reject, Row
from ragworth.formats.logs.fields import FieldFinder
from ragworth.formats.logs.names import GRADE_FIELDS, plain_name
from ragworth.formats.logs.passages import as_passages
from ragworth.formats.logs.paths import converter, find, find_answer
from ragworth.formats.logs.tables import ERROR
from ragworth.formats.logs.values import as_row, as_texts
from ragworth.formats.values import objects

GRADE_COLUMNS = {name for names in GRADE_FIELDS.values() for name in names}


@converter
def error(value: Any) -> str | None:
    """Return the status of an answer beside an error."""
    return ERROR if value else None


@converter
def cut(value: Any) -> str | None:
    """Return the status of an answer by the reason why the model stopped."""
    return TRUNCATED if value in ("length", "max_tokens") else None


@converter
def from_one(value: Any) -> Any:
    """Return the number of a repeat that counts from 1."""
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    return max(number - 1, 0) if isinstance(number, int) else number


@converter
def known_scores(row: Row) -> dict[str, Any]:
    """Return the columns of single values whose names say which way they are better."""
    names = [name for name in row if _is_score(str(name))]
    return {name: row[name] for name in names if not isinstance(row[name], list | Mapping)}


@lru_cache
def _is_score(name: str) -> bool:
    return direction_of_name(name) != 0 and plain_name(name) not in GRADE_COLUMNS


@converter
def without_hops(passages: Any) -> Any:
    """Return passages as they were in the corpus: ragas' writer of multi-hop questions puts ``<1-hop>`` in front."""
    texts = as_passages(passages) or []
    return [each if each.text is None else re.sub(r"\A<\d+-hop>\s*", "", each.text) for each in texts]


RAGAS = LogSpec(
    name="ragas",
    title="a ragas dataset",
    signs=(
        "user_input retrieved_contexts|response|reference|reference_contexts",
        "question contexts answer|ground_truth|ground_truths !predicted_answer|predicted_answers|prediction"
        " !generated_answer|model_answer|system_answer",
    ),
    fields={
        "query": "query_id | sample_id | id",
        "question": "user_input | question",
        "system": "system | pipeline | configuration | run_id | experiment_name",
        "passages": "retrieved_contexts | contexts",
        "answer": "response | answer",
        "accepted": "reference | ground_truth | ground_truths | *",
        "relevant": "reference_contexts@without_hops",
        "grades": "@known_scores",
    },
).format()


@converter
def bars(value: Any) -> Any:
    """Return texts that are joined by ``|``, as deepeval writes lists in tables and JSON lines."""
    return value.split("|") if isinstance(value, str) else value


@converter
def named_scores(metrics: Any) -> dict[str, Any]:
    """Return the scores in a list of metrics by their names."""
    return {str(each["name"]): each.get("score") for each in objects(metrics) if each.get("name")}


DEEPEVAL = LogSpec(
    name="deepeval",
    title="deepeval test cases or goldens",
    signs=("input actual_output|actualOutput|expected_output|expectedOutput !output|response|answer",),
    rows="testCases | test_cases | goldens",
    fields={
        "query": "query_id | id",
        "question": "input",
        "passages": "retrieval_context@bars",
        "answer": "actual_output",
        "accepted": "expected_output",
        "relevant": "context@bars",  # what the answer should rest on
        "grades": "metrics_data@named_scores",
    },
).format()


def _inspect_samples(document: Row) -> list[Any] | None:
    """Return the samples of a log, with the facts about its run."""
    samples = document.get("samples")
    run = {**(as_row(document.get("eval")) or {}), "status": document.get("status")}
    return [{**(as_row(sample) or {}), "run": run} for sample in samples] if isinstance(samples, list) else None


def _note_end(row: Row, finder: FieldFinder) -> Row:
    if (status := find(row, "run.status")) not in (None, "success"):
        finder.note(f"the run ended with status {quote_short(status, 24)}: samples may be missing")
    return row


@converter
def inspect_grades(scores: Any) -> dict[str, Any]:
    """Return the grades of a sample, with the values that inspect_ai's accuracy gives to its letters."""
    grades: dict[str, Any] = {}
    for name, score in (as_row(scores) or {}).items():
        value = (as_row(score) or {}).get("value")
        for part, each in value.items() if isinstance(value, Mapping) else [("", value)]:
            letter = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}.get(each, each) if isinstance(each, str) else each
            grades[f"{name}/{part}" if part else str(name)] = None if isinstance(each, list) else letter
    return grades


INSPECT = LogSpec(
    name="inspect_ai",
    title="a log of inspect_ai",
    signs=("eval.task",),
    rows=_inspect_samples,
    prepare=_note_end,
    quiet=True,
    fields={
        "query": "id",
        "question": "input@user",
        "system": "metadata.* | run.metadata.* | run.model",
        "repeat": "epoch@from_one",
        "passages": "metadata.* | run.metadata.*",
        "passage_ids": "metadata.*",
        "answer": "output.choices.0.message@assistant | output.completion@assistant",
        "accepted": "target",
        "relevant": "metadata.*",
        "relevant_ids": "metadata.*",
        "status": "error@error | output.choices.0.stop_reason@cut",
        "grades": "scores@inspect_grades",
    },
).format()


def _join_pairs(rows: PlacedRows, finder: FieldFinder, reject: Reject) -> Iterator[tuple[int, Row]]:
    """Yield rows, and of those with the answers of two systems one row for each system.

    A label of a pair, from −2 to 2, says how much better the second answer is. Each system gets half of it, with its
    sign, so that the difference of the two is the label. Labels of several people and pairs are averaged.
    """
    systems: dict[tuple[Any, Any], tuple[int, dict[str, Any]]] = {}
    for place, row in rows:
        if "model1" not in row or "model2" not in row:
            yield place, row
            continue
        # Ids are unique within a dataset only.
        query = ":".join(str(row[name]) for name in ("dataset", "query_id") if row.get(name) is not None)
        labels = {name: row[name] for name in row if name.endswith("_label") and isinstance(row[name], int | float)}
        shared = {name: row[name] for name in row if name not in ("model1", "model2", "dataset", *labels)}
        for part, sign in (("model1", -0.5), ("model2", 0.5)):
            model = {name: find(row, f"{part}.{name}") for name in ("model_name", "response")}
            fields = {**shared, "query_id": query, **model, "metrics": {}}
            of_system = systems.setdefault((query, model["model_name"]), (place, fields))[1]
            if of_system["response"] != model["response"]:
                system = quote_short(model["model_name"], 24)
                reject(place, f"query {quote_short(query, 24)} has two answers of system {system}")
                continue
            for name, label in labels.items():
                aspect = f"human-{name.removesuffix('_label')}-preference"
                of_system["metrics"].setdefault(aspect, []).append(sign * label)
    yield from systems.values()


RAGCHECKER = LogSpec(
    name="ragchecker",
    title="RAGChecker's inputs, results or human labels",
    signs=("query gt_answer", "query model1 model2"),
    rows="results",
    collect=_join_pairs,
    fields={
        "query": "query_id",
        "question": "query",
        "system": "system | model_name",
        "passages": "retrieved_context",
        "answer": "response",
        "accepted": "gt_answer",
        "grades": "metrics",
    },
).format()


def _join_passages(rows: PlacedRows, finder: FieldFinder, reject: Reject) -> Iterator[tuple[int, Row]]:
    """Yield a row for each query and run, with its passages, of rows with one passage each."""
    groups: dict[tuple[Any, ...], tuple[int, dict[str, Any]]] = {}
    for place, row in rows:
        key = (*(finder.get(row, name) for name in ("system", "query", "question")), row.get("query_run"))
        others = {name: value for name, value in row.items() if name != "passage_id"}
        group = groups.setdefault(key, (place, {**others, "passage": [], "generated_answer": None}))[1]
        answer = row.get("generated_answer")
        if answer and group["generated_answer"] not in (None, answer):
            reject(place, f"query {quote_short(row.get('query'), 24)} has two different answers in one run")
            continue
        group["generated_answer"] = group["generated_answer"] or answer or None
        if answer in ("NO_ANSWER", "API_ERROR"):
            group["status"] = str(answer).lower().replace("_", "-")
        elif isinstance(text := row.get("passage"), str) and text.strip():
            group["passage"].append({"text": text, "doc_id": row.get("passage_id")})
    yield from groups.values()


OPEN_RAG_EVAL = LogSpec(
    name="open-rag-eval",
    title="results of open-rag-eval",
    signs=("query passage generated_answer",),
    collect=_join_passages,
    fields={
        "query": "query_id",
        "question": "query",
        "system": "system | run_id",
        "repeat": "query_run@from_one",
        "passages": "passage",
        "answer": "generated_answer",
        "accepted": "expected_answer",
        "status": "status",
    },
).format()

COMPARISONS = ("equals", "contains", "icontains", "contains-any", "icontains-any", "similar", "factuality")
"""Assertions of promptfoo whose value is an accepted answer."""

VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def _promptfoo_result(row: Row, finder: FieldFinder) -> Row:
    """Return a result with its variables, accepted answers, status and grades. Higher scores are better."""
    test, response = as_row(row.get("testCase")) or {}, as_row(row.get("response")) or {}
    variables = as_row(row.get("vars")) or as_row(test.get("vars")) or {"question": find(row, "prompt.raw")}
    assertions, output = objects(test.get("assert")), response.get("output")
    failed = response.get("error") or row.get("failureReason") == 2 or (output in (None, "") and row.get("error"))
    answer = find_answer(output)
    grades = {"pass": row.get("success"), "score": row.get("score"), **(as_row(row.get("namedScores")) or {})}
    return {
        **row,
        "vars": variables,
        "answer": json.dumps(output, ensure_ascii=False) if answer is None and output not in (None, "") else answer,
        "references": _compared_texts(assertions, variables),
        "status": ERROR if failed else cut(response.get("finishReason")),
        # Without assertions, promptfoo passes every answer, which says nothing.
        "grades": {name_with_direction(str(name), 1): grades[name] for name in grades} if assertions else {},
    }


def _compared_texts(assertions: list[dict[str, Any]], variables: Row) -> list[str] | None:
    """Return the texts that the only comparison accepts, with the variables filled in; with several, each is a part."""
    values = [each.get("value") for each in assertions if each.get("type") in COMPARISONS]
    texts = as_texts(values[0]) if len(values) == 1 else []
    filled = [VARIABLE.sub(lambda name: str(variables.get(name[1], name[0])), text) for text in texts]
    return [text for text in filled if "{{" not in text and "://" not in text] or None


def _name_providers(rows: PlacedRows, finder: FieldFinder, reject: Reject) -> Iterator[tuple[int, Row]]:
    """Yield rows with the names of systems, if there are several providers or prompts, and with numbers of repeats."""
    placed = list(rows)
    prompts = list(dict.fromkeys(str(find(row, "prompt.label")) for _, row in placed))
    names = [str(find(row, "provider.label | provider.id | provider")) for _, row in placed]
    if len(prompts) > 1:
        numbers = [prompts.index(str(find(row, "prompt.label"))) + 1 for _, row in placed]
        names = [f"{name}, prompt {number}" for name, number in zip(names, numbers, strict=True)]
    asked: Counter[tuple[str, str]] = Counter()
    for name, (place, row) in zip(names, placed, strict=True):
        key = name, str(finder.get(row, "question"))
        yield place, {**row, "system": name if len(set(names)) > 1 else None, "repeat": asked[key]}
        asked[key] += 1


PROMPTFOO = LogSpec(
    name="promptfoo",
    title="results of promptfoo",
    expected='results: {"provider": …, "vars": {"question": …}, "response": {"output": …}, "success": …, "score": …}',
    signs=("vars|testCase success score",),
    rows="results.results | results",
    prepare=_promptfoo_result,
    collect=_name_providers,
    quiet=True,
    fields={
        "query": "vars.query_id",
        "question": "vars.*",
        "passages": "response.metadata.* | response.output.* | vars.*",
        "answer": "answer",
        "accepted": "vars.* | references",
        "status": "status",
        "grades": "grades",
    },
).format()
