"""What an evaluation would take: nothing is asked of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ragworth.annotators import annotation
from ragworth.config import Workspace
from ragworth.errors import counted
from ragworth.evaluation import two_judges
from ragworth.evaluation.checks import prepared
from ragworth.evaluation.consent import Consent
from ragworth.evaluation.inputs import Material
from ragworth.evaluation.model_pool import Models
from ragworth.evaluation.stage_cache import Kept
from ragworth.evaluation.stages import annotator_of, grader_of, judged_items, show, writer_of
from ragworth.evaluation.state import Console, Silent, State
from ragworth.generation import answering
from ragworth.graders import grading
from ragworth.graders.grading import GRADERS

KEPT = "stages"
"""Folder of what stages made, in the cache."""


class Stage(NamedTuple):
    """A stage, and what it would take, in words."""

    name: str
    words: str


class Planned(NamedTuple):
    """What was read, and each stage that may ask a model."""

    material: Material
    stages: list[Stage]
    notes: tuple[str, ...]
    """What was noticed while systems retrieved."""


def planned(
    space: Workspace,
    *,
    limit: int | None = None,
    every: bool = False,
    scores: bool = True,
    console: Console | None = None,
    consent: Consent | None = None,
) -> Planned:
    """What evaluating would take. Systems are retrieved, since what they show is what is asked about.

    That may take long, where passages are encoded: ``console`` is told. ``scores``: some are to be computed.
    """
    with Models(space, consent=consent) as models:
        material = prepared(space, models, limit=limit, every=every, scores=scores)
        state = State(material, models, Kept(space.path(space.cache) / KEPT), console or Silent())
        told = show(state, plan=True)
        asked = [Stage(f"retrieve.{system}", f"{step}: {words}") for system, step, words in told]
        return Planned(material, [*asked, *_planned(state)], state.contexts.notes)


def _planned(state: State) -> Iterator[Stage]:
    space, answers = state.space, 0
    for kind, task in space.judgments.items():
        with state.models.job(task.model, plan=True) as job:
            annotator = annotator_of(state, kind, job)
            things = judged_items(state, annotator)
            words = str(annotation.planned(annotator, things, job)) if things else "nothing is left to judge"
            yield Stage(f"annotate.{kind}", words)
        if task.expensive is not None and task.expensive.file is None:
            with state.models.job(task.expensive.model, plan=True) as job:
                better, some = two_judges.asked(state, kind, job)
                yield Stage(two_judges.stage_of(kind), str(annotation.planned(better, some, job)))
    if space.answers is not None and space.answers.file is None:
        with state.models.job(space.answers.task.model, plan=True) as job:
            writer, items = writer_of(state, job, plan=True)
            answers = len(items)
            yield Stage("answer", str(answering.planned(writer, items, job)))
    state.answers = state.material.answers
    for kind, task in space.grades.items():
        chosen = GRADERS.get(kind)
        if not chosen.asks:
            yield Stage(f"grade.{kind}", "no model is asked")
        elif state.answers is None:
            more = " or more" if chosen.rounds > 1 else ""
            yield Stage(f"grade.{kind}", f"{counted(answers, 'answer')} to grade, with one call{more} for each")
        else:
            with state.models.job(task.model, plan=True) as job:
                grader = grader_of(state, kind, job)
                yield Stage(f"grade.{kind}", str(grading.planned(grader, grader.book.answers, job)))
