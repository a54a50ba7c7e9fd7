"""Whether a workspace stays within what it may do on its own, before anything is sent or written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any

from ragworth.core.containment import is_inside
from ragworth.core.errors import MAX_PATH_LENGTH, InputError, MissingExtraError, quote_short
from ragworth.data.token_counter import tokenizer_file
from ragworth.evaluation.consent import ServerConsent, remote_host
from ragworth.evaluation.retrieval_models import all_steps
from ragworth.formats import FORMATS
from ragworth.retrieval import Pipeline
from ragworth.retrieval.contract import Step
from ragworth.workspace.config import ModelSpec, TaskConfig, Workspace
from ragworth.workspace.problems import Problems

KeyPath = tuple[str, ...]
"""The keys that lead to a setting."""

PROMPT_SETTINGS = ("prompt", "alone")
"""Settings that name a prompt or its file."""


def check_trust(space: Workspace, consent: ServerConsent, problems: Problems) -> None:
    """Find servers that a workspace may not name, and files outside of its folder whose texts a server would get."""
    if not space.digest:
        return
    steps = list(_steps(space))
    models = list(_task_models(space))
    models += [(where, ModelSpec(model)) for where, step in steps for model in step.models() if model]
    for where, asked in models:
        problems.of(partial(consent.check, asked), *where)
    if not any(remote_host(asked) for _, asked in models):
        return
    for where, path in (*_collection_files(space), *_setting_files(space, steps)):
        if not is_inside(path, space.folder):
            problems.say(
                f"{quote_short(str(path.resolve()), MAX_PATH_LENGTH)} is outside of the folder of the workspace, "
                "which asks a server",
                "put the file into the folder, or ragworth.toml into a folder above it",
                *where,
            )


def _task_models(space: Workspace) -> Iterator[tuple[KeyPath, ModelSpec]]:
    """Every model that the tables of a workspace name."""
    yield ("model",), space.model
    for where, task in _tasks(space):
        if task.model is not None:
            yield (*where, "model"), task.model
        if task.expensive is not None and task.expensive.model is not None:
            yield (*where, "expensive", "model"), task.expensive.model


def _tasks(space: Workspace) -> Iterator[tuple[KeyPath, TaskConfig]]:
    yield from ((("judgments", kind), task) for kind, task in space.judgment_tasks.items())
    yield from ((("grades", kind), task) for kind, task in space.grades.items())
    if space.answers is not None:
        yield ("answers",), space.answers.task


def _steps(space: Workspace) -> Iterator[tuple[KeyPath, Step]]:
    """The steps of all systems, except those that are not written right: they are reported elsewhere."""
    for name, text in space.systems.items():
        with suppress(InputError, MissingExtraError):
            yield from ((("systems", name), step) for step in all_steps({name: Pipeline.of(text)}))


def _collection_files(space: Workspace) -> Iterator[tuple[KeyPath, Path]]:
    """Every file and folder with texts or values that the tables name."""
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
    for where, task in _tasks(space):
        if task.expensive is not None and task.expensive.file:
            named.append(((*where, "expensive", "file"), task.expensive.file))
    if file := tokenizer_file(space.tokens):
        yield ("collection", "tokens"), file
    for where, text in named:
        yield from ((where, each) for each in _workspace_files(space, text))


def _setting_files(space: Workspace, steps: list[tuple[KeyPath, Step]]) -> Iterator[tuple[KeyPath, Path]]:
    """The user's prompts, and every file that a setting of a task or of a pipeline's step names."""
    if space.prompts:
        yield from ((("paths", "prompts"), each) for each in _with_links(space.path(space.prompts)))
    named: list[tuple[KeyPath, Mapping[str, Any]]] = [(where, task.settings) for where, task in _tasks(space)]
    named += [
        ((*where, "expensive"), task.expensive.settings) for where, task in _tasks(space) if task.expensive is not None
    ]
    named += [
        (
            where,
            {each.name: getattr(step, each.name) for each in fields(step) if getattr(step, each.name) != each.default},
        )
        for where, step in steps
    ]
    for where, settings in named:
        for name, text in settings.items():
            if isinstance(text, str) and text:
                files = _prompt_files(space, text) if name in PROMPT_SETTINGS else _workspace_files(space, text)
                with suppress(OSError):  # a text that is too long for a path
                    yield from ((where, path) for path in files if path.is_file())


def _prompt_files(space: Workspace, text: str) -> Iterator[Path]:
    """The file of a prompt and its variant ``NAME-alone``, wherever they may be looked for."""
    own = [space.path(space.prompts) / f"{text}.txt"] if space.prompts else []
    for path in (*own, space.path(text), Path(text)):
        if path.is_file():
            yield from (path, *path.parent.glob(f"{escape(path.stem)}-*"))


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
