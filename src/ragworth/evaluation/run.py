"""``ragworth.evaluate``: everything that a workspace says, from its files to the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from ragworth import formats
from ragworth.core.errors import InputError, format_list
from ragworth.core.files import refuse_links
from ragworth.data.coercion import package_of, to_frame
from ragworth.data.tables import html_table
from ragworth.evaluation import stages
from ragworth.evaluation.checks import load_checked_inputs
from ragworth.evaluation.model_pool import NONE, ModelPool, resolve_model_path, with_model
from ragworth.evaluation.output import workspace_lock, write_output
from ragworth.evaluation.stage_cache import STAGES_FOLDER, StageCache, frame_digest, key_digest
from ragworth.evaluation.stages import STAGES
from ragworth.evaluation.state import Console, EvaluationState, SilentConsole
from ragworth.formats.contract import LoadedCollection
from ragworth.report import page
from ragworth.results import Results
from ragworth.workspace.config import ModelSpec, OutputPaths, TaskConfig, Workspace
from ragworth.workspace.read import answer_anew, read, read_records

MAX_SENTENCES = 10
"""Sentences on systems that are printed; the report has all."""


@dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation; None for stages that didn't run.

    ``stages``: name, status, notes, seconds and, where a model was asked, calls and tokens of each.
    """

    stages: Sequence[Mapping[str, Any]]
    results: Results | None = None
    folder: Path | None = None
    report: Path | None = None
    page: page.Page | None = field(default=None, repr=False, compare=False)
    """The content of the report."""

    def __repr__(self) -> str:
        """The verdict and the path of the report, for terminals; without a report, the stages."""
        if self.page is None:
            return f"Evaluation({', '.join('{name}: {status}'.format_map(stage) for stage in self.stages)})"
        answers = self.page.answers
        standings = self.page.overview.standings[:MAX_SENTENCES]
        said = [answers.headline_in(str(self.folder))] if answers is not None else [each.sentence for each in standings]
        return "\n".join((*said, f"Report: {self.report}"))

    def _repr_html_(self) -> str:
        """The verdict and a picture, for notebooks; without a report, the stages."""
        if self.page is not None:
            return self.page._repr_html_()
        rows = [{name: str(stage.get(name, "")) for name in ("name", "status", "seconds")} for stage in self.stages]
        return html_table(pl.DataFrame(rows), "Stages")


def evaluate(
    data: Workspace | str | Path | Sequence[str | Path] | Any = ".",
    *,
    columns: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    results: str | Path | None = None,
    model: str | Mapping[str, Any] | None = None,
    answer_again: bool = False,
    until: str | None = None,
    limit: int | None = None,
    sample: int | None = None,
    every: bool = False,
    console: Console | None = None,
    wait: float = 0.0,
    allow_servers: Sequence[str] = (),
) -> Evaluation:
    """Evaluate a workspace, files as they are, or data in memory: retrieve, judge, answer, grade, score, report.

    What was done before and is still right is not done again, and no model is ever asked the same twice: the same
    call after a crash resumes. Answers and grades in the data are kept.

    Parameters
    ----------
    data: the path of a ``ragworth.toml``, of a folder, or of a log, run or table; a list of such files; a
        workspace from `ragworth.workspace.config.read`; or a list of dicts or a data
        frame with a record for each query and system.
    columns: what the data calls our fields, such as ``{"question": "Query"}``.
    settings: for data in memory, keys and tables of a ``ragworth.toml`` instead of those that the data leads to, such
        as ``{"k": 3, "judgments": {}}``.
    results: folder to write to; by default ``results`` in a folder, ``LOG-results`` beside a file, and for data in
        memory a folder in ``ragworth-results`` here, named by a hash of the data and of what is asked about it.
    model: the model to ask, such as ``"openai:NAME@URL"`` or ``{"use": "hf:FOLDER", "device": "cuda"}``, instead of
        the workspace's or the embedded one. Tasks that name their own model keep it. ``"none"`` asks no model at all:
        answers and grades in the data are compared, and passages with an accepted answer count as relevant.
    answer_again: let the model answer, and ignore answers and grades in logs.
    until: end after this stage: ``retrieve``, ``annotate``, ``answer``, ``grade``, ``score`` or ``report``.
    limit: only the first so many queries.
    sample: only so many queries, drawn at random by the seed.
    every: all queries, whatever limit the workspace has.
    console: receives the progress.
    wait: seconds to wait for another evaluation of the workspace, and for a store that is in use.
    allow_servers: hosts that the workspace's file may name; remembered for this file.
    """
    wanted = _select_stages(until)
    if every and (limit is not None or sample is not None):
        raise InputError("all queries are wanted, and a limit or a sample is given", remedy="give one of them")
    asked = {"model": model, "answer_again": answer_again, "limit": limit, "sample": sample, "every": every}
    space, records = _open(data, columns, settings, results, asked)
    space = answer_anew(space) if answer_again else space
    space = with_model(space, _model_spec(model)) if model is not None else space
    begun = time.monotonic()
    with ModelPool(space, wait, allow_servers) as models:
        goals = {"scores": "score" in wanted, "report": "report" in wanted}
        material = load_checked_inputs(space, models, limit=limit, sample=sample, every=every, records=records, **goals)
        with workspace_lock(space, wait):
            state = EvaluationState(
                material, models, StageCache(space.path(space.cache) / STAGES_FOLDER), console or SilentConsole()
            )
            state.record_stage("load", "done", notes=list(material.notes), seconds=_elapsed(begun))
            for run in _stage_functions(state, wanted):
                run()
            if "report" not in wanted:
                return Evaluation(state.stages)
            begun = time.monotonic()
            state.console.start_stage("report")
            written = write_output(state)
            lacking = (
                "no report: neither a metric nor a grade says which system is better; tables only. If a column of a "
                "log has grades, say so: --map NAME=COLUMN, or [columns]"
                + ("; or name a model to ask" if space.model.use == NONE else "")
            )
            notes = [] if written.report else [lacking]
            state.record_stage("report", "done", notes=notes, seconds=_elapsed(begun))
            return Evaluation(state.stages, written.results, written.folder, written.report, written.page)


def _open(
    data: Any,
    columns: Mapping[str, str] | None,
    settings: Mapping[str, Any] | None,
    results: str | Path | None,
    asked: Mapping[str, Any],
) -> tuple[Workspace, LoadedCollection | None]:
    """The workspace to evaluate, and its data in memory."""
    paths = OutputPaths(results)
    listed = isinstance(data, list | tuple) and bool(data) and all(isinstance(each, str | Path) for each in data)
    if settings is not None and (listed or isinstance(data, str | Path | Workspace)):
        raise InputError(
            "settings are for data in memory", remedy="ragworth init FOLDER writes a ragworth.toml to change"
        )
    if isinstance(data, Workspace):
        return (data if results is None else replace(data, results=str(Path(results).absolute()))), None
    if listed or isinstance(data, str | Path):
        return read(data, columns, paths).workspace, None
    if package_of(data) == "datasets" and isinstance(data, Mapping):
        to_frame(data)  # refuses a DatasetDict, and says which datasets it has
    if not isinstance(data, list | tuple) and hasattr(data, "__len__") and not len(data):
        raise InputError(f"this {type(data).__name__} has no rows", expected="a row for each question")
    records = formats.load_records(data, columns, source="records")
    home = store = Path(results or "ragworth-results").absolute()
    if results is None:
        home = store / _records_digest(records, {"settings": settings, **asked})
        refuse_links(store, store.parent, "name another place: results=DIR")
    output = OutputPaths(home, store / "calls.sqlite", home / ".ragworth")
    return read_records(records, settings or {}, output).workspace, records


def _records_digest(records: LoadedCollection, asked: Mapping[str, Any]) -> str:
    """A hash of data in memory and of what is asked about it, so that no evaluation overwrites another's results."""
    texts, contexts = records.collection, records.contexts
    tables = (
        contexts,
        records.answers,
        records.outcomes,
        texts.queries,
        texts.passages,
        texts.answers,
        texts.relevance,
    )
    empty = sorted(contexts.empty) if contexts is not None else []
    return key_digest({"tables": list(map(frame_digest, tables)), "empty": empty, **asked})


def _model_spec(model: str | Mapping[str, Any]) -> ModelSpec:
    """A model as its written form, or a dict with that under ``use``. Its files are looked for from here."""
    options = {"use": model} if isinstance(model, str) else dict(model)
    use = options.pop("use", None)
    if not isinstance(use, str) or not use:
        raise InputError(f"the model is {model!r}", expected='"openai:NAME@URL" or {"use": "openai:NAME@URL", …}')
    return ModelSpec(resolve_model_path(use, Path.cwd()), options, chosen=True)


def _elapsed(begun: float) -> float:
    return round(time.monotonic() - begun, 3)


def _select_stages(until: str | None) -> tuple[str, ...]:
    """The stages to run."""
    last = until or STAGES[-1]
    if last not in STAGES:
        raise InputError(f"there is no stage {last!r}", expected=format_list(list(STAGES), 9))
    return STAGES[: STAGES.index(last) + 1]


def _stage_functions(state: EvaluationState, wanted: Sequence[str]) -> list[Callable[[], object]]:
    """The steps to take, in order."""
    space = state.space
    parts: dict[str, list[Callable[[], object]]] = {
        "retrieve": [partial(stages.run_retrieve, state, release=True)],
        "annotate": [run for kind, task in space.judgments.items() for run in _judging(state, kind, task)],
        "answer": [partial(stages.run_answer, state, space.answers)] if state.has_answers else [],
        "grade": [
            *([partial(stages.run_hops, state)] if state.material.hops else []),
            *(partial(stages.run_grade, state, kind, task) for kind, task in space.grades.items() if state.has_answers),
        ],
        "score": [partial(stages.run_score, state)],
    }
    if any(task.expensive is not None for task in space.judgments.values()):
        parts["score"].append(partial(stages.run_estimates, state))
    return [run for name in wanted for run in parts.get(name, [])]


def _judging(state: EvaluationState, kind: str, task: TaskConfig) -> Iterator[Callable[[], object]]:
    yield partial(stages.run_annotate, state, kind, task)
    if task.expensive is not None:
        yield partial(stages.run_expensive_judge, state, kind, task)
