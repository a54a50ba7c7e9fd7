"""Shorten very long names of systems in tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LONGEST = 60
"""Characters of a name that are printed in full."""
END = 24
"""Characters that stay at the end; what tells names apart has as many between beginning and end."""
MINUS = " − "
_COLUMN_TEXT = "system systems group baseline first second against best better judge model retriever reader run"
NAME_COLUMNS = frozenset(_COLUMN_TEXT.split())


def shorten_cells(rows: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Rows, the first being the head, with short names in the head and in columns of names."""
    head, *others = rows
    places = [place for place, title in enumerate(head) if title in NAME_COLUMNS]
    parts = {part for row in others for place in places for part in row[place].split(MINUS)}
    short = elide_names([*head, *parts])
    if not short:
        return rows
    shortened = [[short.get(title, title) for title in head]]
    for row in others:
        cells = list(row)
        for place in places:
            cells[place] = MINUS.join(short.get(part, part) for part in row[place].split(MINUS))
        shortened.append(cells)
    return shortened


def elide_names(names: Iterable[str]) -> dict[str, str]:
    """The long names with "…" for their middle. Where that makes names equal, the part in which they differ stays."""
    every = set(names)
    short = _elide(sorted(name for name in every if len(name) > LONGEST), None)
    distinct = len({short.get(name, name) for name in every}) == len(every)
    return short if distinct else {}


def _elide(names: Sequence[str], at: int | None) -> dict[str, str]:
    """Sorted names without their middle; ``at`` is where the first and the last of them differ."""
    shortened: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    for name in names:
        kept = "…" if at is None else f"…{name[at - END // 2 : at + END // 2]}…"
        shortened[name] = f"{name[: LONGEST - END - len(kept)]}{kept}{name[-END:]}"
        groups.setdefault(shortened[name], []).append(name)
    for group in groups.values():
        if len(group) > 1:
            shortened |= _elide(group, _first_difference(group[0], group[-1]))
    return shortened


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
