"""The systems of a workspace: pipelines, runs and logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ragworth.core.errors import InputError, UnknownNameError, format_count, quote_short
from ragworth.data import Answers, Contexts, Outcomes
from ragworth.formats.contract import LoadedCollection
from ragworth.retrieval import Pipeline
from ragworth.retrieval.steps.external import Run
from ragworth.workspace.config import Workspace, names_every_system
from ragworth.workspace.files import FileReader
from ragworth.workspace.matching import rename_system, systems_of


@dataclass(frozen=True)
class LoadedSystems:
    """The systems by name, in their written form, and everything else in their files."""

    made: dict[str, Pipeline | Contexts] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    bare: dict[str, None] = field(default_factory=dict)
    """Systems with answers or grades, whose contexts are unknown."""
    logs: list[LoadedCollection] = field(default_factory=list)

    def add(self, log: LoadedCollection, written: str) -> None:
        """Add all systems of a log under their own names."""
        shown = log.contexts.systems if log.contexts is not None else []
        bare = [name for name in systems_of(log) if name not in shown]
        self.logs.append(log)
        self.made.update({name: log.contexts.only(name) for name in shown if log.contexts is not None})
        self.bare.update(dict.fromkeys(bare))
        self.written.update(dict.fromkeys([*shown, *bare], written))

    @property
    def names(self) -> list[str]:
        return [*self.made, *self.bare]


def load_systems(space: Workspace, reading: FileReader, whole: LoadedCollection | None) -> LoadedSystems:
    """Read pipelines, runs and logs."""
    problems, systems = reading.problems, LoadedSystems()
    for name, text in space.systems.items():
        pipeline = problems.of(partial(_parse_pipeline, text, space.systems), "systems", name)
        if pipeline is None:
            continue
        log = _read_log(name, pipeline, reading)
        fresh = LoadedSystems()
        if log is not None and (names_every_system(name) or len(pipeline.steps) == 1):
            fresh.add(log if names_every_system(name) else rename_system(log, name), str(pipeline))
        elif log is not None:
            fresh.logs.append(log._replace(answers=None, outcomes=None))  # another step follows: other contexts
        if not fresh.names and not names_every_system(name):
            fresh.made[name], fresh.written[name] = pipeline, str(pipeline)
        for each in set(fresh.names) & set(systems.names):
            problems.say(
                f"two systems are called {quote_short(each)}", "give one of them another name", "systems", name
            )
        for part in ("made", "written", "bare"):
            getattr(systems, part).update(getattr(fresh, part))
        systems.logs.extend(fresh.logs)
    if not space.systems and whole is not None:
        systems.add(whole, space.collection.whole or "records")
    return systems


def _read_log(name: str, pipeline: Pipeline, reading: FileReader) -> LoadedCollection | None:
    """Contents of the file that a system begins with; None if there is no such file, or it can't be read."""
    first = pipeline.steps[0]
    log: LoadedCollection | None = reading.read("run", first.path, "systems", name) if isinstance(first, Run) else None
    if log is None:
        return None
    if names_every_system(name) and len(pipeline.steps) > 1:
        remedy = 'write "*" = {run = "FILE"}'
        reading.problems.say(f"the system {name!r} is more than a file of runs", remedy, "systems", name)
    number = len(systems_of(log))
    if not names_every_system(name) and number > 1:
        found = f"the file of {name!r} holds {format_count(number, 'system')}"
        remedy = 'take all of them, each under its own name: "*" = {run = "FILE"}'
        reading.problems.say(found, remedy, "systems", name)
        return None
    return log


def _parse_pipeline(text: object, names: Iterable[str]) -> Pipeline:
    """Parse a pipeline; if it names a system, the error says so."""
    try:
        return Pipeline.of(text)
    except InputError as error:
        if not isinstance(error.__cause__, UnknownNameError) or error.__cause__.name not in names:
            raise
        remedy = "names in a pipeline are kinds of steps, never systems: write the steps of that system"
        raise error.copy(remedy=remedy) from error


def name_bare_systems(systems: LoadedSystems, tables: Sequence[Answers | Outcomes]) -> None:
    """If no file has contexts, the systems are those with answers or grades."""
    if not systems.names:
        for table in tables:
            systems.bare.update(dict.fromkeys(table.distinct("system")))
            systems.written.update(dict.fromkeys(systems.bare, table.name))
