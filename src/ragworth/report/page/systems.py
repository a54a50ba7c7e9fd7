"""What the systems are: names alone do not say it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from ragworth.errors import format_count
from ragworth.report.page.overview import Overview
from ragworth.report.page.survey import Survey
from ragworth.results import Results

UNKNOWN = "not recorded"


class SystemEntry(NamedTuple):
    """A system, its pipeline or file as it is written, what it shows in words, and what was noticed of it."""

    name: str
    written: str
    shows: str
    notes: tuple[str, ...]


def describe_systems(results: Results, known: Survey, view: Overview) -> list[SystemEntry]:
    """The systems, best first."""
    written = results.manifest.get("systems")
    written = written if isinstance(written, Mapping) else {}
    noticed = system_notes(results)
    names = [each.system for each in view.standings]
    return [
        SystemEntry(name, str(written.get(name, UNKNOWN)), _shows(name, known), noticed.get(name, ())) for name in names
    ]


def system_notes(results: Results) -> dict[str, tuple[str, ...]]:
    """What was noticed while each system retrieved; only of those of which something was."""
    stages = results.manifest.get("stages")
    found: dict[str, tuple[str, ...]] = {}
    for stage in stages if isinstance(stages, list) else []:
        noted = stage.get("noted") if isinstance(stage, Mapping) else None
        for name, some in noted.items() if isinstance(noted, Mapping) else ():
            # The row, or the line, says already whose note it is.
            bare = (str(note).removeprefix(f"{name}: ") for note in (some if isinstance(some, list) else ()))
            found[str(name)] = tuple(bare)
    return {name: some for name, some in found.items() if some}


def _shows(name: str, known: Survey) -> str:
    """How many passages a system shows, and for how many queries it shows none."""
    sizes = known.sizes.get(name, Counter[int]())
    some = sorted(size for size in sizes if size)
    if not some:
        return "nothing"
    many = (
        format_count(some[-1], "passage")
        if some[0] == some[-1]
        else f"{some[0]:,} to {format_count(some[-1], 'passage')}"
    )
    bare, total = sizes.get(0, 0), sum(sizes.values())
    return f"{many} a query" + (f"; nothing for {bare:,} of {format_count(total, 'query', 'queries')}" if bare else "")
