"""Checks before any call; all problems are reported together."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

import polars as pl

from ragworth.core.cache import check_cache, mark_cache
from ragworth.core.errors import (
    Hint,
    InputError,
    MissingExtraError,
    MissingInputError,
    RagworthError,
    WeightsMissingError,
    format_count,
    format_list,
    quote_short,
)
from ragworth.data import OK, Answers, Contexts
from ragworth.evaluation import stages
from ragworth.evaluation.inputs import EvaluationInputs, load_inputs
from ragworth.evaluation.model_pool import NONE, ModelPool
from ragworth.evaluation.stages.retrieve import WorkspaceAsker
from ragworth.evaluation.stages.score import default_metrics
from ragworth.evaluation.state import expensive_task, task_settings
from ragworth.evaluation.trust_checks import check_trust
from ragworth.formats.contract import LoadedCollection
from ragworth.judging import ANNOTATORS, GRADERS, runner
from ragworth.judging.answers import NO_CONTEXT_SYSTEM, ORACLE_SYSTEM, AnswerWriter
from ragworth.judging.contract import options_by_name
from ragworth.judging.judge import NO_MODEL, Grader
from ragworth.judging.text_lookup import AnswerBook, TextLookup
from ragworth.results import EXTRA_FILES, fixed_file_names, results_record
from ragworth.retrieval import Pipeline, check
from ragworth.retrieval.steps.external import Run
from ragworth.scoring import split_metrics
from ragworth.workspace.config import TaskConfig, Workspace
from ragworth.workspace.problems import Problems

REPORT_PACKAGES = {"altair": "altair", "vl_convert": "vl-convert-python"}
"""Modules that the report needs, with their packages."""


def load_checked_inputs(
    space: Workspace,
    models: ModelPool,
    *,
    limit: int | None = None,
    sample: int | None = None,
    every: bool = False,
    records: LoadedCollection | None = None,
    scores: bool = False,
    report: bool = True,
) -> EvaluationInputs:
    """Read and check everything, or raise one error with all problems.

    Models are opened, and their weights are not loaded; endpoints are not asked. ``scores``: some are to be computed,
    whether or not metrics are named. ``report``: one is to be written.
    """
    problems = Problems(space)
    check_trust(space, models.consent, problems)
    problems.done()
    material = load_inputs(space, problems, limit, sample=sample, every=every, records=records)
    if material is None:
        _check_names(space, problems)
    else:
        folder = space.path(space.prompts) if space.prompts else None
        step_context = replace(material.step_context, model_access=WorkspaceAsker(models, folder, plan=True))
        for name, system in material.systems.items():
            problems.of(partial(check, {name: system}, step_context), "systems", name)
        WorkspaceChecker(material, models, problems, scores=scores).check()
        if any(task.expensive is not None for task in space.judgments.values()):
            stages.TwoJudgesChecker(material, models, problems).check(limit or sample)
        if material.has_answers:
            problems.found = [_offer_no_model(error) for error in problems.found]
    if report:
        problems.of(_check_report_packages)
    for name in ("results", "cache", "store"):
        path = space.path(getattr(space, name))
        problems.of(partial(_check_writable, path, name), "paths", name)
    problems.of(partial(check_cache, space.path(space.cache)), "paths", "cache")
    if report:
        problems.of(
            partial(results_record(space.path(space.results)).refuse_foreign, [*fixed_file_names(), *EXTRA_FILES])
        )
    problems.done()
    mark_cache(space.path(space.cache))
    models.consent.remember()
    assert material is not None
    return material


def _offer_no_model(error: RagworthError) -> RagworthError:
    """Without the embedded model, answers in the data can still be compared."""
    if not isinstance(error, WeightsMissingError):
        return error
    other = f"{error.hint.command}; or compare the answers in the data without a model:"
    return error.copy(remedy=Hint(f"{other} --model none", f"{other} --model none", f'{other} model="none"'))


def _check_names(space: Workspace, problems: Problems) -> None:
    """Refuse unknown names and settings, which needs no file."""
    for kind, task in space.judgments.items():
        problems.of(partial(_check_settings, ANNOTATORS.get, kind, task), "judgments", kind)
        if task.expensive is not None:
            problems.of(
                partial(_check_settings, ANNOTATORS.get, kind, expensive_task(task)), "judgments", kind, "expensive"
            )
    _check_hops(space, problems)
    for kind, task in space.grades.items():
        problems.of(partial(_check_settings, GRADERS.get, kind, task), "grades", kind)
    if space.answers is not None and space.answers.file is None:
        problems.of(partial(options_by_name, AnswerWriter, dict(space.answers.task.settings), "answers"), "answers")
    if space.metrics:
        problems.of(partial(split_metrics, list(space.metrics), space.folder), "metrics", "use")


def _check_hops(space: Workspace, problems: Problems) -> None:
    if isinstance(space.hops, TaskConfig):
        from ragworth.judging.contribution.kinds import ContributionAnnotator

        problems.of(
            partial(options_by_name, ContributionAnnotator, dict(space.hops.settings), "hops"), "judgments", "hops"
        )


def _check_settings(find: Callable[[str], type], kind: str, task: TaskConfig) -> None:
    options_by_name(find(kind), dict(task.settings), kind)


def _check_report_packages() -> None:
    for module, package in REPORT_PACKAGES.items():
        if find_spec(module) is None:
            raise MissingExtraError(package, "report", "drawing the report's charts")


def _check_writable(path: Path, name: str) -> None:
    """Refuse a path that can't be written, before any cost."""
    remedy = f"name another place: --{name}, or {name} under [paths]"
    if path.exists() and path.is_dir() == (name == "store"):
        raise InputError(f"this is a {'folder' if name == 'store' else 'file'}", file=str(path), remedy=remedy)
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    try:
        if not there.is_dir() and (there != path or not os.access(there, os.W_OK)):
            raise PermissionError
        with TemporaryFile(dir=there if there.is_dir() else there.parent):
            pass  # some places say that they can be written to, and cannot
    except OSError as error:
        raise InputError("it cannot be written to", file=str(path), remedy=remedy) from error


class WorkspaceChecker:
    """Check that the workspace has the inputs of what it asks for."""

    def __init__(self, material: EvaluationInputs, models: ModelPool, problems: Problems, *, scores: bool) -> None:
        self.material, self.models, self.problems, self.scores = material, models, problems, scores
        self.space, self.texts = material.workspace, material.collection
        self.folder = self.space.path(self.space.prompts) if self.space.prompts else None

    def check(self) -> None:
        for name, system in self.material.systems.items():
            self.problems.of(partial(self._ids, name, system), "systems", name)
        for kind, task in self.space.judgments.items():
            self.problems.of(partial(self._judgment, kind, task), "judgments", kind)
        _check_hops(self.space, self.problems)
        self._ratings()
        if self.space.answers is not None and self.space.answers.file is None:
            self.problems.of(self._answers, "answers")
        for kind, task in self.space.grades.items():
            self.problems.of(partial(self._grader, kind, task), "grades", kind)
        self.problems.of(self._metrics, "metrics", "use")
        baseline = self.space.baseline
        if baseline is not None and baseline not in self.material.written:
            names = format_list([quote_short(name, 24) for name in self.material.written], 12)
            self.problems.say(
                f"the baseline {quote_short(baseline)} is no system", f"name one of {names}", "metrics", "baseline"
            )

    def _ids(self, name: str, system: Pipeline | Contexts) -> None:
        """Refuse a run without any known query or passage: its ids are spelled differently."""
        first = system if isinstance(system, Contexts) else system.steps[0]
        if not isinstance(first, Contexts | Run):
            return
        read = first if isinstance(first, Contexts) else first.apply(None, self.material.step_context)
        # That nothing was retrieved for a query is something that a run may say of it.
        asked = {*read.frame["query"].unique(), *(query for _, query in read.empty)}
        remedy = "check that ids are written in the run as they are in the files of [collection]"
        if asked.isdisjoint(self.material.queries):
            few = format_list([quote_short(query, 24) for query in self.material.queries], 3)
            raise InputError(f"{name} has none of the queries that are evaluated ({few})", remedy=remedy)
        texts = self.texts.passages
        if texts.height and read.frame.height and not read.frame.join(texts, on="passage", how="semi").height:
            one = quote_short(read.frame["passage"][0], 24)
            raise InputError(f"none of the passages that {name} shows has a text, such as {one}", remedy=remedy)

    def _judgment(self, kind: str, task: TaskConfig) -> None:
        chosen = ANNOTATORS.get(kind)
        options_by_name(chosen, dict(task.settings), kind)
        self._readable(f"judgments.{kind}")
        lacking = [what for what in chosen.compares if not getattr(self.texts, what).height]
        if lacking:
            raise InputError(
                f"judgments.{kind} needs {format_list(lacking)}",
                remedy=f"name {format_list(lacking)} under [collection]",
            )
        settings = task_settings(task, self.space)
        if not chosen.asks_model:
            runner.build_judge(ANNOTATORS, kind, NO_MODEL, self.texts, self.folder, settings)
            return
        with self.models.job(task.model, plan=True) as job:
            runner.build_judge(ANNOTATORS, kind, job.card, self.texts, self.folder, settings)

    def _readable(self, what: str) -> None:
        if not self.texts.queries.height or not self.texts.passages.height:
            raise InputError(f"{what} needs texts of queries and passages", remedy="name them under [collection]")

    def _ratings(self) -> None:
        """Refuse ratings from several sources."""
        kinds = [kind for kind in self.space.judgments if kind in ANNOTATORS and ANNOTATORS.get(kind).unit == "rating"]
        for kind in kinds if self.texts.ratings is not None else kinds[1:]:
            other = "[collection] has ratings" if self.texts.ratings is not None else f"judgments.{kinds[0]} rates"
            self.problems.say(f"judgments.{kind} would rate what {other} of", "take one out", "judgments", kind)

    def _answers(self) -> None:
        writing = self.space.answers
        assert writing is not None
        settings = options_by_name(AnswerWriter, task_settings(writing.task, self.space), "answers")
        self._readable("[answers]")
        with self.models.job(writing.task.model, plan=True) as job:
            writer = AnswerWriter(job.card, TextLookup(self.texts), self.folder, self.space.k, **settings)
        _ = writer.template, writer.template_alone if writing.without else None
        if writing.oracle:
            writer.oracle.check()

    def _grader(self, kind: str, task: TaskConfig) -> None:
        chosen, settings = GRADERS.get(kind), task_settings(task, self.space)
        options_by_name(chosen, settings, kind)
        if self.space.answers is None and self.material.answers is None:
            if self.space.model.use == NONE:  # which would have written them
                return
            raise InputError(f"grades.{kind} grades answers, and there are none", remedy="add [answers], or its file")
        book = self._book()
        if not chosen.asks_model:
            self._parted(runner.build_judge(GRADERS, kind, None, self.texts, self.folder, settings, book))
            return
        with self.models.job(task.model, plan=True) as job:
            grader = runner.build_judge(GRADERS, kind, job.card, self.texts, self.folder, settings, book)
        self._parted(grader)

    def _parted(self, grader: Grader) -> None:
        """Refuse answers that can't be graded, and mention a limit that may be the reason."""
        try:
            grader.items(grader.book.answers)
        except MissingInputError as error:
            if not self.material.limited:
                raise
            number = format_count(len(self.material.queries), "query", "queries")
            here = f"none of the {number} that were taken (limit or sample) has any"
            remedy = "take more queries: a larger --limit, or --all"
            if not self.space.collection.answers:
                remedy += f"; or {error.hint.workspace}"
            raise InputError(f"{error.who} needs {error.what}, and {here}", remedy=remedy) from error

    def _book(self) -> AnswerBook:
        """The answers to expect, without their texts; those of one system represent all."""
        writing, answers = self.space.answers, self.material.answers
        if answers is not None:
            return runner.to_answer_book(answers)
        assert writing is not None
        systems = [
            *list(self.material.systems)[:1],
            *[NO_CONTEXT_SYSTEM] * writing.without,
            *[ORACLE_SYSTEM] * writing.oracle,
        ]
        known = set() if writing.everything else set(self.texts.answers["query"])
        queries = [query for query in self.material.queries if query in known or not known]
        rows = [(system, query, 0, "–", None, OK, "given") for system in systems for query in queries]
        return AnswerBook(Answers.trusted(pl.DataFrame(rows, schema=Answers.schema, orient="row")))

    def _metrics(self) -> None:
        """Refuse metrics that are unknown or lack their input, and an evaluation without any metric."""
        have = self._have()
        if not self.space.metrics:
            if self.scores:
                default_metrics(have, self.space.k, required=not self.material.has_answers)
            return
        ours, theirs = split_metrics(list(self.space.metrics), self.space.folder)
        have |= {"runs"} if len(self.material.systems) > 1 else set()
        needs = {str(metric): sorted({str(need) for need in metric.needs} - have) for metric in ours}
        needs |= {str(measure): sorted({"relevance"} - have) for measure in theirs}
        lacking = [f"{metric} needs {format_list(lack)}" for metric, lack in needs.items() if lack]
        if lacking:
            raise InputError(
                lacking[0],
                more=tuple(lacking[1:]),
                remedy="relevance is in qrels, ratings in ratings or [judgments], others in [judgments]; tokens are "
                "counted where there are texts of passages; or name other metrics",
            )

    def _have(self) -> set[str]:
        """Inputs that metrics will have, if no stage fails."""
        have = {aspect for table in self.material.given for aspect in table.frame["aspect"].unique()}
        have |= {
            aspect for kind in self.space.judgments if kind in ANNOTATORS for aspect in ANNOTATORS.get(kind).aspects
        }
        rated = "rating" in have or (self.texts.ratings is not None and self.texts.ratings.frame.height > 0)
        have |= {"ratings"} if rated else set()
        return have | ({"tokens"} if self.texts.passages.height else set())
