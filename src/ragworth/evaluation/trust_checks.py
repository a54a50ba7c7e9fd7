"""Whether a workspace stays within what it may do on its own, before anything is sent or written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ragworth.config import ModelSpec, TaskConfig, Workspace
from ragworth.errors import InputError, MissingExtraError
from ragworth.evaluation.consent import ConsentGuard, remote_server
from ragworth.evaluation.retrieval_models import all_steps, steps_with_models
from ragworth.formats import FORMATS
from ragworth.inputs.problems import Problems
from ragworth.retrieval import Pipeline
from ragworth.retrieval.steps.given_run import Run
from ragworth.retrieval.steps.rewritten import Rewritten
from ragworth.tables import Contexts
from ragworth.token_counter import tokenizer_file

KeyPath = tuple[str, ...]
"""The keys that lead to a setting."""


def check_trust(space: Workspace, guard: ConsentGuard, problems: Problems) -> None:
    """Find keys and texts that a workspace would send where it may not."""
    systems = _pipelines(space)
    models = dict(named_models(space))
    for where, asked in models.items():
        problems.of(partial(guard.key, asked), *where, "key_variable")
    steps = [ModelSpec(model) for step in steps_with_models(systems) for model in step.models() if model]
    servers = list(dict.fromkeys(filter(None, map(remote_server, (*models.values(), *steps)))))
    for where, path in (*_named_files(space), *_run_files(space, systems), *_prompt_files(space)) if servers else ():
        problems.of(partial(guard.read, path, servers), *where)


def named_models(space: Workspace) -> Iterator[tuple[KeyPath, ModelSpec]]:
    """Every model that the tables of a workspace name. Steps of pipelines name models without options."""
    yield ("model",), space.model
    tasks: dict[KeyPath, TaskConfig] = {("judgments", kind): task for kind, task in space.judgment_tasks.items()}
    tasks |= {("grades", kind): task for kind, task in space.grades.items()}
    if space.answers is not None:
        tasks["answers",] = space.answers.task
    for where, task in tasks.items():
        if task.model is not None:
            yield (*where, "model"), task.model
        if task.expensive is not None and task.expensive.model is not None:
            yield (*where, "expensive", "model"), task.expensive.model


def _named_files(space: Workspace) -> Iterator[tuple[KeyPath, Path]]:
    """Every file and folder with texts or values that the tables name, and the key that names it."""
    texts = space.collection
    parts = {"from": texts.whole} | {
        name: getattr(texts, name) for name in ("queries", "passages", "answers", "subquestions", "ratings")
    }
    named: list[tuple[KeyPath, str]] = [(("collection", name), text) for name, text in parts.items() if text]
    named += [(("collection", "qrels"), text) for text in texts.qrels]
    named += [(("judgments", "files"), text) for text in space.judged]
    named += [(("grades", "files"), text) for text in space.graded]
    if space.answers is not None and space.answers.file:
        named.append((("answers", "file"), space.answers.file))
    for kind, task in space.judgment_tasks.items():
        if task.expensive is not None and task.expensive.file:
            named.append((("judgments", kind, "expensive", "file"), task.expensive.file))
    if file := tokenizer_file(space.tokens):
        yield ("collection", "tokens"), file
    for where, text in named:
        yield from ((where, each) for each in _workspace_files(space, text))


def _pipelines(space: Workspace) -> dict[str, Pipeline | Contexts]:
    """The systems, without those that are not written right: they are found wrong elsewhere."""
    found: dict[str, Pipeline | Contexts] = {}
    for name, text in space.systems.items():
        with suppress(InputError, MissingExtraError):
            found[name] = Pipeline.of(text)
    return found


def _run_files(space: Workspace, systems: Mapping[str, Pipeline | Contexts]) -> Iterator[tuple[KeyPath, Path]]:
    for name, system in systems.items():
        for step in all_steps({name: system}):
            text = step.path if isinstance(step, Run) else step.file if isinstance(step, Rewritten) else ""
            yield from ((("systems", name), each) for each in (_workspace_files(space, text) if text else ()))


def _workspace_files(space: Workspace, text: str) -> Iterator[Path]:
    """A file that a workspace names, maybe with its format in front; of a folder, the folder and all links in it."""
    spec = space.spec(text)
    form, colon, rest = spec.partition(":")
    if form != "ir_datasets":
        # Readers take a format in front off even where there is a file of the whole name, so both may be read.
        known = bool(colon) and form in FORMATS
        for path in ([Path(rest)] if known else []) + ([Path(spec)] if not known or Path(spec).exists() else []):
            yield from _with_links(path)


def _with_links(path: Path) -> Iterator[Path]:
    yield path
    if path.is_dir():
        yield from (each for each in path.rglob("*") if each.is_symlink())


def _prompt_files(space: Workspace) -> Iterator[tuple[KeyPath, Path]]:
    """Folders and files of prompts."""
    folder = space.path(space.prompts) if space.prompts else None
    if folder is not None:
        yield from ((("paths", "prompts"), each) for each in _with_links(folder))
    tables: dict[KeyPath, Mapping[str, Any]] = {}
    for kind, task in space.judgment_tasks.items():
        tables["judgments", kind] = task.settings
        if task.expensive is not None:
            tables["judgments", kind, "expensive"] = task.expensive.settings
    tables |= {("grades", kind): each.settings for kind, each in space.grades.items()}
    if space.answers is not None:
        tables["answers",] = space.answers.task.settings
    for where, settings in tables.items():
        for name in ("prompt", "alone"):
            if isinstance(given := settings.get(name), str) and given:
                own = [folder / f"{given}.txt"] if folder is not None else []
                yield from (((*where, name), path) for path in (*own, space.path(given), Path(given)) if path.is_file())
