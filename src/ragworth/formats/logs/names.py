"""Names of columns in RAG logs, in order of preference.

Our fields are ``query`` (the id of a question), ``question``, ``system``, ``repeat``, ``passages``, ``passage_ids``,
``answer``, ``accepted`` (accepted answers), ``relevant`` and ``relevant_ids`` (passages known to be relevant), and
``ignored`` (columns that are none of these). Any other name that a user maps is a grade.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache

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


@lru_cache(maxsize=4096)
def plain_name(key: Hashable) -> str:
    """Return a key in lower case with underscores: ``userInput`` and ``User Input`` are ``user_input``."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(key))
    return re.sub(r"[\s\-]+", "_", text.strip()).lower()
