"""``ragworth.toml``: what is evaluated, with which model, by what, and where results go.

A file is read whole and checked before anything else happens: what is unknown, misspelt or of the wrong kind is
reported together, each with its line. Paths start at the folder of the file. What names mean (metrics, graders,
steps of a pipeline) is for the rooms to say that have them.
"""

from __future__ import annotations

from ragworth.config.parsing import read
from ragworth.config.toml_reader import TomlReader
from ragworth.config.workspace import (
    EVERY_SYSTEM,
    WORKSPACE_FILE,
    AnswerConfig,
    BudgetConfig,
    CollectionConfig,
    ExpensiveJudge,
    ModelSpec,
    OutputPaths,
    TaskConfig,
    Workspace,
)

__all__ = [
    "EVERY_SYSTEM",
    "WORKSPACE_FILE",
    "AnswerConfig",
    "BudgetConfig",
    "CollectionConfig",
    "ExpensiveJudge",
    "ModelSpec",
    "OutputPaths",
    "TaskConfig",
    "TomlReader",
    "Workspace",
    "read",
]
