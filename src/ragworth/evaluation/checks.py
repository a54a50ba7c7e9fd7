"""What can be found wrong before anything is asked of a model, all of it together."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

import polars as pl

from ragworth.annotators import KINDS, annotation
from ragworth.config import Task, Workspace
from ragworth.errors import InputError, MissingExtraError, counted, listed, quoted
from ragworth.evaluation.default_metrics import default_metrics
from ragworth.evaluation.inputs import Material, load
from ragworth.evaluation.model_pool import Models
from ragworth.evaluation.problems import Problems, without_options
from ragworth.evaluation.retrieval_models import Asker
from ragworth.evaluation.state import better, settings_of
from ragworth.evaluation.trust_checks import check_trust
from ragworth.evaluation.two_judges_checks import Budgeted
from ragworth.generation.answer_book import Book
from ragworth.generation.writer import NONE, ORACLE, Writer
from ragworth.graders import grading
from ragworth.graders.contract import Grader
from ragworth.graders.grading import GRADERS
from ragworth.results import BESIDE, fixed_names, record_of
from ragworth.retrieval import Pipeline, check
from ragworth.retrieval.steps.given_run import Run
from ragworth.scoring import split
from ragworth.storage.cache import check_cache, mark_cache
from ragworth.tables import OK, Answers, Contexts
from ragworth.tasks.options import given
from ragworth.tasks.text_lookup import Texts

REPORT = {"altair": "altair", "vl_convert": "vl-convert-python"}
"""What the report is drawn with: modules, and the packages that have them."""


def prepared(
    space: Workspace,
    models: Models,
    *,
    limit: int | None = None,
    every: bool = False,
    scores: bool = False,
    report: bool = True,
) -> Material:
    """Everything read and found to fit together; else one error that tells all that is wrong.

    Models are opened, and their weights are not loaded; endpoints are not asked. ``scores``: some are to be computed,
    whether or not metrics are named. ``report``: one is to be written.
    """
    problems = Problems(space)
    check_trust(space, models.guard, problems)
    problems.done()
    material = load(space, problems, limit, every=every)
    if material is None:
        _named(space, problems)
    else:
        folder = space.path(space.prompts) if space.prompts else None
        setting = replace(material.setting, asking=Asker(models, folder, plan=True))
        for name, system in material.systems.items():
            problems.of(partial(check, {name: system}, setting), "systems", name)
        Fitting(material, models, problems, scores=scores).check()
        Budgeted(material, models, problems).check(limit)
    if report:
        problems.of(_drawable)
    for name in ("results", "cache", "store"):
        path = space.path(getattr(space, name))
        problems.of(partial(_writable, path, folder=name != "store"), "paths", name)
    problems.of(partial(check_cache, space.path(space.cache)), "paths", "cache")
    if report:
        problems.of(partial(record_of(space.path(space.results)).refuse_foreign, [*fixed_names(), *BESIDE]))
    problems.done()
    mark_cache(space.path(space.cache))
    models.guard.remember()
    assert material is not None
    return material


def _named(space: Workspace, problems: Problems) -> None:
    """Refuse names and settings that nobody knows: what can be said where files cannot be read."""
    for kind, task in space.judgments.items():
        problems.of(partial(_known, KINDS.get, kind, task), "judgments", kind)
        if task.expensive is not None:
            problems.of(partial(_known, KINDS.get, kind, better(task)), "judgments", kind, "expensive")
    for kind, task in space.grades.items():
        problems.of(partial(_known, GRADERS.get, kind, task), "grades", kind)
    if space.answers is not None and space.answers.file is None:
        problems.of(partial(given, Writer, dict(space.answers.task.settings), "answers"), "answers")
    if space.metrics:
        problems.of(partial(split, list(space.metrics), space.folder), "metrics", "use")


def _known(find: Callable[[str], type], kind: str, task: Task) -> None:
    given(find(kind), dict(task.settings), kind)


def _drawable() -> None:
    for module, package in REPORT.items():
        if find_spec(module) is None:
            raise MissingExtraError(package, "report", "drawing the report's charts")


def _writable(path: Path, *, folder: bool) -> None:
    """Refuse a place where nothing can be written, before anything is spent on what should go there."""
    if path.exists() and path.is_dir() != folder:
        found = f"this is a {'file' if folder else 'folder'}"
        raise InputError(found, file=str(path), remedy="name another place under [paths]")
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    try:
        if not there.is_dir() and (there != path or not os.access(there, os.W_OK)):
            raise PermissionError
        with TemporaryFile(dir=there if there.is_dir() else there.parent):
            pass  # some places say that they can be written to, and cannot
    except OSError as error:
        raise InputError(
            "it cannot be written to", file=str(path), remedy="name another place under [paths]"
        ) from error


class Fitting:
    """Whether what the workspace asks for can be had from what it has."""

    def __init__(self, material: Material, models: Models, problems: Problems, *, scores: bool) -> None:
        self.material, self.models, self.problems, self.scores = material, models, problems, scores
        self.space, self.texts = material.workspace, material.collection
        self.folder = self.space.path(self.space.prompts) if self.space.prompts else None

    def check(self) -> None:
        for name, system in self.material.systems.items():
            self.problems.of(partial(self._ids, name, system), "systems", name)
        for kind, task in self.space.judgments.items():
            self.problems.of(partial(self._judgment, kind, task), "judgments", kind)
        self._ratings()
        if self.space.answers is not None and self.space.answers.file is None:
            self.problems.of(self._answers, "answers")
        for kind, task in self.space.grades.items():
            self.problems.of(partial(self._grader, kind, task), "grades", kind)
        self.problems.of(self._metrics, "metrics", "use")
        baseline = self.space.baseline
        if baseline is not None and baseline not in self.material.systems:
            names = listed([quoted(name, 24) for name in self.material.systems], 12)
            self.problems.say(
                f"the baseline {quoted(baseline)} is no system", f"name one of {names}", "metrics", "baseline"
            )

    def _ids(self, name: str, system: Pipeline | Contexts) -> None:
        """Refuse a run that has none of the queries, or no passage that has a text: its ids are written otherwise."""
        first = system if isinstance(system, Contexts) else system.steps[0]
        if not isinstance(first, Contexts | Run):
            return
        read = first if isinstance(first, Contexts) else first.apply(None, self.material.setting)
        # That nothing was retrieved for a query is something that a run may say of it.
        asked = {*read.frame["query"].unique(), *(query for _, query in read.empty)}
        remedy = "check that ids are written in the run as they are in the files of [collection]"
        if asked.isdisjoint(self.material.queries):
            few = listed([quoted(query, 24) for query in self.material.queries], 3)
            raise InputError(f"{name} has none of the queries that are evaluated ({few})", remedy=remedy)
        texts = self.texts.passages
        if texts.height and read.frame.height and not read.frame.join(texts, on="passage", how="semi").height:
            one = quoted(read.frame["passage"][0], 24)
            raise InputError(f"none of the passages that {name} shows has a text, such as {one}", remedy=remedy)

    def _judgment(self, kind: str, task: Task) -> None:
        chosen = KINDS.get(kind)
        given(chosen, dict(task.settings), kind)
        self._readable(f"judgments.{kind}")
        lacking = [what for what in chosen.compares if not getattr(self.texts, what).height]
        if lacking:
            raise InputError(
                f"judgments.{kind} needs {listed(lacking)}", remedy=f"name {listed(lacking)} under [collection]"
            )
        with self.models.job(task.model, plan=True) as job:
            annotation.made(kind, job.card, self.texts, self.folder, settings_of(task, self.space))

    def _readable(self, what: str) -> None:
        if not self.texts.queries.height or not self.texts.passages.height:
            raise InputError(f"{what} needs texts of queries and passages", remedy="name them under [collection]")

    def _ratings(self) -> None:
        """Ratings come from one place."""
        kinds = [kind for kind in self.space.judgments if kind in KINDS and KINDS.get(kind).unit == "rating"]
        for kind in kinds if self.texts.ratings is not None else kinds[1:]:
            other = "[collection] has ratings" if self.texts.ratings is not None else f"judgments.{kinds[0]} rates"
            self.problems.say(f"judgments.{kind} would rate what {other} of", "take one out", "judgments", kind)

    def _answers(self) -> None:
        writing = self.space.answers
        assert writing is not None
        settings = given(Writer, settings_of(writing.task, self.space), "answers")
        self._readable("[answers]")
        with self.models.job(writing.task.model, plan=True) as job:
            writer = Writer(job.card, Texts(self.texts), self.folder, self.space.k, **settings)
        _ = writer.template, writer.template_alone if writing.without else None
        if writing.oracle:
            writer.oracle.check()

    def _grader(self, kind: str, task: Task) -> None:
        chosen, settings = GRADERS.get(kind), settings_of(task, self.space)
        given(chosen, settings, kind)
        if self.space.answers is None:
            raise InputError(f"grades.{kind} grades answers, and there are none", remedy="add [answers], or its file")
        book = self._book()
        if not chosen.asks:
            self._parted(grading.made(kind, None, self.texts, book, self.folder, settings))
            return
        with self.models.job(task.model, plan=True) as job:
            grader = grading.made(kind, job.card, self.texts, book, self.folder, settings)
        self._parted(grader)
        _ = grader.prompt

    def _parted(self, grader: Grader) -> None:
        """Refuse answers that cannot be graded, and say so where a limit may be why."""
        try:
            grading.parted(grader, grader.book.answers)
        except InputError as error:
            here = f"none of the first {counted(len(self.material.queries), 'query', 'queries')} (limit) has any"
            found = error.found.replace("no query of these answers has any", here)
            if not self.material.limited or found == error.found:
                raise
            remedy = "take more queries: a larger --limit, or --all"
            if not self.space.collection.answers:
                remedy += f"; or {without_options(error).remedy}"
            raise InputError(found, expected=error.expected, remedy=remedy) from error

    def _book(self) -> Book:
        """The answers that there will be, without their words: those of one system stand for all."""
        writing, answers = self.space.answers, self.material.answers
        if answers is not None:
            return grading.book_of(answers)
        assert writing is not None
        systems = [*list(self.material.systems)[:1], *[NONE] * writing.without, *[ORACLE] * writing.oracle]
        known = set() if writing.everything else set(self.texts.answers["query"])
        queries = [query for query in self.material.queries if query in known or not known]
        rows = [(system, query, 0, "–", None, OK, "given") for system in systems for query in queries]
        return Book(Answers.trusted(pl.DataFrame(rows, schema=Answers.schema, orient="row")))

    def _metrics(self) -> None:
        """Refuse metrics that are unknown, or lack what they need; and that none can be computed."""
        have = self._have()
        if not self.space.metrics:
            if self.scores:
                default_metrics(have, self.space.k)
            return
        ours, theirs = split(list(self.space.metrics), self.space.folder)
        have |= {"runs"} if len(self.material.systems) > 1 else set()
        needs = {str(metric): sorted({str(need) for need in metric.needs} - have) for metric in ours}
        needs |= {str(measure): sorted({"relevance"} - have) for measure in theirs}
        lacking = [f"{metric} needs {listed(lack)}" for metric, lack in needs.items() if lack]
        if lacking:
            raise InputError(
                lacking[0],
                more=tuple(lacking[1:]),
                remedy="relevance is in qrels, ratings in ratings or [judgments], others in [judgments]; tokens are "
                "counted where there are texts of passages; or name other metrics",
            )

    def _have(self) -> set[str]:
        """What there will be for metrics to read, if all goes well."""
        have = {aspect for table in self.material.given for aspect in table.frame["aspect"].unique()}
        have |= {aspect for kind in self.space.judgments if kind in KINDS for aspect in KINDS.get(kind).aspects}
        rated = "rating" in have or (self.texts.ratings is not None and self.texts.ratings.frame.height > 0)
        have |= {"ratings"} if rated else set()
        return have | ({"tokens"} if self.texts.passages.height else set())
