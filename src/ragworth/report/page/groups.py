"""Which systems are not significantly different: as letters, or as places if letters would be too many."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

MAX_LETTERED = 9
"""Letters that a person still reads; with more, a system names the places of those it doesn't differ from."""

ALONE = "≠"
"""What stands beside a system that differs from all others, where places are named."""


class SystemGroups(NamedTuple):
    """What stands beside each system, and whether that is letters."""

    of: dict[str, str]
    lettered: bool

    @property
    def words(self) -> str:
        """How to read it."""
        if self.lettered:
            return "Systems that share a letter are not significantly different"
        return f"A system is not significantly different from those at the places after ≈ ({ALONE}: differs from all)"


def group_systems(order: Sequence[str], different: set[tuple[str, str]]) -> SystemGroups:
    """Groups of systems in their order, best first; ``different`` has the pairs that differ significantly."""
    parts = _split_groups(order, different)
    if len(parts) > MAX_LETTERED:
        return SystemGroups(group_places(order, different), False)
    return SystemGroups(_assign_letters(order, parts), True)


def group_letters(order: Sequence[str], different: set[tuple[str, str]]) -> dict[str, str]:
    """Groups of systems of which no two differ significantly, as letters, the best group first."""
    return _assign_letters(order, _split_groups(order, different))


def _assign_letters(order: Sequence[str], parts: Sequence[set[str]]) -> dict[str, str]:
    return {system: "".join(_letter(i) for i, part in enumerate(parts) if system in part) for system in order}


def _split_groups(order: Sequence[str], different: set[tuple[str, str]]) -> list[set[str]]:
    """Starts from one group of all; each significant pair splits those that hold both; one inside another goes."""
    groups: list[set[str]] = [set(order)]
    for a, b in different:
        split = [part for group in groups for part in ((group - {a}, group - {b}) if {a, b} <= group else (group,))]
        distinct = [group for i, group in enumerate(split) if group not in split[:i]]
        groups = [group for group in distinct if not any(group < other for other in distinct)]
    place = {system: i for i, system in enumerate(order)}
    return sorted(groups, key=lambda group: sorted(place[system] for system in group))


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"({number + 1})"


def group_places(order: Sequence[str], different: set[tuple[str, str]]) -> dict[str, str]:
    """For each system the places, from 1, of all that do not differ significantly from it; itself is among them."""
    found: dict[str, str] = {}
    for system in order:
        alike = [i for i, other in enumerate(order, 1) if not {(system, other), (other, system)} & different]
        found[system] = f"≈ {_ranges(alike)}" if len(alike) > 1 else ALONE
    return found


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers with neighbours joined: 2, 5–7."""
    starts = [numbers[0], *(b for a, b in pairwise(numbers) if b > a + 1)]
    ends = [*(a for a, b in pairwise(numbers) if b > a + 1), numbers[-1]]
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in zip(starts, ends, strict=True))
