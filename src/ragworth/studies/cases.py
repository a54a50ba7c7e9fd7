"""The tables of a study on disk: each case is a folder of results of its own, which can be studied again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth import __version__
from ragworth.core.errors import FormatError, InputError
from ragworth.core.file_record import RECORD_NAME as RECORD
from ragworth.core.files import refuse_links
from ragworth.evaluation.stage_cache import frame_digest
from ragworth.report.page import update_study_list
from ragworth.report.study import Findings, write_study
from ragworth.results import MANIFEST, Results, delete_results
from ragworth.scoring import metric_file_digests
from ragworth.studies.bench import FOLDER
from ragworth.studies.contract import Case, Study
from ragworth.workspace import config
from ragworth.workspace.read import is_results, is_workspace

CASES = "cases"
"""Folder of the tables that a study made, below its own."""

STUDY = "study.json"


def read_case(folder: Path, kind: str, metrics: Sequence[str] = (), limit: int | None = None) -> Case:
    """A case out of a folder of results; metrics that it has no scores of are computed from its judgments.

    The tables of another study are taken as an evaluation's: what its contexts were made for is not known here.
    """
    results = Results.read(folder)
    inside = results.manifest.get("study")
    made = Case(str(results.manifest.get("title") or folder.resolve().parent.name), results)
    if isinstance(inside, dict) and inside.get("kind") == kind:
        try:
            design = pl.DataFrame(inside["design"], infer_schema_length=None) if inside["design"] else made.design
            made = Case(str(inside["case"]), results, design, dict(inside["left_out"]))
        except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
            raise FormatError(f"what it says of its study cannot be read: {error}", file=str(folder)) from error
    if metrics:
        made = replace(made, results=made.results.with_metrics(metrics))
    return replace(made, results=made.results.first_queries(limit)) if limit is not None else made


def number_cases(cases: Sequence[Case]) -> list[Case]:
    """Cases of the same name get a number."""
    counts, seen, made = Counter(case.name for case in cases), Counter[str](), []
    for case in cases:
        seen[case.name] += 1
        made.append(replace(case, name=f"{case.name} ({seen[case.name]})") if counts[case.name] > 1 else case)
    return made


def folder_of(place: Path, kind: str, paths: config.OutputPaths = config.OutputPaths()) -> Path:  # noqa: B008 (it cannot change)
    """Where a study of a place is written."""
    inside = place.resolve()
    if is_results(place) and inside.parent.name == CASES and inside.parents[2].name == FOLDER:
        # The tables of a study, studied again: in its place; beside it where they are another study's, or only one of
        # several cases.
        origin = inside.parents[1].name
        alone = len([each for each in inside.parent.iterdir() if each.is_dir()]) == 1
        own = kind if origin == kind else f"{kind}-of-{origin}"
        return inside.parents[2] / (own if alone else f"{own}-{inside.name}")
    if is_workspace(place):
        space = config.read(place, paths)
        return space.path(space.results) / FOLDER / kind
    return (place.parent if place.is_file() else place) / FOLDER / kind


def check_folder(folder: Path, root: Path) -> None:
    """Refuse to write among files that no study wrote, and through links that lead out of ``root``."""
    refuse_links(folder, root, "name another one: --output")
    if folder.exists() and not folder.is_dir():
        raise InputError("this is a file", file=str(folder), expected="a folder", remedy="name another one: --output")
    if not folder.is_dir() or (folder / STUDY).is_file():
        return
    others = sorted(each.name for each in folder.iterdir() if each.name not in (CASES, RECORD))
    if others:
        what = "results" if MANIFEST in others else f"other files, such as {others[0]!r}"
        expected, remedy = "an empty folder, or one of a study", "name another one: --output"
        raise InputError(f"this folder has {what}", file=str(folder), expected=expected, remedy=remedy)


def write_all(findings: Findings, cases: Sequence[Case], kind: str, folder: Path) -> Path:
    """Tables of the cases, then what the study says; the report of the evaluation beside it names it."""
    report = folder.parent.parent / "report.html"
    there = report.is_file() and folder.parent.name == FOLDER
    for number, case in enumerate(cases, 1):
        design = case.design.to_dicts() if case.is_designed else []
        about = {"kind": kind, "case": case.name, "design": design, "left_out": dict(case.left_out)}
        results = replace(case.results, manifest={**case.results.manifest, "study": about})
        results.write(folder / CASES / f"{number:02d}")
    if cases:
        _tidy(folder / CASES, len(cases))
    page = write_study(findings, folder, back=report if there else None)
    if there:
        update_study_list(report)
    return page


def _tidy(folder: Path, number: int) -> None:
    """Delete the tables that an earlier study of more places wrote; other files in their folders stay."""
    for old in folder.iterdir():
        if old.name.isdigit() and int(old.name) > number and (old / MANIFEST).is_file() and not old.is_symlink():
            delete_results(old)


def provenance(chosen: Study, cases: Sequence[Case], metrics: Sequence[str]) -> dict[str, Any]:
    """What is needed to make each number again."""
    made: dict[str, Any] = {"study": chosen.kind, "ragworth": __version__, "settings": chosen.settings}
    if metrics:
        made["metrics"] = list(metrics)
        made["files of metrics"] = metric_file_digests(list(metrics))
    made["cases"] = []
    for case in cases:
        facts, digest = case.results.manifest, frame_digest(case.results.contexts.frame)
        models = [each.get("name") for each in facts.get("models", []) if isinstance(each, dict)]
        about = {"name": case.name, "workspace": facts.get("workspace"), "models": models, "seed": facts.get("seed")}
        made["cases"].append({**about, "contexts": digest})
    return made


def matrix(frame: pl.DataFrame, systems: Sequence[str], queries: Sequence[str]) -> npt.NDArray[np.float64]:
    """Values of a frame (system, query, value) as queries × systems; NaN where there is none."""
    row, column = ({name: at for at, name in enumerate(names)} for names in (queries, systems))
    made = np.full((len(queries), len(systems)), np.nan)
    for system, query, value in frame.select("system", "query", "value").iter_rows():
        if system in column and query in row and value is not None:
            made[row[query], column[system]] = value
    return made
