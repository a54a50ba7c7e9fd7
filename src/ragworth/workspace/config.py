"""``ragworth.toml``: what is evaluated, with which model, by what, and where results go.

The whole file is checked before anything else happens. Unknown keys and values of the wrong type are reported
together, each with its line. Paths start at the folder of the file. The names of metrics, graders and pipeline steps
are checked by their packages.
"""

from __future__ import annotations

from ragworth.workspace.parsing import from_tables, read
from ragworth.workspace.settings import (
    EVERY_SYSTEM,
    WORKSPACE_FILE,
    AnswerConfig,
    BudgetConfig,
    CollectionConfig,
    ExecutorConfig,
    ExpensiveJudge,
    ModelSpec,
    OutputPaths,
    TaskConfig,
    Workspace,
    names_every_system,
)
from ragworth.workspace.toml_problems import TomlLines

__all__ = [
    "EVERY_SYSTEM",
    "WORKSPACE_FILE",
    "AnswerConfig",
    "BudgetConfig",
    "CollectionConfig",
    "ExecutorConfig",
    "ExpensiveJudge",
    "ModelSpec",
    "OutputPaths",
    "TaskConfig",
    "TomlLines",
    "Workspace",
    "from_tables",
    "names_every_system",
    "read",
]
