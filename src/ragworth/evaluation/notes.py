"""Whose notes are whose: what was noticed while systems retrieved, by system.

A note of a step begins with the step's written form, because what several systems have in common runs once; one of a
system begins with its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragworth.errors import format_list
from ragworth.evaluation.retrieval_models import all_steps
from ragworth.retrieval import Pipeline
from ragworth.tables import Contexts

SYSTEM_NOTE_PHRASES = (": nothing was retrieved for ", " not in the collection (")
"""Words of notes that begin with a system's name, even where a step is called the same."""


def notes_by_system(notes: Sequence[str], systems: Mapping[str, Pipeline | Contexts]) -> dict[str, list[str]]:
    """The notes on each system that has some; a step's note goes to all systems that have the step."""
    found: dict[str, list[str]] = {name: [] for name in systems}
    for note in notes:
        named = [name for name in systems if note.startswith(f"{name}: ")]
        if not named or not any(words in note for words in SYSTEM_NOTE_PHRASES):
            named = [name for name, system in systems.items() if _concerns(system, note)] or named
        for name in named:
            found[name].append(note)
    return {name: some for name, some in found.items() if some}


def _concerns(system: Pipeline | Contexts, note: str) -> bool:
    """Whether a note came with a system, or is one of its steps'."""
    if isinstance(system, Contexts):
        return note in system.notes
    forms = {str(step) for step in all_steps({"": system})}
    return any(note.startswith((f"{form}: ", f"{form} ")) for form in forms)


def prefix_system_names(notes: Sequence[str], found: Mapping[str, Sequence[str]]) -> list[str]:
    """The notes as they are told, each with the systems that it is on in front."""
    return [_prefix_names(note, [name for name, some in found.items() if note in some]) for note in notes]


def _prefix_names(note: str, names: list[str]) -> str:
    alone = len(names) == 1 and note.startswith(f"{names[0]}: ")
    return f"{format_list(names, 3)}: {note}" if names and not alone else note
