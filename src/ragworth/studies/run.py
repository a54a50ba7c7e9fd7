"""``ragworth.study``: a study of workspaces, or of results that are there, from its contexts to its page."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ragworth import config
from ragworth.annotators import ANNOTATORS
from ragworth.config import OutputPaths, Workspace
from ragworth.errors import InputError, format_list
from ragworth.evaluation.checks import load_checked_inputs
from ragworth.evaluation.consent import Consent
from ragworth.evaluation.inputs import EvaluationInputs
from ragworth.evaluation.lock import workspace_lock
from ragworth.evaluation.model_pool import ModelPool
from ragworth.evaluation.session import PlanComplete
from ragworth.evaluation.state import Console, SilentConsole, StagePlan
from ragworth.graders.grading import GRADERS
from ragworth.report.study import Findings
from ragworth.retrieval import Pipeline
from ragworth.scoring import reads_file, split_metrics
from ragworth.studies import STUDIES
from ragworth.studies.bench import GRADER, Bench, fit_workspace
from ragworth.studies.cases import (
    check_folder,
    folder_of,
    is_results,
    missing_place_error,
    number_cases,
    provenance,
    read_case,
    write_all,
)
from ragworth.studies.contract import OURS, Case, Study
from ragworth.tasks.options import options_by_name as settings_given


@dataclass(frozen=True)
class StudyResult:
    """What came of a study: what it says, the tables it is from, and where all of it lies."""

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
    consent: Consent | None = None,
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
    console: who is told how it goes.
    wait: seconds to wait for another process that uses a workspace or its store.
    paths: where a workspace's results, store and cache are instead of where it says.
    consent: keys and files outside of its folder that a workspace may use besides what any workspace may.
    settings: those of the study; ``ragworth study NAME --help`` lists them.
    """
    chosen = build_study(name, settings, protocol)
    limit = _limit(chosen, limit, every)
    if metrics:
        split_metrics(list(metrics))  # refuses names that nobody knows, before anything is spent
    where = [Path(each) for each in ([places] if isinstance(places, str | Path) else places)]
    if not where:
        raise InputError("there is nothing to study", expected="one or more workspaces, or folders of results")
    # All that can be refused is refused before anything is spent: every place is read first.
    given = [_read(chosen, place, metrics, limit) for place in where]
    spaces = [
        None if case is not None else _space(chosen, place, metrics, paths)
        for case, place in zip(given, where, strict=True)
    ]
    folder = Path(output) if output is not None else folder_of(where[0], chosen.kind, paths)
    if keep:
        check_folder(folder)
    if len(where) > 1:
        for space in filter(None, spaces):
            with ModelPool(space, consent=consent) as models:
                _ready(chosen, space, models, limit, every)
    cases = number_cases(
        [
            case or _run(chosen, space, metrics, limit, every, console or SilentConsole(), wait, consent)
            for case, space in zip(given, spaces, strict=True)
        ]
    )
    findings = chosen.find(cases)
    findings = replace(
        findings,
        notes=(*(chosen.protocol_notes() if any(case.is_designed for case in cases) else ()), *findings.notes),
        settings={**provenance(chosen, cases, metrics), **findings.settings},
    )
    made = StudyResult(findings, tuple(cases))
    if not keep:
        return made
    # Tables that were there already stay as they are, where they are.
    fresh = [case for case, space in zip(cases, spaces, strict=True) if space is not None]
    return replace(made, folder=folder, page=write_all(findings, fresh, chosen.kind, folder))


def plan_study(
    name: str,
    places: Sequence[str | Path],
    *,
    metrics: Sequence[str] = (),
    limit: int | None = None,
    every: bool = False,
    protocol: str = OURS,
    paths: OutputPaths = OutputPaths(),  # noqa: B008 (it cannot change)
    consent: Consent | None = None,
    **settings: Any,
) -> list[StagePlan]:
    """What a study would take; nothing is asked of a model."""
    chosen, found = build_study(name, settings, protocol), []
    limit = _limit(chosen, limit, every)
    for place in map(Path, places):
        if _read(chosen, place, metrics, limit) is not None:
            continue
        space = _space(chosen, place, metrics, paths)
        with ModelPool(space, consent=consent) as models:
            material = _ready(chosen, space, models, limit, every)
            plan: list[StagePlan] = []
            with suppress(PlanComplete):
                chosen.run(Bench(material, models, chosen, space.title, plan=plan, metrics=metrics, limit=limit))
            several = f"{space.title}: " if len(places) > 1 else ""
            found += [StagePlan(f"{several}{stage.name}", stage.words) for stage in plan]
    return found


def build_study(name: str, settings: dict[str, Any], protocol: str = OURS) -> Study:
    """A study with its settings: those that are given, then those of a published design."""
    kind = STUDIES.get(name)
    known = (OURS, *kind.published)
    if protocol not in known:
        raise InputError(f"{name} has no protocol {protocol!r}", expected=format_list(list(known)))
    base = dict(kind.published[protocol].settings) if protocol != OURS else {}
    return kind(**{**base, **settings_given(kind, settings, name)}, protocol=protocol)


def _limit(chosen: Study, limit: int | None, every: bool) -> int | None:
    """How many queries to study: as many as the user says, or as the published design has."""
    return limit if limit is not None or every or chosen.design is None else chosen.design.queries


def _read(chosen: Study, place: Path, metrics: Sequence[str], limit: int | None) -> Case | None:
    """A case out of what is there; None where a place is a workspace."""
    if (case := chosen.reads(place)) is not None:
        return chosen.take(case)
    return chosen.take(read_case(place, chosen.kind, metrics, limit)) if is_results(place) else None


def _space(chosen: Study, place: Path, metrics: Sequence[str], paths: OutputPaths) -> Workspace:
    """A workspace as the study needs it. What metrics need is checked with all else that it says."""
    if (problem := missing_place_error(place)) is not None:
        raise problem
    space = fit_workspace(config.read(place, paths), chosen)
    # Of a metric that reads a file the path starts where the command is called, not in the workspace.
    return replace(space, metrics=tuple(metric for metric in metrics if not reads_file(metric)))


def _ready(chosen: Study, space: Workspace, models: ModelPool, limit: int | None, every: bool) -> EvaluationInputs:
    """Everything read and found to fit together; what the study cannot do without is refused here."""
    material = _usable(load_checked_inputs(space, models, every=every or limit is not None), chosen, limit)
    if chosen.labels and not material.setting.labels and "relevance" not in space.judgments:
        raise InputError(
            f"{chosen.kind} needs relevance labels",
            file=str(space.file),
            remedy="name qrels under [collection], or have it judged: relevance = true under [judgments]",
        )
    if not chosen.answers:
        return material
    if not material.collection.answers.height and not space.grades.keys() - {GRADER}:
        raise InputError(
            f"{chosen.kind} grades answers, and there are no accepted ones",
            file=str(space.file),
            remedy="name answers under [collection], or a grader under [grades] that needs none",
        )
    wanted = getattr(chosen, "outcome", None)
    known = [aspect for kind in space.grades for aspect in GRADERS.get(kind).aspects]
    known += [
        aspect
        for kind in space.judgments
        if ANNOTATORS.get(kind).unit == "context"
        for aspect in ANNOTATORS.get(kind).aspects
    ]
    if wanted is not None and wanted not in known:
        raise InputError(
            f"there will be no outcome {wanted!r}",
            file=str(space.file),
            expected=format_list(known, 12),
            remedy="name a grader that gives it under [grades]",
        )
    return material


def _usable(material: EvaluationInputs, chosen: Study, limit: int | None) -> EvaluationInputs:
    """Without the queries that can't be studied, so that a limit counts those that can.

    If a model retrieves or labels passages, only as many queries are passed on as are wanted: others would be paid for.
    """
    if limit is None:
        return material
    answered, labels = set(material.collection.answers["query"]), material.setting.labels
    usable = list(material.queries)
    if chosen.needs_answers and answered:
        usable = [query for query in usable if query in answered]
    if chosen.labels and chosen.needs_relevant and labels:
        usable = [query for query in usable if any(label >= 1 for label in labels.get(query, {}).values())]
    asks = not labels or any(isinstance(each, Pipeline) and each.asks_model for each in material.systems.values())
    return replace(material, queries=tuple(usable[:limit] if asks else usable))


def _run(
    chosen: Study,
    space: Workspace | None,
    metrics: Sequence[str],
    limit: int | None,
    every: bool,
    console: Console,
    wait: float,
    consent: Consent | None,
) -> Case:
    assert space is not None
    with ModelPool(space, wait, consent) as models:
        material = _ready(chosen, space, models, limit, every)
        with workspace_lock(space, wait):
            return chosen.run(Bench(material, models, chosen, space.title, console, metrics=metrics, limit=limit))
