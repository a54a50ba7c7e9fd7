"""The model that the user chooses for an evaluation, or that none is asked (``none``)."""

from __future__ import annotations

from dataclasses import replace

from ragworth.annotators import ANNOTATORS
from ragworth.annotators.contract import Annotator
from ragworth.core.errors import InputError
from ragworth.core.registry import Registry
from ragworth.graders.contract import Grader
from ragworth.graders.grading import GRADERS
from ragworth.workspace.config import ModelSpec, TaskConfig, Workspace

NONE = "none"
"""The choice to ask no model."""

CONTAINMENT = "containment"
"""The kind of judgment that stands in for a model's opinion of relevance."""


def with_model(space: Workspace, model: ModelSpec) -> Workspace:
    """The same with another model for all tasks that don't name their own, or without anything that asks one."""
    if model.use != NONE:
        return space.with_model(model)
    if model.options:
        raise InputError(f"{NONE!r} is no model and has no options", remedy="leave the options out, or name a model")
    return _without_model(space)


def _without_model(space: Workspace) -> Workspace:
    """The same without what asks a model: answers and grades in the data are compared.

    Where a model would judge relevance, passages that contain an accepted answer are relevant instead.
    """
    if space.answers is not None and space.answers.replace:
        raise InputError(
            "answers in the data are to be replaced by the model's, but no model may be asked",
            remedy="keep the answers in the data, or name a model",
        )
    judgments = {kind: task for kind, task in space.judgments.items() if not _asks_model(ANNOTATORS, kind)}
    relevance = space.judgments.get("relevance")
    if relevance is not None and "graded" not in relevance.settings:
        judgments.setdefault(CONTAINMENT, TaskConfig())
    return replace(
        space.with_model(ModelSpec(NONE)),
        judgments=judgments,
        judged_queries=None,
        hops=None,
        answers=space.answers if space.answers is not None and space.answers.file is not None else None,
        grades={kind: task for kind, task in space.grades.items() if not _asks_model(GRADERS, kind)},
    )


def _asks_model(registry: Registry[type[Annotator]] | Registry[type[Grader]], kind: str) -> bool:
    """Whether a kind of judgment or grader asks a model; the checks refuse unknown ones."""
    return kind in registry and registry.get(kind).asks_model
