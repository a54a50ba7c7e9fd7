"""The stages of an evaluation, one file for each. What was made before from the same input is used again."""

from ragworth.evaluation.stages.annotate import run_annotate, stage_annotator
from ragworth.evaluation.stages.answer import run_answer, run_answer_with_confidence
from ragworth.evaluation.stages.grade import run_grade
from ragworth.evaluation.stages.retrieve import run_retrieve
from ragworth.evaluation.stages.score import run_score

__all__ = [
    "STAGES",
    "run_annotate",
    "run_answer",
    "run_answer_with_confidence",
    "run_grade",
    "run_retrieve",
    "run_score",
    "stage_annotator",
]

STAGES = ("retrieve", "annotate", "answer", "grade", "score", "report")
"""In their order; reading the files comes before all of them."""
