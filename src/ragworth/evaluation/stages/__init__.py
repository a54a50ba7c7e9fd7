"""The stages of an evaluation, imported when they run. What was made before from the same input is used again."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragworth.evaluation.stages.annotate import run_annotate, stage_annotator
    from ragworth.evaluation.stages.answer import run_answer, run_answer_with_confidence, run_grade
    from ragworth.evaluation.stages.hops import run_hops
    from ragworth.evaluation.stages.retrieve import run_retrieve
    from ragworth.evaluation.stages.score import run_score
    from ragworth.evaluation.stages.two_judges import TwoJudgesChecker, run_estimates, run_expensive_judge

STAGES = ("retrieve", "annotate", "answer", "grade", "score", "report")
"""In their order; reading the files comes before all of them."""

MODULES = {
    "run_annotate": "annotate",
    "stage_annotator": "annotate",
    "run_answer": "answer",
    "run_answer_with_confidence": "answer",
    "run_grade": "answer",
    "run_hops": "hops",
    "run_retrieve": "retrieve",
    "run_score": "score",
    "TwoJudgesChecker": "two_judges",
    "run_estimates": "two_judges",
    "run_expensive_judge": "two_judges",
}

__all__ = [
    "STAGES",
    "TwoJudgesChecker",
    "run_annotate",
    "run_answer",
    "run_answer_with_confidence",
    "run_estimates",
    "run_expensive_judge",
    "run_grade",
    "run_hops",
    "run_retrieve",
    "run_score",
    "stage_annotator",
]


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
