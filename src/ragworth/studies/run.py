"""``ragworth.study``: a study of workspaces, or of results that are there, from its contexts to its page."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ragworth.core.errors import InputError, format_list
from ragworth.evaluation.checks import load_checked_inputs
from ragworth.evaluation.inputs import EvaluationInputs
from ragworth.evaluation.model_pool import ModelPool
from ragworth.evaluation.output import workspace_lock
from ragworth.evaluation.session import PlanComplete
from ragworth.evaluation.state import Console, StagePlan
from ragworth.judging import ANNOTATORS, GRADERS
from ragworth.judging.contract import options_by_name as settings_given
from ragworth.report.study import Findings
from ragworth.retrieval import Pipeline
from ragworth.scoring import reads_file, split_metrics
from ragworth.studies import STUDIES, cases
from ragworth.studies.bench import GRADER, Bench, fit_workspace
from ragworth.studies.contract import OURS, Case, Study
from ragworth.workspace import config
from ragworth.workspace.config import WORKSPACE_FILE, OutputPaths, Workspace
from ragworth.workspace.read import MANIFEST, is_results, is_workspace


@dataclass(frozen=True)
class StudyResult:
    """The result of a study: its findings, its tables and its folder."""

    findings: Findings
    cases: tuple[Case, ...]
    folder: Path | None = None
    page: Path | None = None


def study(
    name: str,
    places: Sequence[str | Path] | str | Path = ".",
    *,
    metrics: Sequence[str] = (),
    limit: int | None = None,
    every: bool = False,
    protocol: str = OURS,
    output: str | Path | None = None,
    keep: bool = True,
    console: Console | None = None,
    wait: float = 0.0,
    paths: OutputPaths = OutputPaths(),  # noqa: B008 (it cannot change)
    allow_servers: Sequence[str] = (),
    **settings: Any,
) -> StudyResult:
    """Run a study.

    Parameters
    ----------
    name: ``alignment``, ``ideal``, …; ``ragworth study --help`` lists them.
    places: workspaces (files or folders), for each of which contexts are made and asked about; or folders of results,
        an evaluation's or those of an earlier study (below its ``cases``), for which no model is asked.
    metrics: written forms; by default those that what is known allows.
    limit, every: only the first queries that can be studied, or all, as in `ragworth.evaluate`.
    protocol: ``ours``, or ``paper`` for the published design (some studies have more than one). Settings that are given
        replace those of the design.
    output: folder to write to; by default ``studies/NAME`` in the results of the first place.
    keep: write tables, figures and the page; False only returns them.
    console: receives the progress.
    wait: seconds to wait for another process that uses a workspace or its store.
    paths: where a workspace's results, store and cache are instead of where it says.
    allow_servers: hosts that the workspaces' files may name; remembered for these files.
    settings: those of the study; ``ragworth study NAME --help`` lists them.
    """
    asked = _StudyRequest(build_study(name, settings, protocol), tuple(metrics), limit, every, paths, allow_servers)
    if metrics:
        split_metrics(list(metrics))  # refuses names that nobody knows, before anything is spent
    where = [Path(each) for each in ([places] if isinstance(places, str | Path) else places)]
    if not where:
        raise InputError("there is nothing to study", expected="one or more workspaces, or folders of results")
    if twice := [str(each) for number, each in enumerate(where) if each.resolve() in map(Path.resolve, where[:number])]:
        raise InputError(f"{twice[0]} is named twice", expected="each workspace, folder or file once")
    # All that can be refused is refused before anything is spent: every place is read first.
    given = [asked.read(place) for place in where]
    kind = asked.study.kind
    folder = Path(output) if output is not None else cases.folder_of(where[0], kind, paths)
    if keep:
        cases.check_folder(folder, folder if output is not None else folder.parent.parent)
    if len(where) > 1:
        for space in given:
            if isinstance(space, Workspace):
                with ModelPool(space, allow_servers=allow_servers) as models:
                    asked.inputs(space, models)
    found = cases.number_cases([each if isinstance(each, Case) else asked.run(each, console, wait) for each in given])
    findings = asked.study.find(found)
    protocol_notes = asked.study.protocol_notes() if any(case.is_designed for case in found) else []
    about = {**cases.provenance(asked.study, found, metrics), **findings.settings}
    findings = replace(findings, notes=(*protocol_notes, *findings.notes), settings=about)
    if not keep:
        return StudyResult(findings, tuple(found))
    # Tables that were there already stay as they are, where they are.
    fresh = [case for case, each in zip(found, given, strict=True) if isinstance(each, Workspace)]
    return StudyResult(findings, tuple(found), folder, cases.write_all(findings, fresh, kind, folder))


def plan_study(
    name: str,
    places: Sequence[str | Path],
    *,
    metrics: Sequence[str] = (),
    limit: int | None = None,
    every: bool = False,
    protocol: str = OURS,
    paths: OutputPaths = OutputPaths(),  # noqa: B008 (it cannot change)
    allow_servers: Sequence[str] = (),
    **settings: Any,
) -> list[StagePlan]:
    """Plan a study, without calls."""
    asked = _StudyRequest(build_study(name, settings, protocol), tuple(metrics), limit, every, paths, allow_servers)
    found: list[StagePlan] = []
    for place in map(Path, places):
        if isinstance(space := asked.read(place), Workspace):
            several = f"{space.title}: " if len(places) > 1 else ""
            found += [StagePlan(f"{several}{stage.name}", stage.words) for stage in asked.plan(space)]
    return found


def build_study(name: str, settings: dict[str, Any], protocol: str = OURS) -> Study:
    """A study with the given settings, and others from its published design."""
    kind = STUDIES.get(name)
    known = (OURS, *kind.published)
    if protocol not in known:
        raise InputError(f"{name} has no protocol {protocol!r}", expected=format_list(list(known)))
    base = dict(kind.published[protocol].settings) if protocol != OURS else {}
    return kind(**{**base, **settings_given(kind, settings, name)}, protocol=protocol)


@dataclass(frozen=True)
class _StudyRequest:
    """A study and the options of its run."""

    study: Study
    metrics: tuple[str, ...]
    wanted: int | None
    every: bool
    paths: OutputPaths
    allow_servers: Sequence[str]

    @property
    def limit(self) -> int | None:
        """Number of queries to study: the user's limit, or that of the published design."""
        if self.wanted is not None or self.every or self.study.design is None:
            return self.wanted
        return self.study.design.queries

    def read(self, place: Path) -> Case | Workspace:
        """A case from existing results, or a workspace for the study."""
        study = self.study
        if (case := study.reads(place)) is not None:
            return study.take(case)
        if is_results(place):
            return study.take(cases.read_case(place, study.kind, self.metrics, self.limit))
        if not is_workspace(place):
            raise _missing_place_error(place)
        space = fit_workspace(config.read(place, self.paths), study, self.metrics)
        # What metrics need is checked with all else that the workspace says. Of a metric that reads a file the path
        # starts where the command is called, not in the workspace.
        return replace(space, metrics=tuple(metric for metric in self.metrics if not reads_file(metric)))

    def inputs(self, space: Workspace, models: ModelPool) -> EvaluationInputs:
        """Read and check everything, and refuse a workspace that lacks what the study requires."""
        study, limit = self.study, self.limit
        material = _usable(load_checked_inputs(space, models, every=self.every or limit is not None), study, limit)
        if study.labels and not material.step_context.labels and "relevance" not in space.judgments:
            remedy = "name qrels under [collection], or have it judged: relevance = true under [judgments]"
            raise InputError(f"{study.kind} needs relevance labels", file=str(space.file), remedy=remedy)
        if study.answers:
            _check_grades(study, space, answered=material.collection.answers.height > 0)
        return material

    def plan(self, space: Workspace) -> list[StagePlan]:
        plan: list[StagePlan] = []
        with ModelPool(space, allow_servers=self.allow_servers) as models, suppress(PlanComplete):
            self.study.run(self._bench(space, models, plan=plan))
        return plan

    def run(self, space: Workspace, console: Console | None, wait: float) -> Case:
        with ModelPool(space, wait, self.allow_servers) as models:
            bench = self._bench(space, models, console)
            with workspace_lock(space, wait):
                return self.study.run(bench)

    def _bench(
        self, space: Workspace, models: ModelPool, console: Console | None = None, plan: list[StagePlan] | None = None
    ) -> Bench:
        material, more = self.inputs(space, models), {"metrics": self.metrics, "limit": self.limit}
        return Bench(material, models, self.study, space.title, console, plan=plan, **more)  # type: ignore[arg-type]


def _check_grades(study: Study, space: Workspace, *, answered: bool) -> None:
    """Refuse a workspace whose graders can't grade, or lack the requested outcome."""
    file = str(space.file)
    if not answered and not space.grades.keys() - {GRADER}:
        remedy = "name answers under [collection], or a grader under [grades] that needs none"
        raise InputError(f"{study.kind} grades answers, and there are no accepted ones", file=file, remedy=remedy)
    annotators = [ANNOTATORS.get(kind) for kind in space.judgments]
    known = [aspect for kind in space.grades for aspect in GRADERS.get(kind).aspects]
    known += [aspect for each in annotators if each.unit == "context" for aspect in each.aspects]
    wanted = getattr(study, "outcome", None)
    if wanted is not None and wanted not in known:
        found, remedy = f"there will be no outcome {wanted!r}", "name a grader that gives it under [grades]"
        raise InputError(found, file=file, expected=format_list(known, 12), remedy=remedy)


def _usable(material: EvaluationInputs, chosen: Study, limit: int | None) -> EvaluationInputs:
    """Drop queries that can't be studied, so that a limit counts the others.

    If a model retrieves or labels passages, only as many queries are passed on as are wanted: others would be paid for.
    """
    if limit is None:
        return material
    answered, labels = set(material.collection.answers["query"]), material.step_context.labels
    usable = list(material.queries)
    if chosen.needs_answers and answered:
        usable = [query for query in usable if query in answered]
    if chosen.labels and chosen.needs_relevant and labels:
        usable = [query for query in usable if any(label >= 1 for label in labels.get(query, {}).values())]
    asks = not labels or any(isinstance(each, Pipeline) and each.asks_model for each in material.systems.values())
    return replace(material, queries=tuple(usable[:limit] if asks else usable))


def _missing_place_error(place: Path) -> InputError:
    """The error for a place that is neither a workspace nor results, with what may have been meant."""
    expected, remedy = f"a workspace ({WORKSPACE_FILE}), or a folder of results", ""
    found = "it is neither a workspace nor a table that can be read here"
    if place.is_dir():
        below = sorted(each.parent for depth in ("*", "*/*", "*/*/*") for each in place.glob(f"{depth}/{MANIFEST}"))
        remedy = f"did you mean {below[0]}?" if below else f"ragworth init {place} writes {WORKSPACE_FILE}"
        found = f"it has neither {WORKSPACE_FILE} nor {MANIFEST}"
    elif not place.is_file():
        found = "there is no such file or folder"
    return InputError(found, file=str(place), expected=expected, remedy=remedy)
