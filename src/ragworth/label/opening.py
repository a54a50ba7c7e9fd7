"""Open a workspace, a results folder or files as a source of items."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ragworth.errors import InputError, format_list
from ragworth.evaluation.inputs import EvaluationInputs, load_inputs
from ragworth.evaluation.stage_cache import STAGES_FOLDER, StageCache
from ragworth.evaluation.stages.task_stage import stage_table
from ragworth.inputs.problems import Problems
from ragworth.inputs.sources import open_source
from ragworth.label.sources import LabelSource
from ragworth.results import MANIFEST, Results
from ragworth.tables import Answers, Contexts

DEFAULT_K = 5


def open_label_source(paths: Sequence[str | Path], *, k: int | None = None, seed: int = 0) -> LabelSource:
    """What there is to label in a results folder, a workspace or files.

    A workspace that has been evaluated is opened at its results, which have what its systems retrieved and answered;
    without results, at what its cache has of these.
    ``k`` is by default that of the workspace or results.
    """
    if k is not None and k < 1:
        raise InputError(f"k is {k}", expected="1 or more")
    if len(paths) == 1 and _are_results(Path(paths[0])):
        return source_of_results(Results.read(paths[0]), k=k, seed=seed)
    space = open_source(paths).workspace
    if _are_results(space.path(space.results)):
        return source_of_results(Results.read(space.path(space.results)), k=k or space.k, seed=seed)
    problems = Problems(space)
    inputs = load_inputs(space, problems)
    problems.done()
    assert inputs is not None
    return _source_of_inputs(inputs, k or space.k, seed)


def source_of_results(results: Results, *, k: int | None = None, seed: int = 0) -> LabelSource:
    """What there is to label in results; ``k`` is by default the depth to which they were evaluated."""
    settings = results.manifest.get("settings", {})
    return LabelSource(
        results.collection,
        results.contexts,
        results.answers,
        (results.judgments,) if results.judgments is not None else (),
        results.ratings,
        results.outcomes,
        k or settings.get("k") or DEFAULT_K,
        seed,
    )


def _are_results(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def _source_of_inputs(inputs: EvaluationInputs, k: int, seed: int) -> LabelSource:
    """Return what to label in files, and the workspace's contexts and answers if no results were written."""
    runs = [system for system in inputs.systems.values() if isinstance(system, Contexts)]
    pipelines = [name for name, system in inputs.systems.items() if not isinstance(system, Contexts)]
    contexts = Contexts.concat(runs) if runs else None
    answers = inputs.answers.table if inputs.answers is not None else None
    if pipelines:
        cache = StageCache(inputs.workspace.path(inputs.workspace.cache) / STAGES_FOLDER)
        retrieved, answered = cache.latest("retrieve"), cache.latest("answer")
        contexts = stage_table(retrieved, "contexts", Contexts) if retrieved is not None else None
        if lacking := [name for name in pipelines if contexts is None or name not in contexts.systems]:
            raise InputError(
                f"{format_list(lacking)} {'has' if len(lacking) == 1 else 'have'} not retrieved anything yet",
                file=str(inputs.workspace.folder),
                remedy=f"run `ragworth evaluate {inputs.workspace.folder} --until retrieve` first",
            )
        assert contexts is not None
        contexts = contexts.having("query", inputs.queries)
        if answers is None and answered is not None:
            answers = Answers.trusted(answered.frames["said"]).having("query", inputs.queries)
    return LabelSource(
        inputs.collection,
        contexts,
        answers,
        tuple(inputs.given),
        inputs.collection.ratings,
        inputs.outcomes,
        k,
        seed,
    )
