"""Find the fields of a RAG log by their many names, and convert their values.

Our fields are ``query`` (the id of a question), ``question``, ``system``, ``repeat``, ``passages``, ``passage_ids``,
``answer``, ``accepted`` (accepted answers), ``relevant`` and ``relevant_ids`` (passages known to be relevant), and
``ignored`` (columns that are none of these). Any other name that a user maps is a grade.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from ragworth.core.errors import FormatError, Hint, format_names
from ragworth.formats.grades import direction_of_name

Names = Mapping[str, tuple[str, ...]]


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
"""Our fields, and what files call them, in order of preference. Only the user says which columns are ``ignored``."""

PREDICTIONS = {"generated_answer", "model_answer", "predicted_answer", "system_answer", "prediction"}
"""Answers that only systems give. An ``answer`` beside them is the accepted one, if no other column is."""

GRADE_FIELDS: dict[str, tuple[str, ...]] = {
    "human": ("human_label", "human", "human_grade", "label", "verdict", "annotation"),
    "correct": ("correct", "is_correct", "correctness"),
    "grade": ("grade",),
    "abstained": ("abstained", "is_abstained"),
}
"""Grades of answers, and what files call them."""

SYSTEM_COLUMNS = ("model", "model_name", "version", "variant", "method", "retriever", "experiment", "run", "run_id")
"""Names of columns that may name the systems."""

JOIN = " + "
"""Between the names of columns whose values together are one name."""


SYNONYMS = {
    "query_id": "query",
    "id": "query",
    "contexts": "passages",
    "context": "passages",
    "response": "answer",
    "reference": "accepted",
    "references": "accepted",
    "answers": "accepted",
    "ground_truth": "accepted",
    "reference_contexts": "relevant",
}
"""Other names that a mapping may use for our fields."""


def check_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Return a mapping with our names of the fields. A misspelt field is an error."""
    mapped: dict[str, str] = {}
    for given, column in (columns or {}).items():
        field = SYNONYMS.get(given, given)
        near = difflib.get_close_matches(given, [*FIELDS, *SYNONYMS], n=1, cutoff=0.8)
        if field not in FIELDS and near:
            raise FormatError(
                f"unknown field {given!r} in the mapping of columns",
                expected=", ".join(FIELDS) + ", or the name of a grade",
                remedy=f"did you mean {near[0]}={column}?",
            )
        if field not in {**FIELDS, **GRADE_FIELDS} and not direction_of_name(field):
            raise _direction_error(field, column)
        if mapped.setdefault(field, column) != column:
            raise FormatError(f"the field {field!r} is mapped to {mapped[field]!r} and to {column!r}")
    return mapped


def _direction_error(grade: str, column: str) -> FormatError:
    """The error for the name of a grade that doesn't say which way it is better."""
    higher = f"higher_{grade}"
    return FormatError(
        f"nothing says which way the grade {grade!r} is better",
        remedy=Hint(
            f"--map {quote_argument(f'{higher}={column}')}, or lower_{grade} if lower is better",
            f"[columns]: {_toml_pair(f'{higher}={column}')}, or lower_{grade} if lower is better",
            f"columns={json.dumps({higher: column}, ensure_ascii=False)}, or lower_{grade} if lower is better",
            option="columns",
        ),
    )


class FieldFinder:
    """Finds the fields of rows. ``columns``, the user's mapping, comes before ``names``, those of a format."""

    def __init__(self, names: Names, columns: Mapping[str, str] | None = None) -> None:
        self.names, self.columns = names, check_columns(columns)
        self.grades: dict[str, str] = {name: key for name, key in self.columns.items() if name not in FIELDS}
        """Columns of grades, by the name of the grade."""
        self.notes: list[str] = []
        """What readers of whole files noticed."""
        self.found: set[str] = set()
        """Mapped columns that some row has."""
        self.seen: dict[str, None] = {}
        self._keys: dict[tuple[str, ...], dict[str, str]] = {}

    def keys(self, row: Mapping[str, Any]) -> dict[str, str]:
        """The key of each field in rows with these keys."""
        mark = tuple(row)
        if mark not in self._keys:
            self.seen |= dict.fromkeys(mark)
            plain = {plain_name(key): key for key in reversed(mark)}
            taken = {column for field, column in self.columns.items() if field != "query"}  # a text may be the id, too
            found = {
                field: key
                for field, names in self.names.items()
                if field not in self.columns
                and (key := next((plain[name] for name in names if plain.get(name) not in (None, *taken)), None))
            }
            if plain_name(found.get("answer", "")) in PREDICTIONS and "accepted" in self.names and "answer" in plain:
                found.setdefault("accepted", plain["answer"])
            self._keys[mark] = found | self.columns
        return self._keys[mark]

    def known_keys(self) -> Iterable[dict[str, str]]:
        """The keys of the fields, for each set of keys that rows had."""
        return self._keys.values()

    def get(self, row: Mapping[str, Any], field: str) -> Any:
        """The value of a field, or None. Names with dots lead into objects."""
        key = self.keys(row).get(field) or self.grades.get(field)
        if key is None:
            return None
        value = row.get(key)
        if value is None and field in self.columns and key not in row:
            value = _follow(row, key) if JOIN not in key else _join(row, key.split(JOIN))
        if field in self.columns and (value is not None or key in row):
            self.found.add(key)
        return None if isinstance(value, float) and math.isnan(value) else value

    def check_mapped(self, source: str) -> None:
        """Raise an error if a mapped column was in no row."""
        missing = [(field, key) for field, key in self.columns.items() if key not in self.found]
        if missing:
            field, key = missing[0]
            near = difflib.get_close_matches(key, list(self.seen), n=1, cutoff=0.5)
            better = f"{field}={near[0] if near else 'COLUMN'}"
            raise FormatError(
                f"no {key!r}, which was given for {field!r}; there are {format_names(list(self.seen))}",
                file=source,
                remedy=Hint(
                    f"--map {quote_argument(better)}", f"[columns]: {_toml_pair(better)}", f"columns: {better}"
                ),
            )


def quote_argument(text: str) -> str:
    return text if re.fullmatch(r"[\w=.\-/:]+", text) else f"'{text}'"


def _toml_pair(text: str) -> str:
    name, _, value = text.partition("=")
    return f"{name} = {json.dumps(value, ensure_ascii=False)}"


def _join(row: Mapping[str, Any], columns: list[str]) -> str | None:
    """The values of several columns as one name."""
    values = [str(row[column]) for column in columns if row.get(column) is not None]
    return JOIN.join(values) or None


def _follow(row: Mapping[str, Any], path: str) -> Any:
    value: Any = row
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


@lru_cache(maxsize=4096)
def plain_name(key: Hashable) -> str:
    """A key in lower case with underscores: ``userInput`` and ``User Input`` are ``user_input``."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(key))
    return re.sub(r"[\s\-]+", "_", text.strip()).lower()
