"""Names of columns in RAG logs, in order of preference, and the user's mapping of our fields to columns.

Our fields are ``query`` (the id of a question), ``question``, ``system``, ``repeat``, ``passages``, ``passage_ids``,
``answer``, ``accepted`` (accepted answers), ``relevant`` and ``relevant_ids`` (passages known to be relevant), and
``ignored`` (columns that are none of these). Any other name that a user maps is a grade.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Hashable, Mapping
from functools import lru_cache

from ragworth.core.errors import FormatError, Hint
from ragworth.formats.grades import direction_of_name

FIELDS: dict[str, tuple[str, ...]] = {
    "query": ("query_id", "qid", "question_id", "id", "_id", "example_id"),
    "question": ("question", "query", "user_input", "user_query", "input", "prompt"),
    "system": ("system", "system_id", "system_name", "pipeline"),
    "repeat": ("repeat", "epoch"),
    "passages": (
        *("retrieved_context", "retrieved_contexts", "retrieval_context", "contexts", "passages", "retrieved_passages"),
        *("retrieved_documents", "retrieved_docs", "retrieved_chunks", "documents", "docs", "chunks"),
        *("source_documents", "source_nodes", "sources", "ctxs", "context"),
    ),
    "passage_ids": ("retrieved_context_ids", "retrieved_ids", "passage_ids", "doc_ids"),
    "answer": (
        *("response", "generated_answer", "model_answer", "predicted_answer", "system_answer", "prediction"),
        *("actual_output", "completion", "answer", "output", "result", "llm_answer", "final_answer", "generated_text"),
    ),
    "accepted": (
        *("answers", "accepted", "accepted_answers", "reference", "reference_answer", "ground_truth", "ground_truths"),
        *("gold", "gold_answer", "gold_answers", "expected_output", "expected_answer", "expected", "correct_answer"),
        *("golden_answer", "ideal_answer", "target"),
    ),
    "relevant": ("reference_contexts", "gold_contexts", "gold_passages"),
    "relevant_ids": ("reference_context_ids", "relevant_ids", "gold_ids", "retrieval_gt"),
    "ignored": (),
}

PREDICTIONS = {"generated_answer", "model_answer", "predicted_answer", "system_answer", "prediction"}
"""Answers that only systems give. An ``answer`` beside them is the accepted one, if no other column is."""

GRADE_FIELDS: dict[str, tuple[str, ...]] = {
    "human": ("human_label", "human", "human_grade", "label", "verdict", "annotation"),
    "correct": ("correct", "is_correct", "correctness"),
    "grade": ("grade",),
    "abstained": ("abstained", "is_abstained"),
}

SYSTEM_COLUMNS = ("model", "model_name", "version", "variant", "method", "retriever", "experiment", "run", "run_id")
"""Names of columns that may name the systems. They are suggested, and not read as such."""

SYNONYMS = {name: field for field, names in FIELDS.items() for name in names if name not in FIELDS}
"""Other names that a mapping may use for our fields."""


@lru_cache(maxsize=4096)
def plain_name(key: Hashable) -> str:
    """Return a key in lower case with underscores: ``userInput`` and ``User Input`` are ``user_input``."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(key))
    return re.sub(r"[\s\-]+", "_", text.strip()).lower()


JOIN = " + "
"""Between the names of columns whose values together are one name."""


def check_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Return a mapping with our names of the fields. A misspelt field is an error."""
    mapped: dict[str, str] = {}
    for name, column in (columns or {}).items():
        field = SYNONYMS.get(name, name)
        near = difflib.get_close_matches(name, [*FIELDS, *SYNONYMS], n=1, cutoff=0.8)
        if field not in FIELDS and near:
            raise FormatError(
                f"unknown field {name!r} in the mapping of columns",
                expected=", ".join(FIELDS) + ", or the name of a grade",
                remedy=f"did you mean {near[0]}={column}?",
            )
        if field not in {**FIELDS, **GRADE_FIELDS} and not direction_of_name(field):
            raise FormatError(
                f"nothing says which way the grade {field!r} is better",
                remedy=mapping_hint(({f"higher_{field}": column}, f", or lower_{field} if lower is better")),
            )
        if mapped.setdefault(field, column) != column:
            raise FormatError(f"the field {field!r} is mapped to {mapped[field]!r} and to {column!r}")
    return mapped


def mapping_hint(*choices: tuple[Mapping[str, str], str]) -> Hint:
    """Return the advice to map columns, with the line to paste for each place. Words follow each of the choices."""
    command = workspace = python = ""
    for mapping, words in choices:
        quoted = {field: json.dumps(column, ensure_ascii=False) for field, column in mapping.items()}
        command += " ".join(f"--map {quote_argument(f'{field}={column}')}" for field, column in mapping.items()) + words
        workspace += ", ".join(f"{field} = {column}" for field, column in quoted.items()) + words
        python += f"columns={json.dumps(mapping, ensure_ascii=False)}{words}"
    return Hint(command, f"write under [columns]: {workspace}", python, option="columns")


def quote_argument(text: str) -> str:
    """Return an argument as a shell reads it."""
    return text if re.fullmatch(r"[\w=.\-/:]+", text) else f"'{text}'"
