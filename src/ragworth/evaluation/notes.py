"""Notes of retrieval, by system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragworth.errors import format_list
from ragworth.evaluation.retrieval_models import all_steps
from ragworth.retrieval import Pipeline
from ragworth.tables import Contexts
from ragworth.tables.notes import Note


def notes_by_system(notes: Sequence[str], systems: Mapping[str, Pipeline | Contexts]) -> dict[str, list[str]]:
    """Notes by system; the note of a step belongs to all systems with that step."""
    found = {name: [note for note in notes if _concerns(name, system, note)] for name, system in systems.items()}
    return {name: some for name, some in found.items() if some}


def _concerns(name: str, system: Pipeline | Contexts, note: str) -> bool:
    if isinstance(note, Note) and note.system:
        return note.system == name
    if isinstance(system, Contexts):
        return note in system.notes
    return isinstance(note, Note) and note.step in {str(step) for step in all_steps({name: system})}


def prefix_system_names(notes: Sequence[str], systems: Mapping[str, Sequence[str]]) -> list[str]:
    """The notes to print, each with its systems in front."""
    return [_prefix_names(note, [name for name, some in systems.items() if note in some]) for note in notes]


def _prefix_names(note: str, names: list[str]) -> str:
    named = isinstance(note, Note) and note.system
    return f"{format_list(names, 3)}: {note}" if names and not named else note
