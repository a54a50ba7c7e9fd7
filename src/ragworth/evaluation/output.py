"""The last stage: tables and report, written to the folder of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ragworth.comparison import compare, summarise, to_scores
from ragworth.core.errors import MetricError
from ragworth.data import Contexts, Outcomes, Scores, parts
from ragworth.data.collection import Collection
from ragworth.evaluation.manifest import build_manifest
from ragworth.evaluation.state import EvaluationState
from ragworth.metrics.declaration import Metric
from ragworth.metrics.parsing import parse
from ragworth.report import page
from ragworth.report.page.answers import shown_outcomes
from ragworth.results import EXTRA_FILES, Results, results_record

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
        _join_outcomes(state.outcomes),
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
            record.write(name, partial(parts.write_parquet, [frame]))
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
    collection, named = state.collection, [part["passage"] for part in contexts.parts]
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


def _join_outcomes(tables: Sequence[Outcomes]) -> Outcomes | None:
    if not tables:
        return None
    notes = tuple(note for table in tables for note in table.notes)
    return Outcomes.of_parts([part for table in tables for part in table.parts], notes)
