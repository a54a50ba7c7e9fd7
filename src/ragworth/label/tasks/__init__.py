"""The labelling tasks, one file each. `load_task` finds one by its kind, or reads a custom one from a TOML file."""

from __future__ import annotations

from pathlib import Path

from ragworth.core.registry import Registry
from ragworth.label.tasks.contract import ItemPart, LabelItem, LabelTask, TableRow
from ragworth.label.tasks.fields import ChoiceField, Requirement, ScaleOption, SpansField, TextField, Value

LABEL_TASKS: Registry[type[LabelTask]] = Registry(
    "labelling task",
    "ragworth.label_tasks",
    {
        "relevance": "ragworth.label.tasks.relevance:RelevanceTask",
        "utility": "ragworth.label.tasks.utility:UtilityTask",
        "answerability": "ragworth.label.tasks.answerability:AnswerabilityTask",
        "passage-answerability": "ragworth.label.tasks.answerability:PassageAnswerabilityTask",
        "coverage": "ragworth.label.tasks.coverage:CoverageTask",
        "answer-grade": "ragworth.label.tasks.answer_grade:AnswerGradeTask",
        "preference": "ragworth.label.tasks.preference:PreferenceTask",
        "context-preference": "ragworth.label.tasks.preference:ContextPreferenceTask",
        "question-soundness": "ragworth.label.tasks.question_soundness:QuestionSoundnessTask",
    },
)


def load_task(name: str) -> LabelTask:
    """The task of this kind, or the custom task in this TOML file."""
    if name.endswith(".toml"):
        from ragworth.label.tasks.custom import read_custom_task

        return read_custom_task(Path(name))
    kind: type[LabelTask] = LABEL_TASKS.get(name)
    return kind()


__all__ = [
    "LABEL_TASKS",
    "ChoiceField",
    "ItemPart",
    "LabelItem",
    "LabelTask",
    "Requirement",
    "ScaleOption",
    "SpansField",
    "TableRow",
    "TextField",
    "Value",
    "load_task",
]
