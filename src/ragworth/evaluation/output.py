"""The last stage: tables, report and manifest, in the folder of results. One evaluation at a time writes there."""

from __future__ import annotations

import platform
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ragworth import __version__
from ragworth.comparison import compare, summarise, to_scores
from ragworth.core.errors import FormatError, InputError, MetricError
from ragworth.core.files import private_file, private_folder
from ragworth.data import Contexts, Outcomes, Scores, coercion
from ragworth.data.collection import Collection
from ragworth.evaluation.model_pool import card_facts
from ragworth.evaluation.state import EvaluationState
from ragworth.metrics.declaration import Metric
from ragworth.metrics.parsing import parse
from ragworth.report import page
from ragworth.report.page.answers import shown_outcomes
from ragworth.results import EXTRA_FILES, Results, results_record
from ragworth.workspace.config import Workspace

POLL_SECONDS = 0.05
"""Seconds between attempts to get the lock."""


@contextmanager
def workspace_lock(space: Workspace, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock of a workspace; wait for another evaluation, or refuse to start.

    The lock is SQLite's, so that it ends with the process that has it, however that ends.
    """
    path = space.path(space.cache) / "evaluating.lock"
    try:
        private_folder(path.parent)
        private_file(path)
        lock = sqlite3.connect(path, timeout=0, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise FormatError(f"it cannot be written to: {error}", file=str(path.parent)) from error
    with closing(lock):
        _acquire(lock, path, space, wait)
        yield


def _acquire(lock: sqlite3.Connection, path: Path, space: Workspace, wait: float) -> None:
    until = time.monotonic() + wait
    while True:
        try:
            lock.execute("BEGIN EXCLUSIVE")
            return
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY:
                raise FormatError(f"it cannot be written to: {error}", file=str(path)) from error
            if time.monotonic() >= until:
                raise InputError(
                    "another process is evaluating this workspace",
                    file=str(space.file),
                    remedy="wait for it (--wait SECONDS)",
                ) from error
            time.sleep(POLL_SECONDS)


PACKAGES = (
    *("polars", "numpy", "scipy", "onnxruntime", "tokenizers", "torch", "transformers", "aiohttp"),
    *("bm25s", "PyStemmer", "altair", "vl-convert-python", "ir-measures"),
)


def build_manifest(state: EvaluationState) -> dict[str, Any]:
    """Versions, files, seeds, models, prompts, settings, and the cost of each stage."""
    space = state.space
    # As they were when the evaluation began: the file may have been changed since.
    settings = _json_value(
        dict(space.given) or {name: value for name, value in asdict(space).items() if name not in ("file", "known")}
    )
    return {
        "title": space.title,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"ragworth": __version__, "python": platform.python_version(), **_package_versions()},
        "machine": {"system": platform.system(), "processor": platform.machine(), "byte order": sys.byteorder},
        "workspace": {"file": space.file.name, "digest": space.digest},
        "files": dict(state.material.files),
        "queries": len(state.material.queries),
        "seed": space.seed,
        "settings": {**settings, "k": state.k, "seed": space.seed, "baseline": space.baseline},
        "systems": dict(state.material.written),
        "models": [card_facts(card) for card in state.models.cards],
        "prompts": {
            name: {
                "version": template.version,
                "messages": [[each.role, each.text] for each in template.messages],
                **({"reply": template.reply.to_dict()} if template.reply.declared else {}),
            }
            for name, template in sorted(state.prompts.items())
        },
        "stages": state.stages,
    }


def _json_value(value: Any) -> Any:
    """Settings as JSON values; dates become texts."""
    if isinstance(value, dict):
        return {key: _json_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


@cache
def _package_versions() -> Mapping[str, str]:
    """Versions of installed packages, read once, because reading them is slow."""
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


REPORT = "report.html"


class WrittenOutput(NamedTuple):
    """The content of the results folder."""

    results: Results
    folder: Path
    report: Path | None = None
    page: page.Page | None = None


def write_output(state: EvaluationState) -> WrittenOutput:
    """Write the tables, then the report."""
    space, scores = state.space, state.scores
    assert scores is not None
    every = list(map(_try_parse, _metric_names(scores)))
    metrics = [metric for metric in every if metric is not None]
    depths = [metric.cutoff * metric.declaration.reach for metric in metrics if metric.cutoff is not None]
    near = state.contexts.cut(max([space.k, *depths]))
    results = Results(
        _mentioned_texts(state, near),
        near if len(depths) == len(every) else state.contexts,  # what the scores are from; a cutoff may be lacking
        state.all_judgments,
        state.ratings,
        state.answers.table if state.answers is not None else None,
        Outcomes.concat(state.outcomes) if state.outcomes else None,
        scores,
        state.said,
        build_manifest(state),
        state.estimates,
    )
    folder = space.path(space.results)
    options = _page_options(results, _metric_names(scores) if space.metrics else None)
    results_record(folder).refuse_foreign(EXTRA_FILES)
    results.write(folder)
    every_score = to_scores(results)
    several = len(every_score.distinct("system")) > 1
    scored = replace(results, outcomes=None, scores=every_score)  # so that outcomes become scores only once
    compared = compare(scored, baseline=space.baseline, seed=space.seed).differences if several else None
    _write_tables(folder, {"summary.parquet": summarise(scored, seed=space.seed), "comparison.parquet": compared})
    if not len(scores) and not shown_outcomes(every_score, results.outcomes):
        return WrittenOutput(results, folder)
    return WrittenOutput(results, folder, folder / REPORT, page.write(results, folder / REPORT, **options))


def write_report(folder: Path, *, metrics: Sequence[str] | None = None) -> Path:
    """Write the report of a results folder again, with these metrics or those of the evaluation; return its path."""
    results = Results.read(folder)
    if metrics is None:
        settings = results.manifest.get("settings")
        named = settings.get("metrics") if isinstance(settings, Mapping) else None
        metrics = _metric_names(results.scores) if named else None
    page.write(results, folder / REPORT, **_page_options(results, metrics))
    return folder / REPORT


def _page_options(results: Results, metrics: Sequence[str] | None) -> dict[str, Any]:
    known = [metric for name in _metric_names(results.scores) if (metric := _try_parse(name)) is not None]
    limits = _thresholds(known)
    seed = results.manifest.get("seed", 0)
    return {"metrics": metrics, "seed": seed, **limits}


def _write_tables(folder: Path, frames: Mapping[str, pl.DataFrame | None]) -> None:
    """Write tables, and delete those of an earlier evaluation that no longer exist."""
    record = results_record(folder)
    for name, frame in frames.items():
        if frame is None:
            record.remove([name])
        else:
            record.write(name, partial(coercion.write_parquet, frame))
    record.finish()


def _metric_names(scores: Scores) -> list[str]:
    return scores.distinct("metric")


def _try_parse(name: str) -> Metric | None:
    try:
        return parse(name)
    except MetricError:
        return None  # a measure of another package


def _thresholds(metrics: Sequence[Metric]) -> dict[str, Any]:
    """From which relevance and rating on something counts in the diagnosis: as for the first metric that says so."""
    made: dict[str, Any] = {}
    for name, wanted in (("rel", "level"), ("eta", "eta")):
        first = next((metric.values[name] for metric in metrics if name in metric.values), None)
        made |= {wanted: float(first)} if first is not None else {}
    return made


def _mentioned_texts(state: EvaluationState, contexts: Contexts) -> Collection:
    """The texts that the tables refer to."""
    collection, named = state.collection, [contexts.frame["passage"]]
    if state.answers is not None:
        named.append(state.answers.contexts.frame["passage"])
    if state.ratings is not None:
        named.append(state.ratings.frame["passage"])
    known = pl.concat(named).unique().to_frame()
    passages = collection.passages.join(known, on="passage", how="semi", maintain_order="left")
    return Collection(
        collection.queries,
        passages,
        collection.answers,
        collection.subquestions,
        turns=collection.turns,
        turn_form=collection.turn_form,
    )
