"""What an evaluation would take: nothing is asked of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ragworth.annotate import annotating
from ragworth.answers import generating, grading
from ragworth.answers.grading import GRADERS
from ragworth.config import Workspace
from ragworth.errors import counted
from ragworth.evaluation.asking import Models
from ragworth.evaluation.checking import checked
from ragworth.evaluation.kept import Kept
from ragworth.evaluation.material import load, verified
from ragworth.evaluation.running import KEPT
from ragworth.evaluation.stages import State, annotator_of, answerable, judged_items, of_systems, writer_of


class Planned(NamedTuple):
    """A stage, and what it would take, in words."""

    stage: str
    words: str


def planned(space: Workspace, *, limit: int | None = None, every: bool = False) -> list[Planned]:
    """Each stage that asks a model. Systems are retrieved, since what they show is what is asked about."""
    material = load(space, limit, every=every)
    verified(material)
    checked(material)
    with Models(space, lambda _: None, plan=True) as models:
        state = State(material, models, Kept(space.path(space.cache) / KEPT))
        of_systems(state)
        return list(_planned(state, space))


def _planned(state: State, space: Workspace) -> Iterator[Planned]:
    number = 0
    for kind, task in space.judgments.items():
        with state.models.job(task.model, kind) as job:
            annotator = annotator_of(state, kind, job)
            things = judged_items(state, annotator)
            yield Planned(f"annotate.{kind}", str(annotating.planned(annotator, things, job)))
    writing = space.answers
    if writing is not None and writing.file is None:
        with state.models.job(writing.task.model, "answer") as job:
            writer = writer_of(state, job, plan=True)
            contexts = answerable(state)
            items = generating.items(writer, contexts, state.collection, without=writing.without, oracle=writing.oracle)
            number = len(items)
            yield Planned("answer", str(generating.planned(writer, items, job)))
    for kind, task in space.grades.items():
        if not GRADERS.get(kind).asks:
            yield Planned(f"grade.{kind}", "no model is asked")
        elif state.material.answers is not None:
            with state.models.job(task.model, kind) as job:
                book = grading.book_of(state.material.answers, state.shown)
                folder = space.path(space.prompts) if space.prompts else None
                grader = grading.made(kind, job.card, state.collection, book, folder, dict(task.settings))
                yield Planned(f"grade.{kind}", str(grading.planned(grader, book.answers, job)))
        else:
            rounds = GRADERS.get(kind).rounds
            most = counted(number * rounds, "call")
            yield Planned(f"grade.{kind}", f"about {most}, one{' or more' if rounds > 1 else ''} for each answer")
