"""The files of a workspace: each read once, its hash noted; what cannot be read is told together with the rest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from ragworth import formats
from ragworth.collection import Collection
from ragworth.config import EVERY_SYSTEM, TaskConfig, Workspace
from ragworth.errors import FormatError, format_count
from ragworth.evaluation.problems import Problems
from ragworth.evaluation.stage_cache import file_digest
from ragworth.formats import texts
from ragworth.formats.contract import LoadedCollection
from ragworth.retrieval import Pipeline
from ragworth.retrieval.steps.given_run import Run
from ragworth.tables import Judgments

T = TypeVar("T")


class InputReader:
    """Reads files, and remembers their hashes by their path as the workspace has it."""

    def __init__(self, space: Workspace, problems: Problems) -> None:
        self.space = space
        self.problems = problems
        self.files: dict[str, str] = {}
        self._runs: dict[str, LoadedCollection | None] = {}

    def of(self, text: str, read: Callable[[str], T], *path: str) -> T | None:
        """What a file holds that the key at ``path`` names; None where it cannot be read."""
        spec = self.space.spec(text)
        found = self.problems.of(partial(read, spec), *path)
        file = Path(spec if Path(spec).exists() else spec.partition(":")[2])
        if found is not None and file.exists():
            self.files[text] = file_digest(file)
        return found

    def expensive(self, kind: str, task: TaskConfig) -> Judgments | None:
        """What a better judge says of a kind, where it is in a file."""
        file = task.expensive.file if task.expensive is not None else None
        return self.of(file, formats.read_judgments, "judgments", kind, "expensive", "file") if file else None

    def parts(self) -> dict[str, Collection]:
        """The texts that come in files of their own, by kind."""
        kinds: tuple[texts.CollectionPart, ...] = ("queries", "passages", "answers", "subquestions")
        named = {kind: getattr(self.space.collection, kind) for kind in kinds}
        found = {
            kind: self.of(file, partial(_read_texts, kind), "collection", kind) for kind, file in named.items() if file
        }
        return {kind: part for kind, part in found.items() if part is not None}

    def run(self, name: str, pipeline: Pipeline) -> LoadedCollection | None:
        """What the file holds that a system begins with, and the texts in it; None where it begins with no file."""
        first = pipeline.steps[0]
        if not isinstance(first, Run):
            return None
        if first.path not in self._runs:
            self._runs[first.path] = self.of(first.path, _read_run, "systems", name)
        found = self._runs[first.path]
        if found is None or found.contexts is None:
            return None
        if name == EVERY_SYSTEM and len(pipeline.steps) > 1:
            form = '"*" = {run = "FILE"}'
            self.problems.say(
                f"the system {EVERY_SYSTEM!r} is more than a file of runs", f"write {form}", "systems", name
            )
        if name != EVERY_SYSTEM and len(found.contexts.systems) > 1:
            self.problems.say(
                f"the file of {name!r} holds {format_count(len(found.contexts.systems), 'system')}",
                'take all of them, each under its own name: "*" = {run = "FILE"}',
                "systems",
                name,
            )
        return found


def _read_texts(kind: texts.CollectionPart, spec: str) -> Collection:
    return texts.read(spec, kind)


def _read_run(spec: str) -> LoadedCollection:
    """Contexts, and the texts that come with them in files of some kinds."""
    chosen, _ = formats.resolve(spec, "contexts")
    if chosen.name == "jsonl":
        found = formats.load(spec)
        if found.contexts is None:
            raise FormatError("it holds texts, and nothing that was retrieved", file=spec, expected="a run")
        return found
    return LoadedCollection(Collection(), formats.read_contexts(spec))
