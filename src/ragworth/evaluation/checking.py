"""What can be found wrong before anything is asked of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ragworth.annotate import KINDS
from ragworth.answers.grading import GRADERS
from ragworth.answers.writing import Writer
from ragworth.errors import InputError, MissingExtraError, counted
from ragworth.evaluation.material import Material
from ragworth.judging.settings import given
from ragworth.scoring import split


def checked(material: Material) -> None:
    """Refuse names and settings that nobody knows, and what lacks what it needs; all of it together."""
    space, wrong = material.workspace, Wrong()
    texts = material.collection
    for kind, task in space.judgments.items():
        chosen = wrong.of(lambda kind=kind: KINDS.get(kind))  # type: ignore[misc]
        if chosen is None:
            continue
        wrong.of(lambda chosen=chosen, task=task, kind=kind: given(chosen, dict(task.settings), kind))  # type: ignore[misc]
        if not texts.queries.height or not texts.passages.height:
            wrong.say(f"judgments.{kind} needs texts of queries and passages", "name them under [collection]")
        for what in chosen.compares:
            if not getattr(texts, what).height:
                wrong.say(f"judgments.{kind} needs {what}", f"name {what} under [collection]")
        if chosen.unit == "rating" and texts.ratings is not None:
            wrong.say(f"judgments.{kind} would rate what [collection] has ratings of", "take one of them out")
    if space.answers is not None and space.answers.file is None:
        settings = dict(space.answers.task.settings)
        wrong.of(lambda: given(Writer, settings, "answers"))
        if not texts.queries.height or not texts.passages.height:
            wrong.say("[answers] needs texts of queries and passages", "name them under [collection]")
    for kind, task in space.grades.items():
        grader = wrong.of(lambda kind=kind: GRADERS.get(kind))  # type: ignore[misc]
        if grader is not None:
            wrong.of(lambda grader=grader, task=task, kind=kind: given(grader, dict(task.settings), kind))  # type: ignore[misc]
        if space.answers is None:
            wrong.say(f"grades.{kind} grades answers, and there are none", "add [answers], or its file")
    wrong.of(lambda: split(list(space.metrics)) if space.metrics else None)
    if space.baseline is not None and space.baseline not in material.systems:
        wrong.say(f"the baseline {space.baseline!r} is no system", f"systems: {', '.join(material.systems)}")
    wrong.done(str(space.file))


class Wrong:
    """Collects what is wrong."""

    def __init__(self) -> None:
        self.found: list[InputError] = []

    def of(self, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except (InputError, MissingExtraError) as error:
            self.found.append(error if isinstance(error, InputError) else InputError(str(error)))
            return None

    def say(self, found: str, remedy: str) -> None:
        self.found.append(InputError(found, remedy=remedy))

    def done(self, file: str) -> None:
        if len(self.found) == 1:
            error = self.found[0]
            raise InputError(error.found, expected=error.expected, remedy=error.remedy, file=file, more=error.more)
        if self.found:
            lines = [line for error in self.found for line in str(error).splitlines()]
            raise InputError(counted(len(self.found), "problem"), file=file, more=tuple(lines))
