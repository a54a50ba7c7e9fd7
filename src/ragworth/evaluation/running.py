"""``ragworth.evaluate``: everything that a workspace says, from its files to the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from ragworth import config
from ragworth.calls.job import Watcher
from ragworth.collection import Collection
from ragworth.comparison import compare, summarise
from ragworth.config import Workspace
from ragworth.errors import InputError, listed
from ragworth.evaluation import stages
from ragworth.evaluation.asking import Models
from ragworth.evaluation.checking import checked
from ragworth.evaluation.kept import Kept
from ragworth.evaluation.manifest import manifest
from ragworth.evaluation.material import Material, load, verified
from ragworth.evaluation.stages import STAGES, State
from ragworth.metrics.declare import parse
from ragworth.report import page
from ragworth.results import Results
from ragworth.tables import Contexts, Judgments, Outcomes, Scores

KEPT = "stages"
"""Folder of what stages made, in the cache."""


class Console(Protocol):
    """Somebody who is told how an evaluation goes."""

    def stage(self, name: str) -> Watcher | None:
        """A stage that asks a model begins; who watches its calls."""
        ...

    def ended(self, facts: dict[str, Any]) -> None:
        """A stage has ended, with its status, calls, tokens, time and notes."""
        ...


class Silent:
    """Tells nobody."""

    def stage(self, name: str) -> Watcher | None:
        return None

    def ended(self, facts: dict[str, Any]) -> None:
        pass


@dataclass(frozen=True)
class Evaluated:
    """What came of an evaluation: None where it was ended before that."""

    stages: Sequence[dict[str, Any]]
    notes: tuple[str, ...]
    results: Results | None = None
    folder: Path | None = None
    report: Path | None = None
    page: page.Page | None = None


def evaluate(
    workspace: Workspace | str | Path = ".",
    *,
    only: str | None = None,
    until: str | None = None,
    limit: int | None = None,
    every: bool = False,
    console: Console | None = None,
    wait: float = 0.0,
) -> Evaluated:
    """Run a workspace: retrieve, judge, answer, grade, score, compare, report.

    What was done before and is still right is not done again, and no model is ever asked the same twice: the same
    call after a crash goes on where it was.

    Parameters
    ----------
    workspace: from `ragworth.config.read`, or the path of a ``ragworth.toml`` or its folder.
    only: run this stage alone; what comes before it must be there.
    until: end after this stage: ``retrieve``, ``annotate``, ``answer``, ``grade``, ``score`` or ``report``.
    limit: only the first so many queries.
    every: all queries, whatever limit the workspace has.
    console: who is told how it goes.
    wait: seconds to wait for another process that writes to the store of calls.
    """
    space = workspace if isinstance(workspace, Workspace) else config.read(workspace)
    last = _last(only, until)
    material = load(space, limit, every=every)
    verified(material)
    checked(material)
    told = console or Silent()
    with Models(space, told.stage, wait=wait) as models:
        state = State(material, models, Kept(space.path(space.cache) / KEPT, only))
        for run in _plan(state, last):
            before = len(state.stages)
            run()
            for facts in state.stages[before:]:
                told.ended(facts)
        if last != "report":
            return Evaluated(state.stages, material.notes)
        return _reported(state, material)


def _last(only: str | None, until: str | None) -> str:
    """The stage after which to end."""
    if only is not None and until is not None:
        raise InputError("--only and --until cannot both be given", remedy="give one of them")
    last = only or until or "report"
    if last not in STAGES:
        raise InputError(f"there is no stage {last!r}", expected=listed(list(STAGES), 9))
    return last


def _plan(state: State, last: str) -> list[Callable[[], None]]:
    """What is to be done, one after the other."""
    space = state.material.workspace
    parts: dict[str, list[Callable[[], None]]] = {
        "retrieve": [lambda: stages.of_systems(state)],
        "annotate": [(lambda kind=kind: stages.judge(state, kind)) for kind in space.judgments],  # type: ignore[misc]
        "answer": [lambda: stages.write(state)],
        "grade": [(lambda kind=kind: stages.grade(state, kind)) for kind in space.grades],  # type: ignore[misc]
        "score": [lambda: stages.compute(state, space.metrics or stages.default_metrics(state))],
    }
    wanted = STAGES[: STAGES.index(last) + 1]
    return [run for name in wanted for run in parts.get(name, [])]


def _reported(state: State, material: Material) -> Evaluated:
    """Write the tables and the report."""
    space, scores = material.workspace, state.scores
    assert scores is not None
    contexts = _to_show(state)
    results = Results(
        _texts(material.collection, contexts, state),
        contexts,
        Judgments.concat(state.judgments) if state.judgments else None,
        state.ratings,
        state.answers.table if state.answers is not None else None,
        _together(state.outcomes),
        scores,
        state.said,
        manifest(state),
    )
    folder = space.path(space.results)
    results.write(folder)
    summarise(scores).write_parquet(folder / "summary.parquet")
    if len(material.systems) > 1:
        compare(scores, baseline=space.baseline).differences.write_parquet(folder / "comparison.parquet")
    made = page.write(results, folder / "report.html")
    return Evaluated(state.stages, material.notes, results, folder, folder / "report.html", made)


def _to_show(state: State) -> Contexts:
    """What the tables and the report keep of each context: as deep as the model reads, or a metric looks."""
    depths = [metric.cutoff for name in _names(state.scores) if (metric := _parsed(name)) is not None and metric.cutoff]
    return state.contexts.cut(max([state.material.workspace.k, *depths]))


def _names(scores: Scores | None) -> list[str]:
    return scores.frame["metric"].unique(maintain_order=True).to_list() if scores is not None else []


def _parsed(name: str) -> Any:
    try:
        return parse(name)
    except InputError:
        return None  # a measure of another package


def _texts(collection: Collection, contexts: Contexts, state: State) -> Collection:
    """The texts that the tables speak of."""
    named = [contexts.frame["passage"]]
    if state.answers is not None:
        named.append(state.answers.contexts.frame["passage"])
    if state.ratings is not None:
        named.append(state.ratings.frame["passage"])
    passages = collection.passages.filter(pl.col("passage").is_in(pl.concat(named).unique().to_list()))
    return Collection(collection.queries, passages, collection.answers, collection.subquestions)


def _together(tables: Sequence[Outcomes]) -> Outcomes | None:
    if not tables:
        return None
    frame = pl.concat([table.frame.select(list(Outcomes.schema)) for table in tables])
    again = frame.filter(frame.select(pl.struct("system", "query", "aspect").is_duplicated()).to_series())
    if again.height:
        row = again.row(0, named=True)
        raise InputError(
            f"two outcomes are called {row['aspect']!r}, the second from {row['source']}",
            remedy="take one of the graders out of [grades], or its file out",
        )
    return Outcomes.trusted(frame)
