"""Which way a grade is better: by a known name, or by ``higher_`` or ``lower_`` before any other."""

from __future__ import annotations

import re
from typing import Literal

Direction = Literal[1, 0, -1]
"""1 if higher is better, −1 if lower is, 0 if neither or unknown."""

VERDICTS = frozenset(
    ("correct", "is_correct", "correctness", "answer_correctness", "accuracy", "pass", "passed", "success", "verdict")
)
"""Names of grades that say how good an answer is as a whole."""

HIGHER = VERDICTS | {
    *("human", "preference", "grade", "judge_grade", "score", "rating", "stars", "quality", "helpful", "helpfulness"),
    *("relevance", "coherence", "fluency", "groundedness", "faithfulness", "similarity", "exact_match", "includes"),
    *("bleu", "rouge_l", "f1", "em", "precision", "recall", "answer_relevancy", "answer_relevance"),
    *("response_relevancy", "answer_similarity", "semantic_similarity", "factual_correctness", "context_precision"),
    *("context_recall", "context_entity_recall", "context_relevance", "contextual_precision", "contextual_recall"),
    *("contextual_relevancy", "llm_context_precision_with_reference", "llm_context_precision_without_reference"),
}
"""Names of grades of which higher values are better, among them the metrics of ragas and deepeval."""

LOWER = frozenset(("wrong", "hallucination", "toxicity", "bias", "noise_sensitivity", "noise_sensitivity_relevant"))
PREFIXES: dict[str, Direction] = {"lower_": -1, "higher_": 1, "human_": 1}


def direction_of_name(name: str) -> Direction:
    """Which way a grade is better; 0 if its name doesn't say it."""
    plain = plain_grade(name)
    by_prefix = (better for prefix, better in PREFIXES.items() if plain.startswith(prefix))
    return next(by_prefix, 1 if plain in HIGHER else -1 if plain in LOWER else 0)


def is_verdict(name: str) -> bool:
    """Whether a grade, or the share of correct answers that follows from it, says how good an answer is as a whole."""
    return plain_grade(name.removesuffix("-correct")) in VERDICTS


def name_with_direction(name: str, better: Literal[1, -1]) -> str:
    """The name of a grade whose direction is known, with ``higher_`` or ``lower_`` if the name doesn't say it."""
    return name if direction_of_name(name) == better else f"{'higher' if better == 1 else 'lower'}_{name}"


def plain_grade(name: str) -> str:
    """A name in lower case with underscores, without settings in brackets: ``noise_sensitivity(mode=relevant)``."""
    return re.sub(r"\W+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])|[(\[].*", "_", name)).strip("_").lower()
